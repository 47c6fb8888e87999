// The Timeline's panel of one job, its table, its legend, and the card of the bar under the pointer.

import { html, useState } from "../lib/html.js";
import { jobHash } from "../lib/route.js";
import { clock, utc } from "../lib/time.js";
import { headline, next } from "../views/job.js";
import { KINDS, labelOf } from "../views/timeline.js";
import { Empty, JobLink, Share, State, Time, tint } from "./small.js";

/** @typedef {import("../lib/types.js").Schedule} Schedule */
/** @typedef {import("../lib/types.js").Interval} Interval */

const ROWS = 200;

/**
 * @param {{name: string, job: import("../lib/types.js").JobDetail | null, chapters: import("../views/story.js").Chapter[], now: number, onJob: (name: string) => void}} props
 */
export const Story = ({ name, job, chapters, now, onJob }) => html`<section class="tl-story" aria-labelledby="story">
  <div class="section-head"><h2 id="story"><span class="job">${name}</span> ${job ? headline(job, now) : ""}</h2>
    <span class="links"><a href=${jobHash(name)}>Open the job</a><button type="button" class="plain" onClick=${() => onJob("")}>Clear <kbd>Esc</kbd></button></span></div>
  ${job && html`<p>${next(job, now).join(" ")}</p>`}
  ${chapters.length === 0 && html`<${Empty}>It has no interval in the period that was read.<//>`}
  <ol>${chapters.map((each) => html`<li key=${each.at + each.kind + each.text}>
    <${Time} at=${each.at} now=${now} show=${clock} /><span class=${`tl-kind ${each.kind}`} aria-hidden="true"></span>
    <span>${each.text}${each.jobs.length > 0 && html`<span class="muted"> · ${each.after} </span>${each.jobs.map((other, number) => html`${number > 0 && ", "}<button type="button" class="link job" key=${other} onClick=${() => onJob(other)}>${other}</button>`)}`}</span></li>`)}</ol>
</section>`;

/** The schedule's intervals as a table. @param {{schedule: Schedule, from: number, to: number, job: string, now: number}} props */
export function TimeTable({ schedule, from, to, job, now }) {
  const [most, setMost] = useState(ROWS);
  const all = schedule.pools.flatMap((pool) => pool.intervals.filter((each) => Date.parse(each.from) < to && (!each.until || Date.parse(each.until) > from) && (!job || each.jobName === job)).map((each) => ({ pool: pool.name, each })));
  return html`<div class="table"><table aria-label="Intervals">
    <thead><tr><th scope="col">Pool</th><th scope="col">Job</th><th scope="col">Share</th><th scope="col">Kind</th><th scope="col" class="number">Units</th><th scope="col">From</th><th scope="col">Until</th><th scope="col">State</th></tr></thead>
    <tbody>${all.slice(0, most).map(({ pool, each }, number) => html`<tr key=${number}>
      <td>${pool}</td><th scope="row">${each.jobName ? html`<${JobLink} name=${each.jobName} row />` : "–"}</th><td>${each.share ? html`<${Share} share=${each.share} />` : "–"}</td>
      <td>${KINDS[each.kind] ?? each.kind}</td><td class="number">${each.units}</td>
      <td>${ranged(each.from, each.fromLow, each.fromHigh, now)}</td><td>${ranged(each.until, each.untilLow, each.untilHigh, now)}</td>
      <td>${each.outcome ?? (each.jobState ? html`<${State} state=${each.jobState} />` : "")}</td></tr>`)}</tbody></table></div>
    ${all.length === 0 && html`<${Empty}>Nothing is in this period.<//>`}
    ${all.length > most && html`<p><button type="button" onClick=${() => setMost(most + ROWS)}>Show more of ${all.length}</button></p>`}`;
}

/** @param {string | null} at @param {string | null} low @param {string | null} high @param {number} now */
const ranged = (at, low, high, now) => !at ? "–" : html`<time datetime=${at} title=${utc(at)}>${clock(at, now)}</time>${low && high && low !== high && html`<span class="muted"> ${clock(low, now)} to ${clock(high, now)}</span>`}`;

/** What colors and patterns mean. @param {{shares: string[], kinds: string[]}} props */
export const TimeLegend = ({ shares, kinds }) => html`<ul class="legend" aria-label="Legend">
  ${shares.map((share) => html`<li key=${share}><svg class="swatch" aria-hidden="true"><rect width="100%" height="100%" rx="2" class=${tint(share)} /></svg>${share}</li>`)}
  ${kinds.map((kind) => html`<li key=${`kind ${kind}`}><svg class="swatch" viewBox="0 0 18 11" aria-hidden="true"><g class=${`tl-bar tint-none ${kind}`}><rect class="body" width="18" height="11" rx="2" fill=${["running", "planned"].includes(kind) ? `url(#${kind === "running" ? "runs" : "planned"}-tint7)` : undefined} /><rect class="edge" x="0.5" y="0.5" width="17" height="10" rx="2" /></g></svg>${kind === "running" ? "until the expected end" : KINDS[kind]}</li>`)}
</ul>`;

/** The card of a bar. @param {{bar: import("../views/timeline.js").Bar, x: number, y: number, now: number}} props */
export const Card = ({ bar, x, y, now }) => html`<div class="tl-card" aria-hidden="true" style=${{ left: `${x}px`, top: `${y}px` }}>
  <strong class="job">${bar.job || `${bar.count} short intervals`}</strong>
  <span>${labelOf(bar, now).replace(/^[^:]*: /, "")}</span>
  ${bar.count > 1 && html`<span class="muted">${bar.jobs.slice(0, 5).join(", ")}${bar.jobs.length > 5 ? ` and ${bar.jobs.length - 5} more` : ""}. Click to zoom in.</span>`}</div>`;
