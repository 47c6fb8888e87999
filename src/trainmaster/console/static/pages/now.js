// The page Now: how the pools are used, what has changed, and what needs attention.

import { html } from "../lib/html.js";
import { readPath } from "../lib/route.js";
import { clock, duration } from "../lib/time.js";
import { ACTIVE, counted, demandText, ENDED } from "../lib/words.js";
import { Legend, PoolBar, RangeBar } from "../parts/bars.js";
import { Empty, JobLink, Time } from "../parts/small.js";
import { changes, headline, nextStart, paused, poolFigures, troubles, upcoming } from "../views/now.js";
import { axisSpan, inOrder, poolSegments, usedBy } from "../views/scale.js";

const FIRST = 50;
const MAX_CHANGES = 10;
const MAX_NEXT = 8;

export const title = () => "Now";
/** The counts come first; a queue of any depth answers with its first jobs as fast as a short one. */
export const reads = () => [
  readPath("/shares"),
  readPath("/queue", { limit: FIRST }),
  readPath("/jobs", { state: ACTIVE.join(), limit: FIRST }),
  readPath("/jobs", { state: ENDED.join(), limit: FIRST }),
  readPath("/manager"),
];
export const needed = 1;

/** @param {{values: any[], now: number}} props */
export function View({ values: [used, queue, active, ended, manager], now }) {
  if (!queue || !active || !ended) return html`<header class="headline" aria-busy="true"><h1>${headline(used)}</h1><p class="lead muted">Reading the pools and the first jobs …</p></header>`;
  const shares = used.shares.map((/** @type {any} */ share) => share.name);
  const pools = /** @type {import("../lib/types.js").Pool[]} */ (inOrder(queue.pools));
  const bars = pools.map((/** @type {any} */ pool) => poolSegments(pool, usedBy(used, pool.name)));
  const soon = upcoming(queue).slice(0, MAX_NEXT);
  const span = axisSpan(soon, now);
  const wrong = [...paused(manager, now), ...troubles(queue, ended.jobs, now)];
  const recent = changes([...active.jobs, ...queue.jobs, ...ended.jobs], now);
  return html`
    <header class="headline">
      <h1>${headline(used)}</h1>
      <p class="lead">${manager?.pause ? "No job starts: the manager is paused." : nextStart(queue, now)}</p>
    </header>
    ${wrong.length > 0 && html`<section class="trouble" aria-labelledby="trouble">
      <h2 id="trouble">Needs attention</h2>
      <ul>${wrong.map((each) => html`<li key=${each.job + each.text} class=${each.tone}>
        <span class="mark" aria-hidden="true">${each.tone === "bad" ? "✕" : "!"}</span>
        <span>${each.job && html`<${JobLink} name=${each.job} row /> `}${each.text}</span></li>`)}</ul>
    </section>`}
    <section aria-labelledby="pools">
      <div class="section-head"><h2 id="pools">Pools</h2><${Legend} all=${bars} shares=${shares} /></div>
      ${pools.length === 0 && html`<${Empty}>There are no pools. <code>trainmaster pools set</code> makes one.<//>`}
      <ul class="pools">${pools.map((pool, number) => html`<${PoolRow} key=${pool.name} pool=${pool} segments=${bars[number]} />`)}</ul>
    </section>
    <div class="columns">
    <section aria-labelledby="next">
      <div class="section-head"><h2 id="next">Expected next</h2>${soon.length > 0 && html`<span class="muted">now to +${duration(span)}</span>`}</div>
      ${soon.length === 0 && html`<${Empty}>${queue.jobs.length ? "No start can be estimated yet." : "No job waits."}<//>`}
      <ol class="next">${soon.map((each) => html`<li key=${each.jobName}>
        <${Time} at=${each.estimatedStart} now=${now} show=${clock} />
        <span><${JobLink} name=${each.jobName} row /><span class="muted"> ${demandText(each)}</span></span>
        <${RangeBar} job=${each} now=${now} span=${span} /></li>`)}</ol>
    </section>
    <section aria-labelledby="changes">
      <h2 id="changes">In the last hour</h2>
      ${recent.length === 0 && html`<${Empty}>Nothing has changed.<//>`}
      <ol class="events">${recent.slice(0, MAX_CHANGES).map((each) => html`<li key=${each.job + each.at + each.text}>
        <${Time} at=${each.at} now=${now} />
        <span class=${`mark ${each.tone}`} aria-hidden="true">${each.mark}</span>
        <span><${JobLink} name=${each.job} row /> ${each.text}</span></li>`)}</ol>
      ${recent.length > MAX_CHANGES && html`<p class="muted">and ${recent.length - MAX_CHANGES} more</p>`}
    </section>
    </div>`;
}

/** @param {{pool: import("../lib/types.js").Pool, segments: any[]}} props */
function PoolRow({ pool, segments }) {
  const { used, waiting } = poolFigures(pool);
  const kind = pool.kind === "on-demand" ? "" : pool.kind.replace("-", " ");
  const type = pool.name === pool.instanceType ? "" : pool.instanceType;
  return html`<li class="pool">
    <div class="pool-name"><h3>${pool.name}</h3><span class="muted">${[type, kind, pool.accelerators ? `${counted(pool.accelerators, "accelerator")} each` : "", pool.madeFor ? "made by the queue" : ""].filter(Boolean).join(" · ")}</span></div>
    <div class="pool-bar"><${PoolBar} segments=${segments} label=${pool.name} />
      <div class="pool-figures"><span>${used}</span><span class="muted">${waiting}</span></div></div>
  </li>`;
}
