// The page Audit as values: its read, and what each entry says.

import { readPath } from "../lib/route.js";
import { spoken } from "../lib/time.js";
import { person } from "../lib/words.js";

/** @typedef {{at: string, action: string, principal: string | null, arn: string | null, sourceIp: string | null, userAgent: string | null, requestId: string | null, job: string | null, before: Record<string, any>, after: Record<string, any>}} Entry */
/** @typedef {{name: string, before: string | null, after: string | null}} Value */

export const PAGE = 50;
/** Values of the filter by action, in words. @type {Record<string, string>} */
export const ACTIONS = {
  submit: "submitted", cancel: "cancelled", priority: "changed the priority", hold: "held", release: "released", purge: "purged", "size-bounds": "changed the size bounds", "resize-answer": "answered a resize",
  settings: "changed settings", pools: "changed pools", pause: "paused the manager", resume: "resumed the manager", import: "imported", export: "exported",
  restore: "asked for a restore", adopt: "adopted a difference",
};

/**
 * Return the read of a query. A day begins in the viewer's zone; one that is still to come does not filter.
 * @param {Record<string, string>} query @param {number} now
 */
export function readOf({ who, action, job, since, cursor }, now) {
  const day = /^\d{4}-\d\d-\d\d$/.test(since ?? "") ? new Date(`${since}T00:00`) : null;
  const from = day && day.getTime() < now ? day.toISOString().replace(".000", "") : undefined;
  return readPath("/audit", { who, action: Object.hasOwn(ACTIONS, action ?? "") ? action : undefined, job, since: from, limit: PAGE, cursor });
}

/** Return the change in words. @param {Entry} entry */
export const deed = ({ action }) => ACTIONS[action] ?? action;

/** Return the name of the caller, and the whole ARN. @param {Entry} entry */
export const caller = ({ arn, principal }) => ({ name: person(arn ?? principal), arn: arn ?? principal ?? "" });

/** @param {any} value @param {number} now */
const shown = (value, now) => (value === undefined ? null : value === null ? "none" : typeof value === "string" ? spoken(value, now) : JSON.stringify(value));

/**
 * Return the values that an entry changed, before and after; null where there is none.
 * @param {Entry} entry @param {number} now @returns {Value[]}
 */
export const values = ({ before, after }, now) =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => name !== "digest")
    .map((name) => ({ name, before: shown(before[name], now), after: shown(after[name], now) }));

/** Return whether a query filters. @param {Record<string, string>} query */
export const isFiltered = ({ who, action, job, since }) => Boolean(who || action || job || since);
