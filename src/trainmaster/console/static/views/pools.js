// The page Pools as values: rows, facts, the countdown of training plans, and what follows from a change.

import { readPath } from "../lib/route.js";
import { clock, duration } from "../lib/time.js";
import { ACTIVE, counted, listed, WAITING } from "../lib/words.js";
import { dollars } from "./plan.js";

/** @typedef {import("../lib/types.js").Job} Job */
/** @typedef {import("../lib/types.js").JobsPage} JobsPage */
/**
 * @typedef {import("../lib/types.js").Pool & {trainingPlanArn: string | null, planStatus: string | null, startsAt: string | null, madeAt: string | null, price: number,
 *   onDemandPrice: number, vcpus: number, memoryGib: number, accelerator: string | null, acceleratorMemoryGib: number, quotaAt: string | null, countExternal: boolean}} Pool
 */
/** @typedef {{change: string, pool: string, instanceType: string, before: number, after: number, dollarsPerHour: number | null, why: string, at: string}} MadeChange */
/** @typedef {{holders: Job[], held: number, moved: Job[], stranded: Job[], more: boolean}} Impact */

/** Pools with their history, the jobs that run and wait, and the use by share. */
export const READS = [
  readPath("/pools", { history: "true" }),
  readPath("/jobs", { state: ACTIVE.join(), limit: 100 }),
  readPath("/jobs", { state: WAITING.join(), limit: 100 }),
  readPath("/shares"),
];
/** Actions, and the states of pools to which they apply. @type {Record<string, string[]>} */
export const APPLIES = { cap: ["in use", "draining", "drained"], drain: ["in use"], resume: ["draining", "drained"], remove: ["in use", "draining", "drained"] };
/** @type {Record<string, string>} */
export const CHANGES = { expand: "made or enlarged", shrink: "made smaller", retire: "removed" };

/** @param {string} action @param {Pool} pool */
export const appliesTo = (action, pool) => pool.kind !== "service" && APPLIES[action].includes(pool.state);

/** Return the units of a pool that a job holds. @param {Job} job @param {string} pool */
export const unitsOf = (job, pool) => job.attempts.filter((each) => each.outcome === "active").reduce((sum, each) => sum + (each.units[pool] ?? 0), 0);

/**
 * Return the jobs that a pool's end affects: those that hold its units, and waiting ones that can run elsewhere, or nowhere else.
 * @param {Pool} pool @param {Pool[]} pools @param {JobsPage} active @param {JobsPage} waiting @returns {Impact}
 */
export function impact(pool, pools, active, waiting) {
  const open = new Set(pools.filter((each) => each.name !== pool.name && each.state === "in use").map((each) => each.name));
  const holders = active.jobs.filter((job) => unitsOf(job, pool.name) > 0);
  const here = waiting.jobs.filter((job) => job.pools.includes(pool.name));
  const elsewhere = (/** @type {Job} */ job) => job.demand.some((each) => Object.keys(each).every((name) => open.has(name)));
  return {
    holders, held: active.nextCursor ? pool.used : holders.reduce((sum, job) => sum + unitsOf(job, pool.name), 0),
    moved: here.filter(elsewhere), stranded: here.filter((job) => !elsewhere(job)), more: waiting.nextCursor !== null,
  };
}

/** @param {Job[]} jobs */
const names = (jobs) => listed(jobs.map((job) => job.jobName));

/** @param {Impact} found @param {string} kept what becomes of jobs without another pool */
function ofWaiting({ moved, stranded, more }, kept) {
  const least = more ? "At least " : "";
  return [
    moved.length ? `${least}${counted(moved.length, "waiting job")} can run elsewhere: ${names(moved)}.` : "",
    stranded.length ? `${least}${counted(stranded.length, "waiting job")} can run nowhere else${kept}: ${names(stranded)}.` : "",
  ];
}

/**
 * Return what follows from an action, a sentence each.
 * @param {string} action @param {Pool} pool @param {Impact} found @param {number} cap @param {Job[]} waiting @returns {string[]}
 */
export function consequences(action, pool, found, cap, waiting) {
  const holding = found.holders.length ? `${names(found.holders)} ${found.holders.length === 1 ? "keeps" : "keep"} ${found.held} until the end.` : "No job holds instances of it.";
  /** @type {Record<string, () => string[]>} */
  const all = {
    cap: () => capped(pool, cap, waiting),
    drain: () => ["It starts no more jobs.", holding, ...ofWaiting(found, " and wait until you resume it")],
    resume: () => ["It starts jobs again.", pool.waiting ? `${counted(pool.waiting, "waiting job")}${pool.waitingMore ? " or more" : ""} could run there.` : "No waiting job could run there."],
    remove: () => [found.holders.length ? `${names(found.holders)} ${found.holders.length === 1 ? "holds" : "hold"} ${found.held} of it and would count toward no pool.` : holding, ...ofWaiting(found, " and would wait until a pool can hold them")],
  };
  return all[action]().filter(Boolean);
}

/** @param {Pool} pool @param {number} cap @param {Job[]} waiting */
function capped(pool, cap, waiting) {
  if (!Number.isInteger(cap) || cap < 0) return ["The cap is a whole number from 0."];
  if (cap === pool.cap) return [`The cap is ${cap} now.`];
  const over = pool.used - cap;
  const need = (/** @type {Record<string, number>} */ each) => (each[pool.name] ?? 0) > cap;
  const barred = waiting.filter((job) => job.pools.includes(pool.name) && job.demand.length > 0 && job.demand.every(need));
  return [
    `The cap ${pool.cap} becomes ${cap}.`,
    over > 0 ? `Jobs use ${pool.used}. They keep running, ${over} beyond the cap, and none starts there until fewer than ${cap || 1} are used.` : "",
    cap > pool.cap && pool.waiting ? `${counted(pool.waiting, "waiting job")}${pool.waitingMore ? " or more" : ""} could use ${counted(cap - pool.cap, "more instance")}.` : "",
    cap > pool.cap && pool.quota !== null && pool.quota < cap ? `The account's quota is ${pool.quota}, which applies.` : "",
    barred.length ? `${names(barred)} ${barred.length === 1 ? "asks" : "ask"} for more and could never start.` : "",
  ];
}

/** Return the API's answer to an action in a sentence. @param {string} action @param {string} name @param {any} answer */
export function answered(action, name, answer) {
  if (action !== "remove") return `${name} has a cap of ${answer.cap} and is ${answer.state}.`;
  const { moved, stranded, running, more } = answer;
  const least = more ? "at least " : "";
  return [`${name} is removed.`, `${more ? "At least " : ""}${counted(moved, "waiting job")} can run elsewhere, ${least}${stranded} nowhere else.`, running.length ? `${listed(running)} ${running.length === 1 ? "keeps" : "keep"} running.` : ""].filter(Boolean).join(" ");
}

/** Return the countdown of a training plan; "" for other pools. @param {Pool} pool @param {number} now */
export function countdown(pool, now) {
  const [from, to] = [pool.startsAt, pool.endsAt].map((each) => Date.parse(each ?? ""));
  if (from > now) return `begins in ${duration(from - now)}, ${clock(pool.startsAt ?? "", now)}`;
  if (to > now) return `ends in ${duration(to - now)}, ${clock(pool.endsAt ?? "", now)}`;
  return Number.isFinite(to) ? `ended ${clock(pool.endsAt ?? "", now)}` : "";
}

/** Return the price of an hour of an instance; "" if it is unknown. @param {Pool} pool */
export const priceOf = (pool) => (pool.price || pool.onDemandPrice ? `${dollars(pool.price || pool.onDemandPrice)}${pool.price ? "" : " on demand"}` : "");

/** Return a change of price of a made pool. @param {number | null} change */
export const changeOfPrice = (change) => (change === null ? "unknown" : `${change < 0 ? "−" : "+"}${dollars(Math.abs(change))} per hour`);

/** Return the facts of a pool. @param {Pool} pool @param {number} now @returns {[string, string][]} */
export function facts(pool, now) {
  const gib = (/** @type {number} */ value) => (value ? `${value} GiB` : "");
  /** @type {[string, string][]} */
  const found = [
    ["Instance type", pool.instanceType],
    ["Kind", pool.kind.replace("-", " ")],
    ["Each instance", [pool.accelerators ? `${counted(pool.accelerators, "accelerator")}${pool.accelerator ? ` (${pool.accelerator})` : ""}` : "", gib(pool.acceleratorMemoryGib) && `${gib(pool.acceleratorMemoryGib)} accelerator memory`, pool.vcpus ? `${pool.vcpus} vCPUs` : "", gib(pool.memoryGib)].filter(Boolean).join(", ")],
    ["Price", priceOf(pool) && `${priceOf(pool)} an hour for each instance, at most ${dollars((pool.price || pool.onDemandPrice) * pool.cap)} for all`],
    ["Quota", pool.quota === null ? "" : `${pool.quota}, which applies${pool.quotaAt ? ` as of ${clock(pool.quotaAt, now)}` : ""}`],
    ["Other jobs", pool.countExternal ? "training jobs outside the queue count toward the cap" : "training jobs outside the queue do not count"],
    ["Made for", pool.madeFor ? `${pool.madeFor}${pool.madeAt ? `, ${clock(pool.madeAt, now)}` : ""}` : ""],
    ["Training plan", [pool.trainingPlanArn ?? "", pool.planStatus ?? "", countdown(pool, now)].filter(Boolean).join(", ")],
  ];
  return found.filter(([, value]) => value);
}
