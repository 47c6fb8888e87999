import assert from "node:assert/strict";
import { test } from "node:test";

import { barText, budgetLines, byPool, headline, lendingText, limitText, segments } from "../../src/trainmaster/console/static/views/shares.js";
import { iso, NOW, P5 } from "./cases.mjs";

const part = (changes = {}) => ({ pool: P5, own: 4, nominal: 4, used: 0, held: 0, borrowed: 0, lent: 0, lends: 4, borrows: null, limit: null, limitedBy: null, maxPerUser: null, ...changes });
const share = (name, pools, changes = {}) => ({ name, configured: true, weight: 1, lending: "lend-and-borrow", running: 0, waiting: 0, fadedGpuHours: 0, budget: null, pools, ...changes });
const shares = (all, pools = [{ name: P5, kind: "on-demand", cap: 8, used: 0, held: 0, external: 0, unowned: 0 }]) => ({ at: iso(0), order: "fair", usageHalfLifeSeconds: 60, more: false, shares: all, pools });
const budget = (changes = {}) => ({ gpuHours: 100, dollars: null, gpuHoursUsed: 25, dollarsUsed: 0, gpuHoursLeft: 75, dollarsLeft: null, spent: false, whenSpent: "wait", periodStart: iso(-60), periodEnd: iso(120), ...changes });
const random = (seed) => () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;

test("a bar has every unit once, side by side, whatever a share holds", () => {
  const next = random(5);
  const some = (limit) => Math.floor(next() * (limit + 1));
  for (let round = 0; round < 500; round += 1) {
    const own = some(9);
    const used = some(14);
    const borrowed = Math.max(0, used - own);
    const lent = some(Math.max(0, own - used));
    const held = some(4);
    const one = part({ own, used, borrowed, lent, held });
    const total = Math.max(1, own + borrowed);
    const found = segments(one, total);
    const units = (kind) => found.filter((each) => each.kind === kind).reduce((sum, each) => sum + each.units, 0);
    assert.equal(units("used") + units("borrowed"), used);
    assert.deepEqual([units("borrowed"), units("lent")], [borrowed, lent]);
    assert.equal(found.reduce((sum, each) => sum + each.units, 0), own + borrowed);
    for (const [number, each] of found.entries()) assert.ok(Math.abs(each.x - found.slice(0, number).reduce((sum, one) => sum + one.width, 0)) < 1e-9 && each.x + each.width < 100.0001);
  }
});

test("pools list their shares on one scale, and limits lie on it", () => {
  const [rows, ...others] = byPool(shares([share("a", [part({ used: 6, borrowed: 2, limit: 6, limitedBy: "borrow limit" })]), share("b", []), share("c", [part({ own: 2, limit: 8 })]), share("default", [part({ own: 0, nominal: 0 })])],
    [...shares([]).pools, { name: "unused", kind: null, cap: null, used: 0, held: 0, external: 0, unowned: 0 }]));
  assert.deepEqual(others, []);
  assert.deepEqual(rows.parts.map((each) => [each.share, each.limit]), [["a", 75], ["c", null]]);
  assert.equal(barText("a", rows.parts[0].segments), "a: 4 used, 2 borrowed");
  assert.equal(barText("x", []), "x: nothing");
});

test("a sentence says who borrows from whom", () => {
  const lender = share("speech", [part({ lent: 2 })]);
  assert.equal(headline(shares([share("vision", [part({ used: 6, borrowed: 2 })]), lender])), "vision borrows 2 instances from speech.");
  assert.equal(headline(shares([share("a", [part({ borrowed: 1 })]), share("b", [part({ borrowed: 2 })])])), "a and b borrow 3 instances that no share owns.");
  assert.equal(headline(shares([lender])), "Every share keeps within its own quota.");
});

test("limits and rules are words", () => {
  assert.equal(limitText(part()), "none");
  assert.equal(limitText(part({ limit: 6, limitedBy: "cap", maxPerUser: 2 })), "6 (cap), 2 per user");
  assert.equal(lendingText("reserve"), "keeps its own");
  assert.equal(lendingText("later"), "later");
});

test("a budget says what is left and when it renews", () => {
  const { lines, note } = budgetLines(budget(), NOW);
  assert.deepEqual(lines, [{ unit: "GPU hours", part: 25, text: "25 of 100 GPU hours, 75 left", tone: "" }]);
  assert.match(note, /^It renews \S+, in 2 h\.$|^It renews .* in 2 h\.$/);
  const over = budgetLines(budget({ gpuHours: null, dollars: 1_500.5, dollarsUsed: 1_600, dollarsLeft: -99.5, spent: true, whenSpent: "refuse" }), NOW);
  assert.deepEqual(over.lines, [{ unit: "dollars", part: 100, text: "1,600 of 1,501 dollars, 0 left", tone: "bad" }]);
  assert.match(over.note, /^Spent: new jobs are refused until it renews /);
  assert.equal(budgetLines(budget({ gpuHoursUsed: 80, gpuHoursLeft: 20 }), NOW).lines[0].tone, "warn");
  assert.equal(budgetLines(budget({ gpuHours: 0, gpuHoursUsed: 0, gpuHoursLeft: 0 }), NOW).lines[0].part, 100);
});
