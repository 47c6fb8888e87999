// The page Image jobs as values: endpoints with their load, and jobs with their regions.

import { readPath } from "../lib/route.js";
import { clock } from "../lib/time.js";
import { ACTIVE, counted, WAITING } from "../lib/words.js";

/** @typedef {import("../lib/types.js").Job} Job */
/** @typedef {import("../lib/types.js").JobsPage} JobsPage */
/** @typedef {import("../lib/types.js").Pool} Pool */
/** @typedef {{endpoint: string, variant: string | null, load: number, loadLeft: number, tiles: number, regions: {total: number, done: number, failed: number}, expectedEnd: string | null}} Details */
/** @typedef {Job & {details: Details}} ImageJob */
/** @typedef {{kind: string, units: number, x: number, width: number}} Segment */

export const PAGE = 100;
export const KIND = "image";

/**
 * Return the reads of the API: the pools, then running and waiting jobs, those of one endpoint or all.
 * @param {Record<string, string>} query
 */
export const readsOf = ({ pool }) => [readPath("/pools"), ...[ACTIVE, WAITING].map((states) => readPath("/jobs", { kind: KIND, state: states.join(), pool, limit: PAGE }))];

/** Return the image jobs of pages of jobs; an older queue ignores the filter by kind. @param {JobsPage[]} pages @returns {ImageJob[]} */
export const imageJobs = (pages) => /** @type {any[]} */ (pages.flatMap((page) => page.jobs)).filter((job) => job.kind === KIND && job.details);

/** Return the endpoints: pools whose units are requests. @param {{pools: Pool[]}} found */
export const endpoints = ({ pools }) => pools.filter((pool) => pool.kind === "service");

/** Return how many image jobs run and wait. @param {ImageJob[]} active @param {ImageJob[]} waiting */
export function headline(active, waiting) {
  if (!active.length && !waiting.length) return "No image job runs or waits.";
  const runs = active.length ? `${counted(active.length, "image job")} ${active.length === 1 ? "runs" : "run"}` : "No image job runs";
  return `${runs}, ${waiting.length ? `${waiting.length} ${waiting.length === 1 ? "waits" : "wait"}` : "and none waits"}.`;
}

/** @param {[string, number][]} parts @param {number} total @returns {Segment[]} */
function laid(parts, total) {
  let at = 0;
  return parts.filter(([, units]) => units > 0).map(([kind, units]) => {
    const x = (100 * at) / total;
    at += units;
    return { kind, units, x, width: (100 * units) / total };
  });
}

/** Return the parts of a job's bar: regions that are done, failed and left. @param {Details} details */
export function regionBar({ regions: { total, done, failed } }) {
  return laid([["done", done], ["failed", failed], ["left", total - done - failed]], Math.max(1, total));
}

/** Return the parts of an endpoint's bar: requests of running jobs, reserved and free ones, and those of other callers. @param {Pool} pool */
export function loadBar({ used, held, free, cap, load }) {
  const external = load?.external ?? 0;
  return laid([["used", used], ["held", held], ["free", free], ["by other callers", external]], Math.max(1, cap + external, used + held + free + external, load?.capacity ?? 0));
}

/** @param {Details} details */
export const regionText = ({ regions: { total, done, failed } }) => `${done} of ${counted(total, "region")} done${failed ? `, ${failed} failed` : ""}`;

/** Return the target and the load of an endpoint in words. @param {Pool} pool */
export const loadText = ({ used, cap, held }) => [`${used} of ${counted(cap, "request")} at once`, held ? `${held} reserved` : ""].filter(Boolean).join(", ");

/** Return from what the target follows, in words; empty without a known load. @param {Pool} pool @param {number} now */
export function pressureText({ load }, now) {
  if (!load) return "";
  return [
    `takes ${load.capacity}`,
    load.target === 1 ? "" : `target ${percent(load.target)}`,
    load.throttledAt ? `throttled at ${clock(load.throttledAt, now)}: ${percent(load.pressure)} of the target` : "",
    load.external ? `other callers make ${load.external}` : load.windowSeconds ? `no other callers in the last ${load.windowSeconds / 60} min` : "",
  ].filter(Boolean).join(", ");
}

/** @param {number} part */
const percent = (part) => `${Math.round(100 * part)} %`;

/** Return the number of jobs that wait for an endpoint in words. @param {Pool} pool */
export const waitingText = ({ waiting, waitingMore }) => (waiting ? `${counted(waiting, "job")}${waitingMore ? " or more" : ""}` : "none");
