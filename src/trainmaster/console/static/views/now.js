// The page Now as values: sentences, changes of the last hour, and what needs attention.

import { clock, HOUR, moment, spoken } from "../lib/time.js";
import { count, counted, NEVER, person, stateOf, unitsText } from "../lib/words.js";

/** @typedef {import("../lib/types.js").Job} Job */
/** @typedef {import("../lib/types.js").JobsPage} JobsPage */
/** @typedef {import("../lib/types.js").QueuePage} QueuePage */
/** @typedef {import("../lib/types.js").SharesView} SharesView */
/** @typedef {{at: string, job: string, tone: string, mark: string, text: string}} Event */
/** @typedef {{tone: string, job: string, text: string}} Trouble */

/**
 * Return the headline: how many jobs run and wait, as the queue counts them.
 * @param {SharesView} shares
 */
export function headline({ shares, more }) {
  const [running, waiting] = [shares.reduce((sum, each) => sum + each.running, 0), shares.reduce((sum, each) => sum + each.waiting, 0)];
  const first = running ? `${counted(running, "job")} ${running === 1 ? "runs" : "run"}` : "No job runs";
  if (!waiting) return running ? `${first}, and none waits.` : "The queue is empty.";
  const wait = waiting === 1 && !more ? "waits" : "wait";
  return `${first}, ${more ? "more than " : ""}${count(waiting)} ${wait}.`;
}

/**
 * Return the sentence about the next expected start; empty if there is none.
 * @param {QueuePage} queue @param {number} now
 */
export function nextStart(queue, now) {
  const [first] = upcoming(queue);
  if (!first?.estimatedStart) return queue.jobs.length ? "No start can be estimated yet." : "";
  const soon = Date.parse(first.estimatedStart) - now < 60_000;
  return `${first.jobName} is next, ${soon ? "within a minute" : `expected to start at ${clock(first.estimatedStart, now)}`}.`;
}

/**
 * Return the waiting jobs with an expected start, the soonest first.
 * @param {QueuePage} queue
 */
export const upcoming = (queue) =>
  queue.jobs
    .filter((job) => job.estimatedStart)
    .sort((one, other) => Date.parse(one.estimatedStart ?? "") - Date.parse(other.estimatedStart ?? ""));

/**
 * Return what has changed in the last hour, newest first. A job that moved from one list to another between two reads is in both.
 * @param {Job[]} jobs @param {number} now @returns {Event[]}
 */
export function changes(jobs, now) {
  const found = new Map(jobs.flatMap(eventsOf).map((event) => [event.at + event.job + event.text, event]));
  return [...found.values()]
    .filter((event) => now - Date.parse(event.at) < HOUR)
    .sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
}

/** @param {Job} job @returns {Event[]} */
function eventsOf(job) {
  /** @type {(at: string, state: string, text: string) => Event} */
  const event = (at, state, text) => ({ at, job: job.jobName, text, tone: stateOf(state).tone, mark: stateOf(state).mark });
  const found = [event(job.entryTime, "pending", `entered the queue with priority ${job.priority}`)];
  for (const attempt of job.attempts) {
    const again = attempt.number > 1 ? "resumed" : "started";
    if (attempt.startedAt) found.push(event(attempt.startedAt, "running", `${again} on ${unitsText(attempt.units)}`));
    if (attempt.endedAt && attempt.outcome === "preempted") {
      found.push(event(attempt.endedAt, "preempted", attempt.reason || "was preempted"));
    }
  }
  if (job.endedAt) {
    const why = job.failureReason ? `: ${job.failureReason}` : "";
    found.push(event(job.endedAt, job.jobState, `${stateOf(job.jobState).label}${why}`));
  }
  return found;
}

/**
 * Return what needs a person: infeasible and failed jobs, late deadlines, pools that start nothing.
 * @param {QueuePage} queue @param {Job[]} ended @param {number} now @returns {Trouble[]}
 */
export function troubles(queue, ended, now) {
  const never = queue.jobs.filter((job) => NEVER.includes(job.reason?.type ?? ""));
  const backing = queue.jobs.filter((job) => job.reason?.type === "BackingOff");
  const late = queue.jobs.filter((job) => ["late", "lost"].includes(job.deadline?.prospect ?? ""));
  const failed = ended.filter((job) => job.jobState === "failed" && now - Date.parse(job.endedAt ?? "") < HOUR);
  const closed = queue.pools.filter((pool) => pool.state !== "in use");
  const ending = queue.pools.filter((pool) => pool.endsAt && Date.parse(pool.endsAt) - now < 24 * HOUR);
  return [
    ...never.map((job) => ({ tone: "bad", job: job.jobName, text: spoken(job.reason?.message ?? "can never start", now) })),
    ...failed.map((job) => ({ tone: "bad", job: job.jobName, text: `failed: ${job.failureReason ?? "no reason given"}` })),
    ...late.map((job) => ({ tone: "warn", job: job.jobName, text: spoken(job.deadline?.message ?? "is late", now) })),
    ...backing.slice(0, 3).map((job) => ({ tone: "warn", job: job.jobName, text: spoken(job.reason?.message ?? "", now) })),
    ...closed.map((pool) => ({ tone: "warn", job: "", text: `Pool ${pool.name} is ${pool.state}.` })),
    ...ending.map((pool) => ({ tone: "warn", job: "", text: `The capacity of ${pool.name} ends ${moment(pool.endsAt ?? "", now)}.` })),
  ];
}

/**
 * Return that the manager is paused, if it is known to be.
 * @param {{pause: {at: string, by: string, reason: string} | null} | undefined} manager @param {number} now @returns {Trouble[]}
 */
export function paused(manager, now) {
  if (!manager?.pause) return [];
  const { at, by, reason } = manager.pause;
  const whose = by ? ` by ${person(by)}` : "";
  return [{ tone: "bad", job: "", text: `The manager is paused since ${clock(at, now)}${whose}: ${reason.replace(/\.$/, "")}. No job starts until an admin resumes it with trainmaster resume.` }];
}

/** Return the pool's figures in words. @param {import("../lib/types.js").Pool} pool */
export function poolFigures(pool) {
  const parts = [
    `${pool.used} of ${pool.cap} used`,
    pool.stopping ? `${pool.stopping} stopping` : "",
    pool.held ? `${pool.held} reserved` : "",
    pool.external ? `${pool.external} external` : "",
    pool.warm ? `${pool.warm} warm` : "",
    pool.state === "in use" ? `${pool.free} free` : pool.state,
  ];
  const waiting = pool.waiting ? `${counted(pool.waiting, "job")}${pool.waitingMore ? " or more" : ""} could use it` : "";
  return { used: parts.filter(Boolean).join(", "), waiting };
}
