import assert from "node:assert/strict";
import { test } from "node:test";

import { patched } from "../../src/trainmaster/console/static/lib/patch.js";
import { hashOf, parseRoute, readPath } from "../../src/trainmaster/console/static/lib/route.js";
import { clock, duration, HOUR, moment, precise, spoken, utc } from "../../src/trainmaster/console/static/lib/time.js";
import { counted, demandText, listed, person, place, STATES, stateOf } from "../../src/trainmaster/console/static/lib/words.js";
import { iso, job, NOW, P5 } from "./cases.mjs";

test("durations have their two largest units", () => {
  const cases = [[0, "0 s"], [59_499, "59 s"], [60_000, "1 min"], [3_600_000, "1 h"], [11_400_000, "3 h 10 min"], [47.9 * HOUR, "47 h 54 min"], [49 * HOUR, "2 d 1 h"], [-5, "0 s"]];
  for (const [milliseconds, text] of cases) assert.equal(duration(milliseconds), text);
});

test("a time within an hour is relative, another one is a clock's", () => {
  assert.equal(moment(iso(-12), NOW), "12 min ago");
  assert.equal(moment(iso(12), NOW), "in 12 min");
  assert.equal(moment(iso(0), NOW), "now");
  assert.match(moment(iso(61), NOW), /^\d\d:\d\d$/);
  assert.match(clock(iso(-3 * 24 * 60), NOW), /^[A-Z][a-z]+ \d\d:\d\d$/);
  assert.match(clock(iso(-30 * 24 * 60), NOW), /^\d+ [A-Z][a-z]+ \d\d:\d\d$/);
  assert.equal(utc("2026-11-21T16:04:05.123Z"), "2026-11-21 16:04:05 UTC");
});

test("a time of the last day has its seconds", () => {
  assert.match(precise(iso(-90), NOW), /^\d\d:\d\d:\d\d$/);
  assert.equal(precise(iso(-3 * 24 * 60), NOW), clock(iso(-3 * 24 * 60), NOW));
});

test("a sentence of the API shows the viewer's times, and counts that do not break", () => {
  const shown = spoken("waits for 2 of 2 x ml.p5: expected by 2026-11-21T16:16:00Z", NOW);
  assert.equal(shown, `waits for 2 of 2\u00a0×\u00a0ml.p5: expected by ${clock(iso(16), NOW)}`);
  assert.equal(spoken("held by arn:aws:sts::1234:assumed-role/ml/ada until released by arn:aws-cn:iam::1:user/b", NOW), "held by ml/ada until released by b");
  assert.equal(spoken("no time and no count: 2 xylophones", NOW), "no time and no count: 2 xylophones");
});

test("an address survives its way through the fragment", () => {
  const cases = [["job", { name: "bert-1" }], ["queue", { query: { state: "held", text: "a b&c=d" } }], ["job", { name: "a/b?c#d %" }], ["now", {}]];
  for (const [name, parts] of cases) {
    const route = parseRoute(hashOf(name, parts));
    assert.deepEqual(route, { page: name, name: parts.name ?? "", query: parts.query ?? {} });
  }
  assert.deepEqual(parseRoute(""), { page: "now", name: "", query: {} });
  assert.equal(parseRoute("#/job/%E0%A4").name, "%E0%A4");
  assert.equal(hashOf("queue", { query: { state: "", share: null } }), "#/queue");
  assert.equal(readPath("/jobs", { state: "held", share: undefined, limit: 100 }), "/jobs?state=held&limit=100");
});

test("changes make a new value, and leave alone what has not changed", () => {
  const before = { jobs: [{ jobName: "a", reason: { type: "x" } }, { jobName: "b" }], nextCursor: null };
  const after = patched(before, [[["jobs", 1, "priority"], 5], [["nextCursor"], "c"]]);
  assert.deepEqual(after, { jobs: [{ jobName: "a", reason: { type: "x" } }, { jobName: "b", priority: 5 }], nextCursor: "c" });
  assert.equal(after.jobs[0], before.jobs[0]);
  assert.equal(before.jobs[1].priority, undefined);
  assert.deepEqual(patched({ a: 1, b: 2 }, [[["a"]]]), { b: 2 });
  assert.equal(patched(1, [[[], 2]]), 2);
  const moved = patched(before, [[["jobs"], [{ jobName: "c" }], [1, -1, 0]], [["jobs", 0, "priority"], 1]]);
  assert.deepEqual(moved.jobs, [{ jobName: "b", priority: 1 }, { jobName: "c" }, before.jobs[0]]);
  assert.equal(moved.jobs[2], before.jobs[0]);
  assert.equal(patched(before, []), before);
});

test("every state has a mark of its own", () => {
  const marks = Object.values(STATES).map((each) => each.mark);
  assert.equal(new Set(marks).size, marks.length);
  assert.equal(stateOf("unheard-of").label, "unheard-of");
});

test("demands are words", () => {
  assert.equal(demandText(job("a")), `2\u00a0×\u00a0${P5}`);
  assert.equal(demandText(job("a", { demand: [{ a: 1 }, { b: 2 }, { c: 1 }] })), "1\u00a0×\u00a0a or 2 other pools");
  assert.equal(demandText(job("a", { demand: [] })), "–");
  assert.match(demandText(job("a", { elastic: { minInstances: 1, maxInstances: 4 } })), /\(1 to 4\)/);
  const resources = { accelerators: 8, acceleratorMemoryGib: 0, vcpus: 96, memoryGib: 0, accelerator: "nvidia" };
  assert.equal(demandText(job("a", { resources, instances: 2 })), "2\u00a0×\u00a08 GPUs, 96 vCPUs");
});

test("small words", () => {
  assert.equal(counted(1, "job"), "1 job");
  assert.equal(listed(["a"]), "a");
  assert.equal(listed(["a", "b", "c"]), "a, b and c");
  assert.equal(listed(["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
  assert.equal(person("arn:aws:sts::1:assumed-role/ml/ada"), "ada");
  assert.equal(person(null), "unknown");
  assert.equal(place(job("a", { positionAtLeast: 500 })), "> 500");
});
