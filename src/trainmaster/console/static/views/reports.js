// The page Reports as values: parts of a report added up, its charts, and its CSV.

import { readPath } from "../lib/route.js";
import { DAY, duration, HOUR } from "../lib/time.js";
import { person } from "../lib/words.js";
import { amount } from "./shares.js";

/** @typedef {{name: string | null, waits: number[], waitP50Seconds: number | null, waitP95Seconds: number | null, jobs: number, started: number, completed: number, failed: number, stopped: number, cancelled: number, instanceHours: number, acceleratorHours: number, dollars: number, unpricedInstanceHours: number, preemptions: number, lostInstanceHours: number, lostAcceleratorHours: number, unlistedAttempts: number}} Group */
/** @typedef {{at: string, from: string, to: string, by: string, jobsRead: number, total: Group, groups: Group[], nextCursor: string | null}} Usage */
/** @typedef {{x: number, width: number, look: string}} Mark */
/** @typedef {{name: string, title: string, marks: Mark[], tick: number | null, text: string}} ChartRow */

export const DAYS = [7, 30];
export const BY = ["share", "pool", "user", "priority"];
/** Columns of the CSV, as `trainmaster usage --csv` has them. */
export const COLUMNS = ["jobs", "submitted", "started", "completed", "failed", "stopped", "cancelled", "instanceHours", "acceleratorHours", "dollars",
  "unpricedInstanceHours", "waitP50Seconds", "waitP95Seconds", "preemptions", "lostInstanceHours", "lostAcceleratorHours", "unlistedAttempts"];

/** Return the choices of an address; unknown ones are the first. @param {Record<string, string>} query */
export const chosen = ({ days, by }) => ({ days: DAYS.find((each) => String(each) === days) ?? DAYS[0], by: BY.find((each) => each === by) ?? BY[0] });

/**
 * Return the read of the first part of a report that ends now.
 * @param {number} days @param {string} by @param {number} now
 */
export const firstPart = (days, by, now) => readPath("/usage", { from: new Date(now - days * DAY).toISOString(), to: new Date(now).toISOString(), by });

/** Return the read of the part after this one; null after the last. @param {Usage} part */
export const nextPart = ({ from, to, by, nextCursor }) => (nextCursor ? readPath("/usage", { from, to, by, cursor: nextCursor }) : null);

/** Return the nearest-rank percentile of ascending values; null without values. @param {number[]} ordered @param {number} fraction */
export const percentile = (ordered, fraction) => (ordered.length ? ordered[Math.max(1, Math.ceil(fraction * ordered.length)) - 1] : null);

/** @param {Group} one @param {Group} other @returns {Group} */
function added(one, other) {
  const theirs = /** @type {Record<string, any>} */ (other);
  const sums = Object.entries(one).filter(([name, value]) => typeof value === "number" && typeof theirs[name] === "number").map(([name, value]) => [name, /** @type {number} */ (value) + theirs[name]]);
  const waits = [...one.waits, ...other.waits].sort((first, second) => first - second);
  return { ...one, ...Object.fromEntries(sums), waits, waitP50Seconds: percentile(waits, 0.5), waitP95Seconds: percentile(waits, 0.95) };
}

/** Return two parts of a report as one. @param {Usage} one @param {Usage} other @returns {Usage} */
export function joined(one, other) {
  const groups = new Map(one.groups.map((group) => [group.name, group]));
  for (const group of other.groups) groups.set(group.name, groups.has(group.name) ? added(/** @type {Group} */ (groups.get(group.name)), group) : group);
  const sorted = [...groups.values()].sort((first, second) => other.by === "priority"
    ? Number(second.name) - Number(first.name)
    : (first.name ?? "") < (second.name ?? "") ? -1 : 1);
  return { ...other, at: one.at, jobsRead: one.jobsRead + other.jobsRead, total: added(one.total, other.total), groups: sorted };
}

/** Return the report in one sentence. @param {Usage} usage @param {number} days */
export function headline({ total }, days) {
  if (!total.jobs && !total.started) return `No job ran in the last ${days} days.`;
  const wait = total.waitP50Seconds === null ? "" : `, after a median wait of ${wordsOf(total.waitP50Seconds)}`;
  return `${amount(total.jobs)} ${total.jobs === 1 ? "job" : "jobs"} used ${amount(total.acceleratorHours)} GPU hours in ${days} days${wait}.`;
}

/** @param {number | null} seconds */
export const wordsOf = (seconds) => (seconds === null ? "–" : duration(seconds * 1000));

/** @param {number} dollars */
export const money = (dollars) => `$${dollars.toLocaleString("en-GB", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;

/** Return a group's name as people read it. @param {string} by @param {Group} group */
export const nameOf = (by, { name }) => (by === "user" ? person(name) : name ?? "–");

/**
 * Return the rows of the charts: hours with what was lost, waits from the median to the 95th percentile, and dollars.
 * @param {Usage} usage @returns {Record<"hours" | "waits" | "dollars", ChartRow[]>}
 */
export function charts({ by, groups }) {
  const most = (/** @type {(group: Group) => number} */ of) => Math.max(1e-9, ...groups.map(of));
  const [hours, wait, dollars] = [most((group) => group.acceleratorHours), most((group) => group.waitP95Seconds ?? 0), most((group) => group.dollars)];
  const row = (/** @type {Group} */ group, /** @type {Mark[]} */ marks, /** @type {string} */ text, /** @type {number | null} */ tick = null) => ({ name: nameOf(by, group), title: group.name ?? "", marks, tick, text });
  return {
    hours: groups.map((group) => {
      const lost = Math.min(group.lostAcceleratorHours, group.acceleratorHours);
      const kept = (100 * (group.acceleratorHours - lost)) / hours;
      const marks = [{ x: 0, width: kept, look: "group" }, { x: kept, width: (100 * lost) / hours, look: "lost" }].filter((mark) => mark.width > 0);
      return row(group, marks, `${amount(group.acceleratorHours)}${group.lostAcceleratorHours ? `, ${amount(group.lostAcceleratorHours)} lost` : ""}`);
    }),
    waits: groups.filter((group) => group.waitP50Seconds !== null).map((group) => {
      const [low, high] = [group.waitP50Seconds ?? 0, group.waitP95Seconds ?? 0].map((each) => (100 * each) / wait);
      return row(group, [{ x: low, width: Math.max(0.5, high - low), look: "range" }], `${wordsOf(group.waitP50Seconds)} to ${wordsOf(group.waitP95Seconds)}`, low);
    }),
    dollars: groups.map((group) => row(group, [{ x: 0, width: (100 * group.dollars) / dollars, look: "group" }], money(group.dollars))),
  };
}

/**
 * Return the part of each pool's cap, as it is now, that jobs used in the period.
 * @param {Usage} usage by pool @param {{name: string, cap: number, kind: string}[]} pools
 */
export function utilization({ from, to, groups }, pools) {
  const hours = (Date.parse(to) - Date.parse(from)) / HOUR;
  return pools.filter((pool) => pool.kind !== "service" && pool.cap > 0).map((pool) => {
    const used = groups.find((group) => group.name === pool.name)?.instanceHours ?? 0;
    const part = (100 * used) / (pool.cap * hours);
    const marks = [{ x: 0, width: Math.min(100, part), look: "accent" }];
    return { name: pool.name, title: pool.name, marks, tick: null, text: `${amount(part)} % of ${amount(pool.cap * hours)} instance hours` };
  });
}

/** Return what the numbers lack, in sentences. @param {Group} total */
export const notes = (total) => [
  total.unpricedInstanceHours ? `${amount(total.unpricedInstanceHours)} instance hours have no known price: set one for the pool.` : "",
  total.unlistedAttempts ? `The hours of ${amount(total.unlistedAttempts)} attempts that jobs no longer list are missing.` : "",
].filter(Boolean);

/** Return a value as a field of a CSV file; spreadsheets do not read it as a formula. @param {any} value */
function field(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Return a report as CSV: a row for each group, with the period. @param {Usage} usage */
export const csvOf = (usage) => [["from", "to", usage.by, ...COLUMNS], ...usage.groups.map((group) => [usage.from, usage.to, group.name, ...COLUMNS.map((name) => /** @type {Record<string, any>} */ (group)[name])])]
  .map((row) => `${row.map(field).join(",")}\r\n`).join("");
