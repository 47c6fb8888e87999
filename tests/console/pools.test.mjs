import assert from "node:assert/strict";
import { test } from "node:test";

import { answered, appliesTo, changeOfPrice, consequences, countdown, facts, impact, priceOf } from "../../src/trainmaster/console/static/views/pools.js";
import { attempt, iso, job, NOW, P5, page, pool } from "./cases.mjs";

const full = (changes = {}) => pool({
  trainingPlanArn: null, planStatus: null, startsAt: null, madeAt: null, price: 0, onDemandPrice: 10, vcpus: 192, memoryGib: 2048, accelerator: "nvidia",
  acceleratorMemoryGib: 640, quotaAt: null, countExternal: true, ...changes,
});
const running = job("r", { jobState: "running", attempts: [attempt(1, { units: { [P5]: 3 } }), attempt(2, { outcome: "preempted" })] });
const either = job("either", { pools: [P5, "other"], demand: [{ [P5]: 2 }, { other: 2 }] });
const only = job("only");
const pools = [full({ used: 3, waiting: 2 }), full({ name: "other" })];

test("the impact of a removal has each waiting job once: elsewhere, or nowhere", () => {
  const found = impact(pools[0], pools, page([running]), page([either, only, job("far", { pools: ["other"], demand: [{ other: 1 }] })]));
  assert.deepEqual([found.holders.map((each) => each.jobName), found.held], [["r"], 3]);
  assert.deepEqual([found.moved, found.stranded].map((jobs) => jobs.map((each) => each.jobName)), [["either"], ["only"]]);
  assert.equal(found.more, false);
  const closed = impact(pools[0], [pools[0], full({ name: "other", state: "draining" })], page([]), page([either], { nextCursor: "x" }));
  assert.deepEqual([closed.moved.length, closed.stranded.length, closed.more], [0, 1, true]);
});

test("what follows from an action is told before it", () => {
  const found = impact(pools[0], pools, page([running]), page([either, only]));
  const told = (action, cap = 8, of = pools[0]) => consequences(action, of, found, cap, [either, only]).join(" ");
  assert.equal(told("drain"), "It starts no more jobs. r keeps 3 until the end. 1 waiting job can run elsewhere: either. 1 waiting job can run nowhere else and wait until you resume it: only.");
  assert.equal(told("resume"), "It starts jobs again. 2 waiting jobs could run there.");
  assert.match(told("remove"), /^r holds 3 of it and would count toward no pool\..* nowhere else and would wait until a pool can hold them: only\.$/);
  assert.equal(told("cap"), "The cap is 8 now.");
  assert.equal(told("cap", 1), "The cap 8 becomes 1. Jobs use 3. They keep running, 2 beyond the cap, and none starts there until fewer than 1 are used. only asks for more and could never start.");
  assert.equal(told("cap", 12), "The cap 8 becomes 12. 2 waiting jobs could use 4 more instances.");
  assert.match(told("cap", 12, full({ quota: 8 })), /The account's quota is 8, which applies\.$/);
  assert.equal(told("cap", NaN), "The cap is a whole number from 0.");
  assert.match(consequences("drain", pools[0], impact(pools[0], pools, page([]), page([either], { nextCursor: "x" })), 8, []).join(" "), /No job holds instances of it\. At least 1 waiting job can run elsewhere/);
});

test("actions fit the state of a pool", () => {
  const applying = (of) => ["cap", "drain", "resume", "remove"].filter((action) => appliesTo(action, of));
  assert.deepEqual(applying(full()), ["cap", "drain", "remove"]);
  assert.deepEqual(applying(full({ state: "drained" })), ["cap", "resume", "remove"]);
  assert.deepEqual(applying(full({ kind: "service" })), []);
});

test("the answer of the API is a sentence", () => {
  assert.equal(answered("cap", "p", { cap: 5, state: "in use" }), "p has a cap of 5 and is in use.");
  assert.equal(answered("remove", "p", { moved: 1, stranded: 2, running: ["a", "b"], more: true }), "p is removed. At least 1 waiting job can run elsewhere, at least 2 nowhere else. a and b keep running.");
});

test("a training plan counts down, and prices are told", () => {
  assert.match(countdown(full({ startsAt: iso(180), endsAt: iso(600) }), NOW), /^begins in 3 h, /);
  assert.match(countdown(full({ startsAt: iso(-180), endsAt: iso(600) }), NOW), /^ends in 10 h, /);
  assert.match(countdown(full({ endsAt: iso(-1) }), NOW), /^ended /);
  assert.equal(countdown(full(), NOW), "");
  assert.deepEqual([priceOf(full()), priceOf(full({ price: 4 })), priceOf(full({ onDemandPrice: 0 }))], ["$10.00 on demand", "$4.00", ""]);
  assert.deepEqual([changeOfPrice(12.5), changeOfPrice(-1), changeOfPrice(null)], ["+$12.50 per hour", "−$1.00 per hour", "unknown"]);
  const known = Object.fromEntries(facts(full({ quota: 4, quotaAt: iso(0), madeFor: "bert", madeAt: iso(-5), trainingPlanArn: "arn", endsAt: iso(60) }), NOW));
  assert.equal(known.Price, "$10.00 on demand an hour for each instance, at most $80.00 for all");
  assert.match(known["Training plan"], /^arn, ends in 1 h/);
  assert.match(known.Quota, /^4, which applies as of/);
});
