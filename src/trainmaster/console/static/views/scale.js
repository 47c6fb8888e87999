// Pure functions from data to marks: positions in percent of a width.

/** @typedef {import("../lib/types.js").Pool} Pool */
/** @typedef {import("../lib/types.js").Job} Job */
/** @typedef {import("../lib/types.js").SharesView} SharesView */
/** @typedef {{x: number, width: number, tick: number}} Range */
/** @typedef {{kind: string, share: string, units: number, x: number, width: number}} Segment */

/**
 * Return a function from times to percent of the axis; times beyond it lie on its ends.
 * @param {number} from @param {number} to
 */
export function scale(from, to) {
  const length = Math.max(1, to - from);
  return (/** @type {number} */ at) => Math.min(100, Math.max(0, (100 * (at - from)) / length));
}

/** Return pools of instances, then those of services. @template {{kind: string | null}} P @param {P[]} pools @returns {P[]} */
export const inOrder = (pools) => [...pools].sort((one, other) => Number(one.kind === "service") - Number(other.kind === "service"));

const STEPS = [1 / 12, 1 / 4, 1 / 2, 1, 2, 4, 6, 12, 24, 48].map((hours) => hours * 3_600_000);

/**
 * Return the end of an axis of starts: the smallest round span that shows all of them, at most two days.
 * @param {Job[]} jobs @param {number} now
 */
export function axisSpan(jobs, now) {
  const ends = jobs.map((job) => Date.parse(job.estimatedStartHigh ?? job.estimatedStart ?? "") - now).filter(Number.isFinite);
  const last = Math.max(0, ...ends);
  return STEPS.find((step) => step >= last) ?? STEPS[STEPS.length - 1];
}

/**
 * Return the bar of a start between its earliest and its latest time, and the tick at the expected one.
 * @param {Job} job @param {number} now @param {number} span @returns {Range | null}
 */
export function startRange(job, now, span) {
  if (!job.estimatedStart) return null;
  const at = scale(now, now + span);
  const low = at(Date.parse(job.estimatedStartLow ?? job.estimatedStart));
  const high = at(Date.parse(job.estimatedStartHigh ?? job.estimatedStart));
  const width = Math.max(1.5, high - low);
  return { x: Math.min(low, 100 - width), width, tick: at(Date.parse(job.estimatedStart)) };
}

/**
 * Return the instances of a pool that the jobs of each share hold.
 * @param {SharesView} view @param {string} pool @returns {[string, number][]}
 */
export const usedBy = ({ shares }, pool) =>
  shares.map((share) => [share.name, share.pools.find((each) => each.pool === pool)?.used ?? 0]);

/**
 * Return the parts of a pool's bar: used by share, external, reserved, warm and free. They add up to its width.
 * @param {Pool} pool @param {[string, number][]} shares @returns {Segment[]}
 */
export function poolSegments(pool, shares) {
  let left = pool.used;
  const used = shares.filter(([, units]) => units).sort(([one], [other]) => (one < other ? -1 : 1)).map(([share, units]) => {
    const shown = Math.min(units, left);
    left -= shown;
    return { kind: "used", share, units: shown };
  });
  const others = [
    { kind: "used", share: "", units: left },
    { kind: "external", share: "", units: pool.external },
    { kind: "held", share: "", units: pool.held },
    { kind: "warm", share: "", units: pool.warm },
    { kind: pool.state === "in use" ? "free" : "closed", share: "", units: 0 },
  ];
  const parts = [...used, ...others];
  const taken = parts.reduce((sum, each) => sum + each.units, 0);
  const total = Math.max(pool.cap, taken, 1);
  parts[parts.length - 1].units = total - taken;
  let x = 0;
  return parts.filter((each) => each.units > 0).map((each) => {
    const width = (100 * each.units) / total;
    x += width;
    return { ...each, x: x - width, width };
  });
}

/** Return the shares of jobs by name. @param {Job[][]} lists */
export const sharesOf = (...lists) => [...new Set(lists.flat().map((job) => job.share))].sort();

const TINTS = 8;

/**
 * Return a function from shares to numbers of colors: those of its name, or the next one that no other share has.
 * It keeps what it has returned, so that a share has one color on all pages.
 */
export function tints() {
  /** @type {Map<string, number>} */
  const known = new Map();
  return (/** @type {string} */ share) => {
    const before = known.get(share);
    if (before !== undefined) return before;
    const taken = new Set(known.values());
    const first = [...share].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521, 7) % TINTS;
    const free = Array.from({ length: TINTS }, (_, step) => (first + step) % TINTS).find((each) => !taken.has(each));
    known.set(share, free ?? first);
    return free ?? first;
  };
}
