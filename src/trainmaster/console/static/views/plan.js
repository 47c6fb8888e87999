// The page Plan as values: a request from the fields of the form, the field that an error names, and the plan in words.

import { clock, duration, spoken } from "../lib/time.js";
import { counted, listed, unitsText } from "../lib/words.js";

/** @typedef {Record<string, string>} Form */
/** @typedef {Record<string, any>} Request */
/** @typedef {{jobName: string, bySeconds: number, expectedStart: string, wouldStart: string}} Delay */
/** @typedef {{pool: string, instanceType: string, instances: number, dollarsPerHour: number | null}} Creation */
/**
 * @typedef {object} Plan
 * @property {string} decision
 * @property {number | null} position
 * @property {number | null} positionAtLeast
 * @property {{type: string, message: string} | null} reason
 * @property {Record<string, number>} wouldTake
 * @property {string[]} wouldPreempt
 * @property {string[]} wouldStart
 * @property {Delay[]} wouldDelay
 * @property {Creation[]} wouldCreate
 * @property {string | null} wouldCreateNone
 * @property {string | null} estimatedStart
 * @property {string | null} estimatedStartLow
 * @property {string | null} estimatedStartHigh
 * @property {{message: string} | null} deadline
 * @property {string[]} warnings
 */

/** Tags of the fields that are options. @type {Record<string, string>} */
export const TAGS = {
  priority: "priority", share: "trainmaster:share", resources: "trainmaster:resources", instances: "trainmaster:instances",
  min: "trainmaster:min-instances", max: "trainmaster:max-instances", notBefore: "trainmaster:not-before",
};
/** What a request needs besides, for a form alone. @type {Request} */
const REST = {
  TrainingJobName: "plan-of-a-job",
  AlgorithmSpecification: { TrainingImage: "111122223333.dkr.ecr.us-east-1.amazonaws.com/image:latest", TrainingInputMode: "File" },
  RoleArn: "arn:aws:iam::111122223333:role/training",
  OutputDataConfig: { S3OutputPath: "s3://bucket/output" },
  CheckpointConfig: { S3Uri: "s3://bucket/checkpoints" },
  ResourceConfig: { VolumeSizeInGB: 50 },
};

/** Return the request in a text; null for an empty one. Throws an Error with words for people. @param {string} text @returns {Request | null} */
export function requestIn(text) {
  if (!text.trim()) return null;
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("This is no JSON. Paste the request as `json.dumps` writes it.");
  }
  if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error("A request is a JSON object.");
  return found;
}

/** Return the fields of a request. @param {Request} request @returns {Form} */
export function formOf(request) {
  const tags = Object.fromEntries(listOf(request.Tags).map((/** @type {any} */ tag) => [tag?.Key, String(tag?.Value ?? "")]));
  const text = (/** @type {any} */ value) => (value === undefined || value === null ? "" : String(value));
  const { InstanceType, InstanceCount } = request.ResourceConfig ?? {};
  const seconds = request.StoppingCondition?.MaxRuntimeInSeconds;
  const options = Object.fromEntries(Object.entries(TAGS).map(([field, key]) => [field, tags[key] ?? ""]));
  return { ...options, name: text(request.TrainingJobName), type: text(InstanceType), count: options.instances || text(InstanceCount), hours: seconds ? text(Math.round(seconds / 36) / 100) : "" };
}

/** @param {any} value @returns {any[]} */
const listOf = (value) => (Array.isArray(value) ? value : []);

/** Return a number as one, and what is none as it is, so that the API refuses it in its own words. @param {string} text */
const number = (text) => (/^-?\d+$/.test(text.trim()) ? Number(text) : text);

/**
 * Return the request with the values of the form; empty ones are left out, as the deployment has its own defaults.
 * @param {Form} form @param {Request | null} base @returns {Request}
 */
export function requestOf(form, base) {
  const request = base ?? REST;
  const { InstanceType: _type, InstanceCount: _count, ...config } = request.ResourceConfig ?? {};
  const asks = form.resources ? {} : { InstanceType: form.type, ...(form.count ? { InstanceCount: number(form.count) } : {}) };
  /** @type {Form} */
  const options = { ...form, instances: form.resources ? form.count : "" };
  const own = new Set(Object.values(TAGS));
  const added = Object.entries(TAGS).flatMap(([field, Key]) => (options[field] ? [{ Key, Value: options[field].trim() }] : []));
  const hours = Number(form.hours);
  return {
    ...request,
    ...(form.name ? { TrainingJobName: form.name } : {}),
    ResourceConfig: { ...config, ...asks },
    ...(form.hours ? { StoppingCondition: { ...request.StoppingCondition, MaxRuntimeInSeconds: Number.isFinite(hours) ? Math.round(hours * 3600) : form.hours } } : {}),
    Tags: [...listOf(request.Tags).filter((/** @type {any} */ tag) => !own.has(tag?.Key)), ...added],
  };
}

/**
 * Return the field of the form that an error names; "" if it is none of them.
 * @param {string | null} path @param {Request} request
 */
export function fieldOf(path, request) {
  const tag = /^Tags\[(\d+)\]/.exec(path ?? "");
  const key = tag ? request.Tags?.[Number(tag[1])]?.Key : "";
  const option = Object.keys(TAGS).find((field) => TAGS[field] === key);
  if (option) return option === "instances" ? "count" : option;
  const resources = Object.hasOwn(request.ResourceConfig ?? {}, "InstanceType") ? "type" : "resources";
  /** @type {Record<string, string>} */
  const fields = { TrainingJobName: "name", "ResourceConfig.InstanceCount": "count", "ResourceConfig.InstanceType": "type", ResourceConfig: resources, "StoppingCondition.MaxRuntimeInSeconds": "hours", StoppingCondition: "hours" };
  return fields[path ?? ""] ?? "";
}

/** Return the plan in one sentence. @param {Plan} plan @param {number} now */
export function verdict(plan, now) {
  const on = Object.keys(plan.wouldTake).length ? ` on ${unitsText(plan.wouldTake)}` : "";
  if (plan.decision === "start") return `It would start at once${on}.`;
  if (plan.decision === "preempt" && plan.wouldPreempt.length) return `It would preempt ${listed(plan.wouldPreempt)}.`;
  if (plan.estimatedStart) return `It would wait, and start at ${clock(plan.estimatedStart, now)}.`;
  return "It would wait.";
}

/** Return what belongs to the sentence: range, place, reason. @param {Plan} plan @param {number} now */
export function details(plan, now) {
  const { estimatedStart: at, estimatedStartLow: low, estimatedStartHigh: high } = plan;
  const place = plan.position ? `Place ${plan.position} in the queue.` : plan.positionAtLeast ? `Behind at least ${plan.positionAtLeast} jobs.` : "";
  return [
    at && plan.decision !== "start" ? `Expected start ${clock(at, now)}${low && high && low !== high ? `, between ${clock(low, now)} and ${clock(high, now)}` : ""}.` : "",
    plan.decision === "start" ? "" : place,
    plan.reason ? `It ${spoken(plan.reason.message, now)}.` : "",
    plan.deadline ? spoken(plan.deadline.message, now) : "",
  ].filter(Boolean);
}

/** Return how much later a job would start. @param {Delay} delay */
export const delayText = (delay) => `${duration(delay.bySeconds * 1000)} later`;

/**
 * Return the price of an hour in words: of what the next pass takes, else of what the request asks for; "" if it is unknown.
 * @param {Plan | null} plan @param {Request} request @param {import("../lib/types.js").Pool[]} pools
 */
export function priceText(plan, request, pools) {
  const { InstanceType: type, InstanceCount: count } = request.ResourceConfig ?? {};
  const of = (/** @type {any} */ pool) => pool?.price || pool?.onDemandPrice || 0;
  const taken = Object.entries(plan?.wouldTake ?? {}).map(([name, units]) => ({ units, price: of(pools.find((each) => each.name === name)) }));
  const asked = typeof count === "number" || count === undefined ? [{ units: count ?? 1, price: of(pools.find((each) => each.instanceType === type)) }] : [];
  const found = taken.length ? taken : asked;
  if (!found.length || found.some((each) => !each.price)) return "";
  const hour = found.reduce((sum, each) => sum + each.units * each.price, 0);
  const seconds = request.StoppingCondition?.MaxRuntimeInSeconds;
  return `${dollars(hour)} per hour${Number.isFinite(seconds) ? `, at most ${dollars((hour * seconds) / 3600)} until its time limit` : ""}`;
}

/** @param {number} value */
export const dollars = (value) => `$${value.toLocaleString("en-GB", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;

/** Return a pool that would be made, in words. @param {Creation} made */
export const creationText = (made) => `${made.pool} with ${counted(made.instances, "instance")} of ${made.instanceType}${made.dollarsPerHour === null ? "" : `, ${dollars(made.dollarsPerHour)} per hour`}`;
