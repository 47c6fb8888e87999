// One job's story on the Timeline: what it did, what it is expected to do, and the jobs that touch it.

import { clock, duration } from "../lib/time.js";
import { listed } from "../lib/words.js";
import { range } from "./timeline.js";

/** @typedef {import("../lib/types.js").Interval} Interval */
/** @typedef {import("../lib/types.js").Schedule} Schedule */
/** @typedef {{at: string, kind: string, text: string, jobs: string[], after: string}} Chapter */

const NEAR = 90_000;
const MOST = 4;

/**
 * Return the chapters of a job's story in the order of time, and all jobs that touch it: those whose end gives it its units, and
 * those that start when it ends. `others` adds names, such as those of the jobs in its way.
 * @param {Schedule} schedule @param {string} name @param {number} now @param {string[]} [others]
 * @returns {{chapters: Chapter[], touches: Set<string>}}
 */
export function story(schedule, name, now, others = []) {
  const found = schedule.pools.flatMap((pool) => pool.intervals.filter((each) => each.jobName === name).map((each) => ({ each, pool })));
  found.sort((one, other) => Date.parse(one.each.from) - Date.parse(other.each.from));
  const chapters = found.map(({ each, pool }) => chapter(each, pool, now));
  return { chapters, touches: new Set([name, ...others, ...chapters.flatMap((each) => each.jobs)]) };
}

/** @param {Interval} each @param {import("../lib/types.js").SchedulePool} pool @param {number} now @returns {Chapter} */
function chapter(each, pool, now) {
  const what = `${each.units}\u00a0×\u00a0${pool.name}`;
  const rest = pool.intervals.filter((one) => one.jobName && one.jobName !== each.jobName);
  const ending = names(rest.filter((one) => ["past", "running", "planned"].includes(one.kind) && near(one.until, each.from)));
  const starting = names(rest.filter((one) => ["past", "running", "planned"].includes(one.kind) && each.until && near(one.from, each.until)));
  const lasted = each.until ? duration(Date.parse(each.until) - Date.parse(each.from)) : "";
  /** @type {Record<string, () => [string, string[], string]>} */
  const kinds = {
    past: () => [`${each.attempt && each.attempt > 1 ? "resumed" : "started"} on ${what} and ${outcome(each)} after ${lasted}`, starting, starting.length ? "then started" : ""],
    running: () => [`started on ${what}; expected to end at ${each.until ? clock(each.until, now) : "no known time"}${range(each.untilLow, each.untilHigh, now)}`, starting, starting.length ? "then start" : ""],
    planned: () => [`expected to start on ${what}${range(each.fromLow, each.fromHigh, now)}, for ${lasted}`, ending, ending.length ? "when these end:" : ""],
    reserved: () => [`the scheduler keeps ${what} for it`, ending, ending.length ? "when these end:" : ""],
    held: () => [`${what} are held for it`, [], ""],
  };
  const [text, jobs, after] = (kinds[each.kind] ?? (() => [what, [], ""]))();
  return { at: each.from, kind: each.kind, text, jobs: jobs.slice(0, MOST), after };
}

/** @param {string | null} one @param {string} other */
const near = (one, other) => one !== null && Math.abs(Date.parse(one) - Date.parse(other)) <= NEAR;

/** @param {Interval[]} intervals */
const names = (intervals) => [...new Set(intervals.map((each) => each.jobName ?? ""))];

/** @param {Interval} each */
const outcome = (each) => ({ preempted: "was preempted", resized: "was resized", completed: "completed", failed: "failed", stopped: "was stopped" })[each.outcome ?? ""] ?? (each.outcome || "ended");

/** Return the pools and jobs of a schedule in one sentence. @param {Schedule} schedule @param {number} now */
export function summary(schedule, now) {
  const all = schedule.pools.flatMap((pool) => pool.intervals);
  const count = (/** @type {string} */ kind) => names(all.filter((each) => each.kind === kind && each.jobName)).length;
  const next = all.filter((each) => each.kind === "planned").sort((one, other) => Date.parse(one.from) - Date.parse(other.from))[0];
  const parts = [`${count("running")} running`, `${count("planned")} expected to start`];
  return `${listed(parts)}.${next ? ` Next: ${next.jobName}, ${clock(next.from, now)}.` : ""}`;
}
