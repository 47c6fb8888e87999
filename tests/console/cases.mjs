// Jobs and pools as the API answers them, for the tests of the page's functions.

export const NOW = Date.parse("2026-11-21T16:00:00Z");
export const iso = (minutes) => new Date(NOW + minutes * 60_000).toISOString();
export const P5 = "ml.p5.48xlarge";

export const attempt = (number = 1, changes = {}) => ({
  number,
  trainingJobName: `bert-${number}`,
  units: { [P5]: 2 },
  instanceType: null,
  outcome: "active",
  createdAt: iso(-61),
  startedAt: iso(-60),
  endedAt: null,
  reason: null,
  ...changes,
});

export const job = (jobName, changes = {}) => ({
  jobName,
  kind: "training",
  jobState: "pending",
  priority: 0,
  share: "default",
  entryTime: iso(-90),
  pools: [P5],
  demand: [{ [P5]: 2 }],
  resources: null,
  instances: null,
  preemptible: true,
  position: null,
  positionAtLeast: null,
  reason: null,
  estimatedStart: null,
  estimatedStartLow: null,
  estimatedStartHigh: null,
  deadline: null,
  endedAt: null,
  submittedBy: "arn:aws:iam::111122223333:user/ada",
  failureReason: null,
  trainingJobName: null,
  attempts: [],
  elastic: null,
  history: [{ at: iso(-90), from: null, to: "pending", reason: "submitted", attempt: null }],
  jobDetails: {},
  redacted: [],
  why: null,
  ...changes,
});

export const pool = (changes = {}) => ({
  name: P5,
  instanceType: P5,
  kind: "on-demand",
  state: "in use",
  endsAt: null,
  madeFor: null,
  accelerators: 8,
  cap: 8,
  quota: null,
  used: 0,
  stopping: 0,
  held: 0,
  external: 0,
  warm: 0,
  free: 8,
  waiting: 0,
  waitingMore: false,
  ...changes,
});

export const page = (jobs, changes = {}) => ({ jobs, nextCursor: null, ...changes });

/** An interval of the schedule between minutes around the present. */
export const interval = (kind, from, until, changes = {}) => ({
  kind,
  jobName: "a",
  jobState: null,
  share: "s",
  priority: 0,
  units: 1,
  attempt: null,
  outcome: null,
  from: iso(from),
  fromLow: null,
  fromHigh: null,
  until: until === null ? null : iso(until),
  untilLow: null,
  untilHigh: null,
  ...changes,
});

export const scheduleOf = (intervals) => ({
  at: iso(0),
  from: iso(-1_440),
  to: iso(2_880),
  pastFrom: iso(-1_440),
  more: false,
  pools: [{ name: "p", kind: "on-demand", instanceType: "p", cap: 4, draining: false, intervals, leftOut: 0 }],
});
