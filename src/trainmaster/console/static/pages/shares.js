// The page Shares: what each share owns, uses, lends and borrows in each pool, its usage and its budget.

import { html } from "../lib/html.js";
import { hashOf } from "../lib/route.js";
import { duration } from "../lib/time.js";
import { Empty, Share as ShareName, tint } from "../parts/small.js";
import { amount, barText, budgetLines, byPool, headline, KINDS, lendingText, limitText } from "../views/shares.js";

/** @typedef {import("../views/shares.js").Shares} Shares */
/** @typedef {import("../views/shares.js").Rows} Rows */
/** @typedef {import("../views/shares.js").Segment} Segment */

export const title = () => "Shares";
export const reads = () => ["/shares"];

/** @param {{values: any[], now: number}} props */
export function View({ values: [found], now }) {
  const shares = /** @type {Shares} */ (found);
  const pools = byPool(shares);
  return html`
    <header class="headline"><h1>${headline(shares)}</h1>
      <p class="lead">Quotas, weights and budgets are <a href="#/settings">settings</a>.</p></header>
    ${pools.length === 0 && html`<section><${Empty}>No share owns or uses a pool.<//></section>`}
    ${pools.map((rows, number) => html`<${PoolTable} key=${rows.pool.name} rows=${rows} number=${number} />`)}
    <${Usage} shares=${shares} now=${now} />`;
}

/** @param {{rows: Rows, number: number}} props */
const PoolTable = ({ rows: { pool, parts }, number }) => html`<section aria-labelledby=${`pool-${number}`}>
  <div class="section-head"><h2 id=${`pool-${number}`}>${pool.name}</h2>
    <span class="muted">${[pool.cap === null ? "no pool now" : `${pool.used} of ${pool.cap} used`, pool.unowned ? `${pool.unowned} owned by no share` : "", pool.external ? `${pool.external} external` : ""].filter(Boolean).join(", ")}</span>
    ${number === 0 && html`<${Legend} />`}</div>
  <div class="table"><table class="shares" aria-labelledby=${`pool-${number}`}>
    <thead><tr><th scope="col">Share</th><th scope="col" class="wide">0 to ${pool.cap ?? "–"} ${pool.kind === "service" ? "requests at once" : "instances"}</th><th scope="col" class="number">Own</th><th scope="col" class="number">Used</th>
      <th scope="col" class="number">Borrowed</th><th scope="col" class="number">Lent</th><th scope="col" class="number">Reserved</th><th scope="col">Limit</th></tr></thead>
    <tbody>${parts.map(({ share, part, segments, limit }) => html`<tr key=${share}>
      <th scope="row"><${ShareName} share=${share} /></th>
      <td class="wide"><${Bar} ...${{ share, segments, limit }} /></td>
      <td class="number">${part.own}${part.nominal !== part.own && html`<span class="muted" title="as the settings have it"> of ${part.nominal}</span>`}</td>
      <td class="number">${part.used}</td>
      <td class="number">${part.borrowed}${part.borrows !== null && html`<span class="muted"> of ${part.borrows}</span>`}</td>
      <td class="number">${part.lent}<span class="muted"> of ${part.lends}</span></td><td class="number">${part.held}</td>
      <td class="muted">${limitText(part)}</td></tr>`)}</tbody>
  </table></div></section>`;

/** @param {{share: string, segments: Segment[], limit: number | null}} props */
const Bar = ({ share, segments, limit }) => html`<svg class="sharebar" role="img" aria-label=${barText(share, segments)}>
  <rect width="100%" height="100%" class="track" />
  ${segments.map((each) => html`<rect key=${each.kind} x=${`${each.x}%`} width=${`${each.width}%`} height="100%" class=${look(each.kind, share)}><title>${each.units} ${KINDS[each.kind]}</title></rect>
    ${each.kind === "borrowed" && html`<rect x=${`${each.x}%`} width=${`${each.width}%`} height="100%" class="borrowed"><title>${each.units} borrowed</title></rect>`}`)}
  ${limit !== null && html`<line x1=${`${limit}%`} x2=${`${limit}%`} y1="0" y2="100%" class="limit"><title>Limit</title></line>`}
</svg>`;

/** @param {string} kind @param {string} share */
const look = (kind, share) => (kind === "used" || kind === "borrowed" ? tint(share) : `seg-${{ held: "held", lent: "external", idle: "free" }[kind]}`);

const Legend = () => html`<ul class="legend" aria-label="Legend">
  ${[["used", "fill-quiet"], ["borrowed", "fill-quiet"], ["held", "seg-held"], ["idle", "seg-free"], ["lent", "seg-external"]].map(([kind, style]) => html`<li key=${kind}>
    <svg class="swatch" aria-hidden="true"><rect width="100%" height="100%" rx="2" class=${style} />${kind === "borrowed" && html`<rect width="100%" height="100%" class="borrowed" />`}</svg>${kind === "idle" ? "own, idle" : KINDS[kind]}</li>`)}
</ul>`;

/** @param {{shares: Shares, now: number}} props */
function Usage({ shares: { shares, usageHalfLifeSeconds, more }, now }) {
  const most = Math.max(1e-9, ...shares.map((share) => share.fadedGpuHours));
  return html`<section aria-labelledby="usage">
    <div class="section-head"><h2 id="usage">Usage and budgets</h2><span class="muted">past usage counts half after ${duration(usageHalfLifeSeconds * 1000)}</span></div>
    <div class="table"><table aria-labelledby="usage">
      <thead><tr><th scope="col">Share</th><th scope="col" class="number">Running</th><th scope="col" class="number">Waiting</th><th scope="col" class="number">Weight</th><th scope="col">Rule</th>
        <th scope="col">Faded usage</th><th scope="col">Budget</th><th scope="col"><span class="hidden">Edit</span></th></tr></thead>
      <tbody>${shares.map((share) => html`<tr key=${share.name}>
        <th scope="row"><${ShareName} share=${share.name} /></th>
        <td class="number"><a href=${hashOf("queue", { query: { state: "active", share: share.name } })} aria-label=${`${share.running} running jobs of ${share.name}`}>${share.running}</a></td>
        <td class="number"><a href=${hashOf("queue", { query: { share: share.name } })} aria-label=${`${share.waiting} waiting jobs of ${share.name}`}>${share.waiting}${more ? "+" : ""}</a></td>
        <td class="number">${amount(share.weight)}</td><td>${lendingText(share.lending)}</td>
        <td class="meter-cell"><${Meter} part=${(100 * share.fadedGpuHours) / most} style=${tint(share.name)} /><span>${amount(share.fadedGpuHours)} GPU hours</span></td>
        <td>${share.budget ? html`<${Budget} budget=${share.budget} now=${now} />` : html`<span class="muted">none</span>`}</td>
        <td>${share.configured && html`<a href=${hashOf("settings", { query: { at: `shares.${share.name}` } })} aria-label=${`Edit ${share.name} in the settings`}>Edit</a>`}</td></tr>`)}</tbody>
    </table></div></section>`;
}

/** @param {{budget: import("../views/shares.js").Budget, now: number}} props */
function Budget({ budget, now }) {
  const { lines, note } = budgetLines(budget, now);
  return html`<div class="budget">${lines.map((line) => html`<div key=${line.unit} class="meter-cell"><${Meter} part=${line.part} style=${line.tone ? `fill-${line.tone}` : "fill-accent"} /><span class=${line.tone}>${line.text}</span></div>`)}
    <p class=${budget.spent ? "bad" : "muted"}>${note}</p></div>`;
}

/** A bar of a part of a whole; the text beside it says the same. @param {{part: number, style: string}} props */
const Meter = ({ part, style }) => html`<svg class="meter" aria-hidden="true"><rect width="100%" height="100%" rx="2" class="track" /><rect width=${`${part}%`} height="100%" rx="2" class=${style} /></svg>`;
