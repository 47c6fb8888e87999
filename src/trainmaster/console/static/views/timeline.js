// The page Timeline as values: from the API's schedule to lanes of bars in pixels, merged where they are too thin to see.

import { clock, duration, HOUR } from "../lib/time.js";
import { counted } from "../lib/words.js";
import { inOrder } from "./scale.js";
import { stack } from "./stack.js";

/** @typedef {import("../lib/types.js").Interval} Interval */
/** @typedef {import("../lib/types.js").SchedulePool} SchedulePool */
/** @typedef {import("../lib/types.js").Schedule} Schedule */
/** @typedef {import("./stack.js").Run} Run */
/** @typedef {{from: number, to: number, width: number}} View */
/** @typedef {Interval & {begins: number, ends: number, runs: Run[], also: string[]}} Placed */
/** @typedef {{pool: SchedulePool, rows: number, placed: Placed[], closed: Placed[]}} Lane */
/** @typedef {{x: number, width: number, low: number, units: number, until: number}} Rect */
/** @typedef {{low: number, at: number, high: number}} Whisker */
/**
 * A bar. `count` is 1, or how many intervals a merged one stands for.
 * @typedef {object} Bar
 * @property {string} id
 * @property {string} pool
 * @property {string} kind
 * @property {string} job
 * @property {string} share
 * @property {number} units
 * @property {string} outcome
 * @property {string[]} also
 * @property {Rect[]} rects
 * @property {number} x
 * @property {number} width
 * @property {number | null} split Where the present divides a running one.
 * @property {Whisker | null} start
 * @property {Whisker | null} end
 * @property {number} count
 * @property {string[]} jobs
 * @property {Interval | null} interval
 * @property {number} begins
 * @property {number} ends
 */

export const THIN = 2;
export const MAX_BARS = 2_000;
const COLUMN = 3;
const SOFT = ["held", "reserved", "warm"];
/** Words for the kinds of intervals. @type {Record<string, string>} */
export const KINDS = {
  past: "ran", running: "runs", planned: "expected", reserved: "reserved", held: "held", warm: "warm", external: "outside the queue", closed: "closed",
};

/** Lanes of pools that have not changed since the last schedule. @type {WeakMap<SchedulePool, {end: number, lane: Lane}>} */
const LANES = new WeakMap();

/** Return the lanes of a schedule; that of a pool without changes is the same object as before. @param {Schedule} schedule @returns {Lane[]} */
export const lanesOf = ({ pools, to }) => inOrder(pools).map((pool) => {
  const end = Math.ceil(Date.parse(to) / HOUR) * HOUR;
  const known = LANES.get(pool);
  const found = known?.end === end ? known.lane : lane(pool, end);
  LANES.set(pool, { end, lane: found });
  return found;
});

/**
 * Return the bars with those of before that are equal, as the same objects, and whole lanes that are: they are not drawn again.
 * @param {Bar[][]} before @param {Bar[][]} bars @returns {Bar[][]}
 */
export const kept = (before, bars) => bars.map((own, number) => {
  const old = before[number] ?? [];
  const known = new Map(old.map((each) => [each.id, each]));
  const made = own.map((each) => (isSame(known.get(each.id), each) ? /** @type {Bar} */ (known.get(each.id)) : each));
  return made.length === old.length && made.every((each, place) => each === old[place]) ? old : made;
});

/** @param {any} one @param {any} other @returns {boolean} */
const isSame = (one, other) => one === other || (typeof one === "object" && typeof other === "object" && one !== null && other !== null
  && Object.keys(one).length === Object.keys(other).length && Object.keys(one).every((key) => isSame(one[key], other[key])));

/**
 * Return a pool's intervals with the rows that each has.
 * @param {SchedulePool} pool @param {number} end @returns {Lane}
 */
export function lane(pool, end) {
  const all = pool.intervals.map((each) => ({ ...each, begins: Date.parse(each.from), ends: each.until ? Date.parse(each.until) : Math.max(end, Date.parse(each.from)), runs: [], also: [] }));
  const closed = all.filter((each) => each.kind === "closed");
  const shown = /** @type {Placed[]} */ (joined(all.filter((each) => each.kind !== "closed")));
  const items = shown.map((each) => ({ from: each.begins, until: each.ends, units: each.units, job: each.jobName ?? "", soft: SOFT.includes(each.kind) }));
  const { rows, runs } = stack(items, Math.max(pool.cap ?? 0, ...closed.map((each) => each.units), 1));
  shown.forEach((each, number) => (each.runs = runs[number]));
  return { pool, rows, placed: shown, closed };
}

/**
 * End what is kept for a job where its planned start begins; what would have no length is told at that start.
 * @param {Placed[]} all
 */
function joined(all) {
  const planned = new Map(all.filter((each) => each.kind === "planned").map((each) => [each.jobName, each]));
  for (const each of all) {
    const start = ["held", "reserved"].includes(each.kind) ? planned.get(each.jobName) : undefined;
    if (!start) continue;
    each.ends = Math.max(each.begins, Math.min(each.ends, start.begins));
    if (each.ends === each.begins) start.also.push(each.kind);
  }
  return all;
}

/**
 * Return the bars of lanes in a view, and the number of intervals that no bar shows: those outside it, those without length,
 * and those that take no row. The thinnest are merged until there are few enough bars.
 * @param {Lane[]} lanes @param {View} view @param {number} now @returns {{bars: Bar[][], unseen: number, merged: number}}
 */
export function draw(lanes, view, now) {
  const inView = lanes.map((each) => each.placed.filter((one) => one.runs.length && one.begins < view.to && one.ends > view.from));
  const all = lanes.reduce((sum, each) => sum + each.placed.length, 0);
  const unseen = all - inView.reduce((sum, each) => sum + each.length, 0);
  const scale = view.width / (view.to - view.from);
  const widest = inView.flat().filter((each) => wide(each, view, scale) >= THIN).sort((one, other) => wide(other, view, scale) - wide(one, view, scale));
  for (let most = MAX_BARS, column = COLUMN; ; most = Math.floor(0.8 * most), column *= 1.5) {
    const own = new Set(widest.slice(0, most));
    const bars = inView.map((placed, number) => [
      ...placed.filter((each) => own.has(each)).map((each) => bar(each, lanes[number].pool.name, view, now)),
      ...merge(placed.filter((each) => !own.has(each)), lanes[number].pool.name, view, column),
    ].sort(inTime));
    if (column > view.width || bars.reduce((sum, each) => sum + each.length, 0) <= MAX_BARS) {
      return { bars, unseen, merged: bars.flat().reduce((sum, each) => sum + (each.count > 1 ? each.count : 0), 0) };
    }
  }
}

/** @param {Placed} each @param {View} view @param {number} scale */
const wide = (each, view, scale) => (Math.min(each.ends, view.to) - Math.max(each.begins, view.from)) * scale;

/** @param {Bar} one @param {Bar} other */
const inTime = (one, other) => one.begins - other.begins || one.rects[0].low - other.rects[0].low;

/** Return the place of a time, at most a little outside the view. @param {View} view */
export const place = (view) => (/** @type {number} */ at) =>
  Math.min(view.width + 20, Math.max(-20, ((at - view.from) * view.width) / (view.to - view.from)));

/** @param {Placed} each @param {string} pool @param {View} view @param {number} now @returns {Bar} */
function bar(each, pool, view, now) {
  const at = place(view);
  const rects = each.runs.map((run) => ({ x: at(run.from), width: at(run.until) - at(run.from), low: run.low, units: run.units, until: run.until }));
  rects.sort((one, other) => other.units - one.units);
  const x = at(each.begins);
  return {
    id: [pool, each.kind, each.jobName, each.attempt, each.kind === "past" ? each.from : ""].join("|"),
    pool, kind: each.kind, job: each.jobName ?? "", share: each.share ?? "", units: each.units, outcome: each.outcome ?? "", also: each.also,
    rects, x, width: at(each.ends) - x, split: each.kind === "running" ? at(now) : null,
    start: whisker(each.fromLow, each.from, each.fromHigh, at), end: whisker(each.untilLow, each.until, each.untilHigh, at),
    count: 1, jobs: each.jobName ? [each.jobName] : [], interval: each, begins: each.begins, ends: each.ends,
  };
}

/** @param {string | null} low @param {string | null} expected @param {string | null} high @param {(at: number) => number} at */
function whisker(low, expected, high, at) {
  if (!low || !expected || !high || low === high) return null;
  return { low: at(Date.parse(low)), at: at(Date.parse(expected)), high: at(Date.parse(high)) };
}

/**
 * Return bars for intervals that are too thin: neighbors become one, which keeps the rows that they have in each column.
 * @param {Placed[]} thin @param {string} pool @param {View} view @param {number} column @returns {Bar[]}
 */
function merge(thin, pool, view, column) {
  const at = place(view);
  /** @type {Placed[][]} */
  const groups = [];
  let end = -Infinity;
  for (const each of [...thin].sort((one, other) => one.begins - other.begins)) {
    const x = Math.floor(at(each.begins) / column);
    const last = groups[groups.length - 1];
    if (last && x <= end + 1 && x - Math.floor(at(last[0].begins) / column) < 12) last.push(each);
    else groups.push([each]);
    end = x;
  }
  return groups.map((group) => merged(group, pool, at, column));
}

/** @param {Placed[]} group @param {string} pool @param {(at: number) => number} at @param {number} column @returns {Bar} */
function merged(group, pool, at, column) {
  /** @type {Map<number, Run[]>} */
  const columns = new Map();
  for (const each of group) {
    const x = Math.floor(at(each.begins) / column) * column;
    columns.set(x, [...(columns.get(x) ?? []), ...each.runs]);
  }
  const rects = [...columns].flatMap(([x, runs]) => union(runs).map(([low, high]) => ({ x, width: column, low, units: high - low, until: 0 })));
  const one = (/** @type {(each: Placed) => string | null} */ of) => (new Set(group.map(of)).size === 1 ? of(group[0]) ?? "" : "");
  const x = Math.min(...rects.map((each) => each.x));
  return {
    id: [pool, "merged", group[0].jobName, group[0].from].join("|"), pool, kind: group.length > 1 ? "merged" : group[0].kind,
    job: one((each) => each.jobName), share: one((each) => each.share), units: Math.max(...group.map((each) => each.units)), outcome: "", also: [],
    rects, x, width: Math.max(...rects.map((each) => each.x)) + column - x, split: null, start: null, end: null, count: group.length,
    jobs: [...new Set(group.flatMap((each) => each.jobName ?? []))], interval: group.length > 1 ? null : group[0],
    begins: group[0].begins, ends: Math.max(...group.map((each) => each.ends)),
  };
}

/** Return the rows of runs as ranges that do not touch. @param {Run[]} runs */
function union(runs) {
  /** @type {number[][]} */
  const found = [];
  for (const { low, units } of [...runs].sort((one, other) => one.low - other.low)) {
    const last = found[found.length - 1];
    if (last && low <= last[1]) last[1] = Math.max(last[1], low + units);
    else found.push([low, low + units]);
  }
  return found;
}

/** Return a bar in words. @param {Bar} bar @param {number} now */
export function labelOf(bar, now) {
  if (!bar.interval) return `${counted(bar.count, "short interval")}${bar.share ? ` of ${bar.share}` : ""} on ${bar.pool}, ${between(bar.begins, bar.ends, now)}`;
  const { interval } = bar;
  const what = `${bar.units} × ${bar.pool}`;
  const who = bar.job ? `${bar.job}, share ${bar.share}: ` : "";
  return `${who}${phrase(interval, what, now)}${bar.also.length ? `, ${bar.also.join(" and ")} for it` : ""}`;
}

/** @param {Interval} each @param {string} what @param {number} now */
function phrase(each, what, now) {
  const until = each.until ? clock(each.until, now) : "";
  /** @type {Record<string, () => string>} */
  const phrases = {
    past: () => `ran on ${what} from ${clock(each.from, now)} to ${until}, ${each.outcome ?? ""}`,
    running: () => `runs on ${what} since ${clock(each.from, now)}, expected to end at ${until || "no known time"}${range(each.untilLow, each.untilHigh, now)}`,
    planned: () => `expected to start on ${what} at ${clock(each.from, now)}${range(each.fromLow, each.fromHigh, now)}, until ${until}`,
    reserved: () => `${what} reserved from ${clock(each.from, now)}`,
    held: () => `${what} held, until ${until || "it starts"}`,
    warm: () => `warm pool of ${what}${until ? `, until ${until}` : ""}`,
    external: () => `${what} used outside the queue`,
  };
  return (phrases[each.kind] ?? (() => what))();
}

/** @param {string | null} low @param {string | null} high @param {number} now */
export const range = (low, high, now) => (low && high && low !== high ? ` (${clock(low, now)} to ${clock(high, now)})` : "");

/** @param {number} from @param {number} until @param {number} now */
const between = (from, until, now) => `${clock(new Date(from).toISOString(), now)} to ${clock(new Date(until).toISOString(), now)}, ${duration(until - from)}`;

/**
 * Return the bar to which an arrow leads: in time within its lane, or to the nearest one above or below, also of another lane.
 * @param {Bar[][]} bars @param {string} id @param {string} key
 */
export function neighbor(bars, id, key) {
  const number = Math.max(0, bars.findIndex((each) => each.some((one) => one.id === id)));
  const own = bars[number] ?? [];
  const at = own.findIndex((each) => each.id === id);
  if (at < 0) return bars.flat()[0] ?? null;
  if (key === "ArrowLeft") return own[at - 1] ?? null;
  if (key === "ArrowRight") return own[at + 1] ?? null;
  if (key === "Home") return own[0];
  if (key === "End") return own[own.length - 1];
  return vertical(bars, number, own[at], key === "ArrowUp" ? 1 : -1);
}

/** @param {Bar[][]} bars @param {number} number @param {Bar} from @param {number} step */
function vertical(bars, number, from, step) {
  const level = from.rects[0].low;
  const stacked = bars[number].filter((each) => each.id !== from.id && each.x < from.x + from.width && each.x + each.width > from.x && (each.rects[0].low - level) * step > 0);
  if (stacked.length) return stacked.reduce((best, each) => (Math.abs(each.rects[0].low - level) < Math.abs(best.rects[0].low - level) ? each : best));
  const lanes = step > 0 ? bars.slice(0, number).reverse() : bars.slice(number + 1);
  const next = lanes.find((each) => each.length);
  const middle = (/** @type {Bar} */ each) => Math.abs(each.x + each.width / 2 - from.x - from.width / 2);
  return next ? next.reduce((best, each) => (middle(each) < middle(best) ? each : best)) : null;
}
