import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { applied, changesBetween, collisions, helpOf, offsetOf, parsed, pathAt, pathText, problemsOf, reference, settingsOf, textOf, valueText } from "../../src/trainmaster/console/static/views/settings.js";

const { components } = JSON.parse(readFileSync(new URL("../../docs/reference/openapi.json", import.meta.url), "utf8"));
const { schemas } = components;
const EXAMPLE = settingsOf(schemas.Settings.examples[0]);
const random = (seed) => () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;

test("the version is no part of the draft", () => {
  assert.deepEqual(settingsOf({ order: "fifo", version: 7 }), { order: "fifo" });
  assert.deepEqual(parsed(textOf(EXAMPLE)), { value: EXAMPLE, problem: "" });
});

test("a draft that is no JSON names the line", () => {
  const { value, problem } = parsed('{\n  "order": "fifo",\n  oops\n}');
  assert.equal(value, null);
  assert.match(problem, /^Line 3: /);
  assert.match(parsed("[]").problem, /no JSON object/);
});

test("every member of the text has its own path, wherever the cursor is in its line", () => {
  const settings = { a: { b: [1, { c: "x,{" }], "d\"e": null }, f: "g" };
  const text = textOf(settings);
  const of = (needle, more = 0) => pathText(pathAt(text, text.indexOf(needle) + more));
  assert.equal(of('"a"'), "a");
  assert.equal(of('"b"', 2), "a.b");
  assert.equal(of('"c"', -4), "a.b.1.c");
  assert.equal(of("x,{", 3), "a.b.1.c");
  assert.equal(of('"f"', 6), "f");
  assert.equal(pathText(pathAt('{"a": {"b": ', 12)), "a.b");
  assert.deepEqual(pathAt("", 0), []);
  assert.equal(offsetOf(text, "a.b.1.c"), text.indexOf('"c"') + 1);
  assert.equal(offsetOf(text, "f"), text.indexOf('"f"') + 1);
  assert.equal(offsetOf(text, "a.nothing"), 0);
});

test("changes are those that make the draft of the settings, and no others", () => {
  const next = random(3);
  const some = (depth) => {
    if (!depth || next() < 0.3) return [null, 1, "x", [1, 2], true][Math.floor(next() * 5)];
    return Object.fromEntries(["a", "b", "c"].filter(() => next() < 0.7).map((key) => [key, some(depth - 1)]));
  };
  for (let round = 0; round < 400; round += 1) {
    const [before, after] = [{ a: some(3), b: some(2) }, { a: some(3), c: some(2) }];
    assert.deepEqual(applied(before, changesBetween(before, after)), after);
    assert.deepEqual(changesBetween(before, JSON.parse(JSON.stringify(before))), []);
  }
});

test("changes of two people join unless they meet in one setting", () => {
  const base = { order: "fifo", shares: { vision: { weight: 1, nominal: { p: 4 } } }, maxActions: 50 };
  const mine = changesBetween(base, { ...base, order: "fair", maxActions: 10 });
  const theirs = { ...base, shares: { vision: { weight: 2, nominal: { p: 4 } } } };
  assert.deepEqual(applied(theirs, mine), { ...theirs, order: "fair", maxActions: 10 });
  assert.deepEqual(collisions(mine, changesBetween(base, theirs)), []);
  assert.deepEqual(collisions(mine, changesBetween(base, { ...base, order: "backfill" })), ["order"]);
  assert.deepEqual(collisions(mine, changesBetween(base, { ...base, order: "fair" })), []);
  const removed = changesBetween(base, { ...base, shares: {} });
  assert.deepEqual(collisions(removed, changesBetween(base, theirs)), ["shares.vision"]);
  assert.deepEqual(collisions(changesBetween(base, theirs), removed), ["shares.vision.weight"]);
});

test("help says what a member does, what it may be and its default", () => {
  const order = helpOf(schemas, ["order"]);
  assert.deepEqual([order.about, order.standard], ["Order of jobs of equal priority.", "backfill"]);
  assert.match(order.values, /^one of fifo, backfill/);
  assert.equal(helpOf(schemas, ["maxActions"]).values, "a whole number, at least 1, at most 500");
  assert.match(helpOf(schemas, ["patienceSeconds"]).values, /more than 0/);
  assert.match(helpOf(schemas, ["preemption", "maxPreemptions"]).values, /, or null$/);
  assert.match(helpOf(schemas, ["shares", "any", "budget", "dollars"]).about, /Maximum cost/);
  assert.equal(helpOf(schemas, ["retries", "spot"]).name, "retries.spot");
  assert.equal(helpOf(schemas, ["orders"]), null);
  assert.equal(helpOf(schemas, ["constructor"]), null);
  assert.equal(helpOf(schemas, []), null);
  assert.equal(helpOf({}, ["order"]), null);
});

test("the reference has every setting with its meaning, once", () => {
  const rows = reference(schemas);
  assert.equal(new Set(rows.map((each) => each.name)).size, rows.length);
  for (const name of ["order", "shares", "shares.NAME", "shares.NAME.budget.whenSpent", "expansion.maxPerType"]) assert.ok(rows.some((each) => each.name === name), name);
  assert.ok(rows.every((each) => each.about && each.values), JSON.stringify(rows.filter((each) => !each.about || !each.values)));
  assert.ok(!rows.some((each) => each.name === "version"));
});

test("a draft is checked by the schema before the API sees it", () => {
  assert.deepEqual(problemsOf(schemas, EXAMPLE), []);
  const wrong = { order: "fastest", orders: 1, maxActions: 1.5, cpuWeight: 2, preemption: { maxPreemptions: null, delaySeconds: -1 }, shares: { a: { nominal: { p: "4" }, admins: [1] } } };
  assert.deepEqual(problemsOf(schemas, wrong).map((each) => pathText(each.path)).sort(),
    ["cpuWeight", "maxActions", "order", "orders", "preemption.delaySeconds", "shares.a.admins.0", "shares.a.nominal.p"]);
  assert.equal(valueText(undefined), "–");
  assert.equal(valueText(600, ["preemption", "cooldownSeconds"]), "600 (10 min)");
  assert.equal(valueText(600, ["maxActions"]), "600");
  assert.equal(valueText({ a: [1] }), '{ "a": [ 1 ] }');
});
