// Stacks the intervals of a pool: each gets rows of its own for its time, as many as it has units, so that gaps are idle units.

/**
 * An interval of a pool in milliseconds; `soft` ones fill rows that are free and end where another one begins.
 * @typedef {{from: number, until: number, units: number, job: string, soft: boolean}} Item
 * Rows `low` to `low + units`, from `from` to `until`.
 * @typedef {{low: number, units: number, from: number, until: number}} Run
 * @typedef {{low: number, units: number}} Gap
 */

/**
 * Return the highest sum of units at any time. Ends are not part of an interval.
 * @param {{from: number, until: number, units: number}[]} items
 */
export function peak(items) {
  const steps = items.filter((each) => each.until > each.from).flatMap((each) => [[each.from, each.units], [each.until, -each.units]]);
  steps.sort(([one, more], [other, less]) => one - other || more - less);
  let sum = 0;
  let most = 0;
  for (const [, change] of steps) most = Math.max(most, (sum += change));
  return most;
}

/**
 * Return the runs of each item, in the items' order, and the number of rows. Items that last are not split unless no gap is
 * wide enough. An item without length has no runs, as has a soft one for which no row is free.
 * @param {Item[]} items @param {number} cap @returns {{rows: number, runs: Run[][]}}
 */
export function stack(items, cap) {
  const rows = Math.max(cap, peak(items.filter((each) => !each.soft)));
  const order = items.map((_, number) => number).filter((number) => items[number].until > items[number].from);
  order.sort((one, other) => first(items[one], items[other]) || one - other);
  /** @type {Run[][]} */
  const runs = items.map(() => []);
  placeFirm(items, order.filter((number) => !items[number].soft), rows, runs);
  placeSoft(items, order.filter((number) => items[number].soft), rows, runs);
  return { rows, runs };
}

/** Compare by beginning; of those that begin together, the longest goes below. @param {Item} one @param {Item} other */
const first = (one, other) => one.from - other.from || other.until - one.until || other.units - one.units;

/** @param {Item[]} items @param {number[]} order @param {number} rows @param {Run[][]} runs */
function placeFirm(items, order, rows, runs) {
  /** @type {Run[]} */
  let busy = [];
  /** @type {Map<string, number>} */
  const before = new Map();
  for (const number of order) {
    const { from, until, units, job } = items[number];
    busy = busy.filter((each) => each.until > from);
    runs[number] = chosen(gaps(busy, rows), units, before.get(job)).map((gap) => ({ ...gap, from, until }));
    busy.push(...runs[number]);
    if (job && runs[number].length) before.set(job, runs[number][0].low);
  }
}

/** @param {Item[]} items @param {number[]} order @param {number} rows @param {Run[][]} runs */
function placeSoft(items, order, rows, runs) {
  const all = runs.flat();
  for (const number of order) {
    const { from, until, units } = items[number];
    const free = gaps(all.filter((each) => each.from <= from && each.until > from), rows);
    const later = all.filter((each) => each.from > from && each.from < until);
    runs[number] = chosen(free, Math.min(units, total(free))).map((gap) => ({ ...gap, from, until: nextUse(later, gap, until) }));
    all.push(...runs[number]);
  }
}

/** Return when rows are next used. @param {Run[]} later @param {Gap} gap @param {number} until */
const nextUse = (later, gap, until) =>
  later.reduce((end, each) => (each.low < gap.low + gap.units && gap.low < each.low + each.units ? Math.min(end, each.from) : end), until);

/** @param {Gap[]} free */
const total = (free) => free.reduce((sum, each) => sum + each.units, 0);

/** Return the rows between runs. @param {Run[]} busy @param {number} rows @returns {Gap[]} */
function gaps(busy, rows) {
  const found = [];
  let low = 0;
  for (const each of [...busy].sort((one, other) => one.low - other.low)) {
    if (each.low > low) found.push({ low, units: each.low - low });
    low = Math.max(low, each.low + each.units);
  }
  if (rows > low) found.push({ low, units: rows - low });
  return found;
}

/**
 * Return rows for some units: those that the job had, the narrowest gap that is wide enough, else the lowest free ones.
 * @param {Gap[]} free @param {number} units @param {number} [before] @returns {Gap[]}
 */
function chosen(free, units, before) {
  const wide = free.filter((each) => each.units >= units);
  const same = before === undefined ? undefined : wide.find((each) => each.low <= before && before < each.low + each.units);
  if (same) return [{ low: Math.min(/** @type {number} */ (before), same.low + same.units - units), units }];
  if (wide.length) return [{ low: wide.reduce((best, each) => (each.units < best.units ? each : best)).low, units }];
  const parts = [];
  let left = units;
  for (const each of free) {
    if (left > 0) parts.push({ low: each.low, units: Math.min(left, each.units) });
    left -= each.units;
  }
  return parts;
}
