// Words for states, demands and prices. A state has a mark of its own, so that color is never all that tells it.

/** @typedef {import("./types.js").Job} Job */

/** @type {Record<string, {label: string, mark: string, tone: string}>} */
export const STATES = {
  pending: { label: "waiting", mark: "○", tone: "wait" },
  preempted: { label: "preempted", mark: "↺", tone: "warn" },
  held: { label: "held", mark: "‖", tone: "quiet" },
  starting: { label: "starting", mark: "◔", tone: "run" },
  running: { label: "running", mark: "●", tone: "run" },
  preempting: { label: "being preempted", mark: "◑", tone: "warn" },
  resizing: { label: "resizing", mark: "⇄", tone: "run" },
  completed: { label: "completed", mark: "✓", tone: "good" },
  failed: { label: "failed", mark: "✕", tone: "bad" },
  stopped: { label: "stopped", mark: "■", tone: "quiet" },
  cancelled: { label: "cancelled", mark: "–", tone: "quiet" },
};

export const WAITING = ["pending", "preempted"];
export const ACTIVE = ["starting", "running", "preempting", "resizing"];
export const ENDED = ["completed", "failed", "stopped", "cancelled"];
/** Reasons of jobs that no pool can ever run. */
export const NEVER = ["Infeasible", "CanNeverFit"];

/** @param {string} state */
export const stateOf = (state) => STATES[state] ?? { label: state, mark: "·", tone: "quiet" };

const NUMBER = new Intl.NumberFormat("en-GB");

/** Return a number with separators: 10,000. @param {number} number */
export const count = (number) => NUMBER.format(number);

/** @param {number} count @param {string} one @param {string} [many] */
export const counted = (count, one, many = `${one}s`) => `${NUMBER.format(count)} ${count === 1 ? one : many}`;

/** @param {string[]} names */
export function listed(names) {
  if (names.length < 2) return names.join("");
  const shown = names.length > 4 ? [...names.slice(0, 3), `${names.length - 3} more`] : names;
  return `${shown.slice(0, -1).join(", ")} and ${shown[shown.length - 1]}`;
}

/** @param {Record<string, number>} units */
export const unitsText = (units) =>
  Object.entries(units)
    .map(([pool, count]) => `${count}\u00a0×\u00a0${pool}`)
    .join(" + ");

/** Return the instances or resources that a job asks for. @param {Job} job */
export function demandText(job) {
  const { resources, instances, elastic } = job;
  const sizes = elastic ? ` (${elastic.minInstances} to ${elastic.maxInstances})` : "";
  if (resources) return `${instances ?? 1}\u00a0×\u00a0${resourcesText(resources)}${sizes}`;
  const [first, ...others] = job.demand.map(unitsText);
  if (!first) return "–";
  return `${first}${sizes}${others.length ? ` or ${counted(others.length, "other pool")}` : ""}`;
}

/** @param {NonNullable<Job["resources"]>} resources */
function resourcesText({ accelerators, acceleratorMemoryGib, vcpus, memoryGib, accelerator }) {
  const parts = [
    accelerators ? `${accelerators} ${accelerator === "nvidia" || !accelerator ? "GPU" : accelerator}${accelerators > 1 ? "s" : ""}` : "",
    acceleratorMemoryGib ? `${acceleratorMemoryGib} GiB GPU memory` : "",
    vcpus ? `${vcpus} vCPUs` : "",
    memoryGib ? `${memoryGib} GiB` : "",
  ];
  return parts.filter(Boolean).join(", ") || "any instance";
}

/** Return the last part of an ARN: the role or user. @param {string | null} arn */
export const person = (arn) => (arn ? arn.split("/").slice(-1)[0] : "unknown");

/** Return the place of a job in the queue. @param {Job} job */
export function place(job) {
  if (job.position) return String(job.position);
  return job.positionAtLeast ? `> ${job.positionAtLeast}` : "";
}
