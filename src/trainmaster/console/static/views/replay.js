// The replay of a draft as values: its progress, its figures side by side, and the jobs that change most.

import { duration } from "../lib/time.js";
import { count, counted } from "../lib/words.js";
import { money } from "./reports.js";
import { amount } from "./shares.js";

/** @typedef {{jobs: number, ended: number, waitP50Seconds: number | null, waitP95Seconds: number | null, completionP50Seconds: number | null, completionP95Seconds: number | null, preemptions: number, lostInstanceHours: number, dollars: number}} Figures */
/** @typedef {Figures & {name: string}} Group */
/** @typedef {{total: Figures, shares: Group[], priorities: Group[]}} Side */
/** @typedef {{waitSeconds: number | null, completionSeconds: number | null, preemptions: number}} JobSide */
/** @typedef {{jobName: string, share: string, priority: number, inForce: JobSide, draft: JobSide}} ChangedJob */
/** @typedef {{since: string, at: string, jobs: number, leftOut: Record<string, number>, assumptions: string[], recorded: {waitP50Seconds: number | null, waitP95Seconds: number | null}, inForce: Side, draft: Side, changedJobs: number, changed: ChangedJob[], horizonDays: number}} Report */
/** @typedef {{state: "none" | "reading" | "replaying" | "done" | "failed", done: number, total: number, progress: number, draft: any, report: Report | null, error: {message: string, field: string | null, hint: string | null} | null}} Status */
/** @typedef {{before: string, after: string, tone: "" | "better" | "worse"}} Cell */
/** @typedef {{name: string, jobs: string, cells: Cell[]}} Row */
/** @typedef {{name: string, low: number, high: number, text: string, look: string}} Bar */

/** Nothing was replayed yet. @type {Status} */
export const NONE = { state: "none", done: 0, total: 0, progress: 0, draft: null, report: null, error: null };

/** @param {Status} status */
export const isRunning = ({ state }) => state === "reading" || state === "replaying";

/** @param {number | null} seconds */
const time = (seconds) => (seconds === null ? "–" : duration(seconds * 1000));

/** @param {number} number */
const whole = (number) => count(number);

/** Columns of the figures: heading, member, words of a value. @type {[string, keyof Figures, (value: any) => string][]} */
const COLUMNS = [
  ["Ended", "ended", whole],
  ["Wait, median", "waitP50Seconds", time],
  ["Wait, 95 %", "waitP95Seconds", time],
  ["Completion, median", "completionP50Seconds", time],
  ["Completion, 95 %", "completionP95Seconds", time],
  ["Preemptions", "preemptions", whole],
  ["Lost instance hours", "lostInstanceHours", amount],
  ["Dollars", "dollars", money],
];
export const HEADINGS = COLUMNS.map(([heading]) => heading);

/** Return the finished part of a replay, from 0 to 1: reading the jobs is its first half. @param {Status} status */
export const partOf = ({ state, done, total, progress }) => (state === "reading" ? (total ? done / total / 2 : 0) : 0.5 + progress / 2);

/** @param {Status} status */
export const progressText = ({ state, done, total, progress }) =>
  state === "replaying" ? `Replaying them twice: ${Math.floor(100 * progress)} %` : total ? `Reading ${counted(total, "job")}: ${count(done)} done` : "Reading the list of jobs";

/**
 * Return two values as a cell. Fewer is better, except of jobs that have ended.
 * @param {any} before @param {any} after @param {(value: any) => string} words @param {boolean} [moreIsBetter] @returns {Cell}
 */
function cell(before, after, words, moreIsBetter = false) {
  const [one, other] = [words(before), words(after)];
  if (one === other || before === null || after === null) return { before: one, after: other, tone: "" };
  return { before: one, after: other, tone: after > before === moreIsBetter ? "better" : "worse" };
}

/** @param {string} name @param {Figures} before @param {Figures} after @returns {Row} */
const row = (name, before, after) => ({ name, jobs: count(before.jobs), cells: COLUMNS.map(([, member, words]) => cell(before[member], after[member], words, member === "ended")) });

/** Return the rows of the groups of both sides, which are the same jobs. @param {Group[]} before @param {Group[]} after */
const rows = (before, after) => before.map((group, number) => row(group.name, group, after[number]));

/** Return the tables of a report. @param {Report} report @returns {{title: string, rows: Row[]}[]} */
export const tables = ({ inForce, draft }) => [
  { title: "All jobs", rows: [row("All", inForce.total, draft.total)] },
  { title: "Share", rows: rows(inForce.shares, draft.shares) },
  { title: "Priority", rows: rows(inForce.priorities, draft.priorities) },
];

/** Return the main result in one sentence. @param {Report} report */
export function headline({ jobs, inForce, draft, changedJobs }) {
  if (!jobs) return "No training job of this period can be replayed.";
  if (!changedJobs) return `The draft changes nothing for the ${counted(jobs, "job")} of this period.`;
  const [before, after] = [inForce.total, draft.total];
  const instead = (/** @type {number | null} */ one, /** @type {number | null} */ other, /** @type {string} */ words) => (one === null || other === null || time(one) === time(other) ? "" : `${words} ${time(other)} instead of ${time(one)}`);
  const waits = [instead(before.waitP50Seconds, after.waitP50Seconds, "the median wait is"), instead(before.waitP95Seconds, after.waitP95Seconds, "95 % of the jobs start within")].filter(Boolean).join(", and ");
  return `The draft changes ${count(changedJobs)} of ${counted(jobs, "job")}${waits ? `: ${waits}` : ""}.`;
}

/** @type {Record<string, (count: number) => string>} */
const LEFT_OUT = {
  notVisible: (number) => `${counted(number, "job")} that you may not see`,
  gone: (number) => `${counted(number, "job")} that were deleted meanwhile`,
  otherKinds: (number) => `${counted(number, "job")} of other kinds than training`,
  held: (number) => `${counted(number, "job")} that a person holds`,
  unfit: (number) => `${counted(number, "job")} that the pools of now cannot take`,
};

/** Return what the report lacks, in sentences. @param {Report} report */
export function leftOut({ leftOut: missing, recorded, inForce }) {
  const parts = Object.entries(LEFT_OUT).filter(([name]) => missing[name]).map(([name, words]) => words(missing[name]));
  return [
    parts.length ? `Not replayed: ${parts.join("; ")}.` : "",
    missing.beyondLimit ? "The period is shorter than a week, because a replay has a maximum number of jobs." : "",
    recorded.waitP50Seconds === null ? "" : `The real median wait was ${time(recorded.waitP50Seconds)}; the replay of the settings in force has ${time(inForce.total.waitP50Seconds)}.`,
  ].filter(Boolean);
}

/** Return the jobs that change most. @param {Report} report @returns {{name: string, share: string, priority: number, cells: Cell[]}[]} */
export const changedRows = ({ changed }) =>
  changed.map(({ jobName, share, priority, inForce, draft }) => ({
    name: jobName, share, priority,
    cells: [cell(inForce.waitSeconds, draft.waitSeconds, time), cell(inForce.completionSeconds, draft.completionSeconds, time), cell(inForce.preemptions, draft.preemptions, whole)],
  }));

/** Return bars of the waits by share, from the median to 95 %, in percent of the longest. @param {Report} report @returns {Bar[]} */
export function bars({ inForce, draft }) {
  const sides = [{ groups: inForce.shares, label: "in force", look: "range" }, { groups: draft.shares, label: "draft", look: "fill-accent" }];
  const longest = Math.max(1, ...sides.flatMap(({ groups }) => groups.map((group) => group.waitP95Seconds ?? 0)));
  return inForce.shares.flatMap(({ name }, number) => sides.map(({ groups, label, look }) => {
    const { waitP50Seconds, waitP95Seconds } = groups[number];
    const [low, high] = [waitP50Seconds ?? 0, waitP95Seconds ?? 0].map((seconds) => (100 * seconds) / longest);
    return { name: `${name}, ${label}`, low, high: Math.max(high, low + 0.5), look, text: `${time(waitP50Seconds)} to ${time(waitP95Seconds)}` };
  }));
}
