// The page Job: its state in a sentence, its attempts on a strip, what is in its way, and what would help.

import { html, useEffect, useRef, useState } from "../lib/html.js";
import { readPath } from "../lib/route.js";
import { clock, precise, spoken, utc } from "../lib/time.js";
import { person, stateOf, unitsText } from "../lib/words.js";
import { ActionButtons, ActionDialog } from "../parts/actions.js";
import { JobLink, State, Time } from "../parts/small.js";
import { awsLinks, facts, headline, next, speeds, strip, ticks } from "../views/job.js";

/** @typedef {import("../lib/types.js").JobDetail} JobDetail */
/** @typedef {import("../lib/types.js").Route} Route */

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$/;

/** @param {Route} route */
export const title = (route) => route.name;
/** @param {Route} route */
export const reads = (route) => !NAME.test(route.name) ? [] : [readPath(`/jobs/${encodeURIComponent(route.name)}`, { why: "true" })];

/** @param {{values: any[], now: number, readOnly: boolean, region: string | null, announce: (text: string) => void}} props */
export function View({ values: [found], now, readOnly, region, announce }) {
  const job = /** @type {JobDetail} */ (found);
  const [action, setAction] = useState({ name: "", priority: /** @type {number | null} */ (null) });
  const seen = useRef(job.jobState);
  useEffect(() => {
    if (seen.current !== job.jobState) announce(`${job.jobName} is ${stateOf(job.jobState).label}.`);
    seen.current = job.jobState;
  }, [job.jobState]);
  const act = (/** @type {string} */ name, /** @type {number | null} */ priority = null) => setAction({ name, priority });
  return html`
    <header class="headline">
      <h1><span class="job">${job.jobName}</span> ${headline(job, now)}</h1>
      <p class="lead">${next(job, now).join(" ")}</p>
      <dl class="chips">
        <div><dt>State</dt><dd><${State} state=${job.jobState} /></dd></div>
        <div><dt>Priority</dt><dd>${job.priority}</dd></div>
        <div><dt>Share</dt><dd>${job.share}</dd></div>
        <div><dt>Entered</dt><dd><${Time} at=${job.entryTime} now=${now} /></dd></div>
        <div><dt>By</dt><dd title=${job.submittedBy ?? ""}>${person(job.submittedBy)}</dd></div>
        ${job.elastic && html`<div><dt>Size</dt><dd>${job.elastic.size ?? "–"} of ${job.elastic.minInstances} to ${job.elastic.maxInstances}</dd></div>`}
      </dl>
      <${ActionButtons} jobs=${[job]} readOnly=${readOnly} onAct=${act} />
    </header>
    ${job.why && html`<${Way} why=${job.why} now=${now} />`}
    ${(job.why?.advice.length ?? 0) > 0 && html`<section aria-labelledby="advice"><h2 id="advice">What would help</h2>
      <ul class="advice">${job.why?.advice.map((each) => html`<li key=${each.message}><span>${sentence(spoken(each.message, now))}</span>
        ${each.priority !== null && html`<button type="button" disabled=${readOnly} onClick=${() => act("priority", each.priority)}>Set priority ${each.priority}…</button>`}</li>`)}</ul></section>`}
    <${Strip} job=${job} now=${now} />
    ${job.elastic?.scaling && html`<${Speeds} job=${job} message=${job.elastic.scaling.message} now=${now} />`}
    <${Request} job=${job} region=${region} />
    <${History} job=${job} now=${now} />
    ${action.name && html`<${ActionDialog} action=${action.name} priority=${action.priority} jobs=${[job]} now=${now}
      onClose=${() => act("")} onDone=${announce} />`}`;
}

/** @param {string} text */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

/** @param {{pool: string, instances: number, trainingJobNames: string[], trainingJobs: number}} held */
const outside = ({ pool, instances, trainingJobNames: names, trainingJobs: count }) =>
  `Training jobs outside the queue hold ${instances} × ${pool}: ${names.join(", ")}${count > names.length ? ` and ${count - names.length} more` : ""}.`;

/** @param {{why: import("../lib/types.js").Why, now: number}} props */
function Way({ why, now }) {
  const more = why.jobsInTheWay - why.inTheWay.length;
  return html`<section aria-labelledby="way">
    <h2 id="way">In the way</h2>
    ${why.inTheWay.length === 0 && !why.external?.length && html`<p class="empty">No running job holds instances that it could use.</p>`}
    ${why.inTheWay.length > 0 && html`<div class="table"><table aria-labelledby="way">
      <thead><tr><th scope="col">Job</th><th scope="col">Holds</th><th scope="col">Expected to end</th><th scope="col">Note</th></tr></thead>
      <tbody>${why.inTheWay.map((each) => html`<tr key=${each.jobName + each.pool}>
        <th scope="row"><${JobLink} name=${each.jobName} row /></th><td>${each.instances} × ${each.pool}</td>
        <td><${Time} at=${each.expectedEnd} now=${now} /></td>
        <td class="muted">${[each.stopping ? "stopping" : "", each.overdue ? "has run for longer than expected" : "", each.givingBack ? `gives back ${each.givingBack} now` : ""].filter(Boolean).join(", ")}</td>
      </tr>`)}</tbody></table></div>`}
    ${more > 0 && html`<p class="muted">and ${more} more</p>`}
    ${(why.external ?? []).map((each) => html`<p key=${each.pool}>${outside(each)}</p>`)}
    ${why.rule && html`<p>${why.rule}</p>`}
    ${why.reserved && html`<p>Reserved for it: ${unitsText(why.reserved.instances)}${why.reserved.at ? `, expected to be free at ${clock(why.reserved.at, now)}` : ""}.</p>`}
  </section>`;
}


/** The strip of states: one row for the queue, one for each attempt. @param {{job: JobDetail, now: number}} props */
function Strip({ job, now }) {
  const { from, to, lanes, now: here, expected } = strip(job, now);
  return html`<section aria-labelledby="strip">
    <h2 id="strip">Attempts</h2>
    <div class="strip" role="group" aria-label="States over time">
      ${lanes.map((lane) => html`<div class="lane" key=${lane.number}>
        <div class="lane-name"><strong>${lane.label}</strong><span class="muted">${[lane.size, lane.outcome === "active" ? "" : lane.outcome].filter(Boolean).join(" · ")}</span></div>
        <svg class="lane-bar" role="img" aria-label=${`${lane.label}: ${lane.spans.map((each) => `${stateOf(each.state).label} from ${clock(new Date(each.from).toISOString(), now)} to ${clock(new Date(each.to).toISOString(), now)}`).join(", ")}`}>
          <line x1="0" x2="100%" y1="50%" y2="50%" class="axis" />
          ${lane.spans.map((each) => html`<rect key=${each.from + each.state} x=${`${each.x}%`} width=${`${each.width}%`} y="20%" height="60%" rx="3" class=${`span-${each.state}`}><title>${`${stateOf(each.state).label}: ${each.reason}`}</title></rect>`)}
          ${lane.number === 0 && expected && html`<rect x=${`${expected.x}%`} width=${`${expected.width}%`} y="35%" height="30%" rx="2" class="range" />
            <rect x=${`${Math.min(99.7, expected.tick)}%`} width="2.5" y="15%" height="70%" rx="1" class="tick"><title>Expected start</title></rect>`}
          ${here < 100 && html`<line x1=${`${here}%`} x2=${`${here}%`} y1="0" y2="100%" class="now" />`}
        </svg></div>`)}
      <div class="lane" aria-hidden="true"><div class="lane-name"></div><svg class="lane-axis">
        ${ticks(from, to).map(({ time, x }) => html`<text key=${time} x=${`${x}%`} y="12" text-anchor=${x < 4 ? "start" : x > 96 ? "end" : "middle"}>${clock(new Date(time).toISOString(), now)}</text>`)}
      </svg></div>
    </div>
  </section>`;
}

/** What the job reported, and what the queue believes from it. @param {{job: JobDetail, message: string, now: number}} props */
const Speeds = ({ job, message, now }) => html`<section aria-labelledby="speeds">
  <h2 id="speeds">Speed by size</h2>
  <p>${sentence(spoken(message, now))} <span class="muted">The tick is where the speed would be if each instance brought as much as the first.</span></p>
  <div class="table"><table aria-labelledby="speeds">
    <thead><tr><th scope="col" class="number">Instances</th><th scope="col" class="number">As fast as 1</th><th scope="col" aria-hidden="true"></th>
      <th scope="col" class="number">Reported a second</th><th scope="col">Last report</th><th scope="col">Note</th></tr></thead>
    <tbody>${speeds(job, now).map((each) => html`<tr key=${each.instances}>
      <th scope="row" class="number">${each.instances}</th><td class="number">${each.speedup}</td>
      <td class="speed" aria-hidden="true"><svg class="speedbar"><rect width=${`${each.width}%`} y="25%" height="50%" rx="2" class=${each.present ? "span-running" : "span-pending"} />
        <rect x=${`${Math.min(99, each.linear)}%`} width="2" height="100%" class="tick" /></svg></td>
      <td class="number">${each.perSecond}</td><td><${Time} at=${each.measuredAt} now=${now} /></td>
      <td class="muted">${[each.present ? "the present size" : "", each.note].filter(Boolean).join(", ")}</td></tr>`)}</tbody>
  </table></div></section>`;

/** @param {{job: JobDetail, region: string | null}} props */
function Request({ job, region }) {
  const links = awsLinks(job, region);
  const tags = job.jobDetails.Tags ?? [];
  return html`<section aria-labelledby="request">
    <div class="section-head"><h2 id="request">Request</h2>
      ${links.length > 0 && html`<span class="links">${links.map((each) => html`<a key=${each.url} href=${each.url} target="_blank" rel="noreferrer">${each.text} ↗</a>`)}</span>`}</div>
    <dl class="facts">${facts(job.jobDetails).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${tags.length > 0 && html`<ul class="tags" aria-label="Tags">${tags.map((/** @type {any} */ tag) => html`<li key=${tag.Key}><span class="muted">${tag.Key}</span> ${tag.Value}</li>`)}</ul>`}
    <details><summary>The whole request</summary><pre tabindex="0">${JSON.stringify(job.jobDetails, null, 2)}</pre></details>
  </section>`;
}

/** @param {{job: JobDetail, now: number}} props */
const History = ({ job, now }) => html`<section aria-labelledby="history">
  <h2 id="history">History</h2>
  <div class="table"><table aria-labelledby="history">
    <thead><tr><th scope="col">Time</th><th scope="col">State</th><th scope="col" class="number">Attempt</th><th scope="col">Reason</th></tr></thead>
    <tbody>${[...job.history].reverse().map((each, number) => html`<tr key=${job.history.length - number}>
      <td><time datetime=${each.at} title=${utc(each.at)}>${precise(each.at, now)}</time></td>
      <td><${State} state=${each.to} /></td><td class="number">${each.attempt ?? ""}</td><td class="reason">${spoken(each.reason, now)}</td></tr>`)}</tbody>
  </table></div></section>`;
