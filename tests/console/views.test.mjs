import assert from "node:assert/strict";
import { test } from "node:test";

import { HOUR, MINUTE } from "../../src/trainmaster/console/static/lib/time.js";
import { awsLinks, facts, headline as jobHeadline, next, speeds, strip, ticks } from "../../src/trainmaster/console/static/views/job.js";
import * as nowPage from "../../src/trainmaster/console/static/pages/now.js";
import { changes, headline, nextStart, paused, poolFigures, troubles } from "../../src/trainmaster/console/static/views/now.js";
import { answered, appliesTo, boundsOf, consequence, PAGE, readsOf, reasonText, sections } from "../../src/trainmaster/console/static/views/queue.js";
import { axisSpan, poolSegments, scale, startRange, tints, usedBy } from "../../src/trainmaster/console/static/views/scale.js";
import { attempt, iso, job, NOW, P5, page, pool } from "./cases.mjs";

const starts = (expected, low = expected, high = expected) => ({ estimatedStart: iso(expected), estimatedStartLow: iso(low), estimatedStartHigh: iso(high) });
const use = (name, running, waiting, used = {}) => ({ name, running, waiting, pools: Object.entries(used).map(([pool, units]) => ({ pool, used: units })) });
const random = (seed) => () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;

test("a scale keeps to its ends", () => {
  const at = scale(0, 10);
  assert.deepEqual([-5, 0, 5, 10, 15].map(at), [0, 0, 50, 100, 100]);
  assert.equal(scale(5, 5)(5), 0);
});

test("a start's bar lies on the axis, whatever the estimate", () => {
  const next = random(7);
  for (let round = 0; round < 500; round += 1) {
    const minutes = [next(), next(), next()].map((each) => each * 6_000 - 600).sort((one, other) => one - other);
    const one = job("a", starts(minutes[1], minutes[0], minutes[2]));
    const span = axisSpan([one], NOW);
    const { x, width, tick } = startRange(one, NOW, span);
    assert.ok(x >= 0 && width > 0 && x + width <= 100.0001 && tick >= 0 && tick <= 100, JSON.stringify({ minutes, x, width, tick }));
  }
  assert.equal(startRange(job("a"), NOW, HOUR), null);
  assert.equal(axisSpan([], NOW), HOUR / 12);
  assert.equal(axisSpan([job("a", starts(100))], NOW), 2 * HOUR);
  assert.equal(axisSpan([job("a", starts(100_000))], NOW), 48 * HOUR);
});

test("the parts of a pool's bar fill it, and none is lost", () => {
  const next = random(11);
  const some = (limit) => Math.floor(next() * limit);
  for (let round = 0; round < 500; round += 1) {
    const one = pool({ cap: some(9), used: some(9), held: some(3), external: some(3), warm: some(3) });
    const parts = poolSegments(one, ["a", "b", "c"].slice(some(4)).map((share) => [share, some(5)]));
    const units = (kind) => parts.filter((each) => each.kind === kind).reduce((sum, each) => sum + each.units, 0);
    assert.equal(units("used"), one.used);
    assert.deepEqual([units("held"), units("external"), units("warm")], [one.held, one.external, one.warm]);
    assert.ok(Math.abs(parts.reduce((sum, each) => sum + each.width, 0) - (parts.length ? 100 : 0)) < 1e-6);
    for (const [number, each] of parts.entries()) assert.ok(Math.abs(each.x - parts.slice(0, number).reduce((sum, one) => sum + one.width, 0)) < 1e-6);
  }
  assert.deepEqual(poolSegments(pool({ state: "draining", cap: 2 }), []).map((each) => each.kind), ["closed"]);
});

test("the use of a pool by share is what the queue counts", () => {
  const used = usedBy({ more: false, shares: [use("a", 1, 0, { [P5]: 2 }), use("b", 1, 0, { other: 1 })] }, P5);
  assert.deepEqual(used, [["a", 2], ["b", 0]]);
  assert.deepEqual(poolSegments(pool({ used: 3, cap: 3 }), used).map((each) => [each.share, each.units]), [["a", 2], ["", 1]]);
});

test("a share keeps its color, and eight shares have eight", () => {
  const of = tints();
  const names = ["language", "speech", "vision", "a", "b", "c", "d", "e"];
  const first = names.map(of);
  assert.equal(new Set(first).size, 8);
  assert.deepEqual([...names].reverse().map(of).reverse(), first);
  assert.ok(of("ninth") < 8);
});

test("Now says how many run and wait, and which one is next", () => {
  const queue = page([job("a", starts(70)), job("b", starts(10))], { pools: [] });
  const cases = [[[[1, 1], [0, 1]], false, "1 job runs, 2 wait."], [[[1, 0]], false, "1 job runs, and none waits."], [[], false, "The queue is empty."],
    [[[0, 2]], true, "No job runs, more than 2 wait."], [[[900, 9_000], [100, 1_000]], false, "1,000 jobs run, 10,000 wait."], [[[2, 1]], false, "2 jobs run, 1 waits."]];
  for (const [counts, more, text] of cases) assert.equal(headline({ more, shares: counts.map((each, number) => use(`s${number}`, ...each)) }), text);
  assert.match(nextStart(queue, NOW), /^b is next, expected to start at \d\d:\d\d\.$/);
  assert.equal(nextStart(page([job("a", starts(0.5))]), NOW), "a is next, within a minute.");
  assert.equal(nextStart(page([job("a")]), NOW), "No start can be estimated yet.");
});

test("changes of the last hour come newest first, and no older ones", () => {
  const jobs = [
    job("a", { attempts: [attempt(1, { startedAt: iso(-50), endedAt: iso(-20), outcome: "preempted", reason: "preempted for b" }), attempt(2, { startedAt: iso(-10) })] }),
    job("b", { entryTime: iso(-5), jobState: "failed", endedAt: iso(-1), failureReason: "exit code 1" }),
  ];
  const found = changes(jobs, NOW);
  assert.deepEqual(changes([...jobs, ...structuredClone(jobs)], NOW), found, "jobs of two lists are told once");
  assert.deepEqual(found.map((each) => each.text.split(/ on | with /)[0]), ["failed: exit code 1", "entered the queue", "resumed", "preempted for b", "started"]);
});

test("what needs attention is told, and nothing else", () => {
  const queue = page([job("never", { reason: { type: "CanNeverFit", message: "needs 9" } }), job("fine"), job("late", { deadline: { prospect: "late", message: "will be late" } })],
    { pools: [pool({ state: "draining" }), pool(), pool({ endsAt: iso(60 * 3) })] });
  const ended = [job("bad", { jobState: "failed", endedAt: iso(-5), failureReason: "exit 1" }), job("old", { jobState: "failed", endedAt: iso(-500) })];
  const found = troubles(queue, ended, NOW).map((each) => `${each.job} ${each.text}`.trim());
  assert.equal(found.length, 5);
  assert.ok(found.some((each) => each.startsWith("never needs 9")) && found.some((each) => each.includes("draining")));
  assert.ok(!found.some((each) => each.startsWith("old") || each.startsWith("fine")));
});

test("a pool's figures are words", () => {
  assert.deepEqual(poolFigures(pool({ used: 5, held: 1, free: 2, waiting: 3 })), { used: "5 of 8 used, 1 reserved, 2 free", waiting: "3 jobs could use it" });
  assert.match(poolFigures(pool({ state: "drained", waiting: 1, waitingMore: true })).waiting, /or more/);
});

test("filters become reads of the API, a hundred jobs at a time", () => {
  assert.deepEqual(readsOf({}), [`/queue?limit=${PAGE}`, `/jobs?state=held&limit=${PAGE}`]);
  assert.deepEqual(readsOf({ cursor: "x" }), [`/queue?limit=${PAGE}&cursor=x`]);
  assert.deepEqual(readsOf({ state: "infeasible", share: "a" }), [`/jobs?state=infeasible&share=a&limit=${PAGE}`]);
  assert.match(readsOf({ pool: "p" })[0], /^\/jobs\?state=pending%2Cpreempted&pool=p/);
});

test("sections keep every job once, in the order of their places", () => {
  const waiting = [job("b", { position: 2 }), job("x", { reason: { type: "Infeasible", message: "" } }), job("a", { position: 1 }), job("deep", { positionAtLeast: 9 })];
  const [queue, never, held] = sections([page(waiting), page([job("h", { jobState: "held" })])], {});
  assert.deepEqual(queue.jobs.map((each) => each.jobName), ["a", "b", "deep"]);
  assert.deepEqual(never.jobs.map((each) => each.jobName), ["x"]);
  assert.deepEqual(held.jobs.map((each) => each.jobName), ["h"]);
  assert.deepEqual(sections([page(waiting), undefined], { text: "DEE" }).flatMap((each) => each.jobs).map((each) => each.jobName), ["deep"]);
  assert.equal(sections([page(waiting)], { state: "infeasible" })[0].jobs.length, 4);
  const cut = { ...page(waiting), nextCursor: "more" };
  assert.equal(sections([cut], { text: "deep" })[0].note, "among the 4 jobs of this page");
  assert.equal(sections([cut], {})[0].note, "in the order in which passes consider them");
});

test("the consequences of a change are told before it", () => {
  const queue = [job("a", { priority: 9 }), job("b", { priority: 5 }), job("c", { priority: 5, entryTime: iso(-80) }), job("other", { priority: 7, share: "x" }), job("d")];
  const of = (name, to) => consequence("priority", queue.find((each) => each.jobName === name), { priority: to }, queue, NOW);
  assert.equal(of("d", 6), "Priority 0 becomes 6. It goes ahead of b and c.");
  assert.equal(of("d", 5), "Priority 0 becomes 5. It goes ahead of c.");
  assert.equal(of("a", 0), "Priority 9 becomes 0. It falls behind b and c.");
  assert.equal(of("a", 10), "Priority 9 becomes 10. It passes none of the first 5 jobs.");
  assert.equal(of("a", 9), "It has priority 9 now.");
  assert.equal(consequence("priority", queue[4], { priority: 6 }, null, NOW), "Priority 0 becomes 6.");
  const running = job("r", { jobState: "running", attempts: [attempt()] });
  assert.equal(consequence("cancel", running, {}, queue, NOW), "It stops for good after 1 h of work, and is not resumed. 2\u00a0×\u00a0ml.p5.48xlarge become free.");
  assert.equal(consequence("hold", job("q", { position: 3 }), {}, queue, NOW), "It leaves the queue (now in place 3) and keeps its entry time.");
  assert.deepEqual(["hold", "release", "priority", "cancel"].map((action) => appliesTo(action, job("e", { jobState: "completed" }))), [false, false, false, false]);
  assert.equal(reasonText(job("a"), NOW), "starts with the next pass");
});

test("the consequences of other size bounds are told before they are set", () => {
  const elastic = { minInstances: 2, maxInstances: 8, hook: "members", size: null, resizing: null };
  const of = (changes, min, max) => consequence("size", job("e", { elastic: { ...elastic, ...changes } }), boundsOf(min, max), null, NOW);
  assert.equal(of({}, "2", ""), "Its size is 2 to 8 instances now.");
  assert.equal(of({}, "9", ""), "The minimum, 9, is more than the maximum, 8.");
  assert.equal(of({}, "", "4"), "Its size of 2 to 8 instances becomes 2 to 4.");
  assert.equal(of({}, "4", " "), "Its size of 2 to 8 instances becomes 4 to 8. To start it needs 4 instances instead of 2.");
  assert.equal(of({ size: 6 }, "", "4"), "Its size of 2 to 8 instances becomes 2 to 4. The next pass resizes it from 6 to at most 4.");
  assert.match(of({ size: 6, hook: "restart" }, "", "4"), /at most 4\. It saves its work and stops, and a new attempt continues\.$/);
  assert.match(of({ size: 2 }, "4", ""), /It keeps its 2 until 2 more are idle in its pool, and then grows\.$/);
  assert.match(of({ size: 4 }, "3", "9"), /becomes 3 to 9\. It has 4, which stay\.$/);
  assert.match(of({ size: 8, resizing: { from: 4, to: 8 } }, "", "4"), /Its resize from 4 to 8 instances ends first\.$/);
  assert.deepEqual([boundsOf("", " "), boundsOf("2", "4")], [{}, { minInstances: 2, maxInstances: 4 }]);
  assert.deepEqual([job("a"), job("b", { elastic }), job("c", { elastic, jobState: "completed" })].map((each) => appliesTo("size", each)), [false, true, false]);
  assert.match(answered(job("e", { elastic }), NOW), /with priority 0 and 2 to 8 instances\.$/);
});

test("a job's headline is a sentence for every state", () => {
  for (const jobState of ["pending", "preempted", "held", "starting", "running", "preempting", "resizing", "completed", "failed", "stopped", "cancelled"]) {
    assert.match(jobHeadline(job("a", { jobState, attempts: [attempt()], elastic: { resizing: { from: 1, to: 2 } } }), NOW), /^(waits|was|is|has|failed)/);
  }
  assert.equal(jobHeadline(job("a", { jobState: "running", attempts: [attempt()] }), NOW), "has been running for 1 h on 2\u00a0×\u00a0ml.p5.48xlarge");
  const told = next(job("a", { ...starts(70, 60, 90), reason: { type: "x", message: "waits for room" } }), NOW);
  assert.match(told.join(" "), /between \d\d:\d\d and \d\d:\d\d\. It waits for room\./);
  assert.match(next(job("a", { jobState: "completed", endedAt: iso(-5), attempts: [attempt(1, { endedAt: iso(-5) })] }), NOW)[0], /after 55 min of work in 1 attempt/);
});

test("the strip has a lane for each attempt, and time only goes forward", () => {
  const history = [
    { at: iso(-90), to: "pending", reason: "", attempt: null }, { at: iso(-61), to: "starting", reason: "", attempt: 1 }, { at: iso(-60), to: "running", reason: "", attempt: 1 },
    { at: iso(-30), to: "preempting", reason: "", attempt: 1 }, { at: iso(-29), to: "preempted", reason: "", attempt: 1 },
  ];
  const { lanes, now, expected } = strip(job("a", { jobState: "preempted", history, attempts: [attempt()], ...starts(30, 20, 60) }), NOW);
  assert.deepEqual(lanes.map((lane) => lane.spans.map((each) => each.state)), [["pending", "preempted"], ["starting", "running", "preempting"]]);
  assert.ok(expected.tick > now && now < 100);
  for (const each of lanes.flatMap((lane) => lane.spans)) assert.ok(each.x >= 0 && each.width > 0 && each.x + each.width <= 100.5);
  const over = strip(job("a", { jobState: "cancelled", endedAt: iso(-80), history: [history[0], { at: iso(-80), to: "cancelled", reason: "", attempt: null }] }), NOW);
  assert.deepEqual(over.lanes.map((lane) => lane.spans.length), [1]);
  assert.equal(over.now, 100);
});

test("an axis has a few round times, in their order", () => {
  for (const minutes of [1, 7, 59, 61, 600, 5_000, 50_000]) {
    const found = ticks(NOW, NOW + minutes * MINUTE);
    assert.ok(found.length >= 1 && found.length <= 7, `${minutes}: ${found.length}`);
    assert.ok(found.every((each, number) => each.x >= 0 && each.x <= 100 && (!number || each.x > found[number - 1].x)));
  }
});

test("links lead to the job in the Region's console", () => {
  const links = awsLinks(job("a", { trainingJobName: "bert-1" }), "eu-west-1");
  assert.deepEqual(links.map((each) => new URL(each.url).host), ["eu-west-1.console.aws.amazon.com", "eu-west-1.console.aws.amazon.com"]);
  assert.ok(links[1].url.includes("$252Faws$252Fsagemaker$252FTrainingJobs"));
  assert.deepEqual(awsLinks(job("a"), "eu-west-1"), []);
  assert.deepEqual(awsLinks(job("a", { kind: "image", trainingJobName: "x" }), "eu-west-1"), []);
  assert.deepEqual(facts({ ResourceConfig: { InstanceType: "t", InstanceCount: 3 }, RoleArn: "r" }).map(([name]) => name), ["Instances", "Checkpoints", "Role"]);
});

test("the page Now tells the counts before it has the jobs", () => {
  assert.deepEqual(nowPage.reads().slice(0, nowPage.needed), ["/shares"]);
  const used = { shares: [{ name: "a", running: 2, waiting: 3 }], pools: [], more: false };
  const words = (/** @type {any} */ node) => (Array.isArray(node) ? node.map(words).join(" ") : node?.props ? words(node.props.children) : (node ?? ""));
  assert.match(words(nowPage.View({ values: [used, undefined, undefined, undefined, undefined], now: 0 })), /^2 jobs run, 3 wait\..*Reading/);
});

test("a paused manager needs attention", () => {
  const now = Date.parse("2026-11-21T12:00:00Z");
  const pause = { at: "2026-11-21T11:00:00Z", by: "arn:aws:sts::111122223333:assumed-role/admins/ada", reason: "restore." };
  const [{ tone, job, text }] = paused({ pause }, now);
  assert.deepEqual([tone, job], ["bad", ""]);
  assert.match(text, /^The manager is paused since .+ by ada: restore\. No job starts until an admin resumes it with trainmaster resume\.$/);
  assert.doesNotMatch(paused({ pause: { ...pause, by: "" } }, now)[0].text, / by /);
  assert.deepEqual([...paused({ pause: null }, now), ...paused(undefined, now)], []);
});

test("the speeds of an elastic job: what it reported, what is believed, and what is not used", () => {
  const sizes = [
    { instances: 1, speedup: 1, perSecond: 3.81234, reports: 3, measuredAt: iso(-240), slowerThan: null, retryAt: null },
    { instances: 2, speedup: 1.9, perSecond: 7.2, reports: 2, measuredAt: iso(-4), slowerThan: null, retryAt: null },
    { instances: 4, speedup: 3.2, perSecond: 5, reports: 3, measuredAt: iso(-90), slowerThan: 2, retryAt: iso(30) },
    { instances: 8, speedup: 4, perSecond: null, reports: 0, measuredAt: null, slowerThan: null, retryAt: null },
  ];
  const one = job("a", { elastic: { minInstances: 1, maxInstances: 8, hook: "restart", size: 2, resizing: null, scaling: { message: "", sizes } } });
  const found = speeds(one, NOW);
  assert.deepEqual(found.map((each) => [each.speedup, each.width, each.linear]), [["1.0 ×", 12.5, 12.5], ["1.9 ×", 23.75, 25], ["3.2 ×", 40, 50], ["4.0 ×", 50, 100]]);
  assert.deepEqual(found.map((each) => [each.perSecond, each.measuredAt]), [["3.812", iso(-240)], ["7.2", iso(-4)], ["5", iso(-90)], ["", null]]);
  assert.deepEqual(found.map((each) => each.present), [false, true, false, false]);
  assert.match(found[2].note, /^slower than 2, not used before \S+$/);
  assert.equal(speeds(one, NOW + HOUR)[2].note, "slower than 2");
  assert.deepEqual([0, 1, 3].map((place) => found[place].note), ["", "", ""]);
});

test("a job of one size, and an older service that tells no sizes, have no speeds", () => {
  assert.deepEqual(speeds(job("a", { elastic: null }), NOW), []);
  const old = { minInstances: 1, maxInstances: 2, hook: "restart", size: 1, resizing: null, scaling: { message: "linear", sizes: [] } };
  assert.deepEqual(speeds(job("a", { elastic: old }), NOW), []);
});
