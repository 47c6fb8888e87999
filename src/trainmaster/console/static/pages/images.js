// The page Image jobs: endpoints with their target and load, and the regions of each job.

import { html, useState } from "../lib/html.js";
import { hashOf } from "../lib/route.js";
import { clock } from "../lib/time.js";
import { ActionDialog } from "../parts/actions.js";
import { Empty, JobLink, Share, State, Time } from "../parts/small.js";
import { endpoints, headline, imageJobs, loadBar, loadText, PAGE, pressureText, readsOf, regionBar, regionText, waitingText } from "../views/images.js";
import { reasonText } from "../views/queue.js";

/** @typedef {import("../views/images.js").ImageJob} ImageJob */
/** @typedef {import("../views/images.js").Segment} Segment */
/** @typedef {import("../lib/types.js").Pool} Pool */
/** @typedef {import("../lib/types.js").Route} Route */

export const title = () => "Image jobs";
/** @param {Route} route */
export const reads = (route) => readsOf(route.query);
/** The page is there if the API has this path. */
export const needs = "/image-jobs";

/** @param {{values: any[], now: number, route: Route, readOnly: boolean, announce: (text: string) => void}} props */
export function View({ values: [pools, active, waiting], now, route: { query }, readOnly, announce }) {
  const [cancelled, setCancelled] = useState(/** @type {ImageJob | null} */ (null));
  const running = imageJobs([active]);
  const queued = imageJobs([waiting]);
  const known = endpoints(pools);
  const more = active.nextCursor || waiting.nextCursor;
  return html`
    <header class="headline"><h1>${headline(running, queued)}</h1>
      ${query.pool && html`<p class="lead">Only those of ${query.pool}. <a href="#/images">Show all</a></p>`}
      ${!query.pool && more && html`<p class="lead">The first ${PAGE} running and ${PAGE} waiting ones are shown. Choose an endpoint to see its own.</p>`}</header>
    <section aria-labelledby="endpoints"><h2 id="endpoints">Endpoints</h2>
      ${known.length === 0 && html`<${Empty}>No endpoint is in use. The queue describes an endpoint when a job needs it.<//>`}
      ${known.length > 0 && html`<div class="table"><table class="images" aria-labelledby="endpoints">
        <thead><tr><th scope="col">Endpoint</th><th scope="col" class="wide">Requests at once</th><th scope="col">Load and target</th><th scope="col">Waiting</th></tr></thead>
        <tbody>${known.map((pool) => html`<tr key=${pool.name}>
          <th scope="row"><a class="job" href=${hashOf("images", { query: { pool: pool.name } })} aria-current=${query.pool === pool.name ? "true" : undefined}>${pool.name}</a>
            ${pool.state !== "in use" && html`<span class="warn"> ${pool.state}: it starts no jobs</span>`}</th>
          <td class="wide"><${Bar} segments=${loadBar(pool)} label=${`${pool.name}: ${loadText(pool)}`} /></td>
          <td>${loadText(pool)}<div class="muted about">${pressureText(pool, now)}</div></td><td class="muted">${waitingText(pool)}</td></tr>`)}</tbody></table></div>`}
    </section>
    ${[["Running", running], ["Waiting", queued]].map(([name, jobs]) => html`<${Jobs} key=${name} ...${{ name, jobs, now, readOnly }} onCancel=${setCancelled} />`)}
    ${cancelled && html`<${ActionDialog} action="cancel" jobs=${[cancelled]} now=${now} onClose=${() => setCancelled(null)} onDone=${announce} />`}`;
}

/** @type {Record<string, string>} */
const LOOKS = { done: "fill-good", failed: "fill-bad", left: "seg-free", used: "fill-accent", held: "seg-held", free: "seg-free", "by other callers": "seg-external" };

/** @param {{segments: Segment[], label: string}} props */
const Bar = ({ segments, label }) => html`<svg class="sharebar" role="img" aria-label=${label}><rect width="100%" height="100%" class="track" />
  ${segments.map((each) => html`<rect key=${each.kind} x=${`${each.x}%`} width=${`${each.width}%`} height="100%" class=${LOOKS[each.kind]}><title>${each.units} ${each.kind}</title></rect>`)}</svg>`;

/** @param {{name: string, jobs: ImageJob[], now: number, readOnly: boolean, onCancel: (job: ImageJob) => void}} props */
const Jobs = ({ name, jobs, now, readOnly, onCancel }) => html`<section aria-labelledby=${name}>
  <h2 id=${name}>${name} <span class="count">${jobs.length}</span></h2>
  ${jobs.length === 0 && html`<${Empty}>None.<//>`}
  ${jobs.length > 0 && html`<div class="table"><table class="images" aria-labelledby=${name}>
    <thead><tr><th scope="col">Job</th><th scope="col">Share</th><th scope="col" class="number">Priority</th><th scope="col">Endpoint</th><th scope="col" class="number">Requests</th>
      <th scope="col" class="regions">Regions</th><th scope="col">${name === "Running" ? "Expected end" : "Start"}</th><th scope="col">State</th><th scope="col"><span class="hidden">Cancel</span></th></tr></thead>
    <tbody>${jobs.map((job) => html`<tr key=${job.jobName}>
      <th scope="row"><${JobLink} name=${job.jobName} row /></th><td><${Share} share=${job.share} /></td><td class="number">${job.priority}</td>
      <td class="muted">${job.details.endpoint}${job.details.variant ? `, ${job.details.variant}` : ""}</td>
      <td class="number" title="concurrent requests of the regions that are left, of all">${job.details.loadLeft}<span class="muted"> of ${job.details.load}</span></td>
      <td class="regions"><${Bar} segments=${regionBar(job.details)} label=${regionText(job.details)} /><span>${regionText(job.details)}</span></td>
      <td class="entered"><${Time} at=${job.details.expectedEnd ?? job.estimatedStart} now=${now} show=${clock} /></td>
      <td><${State} state=${job.jobState} />${name === "Waiting" && html`<div class="muted about">${reasonText(job, now)}</div>`}</td>
      <td><button type="button" class="danger" disabled=${readOnly} aria-label=${`Cancel ${job.jobName}…`} onClick=${() => onCancel(job)}>Cancel…</button></td></tr>`)}</tbody>
  </table></div>`}
</section>`;
