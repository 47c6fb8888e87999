// The page Queue: jobs in their order, with filters in the address, and actions on several at once.

import { namesOfAll } from "../lib/api.js";
import { html, memo, useEffect, useState } from "../lib/html.js";
import { hashOf } from "../lib/route.js";
import { clock, duration } from "../lib/time.js";
import { counted, demandText, place } from "../lib/words.js";
import { RangeBar } from "../parts/bars.js";
import { ActionButtons, ActionDialog } from "../parts/actions.js";
import { Empty, JobLink, Share, State, Time } from "../parts/small.js";
import { FILTERS, PAGE, readsOf, reasonText, sections, startText } from "../views/queue.js";
import { axisSpan, sharesOf } from "../views/scale.js";

/** @typedef {import("../lib/types.js").Job} Job */
/** @typedef {import("../lib/types.js").Route} Route */

export const title = () => "Queue";
/** @param {Route} route */
export const reads = (route) => readsOf(route.query);

/** @param {{values: any[], now: number, route: Route, readOnly: boolean, announce: (text: string) => void}} props */
export function View({ values, now, route, readOnly, announce }) {
  const [selected, setSelected] = useState(/** @type {string[]} */ ([]));
  const [action, setAction] = useState("");
  const { query } = route;
  const all = /** @type {Job[]} */ (values.flatMap((page) => page?.jobs ?? []));
  const chosen = all.filter((job) => selected.includes(job.jobName));
  const [known, setKnown] = useState({ shares: /** @type {string[]} */ ([]), pools: /** @type {string[]} */ ([]) });
  useEffect(() => { namesOfAll().then(setKnown, () => undefined); }, []);
  const shares = [...new Set([...known.shares, ...sharesOf(all)])].sort();
  const pools = [...new Set([...known.pools, ...all.flatMap((job) => job.pools)])].sort();
  const span = axisSpan(all, now);
  const shown = sections(values, query);
  useEffect(() => setSelected([]), [query.cursor, query.state, query.share, query.pool]);
  const [toggle] = useState(() => (/** @type {string} */ name) =>
    setSelected((before) => (before.includes(name) ? before.filter((each) => each !== name) : [...before, name])));
  return html`
    <header class="headline compact"><h1>Queue</h1><${Filters} query=${query} shares=${shares} pools=${pools} /></header>
    ${shown.map((section) => (section.jobs.length || section === shown[0]) && html`<section key=${section.title} aria-labelledby=${idOf(section.title)}>
      <div class="section-head"><h2 id=${idOf(section.title)}>${section.title} <span class="count">${section.jobs.length}</span></h2>
        <span class="muted">${section.note}</span></div>
      ${section.jobs.length
        ? html`<${Jobs} ...${{ jobs: section.jobs, now, span, selected, toggle, readOnly }} label=${section.title} />`
        : html`<${Empty}>${query.text || query.share || query.pool ? "No job matches the filters." : "No job is here."}<//>`}
    </section>`)}
    <${Pages} page=${values[0]} query=${query} />
    ${chosen.length > 0 && html`<div class="selection" role="region" aria-label="Selection">
      <strong>${counted(chosen.length, "job")} selected</strong>
      <${ActionButtons} jobs=${chosen} readOnly=${readOnly} onAct=${setAction} />
      <button type="button" class="plain" onClick=${() => setSelected([])}>Clear</button>
    </div>`}
    ${action && html`<${ActionDialog} action=${action} jobs=${chosen} now=${now}
      onClose=${() => setAction("")} onDone=${(/** @type {string} */ text) => (setSelected([]), announce(text))} />`}`;
}

/** @param {string} text */
const idOf = (text) => text.toLowerCase().replaceAll(" ", "-");

/** @param {{query: Record<string, string>, shares: string[], pools: string[]}} props */
function Filters({ query, shares, pools }) {
  const go = (/** @type {Record<string, string>} */ changed) => history.replaceState(null, "", hashOf("queue", { query: { ...query, cursor: "", ...changed } }));
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => {
    go({ [name]: event.target.value });
    dispatchEvent(new Event("hashchange"));
  };
  const select = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string[][]} */ options) => html`<label>${label}
    <select value=${query[name] ?? ""} onChange=${set(name)}>${options.map(([value, text]) => html`<option key=${value} value=${value} selected=${value === (query[name] ?? "")}>${text}</option>`)}</select></label>`;
  const any = (/** @type {string} */ name, /** @type {string[]} */ values) =>
    [["", "all"], ...[...new Set([...values, ...(query[name] ? [query[name]] : [])])].map((value) => [value, value])];
  return html`<form class="filters" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <label>Name, share or person<input id="filter" type="search" value=${query.text ?? ""} onInput=${set("text")} autocomplete="off" spellcheck="false" /></label>
    ${select("state", "Jobs", Object.entries(FILTERS))}
    ${select("share", "Share", any("share", shares))}
    ${select("pool", "Pool", any("pool", pools))}
  </form>`;
}

/** @param {{jobs: Job[], now: number, span: number, selected: string[], toggle: (name: string) => void, readOnly: boolean, label: string}} props */
function Jobs({ jobs, now, span, selected, toggle, readOnly, label }) {
  const ended = jobs.every((job) => job.endedAt);
  const ranges = jobs.some((job) => job.estimatedStart);
  return html`<div class="table"><table aria-label=${label}>
    <thead><tr>
      <th scope="col"><span class="hidden">Select</span></th>
      <th scope="col" class="number">Place</th><th scope="col">Job</th><th scope="col">Share</th><th scope="col" class="number">Priority</th>
      <th scope="col">Asks for</th><th scope="col">Entered</th>
      <th scope="col">${ended ? "Ended" : "Start"}${ranges && html`<span class="muted axis-label"> now to +${duration(span)}</span>`}</th>
      <th scope="col">State and reason</th>
    </tr></thead>
    <tbody>${jobs.map((job) => html`<${Row} key=${job.jobName} ...${{ job, now, span, toggle, readOnly }} chosen=${selected.includes(job.jobName)} />`)}</tbody>
  </table></div>`;
}

/** A row; it is drawn again only when its job, the time or its selection changes. */
const Row = memo((/** @type {{job: Job, now: number, span: number, chosen: boolean, toggle: (name: string) => void, readOnly: boolean}} */ props) => {
  const { job, now, span, chosen, toggle, readOnly } = props;
  return html`<tr class=${chosen ? "selected" : ""}>
      <td><input type="checkbox" aria-label=${`Select ${job.jobName}`} checked=${chosen} disabled=${readOnly} onChange=${() => toggle(job.jobName)} /></td>
      <td class="number">${place(job)}</td>
      <th scope="row"><${JobLink} name=${job.jobName} row /></th>
      <td><${Share} share=${job.share} /></td>
      <td class="number">${job.priority}</td>
      <td class="demand">${demandText(job)}</td>
      <td class="entered"><${Time} at=${job.entryTime} now=${now} /></td>
      <td class="start"><span>${job.estimatedStart || job.endedAt ? html`<${Time} at=${job.endedAt ?? job.estimatedStart} now=${now} show=${clock} />` : startText(job, now)}</span><${RangeBar} job=${job} now=${now} span=${span} /></td>
      <td class="reason"><div><${State} state=${job.jobState} brief=${job.jobState === "pending"} /><span class="muted" title=${reasonText(job, now)}>${reasonText(job, now)}</span></div></td>
    </tr>`;
});

/** @param {{page: any, query: Record<string, string>}} props */
const Pages = ({ page, query }) => (page?.nextCursor || query.cursor) && html`<nav class="pages" aria-label="Pages of jobs">
  ${query.cursor && html`<a href=${hashOf("queue", { query: { ...query, cursor: "" } })}>First ${PAGE}</a>`}
  ${page?.nextCursor && html`<a href=${hashOf("queue", { query: { ...query, cursor: page.nextCursor } })}>Next ${PAGE}</a>`}
</nav>`;
