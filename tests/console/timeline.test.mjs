import assert from "node:assert/strict";
import { test } from "node:test";

import { DAY, HOUR, MINUTE } from "../../src/trainmaster/console/static/lib/time.js";
import { drawnAt, fit, following, panned, periodOf, queryOf, readOf, zoomed } from "../../src/trainmaster/console/static/views/period.js";
import { peak, stack } from "../../src/trainmaster/console/static/views/stack.js";
import { story, summary } from "../../src/trainmaster/console/static/views/story.js";
import { draw, kept, labelOf, lane, lanesOf, MAX_BARS, neighbor } from "../../src/trainmaster/console/static/views/timeline.js";
import { interval, iso, NOW, scheduleOf } from "./cases.mjs";

const random = (seed) => () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
const KINDS = ["past", "running", "planned", "planned", "reserved", "held", "warm", "external", "closed"];
const VIEW = { from: NOW - 6 * HOUR, to: NOW + 6 * HOUR, width: 1_000 };

/** Return intervals at random: some without length, without end, or beyond the cap. */
function some(next, count) {
  const pick = (limit) => Math.floor(next() * limit);
  return Array.from({ length: count }, (_, number) => {
    const from = pick(1_400) - 700;
    const kind = KINDS[pick(KINDS.length)];
    return interval(kind, from, pick(12) ? from + pick(pick(2) ? 400 : 4) : null, { jobName: ["warm", "external", "closed"].includes(kind) ? null : `job-${pick(count)}`, share: "abc"[pick(3)], units: 1 + pick(5), attempt: number });
  });
}

test("rows are never used twice at a time, and only the data exceeds the cap", () => {
  const next = random(5);
  for (let round = 0; round < 300; round += 1) {
    const cap = Math.floor(next() * 12);
    const items = some(next, 30).map((each) => ({ from: Date.parse(each.from), until: Date.parse(each.until ?? iso(900)), units: each.units, job: each.jobName ?? "", soft: each.kind === "warm" || each.kind === "held" }));
    const { rows, runs } = stack(items, cap);
    assert.equal(rows, Math.max(cap, peak(items.filter((each) => !each.soft))));
    const all = runs.flat();
    for (const [number, one] of all.entries()) {
      assert.ok(one.low >= 0 && one.units > 0 && one.low + one.units <= rows && one.until > one.from);
      for (const other of all.slice(number + 1)) {
        const apart = one.until <= other.from || other.until <= one.from || one.low + one.units <= other.low || other.low + other.units <= one.low;
        assert.ok(apart, JSON.stringify([one, other]));
      }
    }
    items.forEach((each, number) => {
      const units = runs[number].reduce((sum, run) => sum + run.units, 0);
      assert.ok(each.soft ? units <= each.units : units === (each.until > each.from ? each.units : 0));
      for (const run of runs[number]) assert.ok(run.from === each.from && (each.soft ? run.until <= each.until : run.until === each.until));
    });
  }
});

test("a job keeps its rows over attempts and sizes, and is split only where no gap is wide enough", () => {
  const item = (from, until, units, job) => ({ from, until, units, job, soft: false });
  const { runs } = stack([item(0, 10, 2, "a"), item(0, 8, 2, "b"), item(10, 20, 2, "b"), item(10, 20, 1, "a")], 4);
  assert.deepEqual(runs.map(([run]) => run.low), [0, 2, 2, 0]);
  const split = stack([item(0, 10, 1, "x"), item(0, 5, 1, "y"), item(0, 9, 1, "z"), item(0, 4, 1, "w"), item(5, 9, 2, "late")], 4);
  assert.deepEqual(split.runs[4].map(({ low, units }) => [low, units]), [[2, 2]]);
  const narrow = stack([item(0, 10, 1, "x"), item(0, 5, 1, "y"), item(0, 9, 1, "z"), item(0, 5, 1, "w"), item(0, 4, 1, "v"), item(5, 8, 3, "late")], 5);
  assert.equal(narrow.runs[5].reduce((sum, run) => sum + run.units, 0), 3);
  assert.equal(narrow.rows, 5);
});

test("every interval is drawn or counted, at any zoom, with few enough bars", () => {
  const next = random(9);
  for (let round = 0; round < 60; round += 1) {
    const pools = [0, 1, 2].map((number) => ({ name: `pool-${number}`, kind: "on-demand", instanceType: "t", cap: 6, draining: false, leftOut: 0, intervals: some(next, 40) }));
    const lanes = pools.map((pool) => lane(pool, NOW + 48 * HOUR));
    const view = zoomed({ ...VIEW, follows: false }, 0.02 + next() * 40, NOW, NOW);
    const { bars, unseen } = draw(lanes, { ...view, width: 50 + next() * 1_500 }, NOW);
    const told = bars.flat().reduce((sum, each) => sum + each.count, 0);
    const closed = lanes.reduce((sum, each) => sum + each.closed.length, 0);
    assert.equal(told + unseen + closed, 120);
    for (const each of bars.flat()) {
      assert.ok(each.rects.length > 0 && each.rects.every((rect) => rect.width >= 0 && Number.isFinite(rect.x)));
      assert.ok(labelOf(each, NOW).length > 10);
    }
    assert.equal(new Set(bars.flat().filter((each) => each.count > 1).map((each) => each.id)).size, bars.flat().filter((each) => each.count > 1).length);
  }
});

test("four thousand short runs become at most two thousand bars", () => {
  const intervals = Array.from({ length: 4_000 }, (_, number) => interval("past", -700 + number / 6, -700 + number / 6 + 0.16, { jobName: `sweep-${number}` }));
  const lanes = [lane(scheduleOf(intervals).pools[0], NOW)];
  const far = draw(lanes, VIEW, NOW);
  assert.equal(far.bars[0].reduce((sum, each) => sum + each.count, 0) + far.unseen, 4_000);
  assert.ok(far.bars[0].length < 200 && far.merged > 1_900);
  const near = draw(lanes, { from: NOW - 700 * MINUTE, to: NOW, width: 60_000 }, NOW);
  assert.ok(near.bars[0].length <= MAX_BARS);
  assert.equal(near.bars[0].reduce((sum, each) => sum + each.count, 0) + near.unseen, 4_000);
});

test("what is kept for a job ends where its planned start begins, and is told there if nothing is left", () => {
  const { placed } = lane(scheduleOf([interval("planned", 10, 60, { jobName: "a" }), interval("reserved", 10, 60, { jobName: "a" }), interval("held", 0, 90, { jobName: "a" })]).pools[0], NOW + HOUR);
  assert.deepEqual(placed.map((each) => each.runs.length), [1, 0, 1]);
  assert.deepEqual(placed[0].also, ["reserved"]);
  assert.equal(placed[2].ends, placed[0].begins);
});

test("a running bar is divided by the present, and a planned one has its range", () => {
  const { bars } = draw([lane(scheduleOf([interval("running", -60, 60, { jobName: "a", untilLow: iso(30), untilHigh: iso(120) }), interval("planned", 60, 90, { jobName: "b", fromLow: iso(30), fromHigh: iso(120) })]).pools[0], NOW)], VIEW, NOW);
  const [one, other] = bars[0];
  assert.ok(Math.abs(one.split - 500) < 1e-6 && one.x < 500 && one.x + one.width > 500);
  assert.ok(one.end.low < one.end.at && one.end.at < one.end.high);
  assert.ok(other.start.low < other.start.at && other.start.at === other.x && other.start.at < other.start.high);
  assert.match(labelOf(one, NOW), /^a, share s: runs on 1 × p since .* expected to end at .* \(/);
});

test("arrows lead to the next bar in time, the one above, and the next lane", () => {
  const pool = (name, intervals) => ({ ...scheduleOf(intervals).pools[0], name });
  const lanes = [pool("p", [interval("past", -120, -60, { jobName: "a" }), interval("past", -120, -90, { jobName: "b" }), interval("running", -60, 60, { jobName: "c" })]), pool("empty", []), pool("q", [interval("planned", 10, 60, { jobName: "d" })])];
  const { bars } = draw(lanes.map((each) => lane(each, NOW)), VIEW, NOW);
  const id = (job) => bars.flat().find((each) => each.job === job).id;
  const to = (job, key) => neighbor(bars, id(job), key)?.job ?? null;
  assert.deepEqual([to("a", "ArrowRight"), to("b", "ArrowRight"), to("a", "ArrowUp"), to("b", "ArrowDown"), to("c", "ArrowDown"), to("d", "ArrowUp"), to("a", "ArrowLeft"), to("d", "ArrowDown")], ["b", "c", "b", "a", "d", "c", null, null]);
  assert.deepEqual([to("b", "Home"), to("a", "End"), neighbor(bars, "gone", "ArrowUp").job, neighbor([], "x", "End")], ["a", "c", "a", null]);
});

test("a story tells what a job did, will do, and who touches it", () => {
  const schedule = scheduleOf([
    interval("past", -120, -60, { jobName: "a", outcome: "preempted", attempt: 1 }), interval("running", -60, 30, { jobName: "b" }),
    interval("planned", 30, 60, { jobName: "a", fromLow: iso(20), fromHigh: iso(40) }), interval("planned", 200, 260, { jobName: "far" }),
  ]);
  const { chapters, touches } = story(schedule, "a", NOW, ["way"]);
  assert.deepEqual(chapters.map((each) => each.kind), ["past", "planned"]);
  assert.match(chapters[0].text, /^started on 1\u00a0×\u00a0p and was preempted after 1 h$/);
  assert.deepEqual([chapters[0].jobs, chapters[0].after, chapters[1].jobs, chapters[1].after], [["b"], "then started", ["b"], "when these end:"]);
  assert.deepEqual([...touches], ["a", "way", "b"]);
  assert.deepEqual(story(schedule, "gone", NOW).chapters, []);
  assert.match(summary(schedule, NOW), /^1 running and 2 expected to start\. Next: a, /);
});

test("the address holds the period", () => {
  const next = random(3);
  for (let round = 0; round < 200; round += 1) {
    const from = NOW - 10 * DAY * next();
    const period = { from, to: from + HOUR + next() * 5 * DAY, follows: next() < 0.5 };
    const back = periodOf(queryOf(period, NOW), NOW);
    if (back === null) assert.ok(period.follows);
    else assert.ok(back.follows === period.follows && Math.abs(back.from - period.from) <= 6_000 && Math.abs(back.to - period.to) <= 6_000);
  }
  for (const query of [{}, { before: "x", after: "1" }, { from: iso(5), to: iso(0) }, { from: iso(0), to: iso(90_000) }]) assert.equal(periodOf(query, NOW), null);
});

test("a period follows the present, zooms about a time and moves", () => {
  const period = { from: NOW - HOUR, to: NOW + 2 * HOUR, follows: true };
  assert.deepEqual(zoomed(period, 2, NOW, NOW), { from: NOW - 2 * HOUR, to: NOW + 4 * HOUR, follows: true });
  assert.equal(zoomed(period, 0.5, NOW + HOUR, NOW).follows, false);
  assert.equal(zoomed(period, 1e-9, NOW, NOW).to - zoomed(period, 1e-9, NOW, NOW).from, 5 * MINUTE);
  assert.deepEqual(panned(period, 1 / 3), { from: NOW, to: NOW + 3 * HOUR, follows: false });
  assert.deepEqual(following(panned(period, 5), NOW), { ...period, follows: true });
});

test("the first period shows all that is near", () => {
  const shown = fit(scheduleOf([interval("past", -300, -200, { jobName: "a" }), interval("planned", 10, 400, { jobName: "b" }), interval("external", -5_000, null, { jobName: null })]), NOW);
  assert.ok(shown.from <= NOW - 300 * MINUTE && shown.from > NOW - 400 * MINUTE && shown.to >= NOW + 400 * MINUTE && shown.to < NOW + 500 * MINUTE);
  const empty = fit(scheduleOf([]), NOW);
  assert.ok(empty.from < NOW && empty.to > NOW);
});

test("one read serves all periods near the present, and others change rarely", () => {
  assert.equal(readOf(null, NOW), "/schedule?limit=1000");
  assert.equal(readOf({ from: NOW - 20 * HOUR, to: NOW + 40 * HOUR, follows: true }, NOW), readOf(null, NOW));
  const past = readOf({ from: NOW - 50 * HOUR, to: NOW - 41 * HOUR, follows: false }, NOW);
  assert.equal(past, "/schedule?from=2026-11-19T12%3A00%3A00Z&to=2026-11-20T00%3A00%3A00Z&limit=1000");
  assert.equal(readOf({ from: NOW - 50 * HOUR + MINUTE, to: NOW - 41 * HOUR + MINUTE, follows: false }, NOW), past);
});

test("what has not changed in a schedule stays the same object, so that it is not drawn again", () => {
  const next = random(21);
  const schedule = { ...scheduleOf(some(next, 60)), to: iso(48 * 60 - 30) };
  const [pool] = schedule.pools;
  const twice = { ...schedule, pools: [pool, { ...pool, name: "other" }] };
  const lanes = lanesOf(twice);
  const before = draw(lanes, VIEW, NOW).bars;
  assert.deepEqual(kept([], before), before);
  assert.ok(kept(before, draw(lanesOf(twice), VIEW, NOW).bars).every((own, number) => own === before[number]), "nothing has changed");
  const [first, ...others] = pool.intervals;
  const changed = lanesOf({ ...twice, to: iso(48 * 60 - 29), pools: [{ ...pool, intervals: [{ ...first, share: "z" }, ...others] }, twice.pools[1]] });
  assert.ok(changed[0] !== lanes[0] && changed[1] === lanes[1]);
  const after = kept(before, draw(changed, VIEW, NOW).bars);
  assert.equal(after[1], before[1]);
  const same = after[0].filter((each) => before[0].includes(each));
  assert.ok(same.length >= after[0].length - 2 && same.length > 10, `${same.length} of ${after[0].length} bars are kept`);
  assert.deepEqual(after[0], draw(changed, VIEW, NOW).bars[0]);
});

test("a chart that follows the present moves by a pixel at a time", () => {
  const times = Array.from({ length: 100 }, (_, number) => drawnAt(NOW + number * 5_000, 12 * HOUR, 1_000));
  assert.ok(times.every((at, number) => at <= NOW + number * 5_000 && NOW + number * 5_000 - at < (12 * HOUR) / 1_000));
  const steps = (100 * 5_000) / ((12 * HOUR) / 1_000);
  assert.ok(Math.abs(new Set(times).size - steps) <= 1);
});
