import assert from "node:assert/strict";
import { test } from "node:test";

import { creationText, delayText, details, fieldOf, formOf, priceText, requestIn, requestOf, verdict } from "../../src/trainmaster/console/static/views/plan.js";
import { iso, NOW, P5, pool } from "./cases.mjs";

const plan = (changes = {}) => ({
  decision: "wait", position: 2, positionAtLeast: null, reason: null, wouldTake: {}, wouldPreempt: [], wouldStart: [], wouldDelay: [], wouldCreate: [], wouldCreateNone: null,
  estimatedStart: null, estimatedStartLow: null, estimatedStartHigh: null, deadline: null, warnings: [], ...changes,
});
const PASTED = {
  TrainingJobName: "bert", RoleArn: "r", ResourceConfig: { InstanceType: P5, InstanceCount: 2, VolumeSizeInGB: 9 }, StoppingCondition: { MaxRuntimeInSeconds: 5_400, MaxWaitTimeInSeconds: 9 },
  Tags: [{ Key: "team", Value: "x" }, { Key: "priority", Value: "7" }, { Key: "trainmaster:max-instances", Value: "4" }],
};

test("a pasted request survives the form", () => {
  const request = requestOf(formOf(PASTED), PASTED);
  assert.deepEqual(request, PASTED);
  assert.deepEqual(formOf(requestOf(formOf(PASTED), PASTED)), formOf(PASTED));
});

test("the form changes what it names, and leaves alone the rest", () => {
  const request = requestOf({ ...formOf(PASTED), priority: "", share: "vision", count: "3", hours: "2" }, PASTED);
  assert.deepEqual(request.Tags, [{ Key: "team", Value: "x" }, { Key: "trainmaster:share", Value: "vision" }, { Key: "trainmaster:max-instances", Value: "4" }]);
  assert.deepEqual(request.ResourceConfig, { VolumeSizeInGB: 9, InstanceType: P5, InstanceCount: 3 });
  assert.deepEqual(request.StoppingCondition, { MaxRuntimeInSeconds: 7_200, MaxWaitTimeInSeconds: 9 });
  assert.equal(request.RoleArn, "r");
});

test("resources take the place of an instance type", () => {
  const request = requestOf({ resources: "accelerators=8", count: "2", type: "" }, null);
  assert.deepEqual(request.ResourceConfig, { VolumeSizeInGB: 50 });
  assert.deepEqual(request.Tags, [{ Key: "trainmaster:resources", Value: "accelerators=8" }, { Key: "trainmaster:instances", Value: "2" }]);
  assert.deepEqual(formOf(request).count, "2");
});

test("what is no number goes to the API as it is", () => {
  assert.equal(requestOf({ type: P5, count: "two" }, null).ResourceConfig.InstanceCount, "two");
  assert.equal(requestOf({ type: P5, hours: "long" }, null).StoppingCondition.MaxRuntimeInSeconds, "long");
});

test("an error is shown at the field that it names", () => {
  const request = requestOf({ type: P5, count: "1", priority: "x", min: "9" }, PASTED);
  const at = (key) => `Tags[${request.Tags.findIndex((tag) => tag.Key === key)}].Value`;
  const cases = [
    [at("priority"), "priority"], [at("trainmaster:min-instances"), "min"], [at("team"), ""], ["Tags[99].Key", ""], ["ResourceConfig.InstanceType", "type"],
    ["ResourceConfig", "type"], ["ResourceConfig.InstanceCount", "count"], ["StoppingCondition.MaxRuntimeInSeconds", "hours"], ["TrainingJobName", "name"], ["RoleArn", ""], [null, ""],
  ];
  for (const [path, field] of cases) assert.equal(fieldOf(path, request), field, String(path));
  assert.equal(fieldOf("ResourceConfig", requestOf({ resources: "vcpus=1" }, null)), "resources");
});

test("a text is a request, nothing, or a problem in words", () => {
  assert.equal(requestIn("  "), null);
  assert.deepEqual(requestIn('{"a": 1}'), { a: 1 });
  for (const text of ["{", "[]", "1", "null"]) assert.throws(() => requestIn(text), /JSON/);
});

test("a plan is a sentence for every decision", () => {
  assert.equal(verdict(plan({ decision: "start", wouldTake: { p: 2 } }), NOW), "It would start at once on 2\u00a0×\u00a0p.");
  assert.equal(verdict(plan({ decision: "preempt", wouldPreempt: ["a", "b"] }), NOW), "It would preempt a and b.");
  assert.match(verdict(plan({ estimatedStart: iso(30) }), NOW), /^It would wait, and start at \d\d:\d\d\.$/);
  assert.equal(verdict(plan(), NOW), "It would wait.");
  const told = details(plan({ estimatedStart: iso(30), estimatedStartLow: iso(20), estimatedStartHigh: iso(40), reason: { type: "x", message: "waits for room" } }), NOW);
  assert.match(told.join(" "), /between \d\d:\d\d and \d\d:\d\d\. Place 2 in the queue\. It waits for room\./);
  assert.deepEqual(details(plan({ decision: "start" }), NOW), []);
  assert.equal(delayText({ bySeconds: 697 }), "12 min later");
  assert.equal(creationText({ pool: "p", instanceType: "t", instances: 2, dollarsPerHour: 1.5 }), "p with 2 instances of t, $1.50 per hour");
});

test("the price is that of the pools, if it is known", () => {
  const pools = [pool({ price: 0, onDemandPrice: 10 }), pool({ name: "spot", price: 4, onDemandPrice: 10 })];
  const request = { ResourceConfig: { InstanceType: P5, InstanceCount: 3 }, StoppingCondition: { MaxRuntimeInSeconds: 7_200 } };
  assert.equal(priceText(plan({ wouldTake: { spot: 2 } }), request, pools), "$8.00 per hour, at most $16.00 until its time limit");
  assert.equal(priceText(plan(), request, pools), "$30.00 per hour, at most $60.00 until its time limit");
  assert.equal(priceText(plan(), { ResourceConfig: { InstanceType: "other" } }, pools), "");
  assert.equal(priceText(plan(), { ResourceConfig: { InstanceType: P5, InstanceCount: "x" } }, pools), "");
});
