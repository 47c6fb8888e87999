// Times and durations in words. `now` is in milliseconds since 1970; times of the API are ISO 8601.

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** @param {number} value @param {string} unit */
const part = (value, unit) => (value ? `${value} ${unit}` : "");

/**
 * Return a duration with its two largest units: "3 h 10 min".
 * @param {number} milliseconds
 */
export function duration(milliseconds) {
  const total = Math.max(0, milliseconds);
  if (total < MINUTE) return `${Math.round(total / 1000)} s`;
  const minutes = Math.round(total / MINUTE);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${part(minutes % 60, "min")}`.trim();
  return `${Math.floor(minutes / 1440)} d ${part(Math.floor((minutes % 1440) / 60), "h")}`.trim();
}

/** @param {number} value */
const two = (value) => String(value).padStart(2, "0");

// Formats are made once: making one takes longer than all else in a row of a table. Hours and minutes need none.
const SECONDS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const WEEKDAY = new Intl.DateTimeFormat("en-GB", { weekday: "short" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Return a time of day with its seconds. @param {string} iso */
export const seconds = (iso) => SECONDS.format(new Date(iso));

/**
 * Return the time of day in the viewer's zone, with the day if it is another one than today.
 * @param {string} iso @param {number} now
 */
export function clock(iso, now) {
  const at = new Date(iso);
  const today = new Date(now);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (at.getDate() === today.getDate() && at.getMonth() === today.getMonth() && at.getFullYear() === today.getFullYear()) return time;
  const near = Math.abs(at.getTime() - now) < 6 * DAY;
  return `${(near ? WEEKDAY : DATE).format(at)} ${time}`;
}

/**
 * Return a time relative to now if it is within an hour, else as a clock shows it.
 * @param {string} iso @param {number} now
 */
export function moment(iso, now) {
  const distance = new Date(iso).getTime() - now;
  if (Math.abs(distance) >= HOUR) return clock(iso, now);
  if (Math.abs(distance) < 5_000) return "now";
  return distance > 0 ? `in ${duration(distance)}` : `${duration(-distance)} ago`;
}

/** Return a time in UTC, for a tooltip. @param {string} iso */
export const utc = (iso) => `${new Date(iso).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** Return a clock's time, with its seconds if it is of the last day: events of a job follow each other closely. @param {string} iso @param {number} now */
export const precise = (iso, now) => (Math.abs(now - Date.parse(iso)) < 24 * HOUR ? seconds(iso) : clock(iso, now));

/**
 * Return a sentence of the API as a page shows it: times in the viewer's zone, counts that stay on one line, and people and
 * roles without the beginning of their ARN.
 * @param {string} text @param {number} now
 */
export const spoken = (text, now) =>
  text.replace(/arn:aws[\w-]*:(iam|sts)::\d+:(assumed-role|role|user)\//g, "").replace(/(\d+) x (?=\S)/g, "$1\u00a0×\u00a0").replace(/\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)/g, (iso) => clock(iso, now));
