// The page Queue as values: reads, sections, filters, rows, and what follows from an action.

import { readPath } from "../lib/route.js";
import { clock, duration, spoken } from "../lib/time.js";
import { ACTIVE, ENDED, listed, NEVER, stateOf, unitsText, WAITING } from "../lib/words.js";

/** @typedef {import("../lib/types.js").Job} Job */
/** @typedef {import("../lib/types.js").JobChange} JobChange */
/** @typedef {import("../lib/types.js").JobsPage} JobsPage */
/** @typedef {{title: string, note: string, jobs: Job[]}} Section */

export const PAGE = 100;
/** Values of the filter by state. */
export const FILTERS = { "": "Waiting and held", held: "Held", infeasible: "Can never start", active: "Running", ended: "Ended" };

/**
 * Return the reads of the API for a query: the page of jobs first, then those that are held.
 * @param {Record<string, string>} query
 */
export function readsOf({ state = "", share, pool, cursor }) {
  const page = { share, pool, limit: PAGE, cursor };
  /** @type {Record<string, string>} */
  const states = { held: "held", infeasible: "infeasible", active: ACTIVE.join(), ended: ENDED.join() };
  if (states[state]) return [readPath("/jobs", { state: states[state], ...page })];
  const waiting = share || pool ? readPath("/jobs", { state: WAITING.join(), ...page }) : readPath("/queue", { limit: PAGE, cursor });
  return cursor ? [waiting] : [waiting, readPath("/jobs", { state: "held", share, pool, limit: PAGE })];
}

/**
 * Return the jobs by section. `text` keeps jobs whose name, share or submitter contains it.
 * @param {(JobsPage | undefined)[]} pages @param {Record<string, string>} query @returns {Section[]}
 */
export function sections(pages, { state = "", text = "" }) {
  const [first, second] = pages.map((page) => (page?.jobs ?? []).filter((job) => has(job, text)));
  const title = FILTERS[/** @type {keyof typeof FILTERS} */ (state)] ?? "Jobs";
  const part = text.trim() && pages[0]?.nextCursor ? `among the ${pages[0].jobs.length} jobs of this page` : "";
  if (state) return [{ title, note: part, jobs: first ?? [] }];
  const never = (/** @type {Job} */ job) => NEVER.includes(job.reason?.type ?? "");
  return [
    { title: "In the queue", note: part || "in the order in which passes consider them", jobs: (first ?? []).filter((job) => !never(job)).sort(byPlace) },
    { title: "Can never start", note: "no pool fits, as the pools are now", jobs: (first ?? []).filter(never) },
    { title: "Held", note: "outside the queue until released or due", jobs: second ?? [] },
  ];
}

/** Compare by place; jobs that lie too deep to have one keep their order. @param {Job} one @param {Job} other */
const byPlace = (one, other) => (one.position ?? Infinity) - (other.position ?? Infinity) || 0;

/** @param {Job} job @param {string} text */
function has(job, text) {
  const wanted = text.trim().toLowerCase();
  return !wanted || [job.jobName, job.share, job.submittedBy ?? ""].some((each) => each.toLowerCase().includes(wanted));
}

/** Return the reason in one line. @param {Job} job @param {number} now */
export function reasonText(job, now) {
  if (job.failureReason) return job.failureReason;
  if (job.reason) return spoken(job.reason.message, now);
  if (WAITING.includes(job.jobState)) return "starts with the next pass";
  const last = job.attempts[job.attempts.length - 1];
  return last && ACTIVE.includes(job.jobState) ? `on ${unitsText(last.units)}` : "";
}

/** Return the start, or the end of a job that has ended. @param {Job} job @param {number} now */
export function startText(job, now) {
  if (job.endedAt) return clock(job.endedAt, now);
  const last = job.attempts[job.attempts.length - 1];
  if (ACTIVE.includes(job.jobState)) return last?.startedAt ? clock(last.startedAt, now) : "starting";
  return job.estimatedStart ? clock(job.estimatedStart, now) : "–";
}

/** Return the range of a start in words. @param {Job} job @param {number} now */
export function rangeText(job, now) {
  const { estimatedStart: at, estimatedStartLow: low, estimatedStartHigh: high } = job;
  if (!at) return "no estimate";
  if (!low || !high || low === high) return `expected at ${clock(at, now)}`;
  return `expected at ${clock(at, now)}, between ${clock(low, now)} and ${clock(high, now)}`;
}

/** Actions and the states of jobs to which they apply. @type {Record<string, string[]>} */
export const APPLIES = {
  hold: WAITING,
  release: ["held"],
  priority: [...WAITING, "held", ...ACTIVE],
  size: [...WAITING, "held", ...ACTIVE],
  cancel: [...WAITING, "held", ...ACTIVE],
};

/** @param {string} action @param {Job} job */
export const appliesTo = (action, job) => APPLIES[action].includes(job.jobState) && (action !== "size" || job.elastic !== null);

/** Return the bounds of which at least one is filled in; an empty field keeps the present one. @param {string} min @param {string} max @returns {JobChange} */
export const boundsOf = (min, max) => ({ ...(min.trim() && { minInstances: Number(min) }), ...(max.trim() && { maxInstances: Number(max) }) });

/**
 * Return what follows from an action for one job. `queue` has the first jobs of the queue; null while they are unknown.
 * @param {string} action @param {Job} job @param {JobChange} to @param {Job[] | null} queue @param {number} now
 */
export function consequence(action, job, to, queue, now) {
  if (action === "cancel") return cancelled(job, now);
  if (action === "hold") return `It leaves the queue${job.position ? ` (now in place ${job.position})` : ""} and keeps its entry time.`;
  if (action === "release") return `It enters the queue with priority ${job.priority} and the entry time that it had.`;
  if (action === "size" && job.elastic) return rebounded(job.elastic, to);
  return reprioritized(job, to.priority ?? null, queue);
}

/** @param {import("../lib/types.js").Elastic} elastic @param {JobChange} to */
function rebounded({ minInstances, maxInstances, size, resizing, hook }, to) {
  const low = to.minInstances ?? minInstances;
  const high = to.maxInstances ?? maxInstances;
  if (low === minInstances && high === maxInstances) return `Its size is ${low} to ${high} instances now.`;
  if (low > high) return `The minimum, ${low}, is more than the maximum, ${high}.`;
  const change = `Its size of ${minInstances} to ${maxInstances} instances becomes ${low} to ${high}.`;
  if (size === null) return low === minInstances ? change : `${change} To start it needs ${low} instances instead of ${minInstances}.`;
  if (resizing) return `${change} Its resize from ${resizing.from} to ${resizing.to} instances ends first.`;
  const pause = hook === "restart" ? " It saves its work and stops, and a new attempt continues." : "";
  if (size > high) return `${change} The next pass resizes it from ${size} to at most ${high}.${pause}`;
  if (size < low) return `${change} It keeps its ${size} until ${low - size} more are idle in its pool, and then grows.${pause}`;
  return `${change} It has ${size}, which stay.`;
}

/** @param {Job} job @param {number} now */
function cancelled(job, now) {
  if (!ACTIVE.includes(job.jobState)) return "It leaves the queue for good.";
  const last = job.attempts[job.attempts.length - 1];
  const since = last?.startedAt ? ` after ${duration(now - Date.parse(last.startedAt))} of work` : "";
  return `It stops for good${since}, and is not resumed. ${last ? `${unitsText(last.units)} become free.` : ""}`.trim();
}

/** Compare jobs of one share as the queue does: falling priority, then entry time, then name. @param {Job} one @param {Job} other */
const inOrder = (one, other) =>
  other.priority - one.priority || Date.parse(one.entryTime) - Date.parse(other.entryTime) || (one.jobName < other.jobName ? -1 : 1);

/** @param {Job} job @param {number | null} priority @param {Job[] | null} queue */
function reprioritized(job, priority, queue) {
  if (priority === null || priority === job.priority) return `It has priority ${job.priority} now.`;
  const change = `Priority ${job.priority} becomes ${priority}.`;
  if (!WAITING.includes(job.jobState) || queue === null) return change;
  const others = queue.filter((each) => each.jobName !== job.jobName && each.share === job.share);
  const moved = { ...job, priority };
  const passed = others.filter((each) => inOrder(job, each) > 0 !== inOrder(moved, each) > 0).map((each) => each.jobName);
  if (!passed.length) return `${change} It passes none of the first ${queue.length} jobs.`;
  return `${change} ${priority > job.priority ? "It goes ahead of" : "It falls behind"} ${listed(passed)}.`;
}

/** Return a sentence about a job as the API answered a change. @param {Job} job @param {number} now */
export function answered(job, now) {
  const reason = job.reason ? ` It ${spoken(job.reason.message, now)}.` : "";
  const sizes = job.elastic ? ` and ${job.elastic.minInstances} to ${job.elastic.maxInstances} instances` : "";
  return `${job.jobName} is ${stateOf(job.jobState).label}, with priority ${job.priority}${sizes}.${reason}`;
}
