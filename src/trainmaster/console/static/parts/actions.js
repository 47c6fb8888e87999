// Buttons and the dialog of actions: each shows what follows from it before it is done.

import { ACTIONS, firstOfQueue } from "../lib/api.js";
import { html, useEffect, useState } from "../lib/html.js";
import { counted } from "../lib/words.js";
import { answered, appliesTo, boundsOf, consequence } from "../views/queue.js";
import { Dialog } from "./small.js";

/** @typedef {import("../lib/types.js").Job} Job */

/** @type {Record<string, {verb: string, title: (what: string) => string, danger?: boolean, confirm?: (priority: number) => string}>} */
const WORDS = {
  hold: { verb: "Hold", title: (what) => `Hold ${what}?` },
  release: { verb: "Release", title: (what) => `Release ${what}?` },
  priority: { verb: "Priority", title: (what) => `Change the priority of ${what}`, confirm: (to) => `Set priority ${to}` },
  size: { verb: "Size", title: (what) => `Change the size of ${what}`, confirm: () => "Set bounds" },
  cancel: { verb: "Cancel", title: (what) => `Cancel ${what}?`, danger: true },
};

/**
 * The buttons of the actions that apply to at least one of the jobs.
 * @param {{jobs: Job[], readOnly: boolean, onAct: (action: string) => void, always?: boolean}} props
 */
export const ActionButtons = ({ jobs, readOnly, onAct, always }) => html`<div class="actions" role="group" aria-label="Actions">
  ${Object.entries(WORDS)
    .filter(([action]) => always || jobs.some((job) => appliesTo(action, job)))
    .map(([action, { verb, danger, confirm }]) => html`<button key=${action} type="button" class=${danger ? "danger" : ""}
      disabled=${readOnly || !jobs.some((job) => appliesTo(action, job))}
      title=${readOnly ? "The console was started with --read-only." : ""}
      onClick=${() => onAct(action)}>${verb}${confirm || danger ? "…" : ""}</button>`)}
</div>`;

/**
 * The dialog of an action.
 * @param {{action: string, jobs: Job[], now: number, priority?: number | null, onClose: () => void, onDone: (text: string) => void}} props
 */
export function ActionDialog({ action, jobs, now, priority: proposed = null, onClose, onDone }) {
  const eligible = jobs.filter((job) => appliesTo(action, job));
  const [priority, setPriority] = useState(proposed ?? eligible[0]?.priority ?? 0);
  const { minInstances, maxInstances } = (eligible.length === 1 && eligible[0].elastic) || { minInstances: "", maxInstances: "" };
  const [bounds, setBounds] = useState({ min: `${minInstances}`, max: `${maxInstances}` });
  const to = action === "size" ? boundsOf(bounds.min, bounds.max) : action === "priority" ? { priority } : {};
  const [problems, setProblems] = useState(/** @type {Record<string, string>} */ ({}));
  const [queue, setQueue] = useState(/** @type {Job[] | null} */ (null));
  const [busy, setBusy] = useState(false);
  const { verb, title, danger, confirm } = WORDS[action];
  useEffect(() => {
    if (action === "priority") firstOfQueue().then(({ jobs: first }) => setQueue(first), () => undefined);
  }, [action]);
  const what = eligible.length === 1 ? eligible[0].jobName : counted(eligible.length, "job");

  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    /** @type {Record<string, string>} */
    const failed = {};
    const done = [];
    for (const job of eligible) {
      try {
        done.push(answered({ ...job, ...(await ACTIONS[action](job.jobName, to)) }, now));
      } catch (error) {
        const { message, hint } = /** @type {Error & {hint: string | null}} */ (error);
        failed[job.jobName] = [message, hint].filter(Boolean).join(" ");
      }
    }
    setBusy(false);
    setProblems(failed);
    if (done.length) onDone(done.length > 1 ? `${counted(done.length, "job")} changed. ${done[done.length - 1]}` : done[0]);
    if (!Object.keys(failed).length) onClose();
  };

  const skipped = jobs.length - eligible.length;
  return html`<${Dialog} title=${title(what)} onClose=${onClose}>
    <form method="dialog" onSubmit=${send}>
      ${action === "priority" && html`<label class="field">New priority
        <input type="number" value=${priority} step="1" required
          onInput=${(/** @type {any} */ event) => setPriority(Number(event.target.value))} /></label>`}
      ${action === "size" && html`<div class="fields">
        <label class="field">Minimum instances <input type="number" value=${bounds.min} min="1" step="1" placeholder="as it is"
          onInput=${(/** @type {any} */ event) => setBounds({ ...bounds, min: event.target.value })} /></label>
        <label class="field">Maximum instances <input type="number" value=${bounds.max} min="1" step="1" placeholder="as it is"
          onInput=${(/** @type {any} */ event) => setBounds({ ...bounds, max: event.target.value })} /></label></div>`}
      <ul class="consequences">
        ${eligible.map((job) => html`<li key=${job.jobName}>
          <strong class="job">${job.jobName}</strong>
          <span>${consequence(action, job, to, queue, now)}</span>
          ${problems[job.jobName] && html`<span class="problem" role="alert">${problems[job.jobName]}</span>`}
        </li>`)}
      </ul>
      ${skipped > 0 && html`<p class="muted">${counted(skipped, "selected job")} ${skipped === 1 ? "is" : "are"} left out: the state does not allow it.</p>`}
      <div class="buttons">
        <button type="button" onClick=${onClose}>Keep as it is</button>
        <button type="submit" class=${danger ? "danger solid" : "solid"} disabled=${busy || (action === "size" && !Object.keys(to).length)}>${confirm ? confirm(priority) : `${verb} ${what}`}</button>
      </div>
    </form>
  <//>`;
}
