// The page Shares as values: bars of what a share owns, uses, lends and borrows, its usage and its budget.

import { clock, duration } from "../lib/time.js";
import { counted, listed } from "../lib/words.js";
import { inOrder } from "./scale.js";

/** @typedef {{pool: string, own: number, nominal: number, used: number, held: number, borrowed: number, lent: number, lends: number, borrows: number | null, limit: number | null, limitedBy: string | null, maxPerUser: number | null}} Part */
/** @typedef {{gpuHours: number | null, dollars: number | null, gpuHoursUsed: number, dollarsUsed: number, gpuHoursLeft: number | null, dollarsLeft: number | null, spent: boolean, whenSpent: string, periodStart: string, periodEnd: string}} Budget */
/** @typedef {{name: string, configured: boolean, weight: number, lending: string, running: number, waiting: number, fadedGpuHours: number, budget: Budget | null, pools: Part[]}} Share */
/** @typedef {{name: string, kind: string | null, cap: number | null, used: number, held: number, external: number, unowned: number}} Pool */
/** @typedef {{at: string, order: string, usageHalfLifeSeconds: number, more: boolean, shares: Share[], pools: Pool[]}} Shares */
/** @typedef {{kind: string, units: number, x: number, width: number}} Segment */
/** @typedef {{pool: Pool, parts: {share: string, part: Part, segments: Segment[], limit: number | null}[]}} Rows */

/** @type {Record<string, string>} */
export const KINDS = { used: "used", held: "reserved", idle: "idle", lent: "lent", borrowed: "borrowed" };

/**
 * Return the parts of a share's bar: its own ones from the left, lent ones at the end of them, borrowed ones beyond.
 * @param {Part} part @param {number} total units of the whole width @returns {Segment[]}
 */
export function segments({ own, used, held, lent, borrowed }, total) {
  const within = Math.min(used - borrowed, own);
  const reserved = Math.min(held, Math.max(0, own - within - lent));
  const parts = [["used", within], ["held", reserved], ["idle", Math.max(0, own - within - reserved - lent)], ["lent", lent], ["borrowed", borrowed]];
  let at = 0;
  return /** @type {[string, number][]} */ (parts).filter(([, units]) => units > 0).map(([kind, units]) => {
    const x = (100 * at) / total;
    at += units;
    return { kind, units, x, width: (100 * units) / total };
  });
}

/** Return whether there is anything to show of a share in a pool. @param {Part} part */
const concerns = ({ nominal, used, held, limit }) => nominal + used + held > 0 || limit !== null;

/**
 * Return the pools with their shares, on one scale for each pool. Pools without a share are left out.
 * @param {Shares} shares @returns {Rows[]}
 */
export function byPool({ shares, pools }) {
  return inOrder(pools)
    .map((pool) => {
      const found = shares.flatMap((share) => share.pools.filter((part) => part.pool === pool.name && concerns(part)).map((part) => ({ share: share.name, part })));
      const total = Math.max(1, pool.cap ?? 0, ...found.map(({ part }) => Math.max(part.own + part.borrowed, part.used)));
      return { pool, parts: found.map(({ share, part }) => ({ share, part, segments: segments(part, total), limit: part.limit !== null && part.limit < total ? (100 * part.limit) / total : null })) };
    })
    .filter(({ parts }) => parts.length);
}

/** Return who borrows and from whom, as a sentence. @param {Shares} shares */
export function headline({ shares, pools }) {
  const services = new Set(pools.filter((pool) => pool.kind === "service").map((pool) => pool.name));
  const sum = (/** @type {Share} */ share, /** @type {"borrowed" | "lent"} */ what) => share.pools.reduce((units, part) => units + (services.has(part.pool) ? 0 : part[what]), 0);
  const borrowers = shares.filter((share) => sum(share, "borrowed"));
  const lenders = shares.filter((share) => sum(share, "lent"));
  if (!borrowers.length) return "Every share keeps within its own quota.";
  const units = borrowers.reduce((all, share) => all + sum(share, "borrowed"), 0);
  const from = lenders.length ? ` from ${listed(lenders.map((share) => share.name))}` : " that no share owns";
  return `${listed(borrowers.map((share) => share.name))} ${borrowers.length === 1 ? "borrows" : "borrow"} ${counted(units, "instance")}${from}.`;
}

/** Return the bar of a share in words. @param {string} share @param {Segment[]} parts */
export const barText = (share, parts) => `${share}: ${parts.length ? parts.map(({ kind, units }) => `${units} ${KINDS[kind]}`).join(", ") : "nothing"}`;

/** Return the limit of a share in a pool, with its rule. @param {Part} part */
export const limitText = ({ limit, limitedBy, maxPerUser }) =>
  [limit === null ? "" : `${limit}${limitedBy ? ` (${limitedBy})` : ""}`, maxPerUser === null ? "" : `${maxPerUser} per user`].filter(Boolean).join(", ") || "none";

/** @type {Record<string, string>} */
const LENDING = { "lend-and-borrow": "lends and borrows", lend: "lends", borrow: "borrows", reserve: "keeps its own" };

/** @param {string} lending */
export const lendingText = (lending) => LENDING[lending] ?? lending;

/** Return a number with at most one decimal, and groups of digits. @param {number} value */
export const amount = (value) => value.toLocaleString("en-GB", { maximumFractionDigits: Math.abs(value) < 100 ? 1 : 0 });

/**
 * Return the bounds of a budget with the part that is spent, and a sentence about its period.
 * @param {Budget} budget @param {number} now
 */
export function budgetLines(budget, now) {
  /** @type {[string, number | null, number, number | null][]} */
  const bounds = [["GPU hours", budget.gpuHours, budget.gpuHoursUsed, budget.gpuHoursLeft], ["dollars", budget.dollars, budget.dollarsUsed, budget.dollarsLeft]];
  const lines = bounds.filter(([, bound]) => bound !== null).map(([unit, bound, used, left]) => {
    const part = bound ? Math.min(100, (100 * used) / bound) : 100;
    return { unit, part, text: `${amount(used)} of ${amount(bound ?? 0)} ${unit}, ${amount(Math.max(0, left ?? 0))} left`, tone: part >= 100 ? "bad" : part >= 80 ? "warn" : "" };
  });
  const then = budget.whenSpent === "refuse" ? "new jobs are refused" : "new jobs wait";
  const renews = `renews ${clock(budget.periodEnd, now)}, in ${duration(Date.parse(budget.periodEnd) - now)}`;
  return { lines, note: budget.spent ? `Spent: ${then} until it ${renews}.` : `It ${renews}.` };
}
