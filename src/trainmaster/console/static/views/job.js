// The page Job as values: the headline, the strip of states, and links to AWS's console.

import { clock, duration, HOUR, spoken, MINUTE } from "../lib/time.js";
import { ACTIVE, counted, demandText, ENDED, place, stateOf, unitsText } from "../lib/words.js";
import { scale } from "./scale.js";

/** @typedef {import("../lib/types.js").Job} Job */
/** @typedef {import("../lib/types.js").JobDetail} JobDetail */
/** @typedef {{state: string, from: number, to: number, x: number, width: number, reason: string}} Span */
/** @typedef {{number: number, label: string, size: string, outcome: string, spans: Span[]}} Lane */

/** Return the job's state in one sentence. @param {Job} job @param {number} now */
export function headline(job, now) {
  const last = job.attempts[job.attempts.length - 1];
  const on = last ? ` on ${unitsText(last.units)}` : "";
  /** @type {Record<string, () => string>} */
  const sentences = {
    pending: () => `waits for ${demandText(job)}${inPlace(job)}`,
    preempted: () => `was preempted and waits to resume${inPlace(job)}`,
    held: () => "is held",
    starting: () => `is starting${on}`,
    running: () => `has been running for ${duration(now - Date.parse(last?.startedAt ?? last?.createdAt ?? ""))}${on}`,
    preempting: () => "is being preempted",
    resizing: () => `is resizing${job.elastic?.resizing ? ` from ${job.elastic.resizing.from} to ${job.elastic.resizing.to}` : ""}`,
    failed: () => "failed",
  };
  return (sentences[job.jobState] ?? (() => `is ${stateOf(job.jobState).label}`))();
}

/** @param {Job} job */
const inPlace = (job) => (place(job) ? `, in place ${place(job)}` : "");

/** Return what comes next: the start with its range, the reason, the end. @param {JobDetail} job @param {number} now */
export function next(job, now) {
  const sentences = [];
  const { estimatedStart: at, estimatedStartLow: low, estimatedStartHigh: high } = job;
  if (at) {
    const soon = Date.parse(at) - now < MINUTE;
    const range = low && high && low !== high ? `, between ${clock(low, now)} and ${clock(high, now)}` : "";
    sentences.push(soon ? "It starts with one of the next passes." : `It is expected to start at ${clock(at, now)}${range}.`);
  }
  if (job.reason) sentences.push(`It ${spoken(job.reason.message, now)}.`);
  if (job.failureReason) sentences.push(job.failureReason);
  if (job.deadline) sentences.push(spoken(job.deadline.message, now));
  if (ENDED.includes(job.jobState) && job.endedAt) sentences.push(`It ended at ${clock(job.endedAt, now)}, ${worked(job)}.`);
  return sentences;
}

/** @param {Job} job */
function worked(job) {
  const total = job.attempts.reduce(
    (sum, each) => sum + (each.startedAt && each.endedAt ? Date.parse(each.endedAt) - Date.parse(each.startedAt) : 0), 0);
  return job.attempts.length ? `after ${duration(total)} of work in ${counted(job.attempts.length, "attempt")}` : "without having started";
}

/**
 * Return the strip of states: a lane for the time before the first attempt, and one for each attempt.
 * @param {JobDetail} job @param {number} now @returns {{from: number, to: number, lanes: Lane[], now: number, expected: import("./scale.js").Range | null}}
 */
export function strip(job, now) {
  const times = job.history.map((each) => Date.parse(each.at));
  const from = Math.min(...times, Date.parse(job.entryTime));
  const end = ENDED.includes(job.jobState) ? Math.max(...times, Date.parse(job.endedAt ?? job.entryTime)) : now;
  const planned = [job.estimatedStartLow, job.estimatedStart, job.estimatedStartHigh].map((each) => Date.parse(each ?? ""));
  const to = Math.max(end, ...planned.filter(Number.isFinite), from + MINUTE);
  const at = scale(from, to);
  const spans = job.history.map((each, number) => {
    const begin = Date.parse(each.at);
    const until = number + 1 < times.length ? times[number + 1] : end;
    return { state: each.to, from: begin, to: until, x: at(begin), width: Math.max(0.4, at(until) - at(begin)), reason: each.reason, attempt: each.attempt };
  });
  const shown = spans.filter((each) => !ENDED.includes(each.state));
  const waits = shown.filter((each) => !ACTIVE.includes(each.state));
  /** @type {Lane[]} */
  const lanes = [{ number: 0, label: "In the queue", size: "", outcome: "", spans: waits }];
  for (const attempt of job.attempts) {
    const own = shown.filter((each) => ACTIVE.includes(each.state) && (each.attempt ?? attempt.number) === attempt.number);
    lanes.push({ number: attempt.number, label: `Attempt ${attempt.number}`, size: unitsText(attempt.units), outcome: attempt.outcome, spans: own });
  }
  const [low, start, high] = planned.map(at);
  const expected = Number.isFinite(start) ? { x: low, width: Math.max(0.6, high - low), tick: start } : null;
  return { from, to, lanes, now: at(now), expected };
}

/** @typedef {{instances: number, present: boolean, speedup: string, width: number, linear: number, perSecond: string, measuredAt: string | null, note: string}} SizeSpeed */

/**
 * Return the speeds of an elastic job by size. `width` and `linear` are percentages of the speed at the largest size, if
 * every instance brought as much as the first.
 * @param {Job} job @param {number} now @returns {SizeSpeed[]}
 */
export function speeds(job, now) {
  const sizes = job.elastic?.scaling?.sizes ?? [];
  const most = Math.max(...sizes.map((each) => Math.max(each.instances, each.speedup)));
  return sizes.map(({ instances, speedup, perSecond, measuredAt = null, slowerThan, retryAt }) => ({
    instances,
    present: instances === job.elastic?.size,
    speedup: `${speedup.toFixed(1)} ×`,
    width: (100 * speedup) / most,
    linear: (100 * instances) / most,
    perSecond: perSecond === null ? "" : Number(perSecond.toPrecision(4)).toString(),
    measuredAt,
    note: slowerThan ? `slower than ${slowerThan}${retryAt && Date.parse(retryAt) > now ? `, not used before ${clock(retryAt, now)}` : ""}` : "",
  }));
}

const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880, 10080].map((minutes) => minutes * MINUTE);

/** Return at most six round times on an axis. @param {number} from @param {number} to */
export function ticks(from, to) {
  const step = TICKS.find((each) => (to - from) / each <= 6) ?? (to - from) / 6;
  const zone = step >= HOUR ? new Date(from).getTimezoneOffset() * MINUTE : 0;
  const at = scale(from, to);
  const found = [];
  for (let time = Math.ceil((from - zone) / step) * step + zone; time <= to; time += step) found.push({ time, x: at(time) });
  return found;
}

/** Return links to AWS's own console for the newest attempt. @param {Job} job @param {string | null} region */
export function awsLinks(job, region) {
  const name = job.trainingJobName;
  if (!name || !region || job.kind !== "training") return [];
  const base = `https://${region}.console.aws.amazon.com`;
  const group = encodeURIComponent(encodeURIComponent("/aws/sagemaker/TrainingJobs")).replaceAll("%", "$");
  return [
    { text: "Training job in SageMaker", url: `${base}/sagemaker/home?region=${region}#/jobs/${encodeURIComponent(name)}` },
    { text: "Logs in CloudWatch", url: `${base}/cloudwatch/home?region=${region}#logsV2:log-groups/log-group/${group}$3FlogStreamNameFilter$3D${encodeURIComponent(name)}` },
  ];
}

/** Return the facts of a request that people look for first. @param {Record<string, any>} request */
export function facts(request) {
  const resources = request.ResourceConfig ?? {};
  const stop = request.StoppingCondition?.MaxRuntimeInSeconds;
  /** @type {[string, string | undefined][]} */
  const found = [
    ["Image", request.AlgorithmSpecification?.TrainingImage ?? request.AlgorithmSpecification?.AlgorithmName],
    ["Instances", resources.InstanceType && `${resources.InstanceCount ?? 1}\u00a0×\u00a0${resources.InstanceType}`],
    ["Time limit", stop && duration(stop * 1000)],
    ["Checkpoints", request.CheckpointConfig?.S3Uri ?? "none: a preempted run starts from the beginning"],
    ["Output", request.OutputDataConfig?.S3OutputPath],
    ["Role", request.RoleArn],
  ];
  return found.filter(([, value]) => value);
}
