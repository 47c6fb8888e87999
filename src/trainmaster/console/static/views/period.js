// The period that the Timeline shows, which its address holds: minutes around the present that it follows, or fixed times.

import { readPath } from "../lib/route.js";
import { DAY, HOUR, MINUTE } from "../lib/time.js";

/** @typedef {import("../lib/types.js").Schedule} Schedule */
/** @typedef {{from: number, to: number, follows: boolean}} Period */

export const BEFORE = 24 * HOUR;
export const AFTER = 48 * HOUR;
export const LIMIT = 1_000;
const SHORTEST = 5 * MINUTE;
/** What is shown around the present at least, of a queue whose jobs are short, and of one without jobs. */
const NEAR = { before: 5 * MINUTE, after: 10 * MINUTE };
const EMPTY = { before: HOUR / 2, after: HOUR };
const LONGEST = 28 * DAY;
const STEPS = [1, 2, 5, 10, 30, 60, 180, 360, 720].map((minutes) => minutes * MINUTE);

/**
 * Return the period of an address; null if it names none, so that the page chooses one that fits.
 * @param {Record<string, string>} query @param {number} now @returns {Period | null}
 */
export function periodOf({ before, after, from, to }, now) {
  const [less, more] = [Number(before), Number(after)].map((each) => each * MINUTE);
  if (before && after && less + more >= SHORTEST && less + more <= LONGEST) return { from: now - less, to: now + more, follows: true };
  const [start, end] = [Date.parse(from ?? ""), Date.parse(to ?? "")];
  if (end - start >= SHORTEST && end - start <= LONGEST) return { from: start, to: end, follows: false };
  return null;
}

/**
 * Return the time at which a chart is drawn: it moves by a pixel at a time, so that charts that follow the present stay as they are meanwhile.
 * @param {number} now @param {number} length of the chart @param {number} width in pixels
 */
export const drawnAt = (now, length, width) => Math.floor(now / (length / width)) * (length / width);

/** Return the parameters of the address for a period. @param {Period} period @param {number} now */
export function queryOf({ from, to, follows }, now) {
  const iso = (/** @type {number} */ at) => new Date(Math.round(at / 1000) * 1000).toISOString().replace(".000", "");
  const minutes = (/** @type {number} */ length) => String(Math.round((10 * length) / MINUTE) / 10);
  return follows ? { before: minutes(now - from), after: minutes(to - now), from: "", to: "" } : { before: "", after: "", from: iso(from), to: iso(to) };
}

/** Return the period that shows all that is near, ending at round times. @param {Schedule} schedule @param {number} now @returns {Period} */
export function fit(schedule, now) {
  const all = schedule.pools.flatMap((pool) => pool.intervals).filter((each) => each.jobName);
  const least = all.length ? NEAR : EMPTY;
  const begin = Math.max(now - BEFORE, Math.min(now - least.before, ...all.map((each) => Date.parse(each.from))));
  const end = Math.min(now + AFTER, Math.max(now + least.after, ...all.map((each) => Date.parse(each.until ?? each.from))));
  const margin = (end - begin) / 40;
  const step = STEPS.find((each) => each >= (end - begin) / 24) ?? 12 * HOUR;
  return { from: Math.floor((begin - margin) / step) * step, to: Math.ceil((end + margin) / step) * step, follows: true };
}

/**
 * Return a period zoomed about a time, which keeps its place. It keeps following the present if that is the time.
 * @param {Period} period @param {number} factor @param {number} about @param {number} now @returns {Period}
 */
export function zoomed(period, factor, about, now) {
  const length = Math.min(LONGEST, Math.max(SHORTEST, (period.to - period.from) * factor));
  const from = about - ((about - period.from) * length) / (period.to - period.from);
  return { from, to: from + length, follows: period.follows && Math.abs(about - now) < MINUTE / 60 };
}

/** Return a period moved by a part of its length. @param {Period} period @param {number} part @returns {Period} */
export function panned({ from, to }, part) {
  const by = (to - from) * part;
  return { from: from + by, to: to + by, follows: false };
}

/** Return a period of the same length that follows the present. @param {Period} period @param {number} now @returns {Period} */
export function following({ from, to }, now) {
  const before = (to - from) / 3;
  return { from: now - before, to: now - before + to - from, follows: true };
}

/**
 * Return the read of the schedule that covers the period: the one around the present if it does, else one of round times.
 * @param {Period | null} period @param {number} now
 */
export function readOf(period, now) {
  if (!period || (period.from >= now - BEFORE && period.to <= now + AFTER)) return readPath("/schedule", { limit: LIMIT });
  const step = 12 * HOUR;
  const iso = (/** @type {number} */ at) => new Date(at).toISOString().replace(".000", "");
  return readPath("/schedule", { from: iso(Math.floor(period.from / step) * step), to: iso(Math.ceil(period.to / step) * step), limit: LIMIT });
}

const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080].map((minutes) => minutes * MINUTE);
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DATE = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });

/**
 * Return round times of the viewer's zone in a view; the beginning of a day is `major` and has its date.
 * @param {{from: number, to: number, width: number}} view @returns {{at: number, x: number, label: string, major: boolean}[]}
 */
export function axis({ from, to, width }) {
  const step = TICKS.find((each) => (width * each) / (to - from) >= 84) ?? TICKS[TICKS.length - 1];
  const zone = new Date(from).getTimezoneOffset() * MINUTE;
  const found = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) {
    const time = new Date(at);
    const major = time.getHours() === 0 && time.getMinutes() === 0;
    found.push({ at, x: ((at - from) * width) / (to - from), label: (major ? DATE : TIME).format(time), major });
  }
  return found;
}
