// The page Audit: recorded changes with their callers, filters in the address, and pages of the server.

import { html } from "../lib/html.js";
import { hashOf, parseRoute } from "../lib/route.js";
import { clock } from "../lib/time.js";
import { Empty, JobLink, TextFilter, Time } from "../parts/small.js";
import { ACTIONS, caller, deed, isFiltered, PAGE, readOf, values as valuesOf } from "../views/audit.js";

/** @typedef {import("../views/audit.js").Entry} Entry */
/** @typedef {import("../lib/types.js").Route} Route */

const MAX_VALUES = 6;

export const title = () => "Audit";
/** @param {Route} route */
export const reads = (route) => [readOf(route.query, Date.now())];

/** @param {{values: any[], now: number, route: Route}} props */
export function View({ values: [page], now, route: { query } }) {
  const entries = /** @type {Entry[]} */ (page.entries);
  return html`
    <header class="headline compact"><h1>Audit</h1><${Filters} query=${query} now=${now} /></header>
    <section aria-labelledby="entries">
      <div class="section-head"><h2 id="entries">Changes <span class="count">${entries.length}</span></h2><span class="muted">newest first</span></div>
      ${entries.length === 0 && html`<${Empty}>${page.nextCursor ? "This page has no entries that match; older ones may have." : isFiltered(query) ? "No entry matches the filters." : "No change is recorded."}<//>`}
      ${entries.length > 0 && html`<div class="table"><table class="audit" aria-labelledby="entries">
        <thead><tr><th scope="col">Time</th><th scope="col">Caller</th><th scope="col">Change</th><th scope="col">Values</th><th scope="col">From</th></tr></thead>
        <tbody>${entries.map((entry, number) => html`<${Row} key=${`${entry.at} ${entry.requestId} ${entry.job} ${number}`} ...${{ entry, now }} />`)}</tbody>
      </table></div>`}
    </section>
    ${(page.nextCursor || query.cursor) && html`<nav class="pages" aria-label="Pages of changes">
      ${query.cursor && html`<a href=${hashOf("audit", { query: { ...query, cursor: "" } })}>Newest ${PAGE}</a>`}
      ${page.nextCursor && html`<a href=${hashOf("audit", { query: { ...query, cursor: page.nextCursor } })}>Older ${PAGE}</a>`}
    </nav>`}`;
}

/** @param {{entry: Entry, now: number}} props */
function Row({ entry, now }) {
  const { name, arn } = caller(entry);
  const all = valuesOf(entry, now);
  return html`<tr>
    <td class="entered"><${Time} at=${entry.at} now=${now} show=${clock} /></td>
    <th scope="row" title=${arn}>${name}</th>
    <td>${deed(entry)} ${entry.job && html`<${JobLink} name=${entry.job} row />`}</td>
    <td><ul class="values">${all.slice(0, MAX_VALUES).map((each) => html`<li key=${each.name}><span class="muted">${each.name}</span>
      ${each.before !== null && html`<span class="was">${each.before}</span>`}${each.before !== null && html`<span class="hidden"> becomes </span><span aria-hidden="true">→</span>`}
      <span class="becomes">${each.after ?? "none"}</span></li>`)}</ul>
      ${all.length > MAX_VALUES && html`<details><summary>and ${all.length - MAX_VALUES} more</summary><pre tabindex="0">${JSON.stringify({ before: entry.before, after: entry.after }, null, 2)}</pre></details>`}</td>
    <td class="muted" title=${entry.userAgent ?? ""}>${entry.sourceIp ?? "–"}</td>
  </tr>`;
}

/** @param {{query: Record<string, string>, now: number}} props */
function Filters({ query, now }) {
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) => {
    history.replaceState(null, "", hashOf("audit", { query: { ...parseRoute(location.hash).query, cursor: "", [name]: value } }));
    dispatchEvent(new Event("hashchange"));
  };
  const chosen = (/** @type {string} */ name) => (/** @type {any} */ event) => set(name)(event.target.value);
  return html`<form class="filters" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <${TextFilter} id="filter" label="Caller" value=${query.who ?? ""} onValue=${set("who")} />
    <label>Change<select value=${query.action ?? ""} onChange=${chosen("action")}>
      ${[["", "all"], ...Object.entries(ACTIONS)].map(([value, words]) => html`<option key=${value} value=${value} selected=${value === (query.action ?? "")}>${words}</option>`)}</select></label>
    <${TextFilter} label="Job" value=${query.job ?? ""} onValue=${set("job")} />
    <label>Since<input type="date" max=${new Date(now).toISOString().slice(0, 10)} value=${query.since ?? ""} onChange=${chosen("since")} /></label>
  </form>`;
}
