import assert from "node:assert/strict";
import { test } from "node:test";

import { bars, changedRows, HEADINGS, headline, isRunning, leftOut, NONE, partOf, progressText, tables } from "../../src/trainmaster/console/static/views/replay.js";

const figures = (changes = {}) => ({ jobs: 4, ended: 4, waitP50Seconds: 2400, waitP95Seconds: 7200, completionP50Seconds: 3600, completionP95Seconds: 9000, preemptions: 3, lostInstanceHours: 1.5, dollars: 1234.5, ...changes });
const side = (changes) => ({ total: figures(changes), shares: [{ name: "vision", ...figures(changes) }], priorities: [{ name: "9", ...figures(changes) }, { name: "0", ...figures() }] });
const DRAFT = { waitP50Seconds: 600, waitP95Seconds: 7200, preemptions: 5, ended: 3 };
const REPORT = {
  since: "2026-11-16T12:00:00Z", at: "2026-11-23T12:00:00Z", jobs: 4, leftOut: {}, assumptions: ["All jobs arrive."], recorded: { waitP50Seconds: 2460, waitP95Seconds: 7000 },
  inForce: side({}), draft: side(DRAFT), changedJobs: 2, horizonDays: 28,
  changed: [{ jobName: "a", share: "vision", priority: 9, inForce: { waitSeconds: 60, completionSeconds: 120, preemptions: 0 }, draft: { waitSeconds: null, completionSeconds: 120, preemptions: 1 } }],
};
const status = (changes) => ({ ...NONE, ...changes });

test("the progress goes from the list over the jobs to the end of both replays", () => {
  const steps = [{ state: "reading" }, { state: "reading", done: 10, total: 40 }, { state: "replaying" }, { state: "replaying", progress: 0.5 }, { state: "done", progress: 1 }].map(status);
  assert.deepEqual(steps.map(partOf), [0, 0.125, 0.5, 0.75, 1]);
  assert.deepEqual(steps.slice(0, 4).map(progressText), ["Reading the list of jobs", "Reading 40 jobs: 10 done", "Replaying them twice: 0 %", "Replaying them twice: 50 %"]);
  assert.deepEqual(steps.map(isRunning), [true, true, true, true, false]);
});

test("figures stand side by side, and say which is better", () => {
  const [all, shares, priorities] = tables(REPORT);
  const cell = (row, heading) => row.cells[HEADINGS.indexOf(heading)];
  assert.deepEqual(cell(all.rows[0], "Wait, median"), { before: "40 min", after: "10 min", tone: "better" });
  assert.deepEqual(cell(all.rows[0], "Wait, 95 %"), { before: "2 h", after: "2 h", tone: "" });
  assert.deepEqual(cell(all.rows[0], "Preemptions"), { before: "3", after: "5", tone: "worse" });
  assert.deepEqual(cell(all.rows[0], "Ended"), { before: "4", after: "3", tone: "worse" });
  assert.deepEqual(cell(all.rows[0], "Dollars"), { before: "$1,234.50", after: "$1,234.50", tone: "" });
  assert.deepEqual(shares.rows.map(({ name, jobs }) => [name, jobs]), [["vision", "4"]]);
  assert.deepEqual(priorities.rows.map(({ name }) => name), ["9", "0"]);
  assert.ok(priorities.rows[1].cells.every(({ before, after }) => before === after));
});

test("the headline is one sentence for each case", () => {
  assert.equal(headline(REPORT), "The draft changes 2 of 4 jobs: the median wait is 10 min instead of 40 min.");
  assert.match(headline({ ...REPORT, draft: side({ waitP95Seconds: 60 }) }), /: 95 % of the jobs start within 1 min instead of 2 h\.$/);
  assert.equal(headline({ ...REPORT, changedJobs: 0 }), "The draft changes nothing for the 4 jobs of this period.");
  assert.equal(headline({ ...REPORT, jobs: 0 }), "No training job of this period can be replayed.");
  assert.equal(headline({ ...REPORT, draft: side({ waitP50Seconds: null }) }), "The draft changes 2 of 4 jobs.");
});

test("what is left out is said", () => {
  const [real] = leftOut(REPORT);
  assert.equal(real, "The real median wait was 41 min; the replay of the settings in force has 40 min.");
  const [missing, shorter] = leftOut({ ...REPORT, leftOut: { notVisible: 2, held: 1, beyondLimit: 1 } });
  assert.equal(missing, "Not replayed: 2 jobs that you may not see; 1 job that a person holds.");
  assert.match(shorter, /shorter than a week/);
});

test("jobs that do not start with the draft have no time there", () => {
  const [{ name, cells }] = changedRows(REPORT);
  assert.equal(name, "a");
  assert.deepEqual(cells, [{ before: "1 min", after: "–", tone: "" }, { before: "2 min", after: "2 min", tone: "" }, { before: "0", after: "1", tone: "worse" }]);
});

test("bars fill the longest wait, in pairs by share", () => {
  const found = bars(REPORT);
  assert.deepEqual(found.map(({ name, look }) => [name, look]), [["vision, in force", "range"], ["vision, draft", "fill-accent"]]);
  assert.ok(found.every(({ low, high }) => low >= 0 && high > low && high <= 100.5));
  assert.deepEqual(bars({ ...REPORT, inForce: { ...side({}), shares: [] } }), []);
});
