// The page Pools: a table, the detail of one, changes of pools that the queue made, and actions with their consequences first.

import { change } from "../lib/api.js";
import { html, useState } from "../lib/html.js";
import { hashOf } from "../lib/route.js";
import { clock } from "../lib/time.js";
import { Legend, PoolBar } from "../parts/bars.js";
import { Dialog, Empty, JobLink, Share, Time } from "../parts/small.js";
import { answered, appliesTo, CHANGES, changeOfPrice, consequences, countdown, facts, impact, priceOf, READS, unitsOf } from "../views/pools.js";
import { inOrder, poolSegments, usedBy } from "../views/scale.js";

/** @typedef {import("../views/pools.js").Pool} Pool */
/** @typedef {import("../lib/types.js").Job} Job */
/** @typedef {import("../lib/types.js").JobsPage} JobsPage */
/** @typedef {import("../lib/types.js").Route} Route */

/** @type {Record<string, {verb: string, danger?: boolean}>} */
const ACTIONS = { cap: { verb: "Set cap" }, drain: { verb: "Drain" }, resume: { verb: "Resume" }, remove: { verb: "Remove", danger: true } };
const MAX_CHANGES = 20;

/** @param {Route} route */
export const title = (route) => route.name || "Pools";
export const reads = () => READS;

/** @param {{values: any[], now: number, route: Route, readOnly: boolean, announce: (text: string) => void}} props */
export function View({ values: [{ pools: found_, version, history }, active, waiting, used], now, route, readOnly, announce }) {
  const [action, setAction] = useState("");
  const pools = /** @type {Pool[]} */ (inOrder(found_));
  const pool = /** @type {Pool | undefined} */ (pools.find((/** @type {Pool} */ each) => each.name === route.name));
  const found = pool && impact(pool, pools, active, waiting);
  const shares = used.shares.map((/** @type {any} */ share) => share.name);
  const segments = (/** @type {Pool} */ each) => poolSegments(each, usedBy(used, each.name));
  const bars = pools.map(segments);
  return html`
    <header class="headline compact"><h1>${route.name ? html`<span class="job">${route.name}</span>` : "Pools"}</h1>
      ${route.name && html`<p class="lead">${pool ? [`${pool.used} of ${pool.cap} used`, pool.state === "in use" ? `${pool.free} free` : pool.state, countdown(pool, now)].filter(Boolean).join(", ") : "There is no pool of this name."} <a href="#/pools">All pools</a></p>`}
      ${pool && html`<${Buttons} pool=${pool} readOnly=${readOnly} onAct=${setAction} />`}</header>
    ${pool && html`<${Detail} ...${{ pool, active, waiting, now }} segments=${segments(pool)} />`}
    ${!route.name && html`<section aria-labelledby="all"><div class="section-head"><h2 id="all">All pools <span class="count">${pools.length}</span></h2><${Legend} all=${bars} shares=${shares} /></div>
      ${pools.length ? html`<${All} pools=${pools} bars=${bars} now=${now} />` : html`<${Empty}>There are no pools. <code>trainmaster pools set</code> makes one.<//>`}</section>`}
    <${History} changes=${(history ?? []).filter((/** @type {any} */ each) => !route.name || each.pool === route.name)} now=${now} />
    ${action && pool && found && html`<${Change} key=${action} ...${{ action, pool, found, version, announce }} waiting=${waiting.jobs} onClose=${() => setAction("")} />`}`;
}

/** @param {{pools: Pool[], bars: any[], now: number}} props */
const All = ({ pools, bars, now }) => html`<div class="table"><table aria-label="Pools">
  <thead><tr><th scope="col">Pool</th><th scope="col">Kind</th><th scope="col">State</th><th scope="col">Use</th><th scope="col" class="number">Used</th><th scope="col" class="number">Cap</th><th scope="col" class="number">Free</th><th scope="col" class="number">Waiting</th><th scope="col" class="number">An hour</th><th scope="col">Note</th></tr></thead>
  <tbody>${pools.map((pool, number) => html`<tr key=${pool.name}>
    <th scope="row"><a class="job" data-row href=${hashOf("pools", { name: pool.name })}>${pool.name}</a></th><td>${pool.kind.replace("-", " ")}</td><td>${pool.state}</td>
    <td class="pool-use"><${PoolBar} segments=${bars[number]} label=${pool.name} /></td>
    <td class="number">${pool.used}</td><td class="number">${pool.cap}</td><td class="number">${pool.free}</td><td class="number">${pool.waiting}${pool.waitingMore ? "+" : ""}</td><td class="number">${priceOf(pool)}</td>
    <td class="muted">${[countdown(pool, now), pool.madeFor ? `made for ${pool.madeFor}` : ""].filter(Boolean).join("; ")}</td></tr>`)}</tbody></table></div>`;

/** @param {{pool: Pool, readOnly: boolean, onAct: (action: string) => void}} props */
const Buttons = ({ pool, readOnly, onAct }) => html`<div class="actions pool-actions" role="group" aria-label="Actions">
  ${Object.entries(ACTIONS).filter(([action]) => appliesTo(action, pool)).map(([action, { verb, danger }]) => html`<button key=${action} type="button" class=${danger ? "danger" : ""} disabled=${readOnly}
    title=${readOnly ? "The console was started with --read-only." : ""} onClick=${() => onAct(action)}>${verb}…</button>`)}</div>`;

/** @param {{pool: Pool, active: JobsPage, waiting: JobsPage, segments: any[], now: number}} props */
function Detail({ pool, active, waiting, segments, now }) {
  const running = active.jobs.filter((job) => unitsOf(job, pool.name) > 0);
  const next = waiting.jobs.filter((job) => job.pools.includes(pool.name));
  return html`
    <section aria-labelledby="use"><h2 id="use">Use</h2><${PoolBar} segments=${segments} label=${pool.name} /></section>
    <section aria-labelledby="facts"><h2 id="facts">Facts</h2>
      <dl class="facts">${facts(pool, now).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>
    <div class="columns">
      <section aria-labelledby="here"><h2 id="here">Running there</h2><${Jobs} jobs=${running} label="here" units=${(/** @type {Job} */ job) => unitsOf(job, pool.name)} now=${now} /></section>
      <section aria-labelledby="could"><h2 id="could">Could run there</h2><${Jobs} jobs=${next} label="could" units=${(/** @type {Job} */ job) => Math.max(0, ...job.demand.map((each) => each[pool.name] ?? 0)) || "–"} now=${now} /></section>
    </div>`;
}

/** @param {{jobs: Job[], label: string, units: (job: Job) => number | string, now: number}} props */
const Jobs = ({ jobs, label, units, now }) => jobs.length === 0 ? html`<${Empty}>None.<//>` : html`<div class="table"><table aria-labelledby=${label}>
  <thead><tr><th scope="col">Job</th><th scope="col">Share</th><th scope="col" class="number">Units</th><th scope="col">${label === "here" ? "Expected end" : "Expected start"}</th></tr></thead>
  <tbody>${jobs.map((job) => html`<tr key=${job.jobName}><th scope="row"><${JobLink} name=${job.jobName} row /></th><td><${Share} share=${job.share} /></td><td class="number">${units(job)}</td><td>${clocked(label === "here" ? job.expectedEnd : job.estimatedStart, now)}</td></tr>`)}</tbody></table></div>`;

/** @param {string | null | undefined} at @param {number} now */
const clocked = (at, now) => (at ? clock(at, now) : "–");

/** @param {{changes: import("../views/pools.js").MadeChange[], now: number}} props */
const History = ({ changes, now }) => html`<section aria-labelledby="made"><h2 id="made">Changes that the queue made</h2>
  ${changes.length === 0 && html`<${Empty}>The queue has made no pool.<//>`}
  ${changes.length > 0 && html`<div class="table"><table aria-labelledby="made">
    <thead><tr><th scope="col">Time</th><th scope="col">Pool</th><th scope="col">Change</th><th scope="col">Instances</th><th scope="col">Price</th><th scope="col">Reason</th></tr></thead>
    <tbody>${changes.slice(0, MAX_CHANGES).map((each, number) => html`<tr key=${number}><td><${Time} at=${each.at} now=${now} /></td><td class="job">${each.pool}</td><td>${CHANGES[each.change] ?? each.change}</td>
      <td>${each.before} to ${each.after}</td><td>${changeOfPrice(each.dollarsPerHour)}</td><td class="reason">${each.why}</td></tr>`)}</tbody></table></div>`}</section>`;

/**
 * The dialog of an action: what follows first, then the API's answer.
 * @param {{action: string, pool: Pool, found: import("../views/pools.js").Impact, version: number, waiting: Job[], announce: (text: string) => void, onClose: () => void}} props
 */
function Change({ action, pool, found, version, waiting, announce, onClose }) {
  const [cap, setCap] = useState(String(pool.cap));
  const [force, setForce] = useState(false);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const { verb, danger } = ACTIONS[action];
  const path = `/pools/${encodeURIComponent(pool.name)}`;
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const answer = action === "remove" ? await change("DELETE", `${path}?version=${version}${force ? "&force=true" : ""}`)
        : await change("PATCH", path, { version, ...(action === "cap" ? { cap: Number(cap) } : { draining: action === "drain" }) });
      announce(answered(action, pool.name, answer));
      onClose();
      if (action === "remove") location.hash = "#/pools";
    } catch (error) {
      const { message, hint } = /** @type {Error & {hint: string | null}} */ (error);
      setProblem([message, hint].filter(Boolean).join(" "));
      setBusy(false);
    }
  };
  const needs = action === "remove" && (found.holders.length > 0 || found.stranded.length > 0);
  return html`<${Dialog} title=${action === "cap" ? `Set the cap of ${pool.name}` : `${verb} ${pool.name}?`} onClose=${onClose}>
    <form method="dialog" onSubmit=${send}>
      ${action === "cap" && html`<label class="field">New cap<input type="number" min="0" step="1" required value=${cap} onInput=${(/** @type {any} */ event) => setCap(event.target.value)} /></label>`}
      <ul class="consequences">${consequences(action, pool, found, cap.trim() ? Number(cap) : NaN, waiting).map((text) => html`<li key=${text}>${text}</li>`)}</ul>
      ${needs && html`<label class="check"><input type="checkbox" checked=${force} onChange=${(/** @type {any} */ event) => setForce(event.target.checked)} />Remove it even so</label>`}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <div class="buttons"><button type="button" onClick=${onClose}>Keep as it is</button>
        <button type="submit" class=${danger ? "danger solid" : "solid"} disabled=${busy || (needs && !force)}>${action === "cap" ? `Set cap ${cap}` : `${verb} ${pool.name}`}</button></div>
    </form><//>`;
}
