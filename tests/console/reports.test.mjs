import assert from "node:assert/strict";
import { test } from "node:test";

import { charts, chosen, COLUMNS, csvOf, firstPart, headline, joined, money, nameOf, nextPart, notes, percentile, utilization } from "../../src/trainmaster/console/static/views/reports.js";
import { iso, NOW, P5 } from "./cases.mjs";

const group = (name, changes = {}) => ({ name, waits: [], waitP50Seconds: null, waitP95Seconds: null, ...Object.fromEntries(COLUMNS.filter((each) => !each.startsWith("wait")).map((each) => [each, 0])), ...changes });
const waited = (name, waits, changes = {}) => group(name, { waits, waitP50Seconds: percentile(waits, 0.5), waitP95Seconds: percentile(waits, 0.95), started: waits.length, jobs: waits.length, ...changes });
const usage = (groups, changes = {}) => ({ at: iso(0), from: iso(-600), to: iso(0), by: "share", jobsRead: 1, total: group(null), groups, nextCursor: null, ...changes });
const random = (seed) => () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;

test("choices of an address are those that there are", () => {
  assert.deepEqual(chosen({}), { days: 7, by: "share" });
  assert.deepEqual(chosen({ days: "30", by: "user" }), { days: 30, by: "user" });
  assert.deepEqual(chosen({ days: "365", by: "toString" }), { days: 7, by: "share" });
  assert.equal(firstPart(7, "pool", NOW), "/usage?from=2026-11-14T16%3A00%3A00.000Z&to=2026-11-21T16%3A00%3A00.000Z&by=pool");
  assert.equal(nextPart(usage([])), null);
  assert.match(nextPart(usage([], { nextCursor: "x" })), /&by=share&cursor=x$/);
});

test("a percentile is one of the values, at the nearest rank", () => {
  assert.equal(percentile([], 0.5), null);
  assert.deepEqual([0, 0.5, 0.95, 1].map((each) => percentile([1, 2, 3, 4], each)), [1, 2, 4, 4]);
  const twenty = Array.from({ length: 20 }, (_, number) => number + 1);
  assert.equal(percentile(twenty, 0.95), 19);
});

test("parts of a report add up to the report, in whatever parts it comes", () => {
  const next = random(9);
  for (let round = 0; round < 100; round += 1) {
    const jobs = Array.from({ length: 12 }, () => ({ share: "abc"[Math.floor(next() * 3)], wait: Math.floor(next() * 900) }));
    const of = (some, name) => waited(name, some.map((each) => each.wait).sort((one, other) => one - other), { dollars: some.length });
    const report = (some) => usage([...new Set(some.map((each) => each.share))].sort().map((name) => of(some.filter((each) => each.share === name), name)), { total: of(some, null), jobsRead: some.length });
    const cut = Math.floor(next() * 13);
    assert.deepEqual(joined(report(jobs.slice(0, cut)), report(jobs.slice(cut))), report(jobs));
  }
});

test("a sentence sums a report up", () => {
  assert.equal(headline(usage([]), 7), "No job ran in the last 7 days.");
  assert.equal(headline(usage([], { total: waited(null, [600, 900], { acceleratorHours: 1234.5 }) }), 30), "2 jobs used 1,235 GPU hours in 30 days, after a median wait of 10 min.");
  assert.equal(headline(usage([], { total: group(null, { jobs: 1, acceleratorHours: 8 }) }), 7), "1 job used 8 GPU hours in 7 days.");
});

test("priorities are in the order of the queue", () => {
  const found = joined(usage([group("10"), group("-3")], { by: "priority" }), usage([group("9")], { by: "priority" }));
  assert.deepEqual(found.groups.map((each) => each.name), ["10", "9", "-3"]);
});

test("charts have one scale each, and nothing lies beyond it", () => {
  const found = charts(usage([waited("a", [60, 600], { acceleratorHours: 10, lostAcceleratorHours: 2, dollars: 5 }), group("b", { acceleratorHours: 5, lostAcceleratorHours: 9 })]));
  assert.deepEqual(found.hours.map((row) => row.marks.map((mark) => [mark.look, mark.width])), [[["group", 80], ["lost", 20]], [["lost", 50]]]);
  assert.deepEqual(found.waits.map((row) => [row.name, row.tick, row.marks[0].x + row.marks[0].width, row.text]), [["a", 10, 100, "1 min to 10 min"]]);
  assert.deepEqual(found.dollars.map((row) => row.text), ["$5.00", "$0.00"]);
  assert.deepEqual(charts(usage([])), { hours: [], waits: [], dollars: [] });
  assert.equal(nameOf("user", group("arn:aws:sts::1:assumed-role/ml/ada")), "ada");
});

test("utilization counts against the caps, for pools of instances", () => {
  const pools = [{ name: P5, cap: 8, kind: "on-demand" }, { name: "idle", cap: 2, kind: "spot" }, { name: "e", cap: 9, kind: "service" }, { name: "closed", cap: 0, kind: "on-demand" }];
  const found = utilization(usage([group(P5, { instanceHours: 20 })], { by: "pool" }), pools);
  assert.deepEqual(found.map((row) => [row.name, row.marks[0].width, row.text]), [[P5, 25, "25 % of 80 instance hours"], ["idle", 0, "0 % of 20 instance hours"]]);
});

test("a CSV file has every number, and no formula", () => {
  const rows = csvOf(usage([group("a", { dollars: 0.1 }), group('=HYPERLINK("x"),y')])).split("\r\n");
  assert.equal(rows[0], ["from", "to", "share", ...COLUMNS].join(","));
  assert.equal(rows[1].split(",").length, COLUMNS.length + 3);
  assert.ok(rows[2].includes('"\'=HYPERLINK(""x""),y"'));
  assert.equal(rows.length, 4);
  assert.deepEqual(notes(group(null)), []);
  assert.equal(notes(group(null, { unpricedInstanceHours: 2, unlistedAttempts: 3 })).length, 2);
  assert.equal(money(1234.5), "$1,234.50");
});
