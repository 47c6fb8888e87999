import assert from "node:assert/strict";
import { test } from "node:test";

import { endpoints, headline, imageJobs, loadBar, loadText, pressureText, readsOf, regionBar, regionText, waitingText } from "../../src/trainmaster/console/static/views/images.js";
import { job, page, pool } from "./cases.mjs";

const details = (regions = {}) => ({ endpoint: "ships", variant: "blue", load: 8, loadLeft: 4, tiles: 10, regions: { total: 24, done: 15, failed: 1, ...regions }, expectedEnd: null });
const image = (name, regions) => job(name, { kind: "image", details: details(regions) });
const ships = (changes = {}) => pool({ name: "endpoint/ships/blue", kind: "service", cap: 8, free: 0, used: 8, ...changes });

test("one endpoint or all are read, with the pools", () => {
  assert.deepEqual(readsOf({}), ["/pools", "/jobs?kind=image&state=starting%2Crunning%2Cpreempting%2Cresizing&limit=100", "/jobs?kind=image&state=pending%2Cpreempted&limit=100"]);
  assert.match(readsOf({ pool: "endpoint/ships/blue" })[1], /&pool=endpoint%2Fships%2Fblue&/);
});

test("only image jobs and endpoints are shown", () => {
  assert.deepEqual(imageJobs([page([job("bert"), image("a")]), page([image("b")])]).map((each) => each.jobName), ["a", "b"]);
  assert.deepEqual(endpoints({ pools: [pool(), ships()] }).map((each) => each.name), ["endpoint/ships/blue"]);
  assert.equal(headline([image("a")], [image("b"), image("c")]), "1 image job runs, 2 wait.");
  assert.equal(headline([image("a"), image("b")], []), "2 image jobs run, and none waits.");
  assert.equal(headline([], [image("a")]), "No image job runs, 1 waits.");
  assert.equal(headline([], []), "No image job runs or waits.");
});

test("bars have every region and every request once", () => {
  for (const [done, failed] of [[0, 0], [15, 1], [24, 0], [20, 4]]) {
    const found = regionBar(details({ done, failed }));
    assert.equal(found.reduce((sum, each) => sum + each.units, 0), 24);
    assert.ok(Math.abs(found.reduce((sum, each) => sum + each.width, 0) - 100) < 1e-9);
  }
  assert.deepEqual(regionBar(details({ total: 0, done: 0, failed: 0 })), []);
  assert.deepEqual(loadBar(ships({ used: 10, cap: 8 })).map((each) => [each.kind, each.width]), [["used", 100]]);
  assert.deepEqual(loadBar(ships({ used: 2, held: 2, free: 4 })).map((each) => each.width), [25, 25, 50]);
});

test("other callers and throttling are part of an endpoint's load", () => {
  const load = { capacity: 20, target: 0.8, pressure: 0.5, throttledAt: "2026-11-21T11:59:00Z", external: 3, externalAt: "2026-11-21T11:59:30Z", windowSeconds: 180 };
  const now = Date.parse("2026-11-21T12:00:00Z");
  const busy = ships({ used: 4, free: 1, cap: 5, load });
  assert.deepEqual(loadBar(busy).map((each) => [each.kind, each.units, each.width]), [["used", 4, 20], ["free", 1, 5], ["by other callers", 3, 15]]);
  assert.match(pressureText(busy, now), /^takes 20, target 80 %, throttled at .+: 50 % of the target, other callers make 3$/);
  const idle = ships({ load: { ...load, target: 1, pressure: 1, throttledAt: null, external: 0, externalAt: null } });
  assert.equal(pressureText(idle, now), "takes 20, no other callers in the last 3 min");
  assert.equal(pressureText(ships({ load: { ...idle.load, windowSeconds: null } }), now), "takes 20");
  assert.equal(pressureText(ships(), now), "");
});

test("progress and load are words", () => {
  assert.equal(regionText(details()), "15 of 24 regions done, 1 failed");
  assert.equal(regionText(details({ total: 1, done: 1, failed: 0 })), "1 of 1 region done");
  assert.equal(loadText(ships({ held: 2 })), "8 of 8 requests at once, 2 reserved");
  assert.equal(waitingText(ships({ waiting: 2, waitingMore: true })), "2 jobs or more");
  assert.equal(waitingText(ships()), "none");
});
