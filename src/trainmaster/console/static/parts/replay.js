// "Replay the last week with this": the settings in force and the draft, side by side over the jobs of the last week.

import { replayed } from "../lib/api.js";
import { html, useEffect, useState } from "../lib/html.js";
import { clock } from "../lib/time.js";
import { bars, changedRows, HEADINGS, headline, isRunning, leftOut, NONE, partOf, progressText, tables } from "../views/replay.js";
import { JobLink, Share } from "./small.js";

/** @typedef {import("../views/replay.js").Status} Status */
/** @typedef {import("../views/replay.js").Report} Report */

const POLL = 500;

/**
 * @param {{draft: any, problem: string, now: number}} props `problem` is why the draft cannot
 * be replayed, "" if it can
 */
export function Replay({ draft, problem, now }) {
  const [status, setStatus] = useState(/** @type {Status} */ (NONE));
  const [refusal, setRefusal] = useState("");
  const show = (/** @type {Promise<Status>} */ answer) => answer.then((found) => { setStatus(found); setRefusal(""); }, ({ message, hint }) => setRefusal([message, hint].filter(Boolean).join(" ")));
  useEffect(() => { show(replayed.status()); }, []);
  const runs = isRunning(status);
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(() => show(replayed.status()), POLL);
    return () => clearInterval(timer);
  }, [runs]);
  const isOld = status.draft !== null && JSON.stringify(status.draft) !== JSON.stringify(draft);
  return html`<section class="replay" aria-labelledby="replay">
    <div class="section-head"><h2 id="replay">Replay</h2><span class="muted">on this machine; nothing in AWS changes</span></div>
    <p>See what the draft would have changed: the queue's own planner runs the jobs of the last 7 days again, with the settings in force and with the draft.</p>
    <div class="buttons left">
      <button type="button" disabled=${runs || Boolean(problem)} title=${problem} onClick=${() => show(replayed.start(draft))}>Replay the last week with this</button>
      ${runs && html`<button type="button" onClick=${() => show(replayed.cancel())}>Cancel the replay</button>`}
    </div>
    ${refusal && html`<p class="problem" role="alert">${refusal}</p>`}
    ${runs && html`<p class="replay-progress"><progress max="1" value=${partOf(status)} aria-label="Progress of the replay"></progress> ${progressText(status)}</p>`}
    ${status.error && html`<p class="problem" role="alert">${status.error.field && html`<code>${status.error.field}</code> `}${[status.error.message, status.error.hint].filter(Boolean).join(" ")}</p>`}
    <div aria-live="polite">${status.report && html`<p class="lead replay-headline">${headline(status.report)}</p>`}</div>
    ${status.report && html`<${Result} report=${status.report} isOld=${isOld} now=${now} />`}
  </section>`;
}

/** @param {{report: Report, isOld: boolean, now: number}} props */
function Result({ report, isOld, now }) {
  return html`<div class="replay-result">
    ${isOld && html`<p class="warn">The draft has changed since this replay.</p>`}
    <p class="muted">Jobs from ${clock(report.since, now)} to ${clock(report.at, now)}. ${leftOut(report).join(" ")}</p>
    ${report.jobs > 0 && html`
      <div class="table" tabindex="0" role="region" aria-label="Figures of the replay"><table>
        <thead><tr><th scope="col">Jobs</th><th scope="col" class="number">Number</th>${HEADINGS.map((heading) => html`<th key=${heading} scope="col">${heading}</th>`)}</tr></thead>
        ${tables(report).map(({ title, rows }) => html`<tbody key=${title}>${rows.map((row) => html`<tr key=${row.name}>
          <th scope="row">${title === "Share" ? html`<${Share} share=${row.name} />` : title === "Priority" ? `priority ${row.name}` : title}</th>
          <td class="number">${row.jobs}</td>${row.cells.map((cell, number) => html`<td key=${HEADINGS[number]}><${Pair} ...${cell} /></td>`)}</tr>`)}</tbody>`)}
      </table></div>
      <figure><figcaption>Waits by share, from the median to 95 %</figcaption>
        <ul class="chart">${bars(report).map(({ name, low, high, look, text }) => html`<li key=${name}><span class="chart-name" title=${name}>${name}</span>
          <svg class="chart-bar" aria-hidden="true"><rect width="100%" height="100%" rx="2" class="track" /><rect x=${`${low}%`} width=${`${high - low}%`} height="100%" rx="2" class=${look} /></svg>
          <span class="chart-text">${text}</span></li>`)}</ul></figure>
      ${report.changed.length > 0 && html`<h3 id="changed">Jobs that change most</h3>
        <div class="table" tabindex="0" role="region" aria-labelledby="changed"><table>
          <thead><tr><th scope="col">Job</th><th scope="col">Share</th><th scope="col" class="number">Priority</th><th scope="col">Wait</th><th scope="col">Completion</th><th scope="col">Preemptions</th></tr></thead>
          <tbody>${changedRows(report).map(({ name, share, priority, cells }) => html`<tr key=${name}><th scope="row"><${JobLink} name=${name} /></th>
            <td><${Share} share=${share} /></td><td class="number">${priority}</td>${cells.map((cell, number) => html`<td key=${number}><${Pair} ...${cell} /></td>`)}</tr>`)}</tbody>
        </table></div>`}`}
    <details open><summary>What the replay assumes</summary><ul class="assumptions">${report.assumptions.map((text) => html`<li key=${text}>${text}</li>`)}</ul></details>
  </div>`;
}

/** A value with the settings in force, and with the draft. @param {import("../views/replay.js").Cell} props */
const Pair = ({ before, after, tone }) =>
  before === after ? html`${before}` : html`<span class="pair"><span class="hidden">in force: </span>${before}<span aria-hidden="true"> → </span><span class="hidden">, draft: </span><span class=${tone}>${after}</span></span>`;
