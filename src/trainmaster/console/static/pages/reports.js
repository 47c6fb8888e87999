// The page Reports: hours, waits, cost and lost work of a week or a month, read once, with charts, a table and a CSV file.

import { read } from "../lib/api.js";
import { html, useEffect, useState } from "../lib/html.js";
import { hashOf } from "../lib/route.js";
import { clock } from "../lib/time.js";
import { tint } from "../parts/small.js";
import { amount } from "../views/shares.js";
import { BY, charts, chosen, csvOf, DAYS, firstPart, headline, joined, money, nameOf, nextPart, notes, utilization, wordsOf } from "../views/reports.js";

/** @typedef {import("../views/reports.js").ChartRow} ChartRow */
/** @typedef {import("../views/reports.js").Group} Group */
/** @typedef {import("../views/reports.js").Usage} Usage */
/** @typedef {import("../lib/types.js").Route} Route */

export const title = () => "Reports";
export const reads = () => ["/pools"];

/**
 * Read a whole report part by part.
 * @param {number} days @param {string} by @param {{on: boolean}} wanted @param {(jobs: number) => void} onProgress @returns {Promise<Usage | null>}
 */
async function whole(days, by, wanted, onProgress) {
  /** @type {Usage} */
  let usage = await read(firstPart(days, by, Date.now()));
  for (let path = nextPart(usage); path && wanted.on; path = nextPart(usage)) {
    onProgress(usage.jobsRead);
    usage = joined(usage, await read(path));
  }
  return wanted.on ? usage : null;
}

/** @param {{values: any[], now: number, route: Route}} props */
export function View({ values: [{ pools }], now, route: { query } }) {
  const { days, by } = chosen(query);
  const [report, setReport] = useState(/** @type {{usage: Usage, days: number, byPool: Usage} | null} */ (null));
  const [progress, setProgress] = useState("Reading …");
  const [round, setRound] = useState(0);
  useEffect(() => {
    const wanted = { on: true };
    const tell = (/** @type {number} */ jobs) => wanted.on && setProgress(`Reading: ${amount(jobs)} jobs so far …`);
    setProgress("Reading …");
    (async () => {
      const usage = await whole(days, by, wanted, tell);
      const byPool = by === "pool" ? usage : await whole(days, "pool", wanted, tell);
      if (usage && byPool && wanted.on) setReport({ usage, days, byPool });
      if (wanted.on) setProgress("");
    })().catch((error) => wanted.on && setProgress([error.message, error.hint].filter(Boolean).join(" ")));
    return () => { wanted.on = false; };
  }, [days, by, round]);
  const usage = report?.usage;
  return html`
    <header class="headline"><h1>${report ? headline(report.usage, report.days) : "Reports"}</h1>
      <p class="lead" role="status">${progress || (usage ? `${clock(usage.from, now)} to ${clock(usage.to, now)}.` : "")}</p>
      <div class="filters"><${Choice} name="days" label="Period" value=${String(days)} query=${query} options=${DAYS.map((each) => [String(each), `${each} days`])} />
        <${Choice} name="by" label="By" value=${by} query=${query} options=${BY.map((each) => [each, each])} />
        <button type="button" class="again" onClick=${() => setRound(round + 1)}>Read again</button></div>
    </header>
    ${report && usage && html`<${Figures} total=${usage.total} /><${Charts} usage=${usage} />
      <${Chart} id="utilization" name="Utilization of the pools" note="of their caps as they are now" rows=${utilization(report.byPool, pools)} tinted=${false} /><${Table} usage=${usage} days=${report.days} />`}
    ${!report && html`<section aria-label="Report"><p class="empty">The report is read from the queue once, not live.</p></section>`}`;
}

/** @param {{name: string, label: string, value: string, query: Record<string, string>, options: string[][]}} props */
const Choice = ({ name, label, value, query, options }) => html`<label>${label}<select value=${value}
  onChange=${(/** @type {any} */ event) => { location.hash = hashOf("reports", { query: { ...query, [name]: event.target.value } }); }}>
  ${options.map(([each, text]) => html`<option key=${each} value=${each} selected=${each === value}>${text}</option>`)}</select></label>`;

/** @param {{total: Group}} props */
const Figures = ({ total }) => html`<section aria-labelledby="total"><h2 id="total">In total</h2>
  <dl class="chips">${[
    ["Started", amount(total.started)], ["Completed", amount(total.completed)], ["Failed", amount(total.failed)], ["Instance hours", amount(total.instanceHours)],
    ["Cost", money(total.dollars)], ["Median wait", wordsOf(total.waitP50Seconds)], ["95 % waited at most", wordsOf(total.waitP95Seconds)],
    ["Preemptions", amount(total.preemptions)], ["Lost GPU hours", amount(total.lostAcceleratorHours)],
  ].map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
  ${notes(total).map((note) => html`<p key=${note} class="muted">${note}</p>`)}</section>`;

/** @param {{usage: Usage}} props */
function Charts({ usage }) {
  const { hours, waits, dollars } = charts(usage);
  const tinted = usage.by === "share";
  return html`<div class="columns charts"><${Chart} id="hours" name="GPU hours" note="hatched: lost to preemption" rows=${hours} tinted=${tinted} />
    <${Chart} id="waits" name="Waits" note="median to 95th percentile" rows=${waits} tinted=${tinted} />
    ${usage.total.dollars > 0 && html`<${Chart} id="cost" name="Cost" note="" rows=${dollars} tinted=${tinted} />`}</div>`;
}

/** A chart of bars, one a row; the text beside a bar says the same. @param {{id: string, name: string, note: string, rows: ChartRow[], tinted: boolean}} props */
const Chart = ({ id, name, note, rows, tinted }) => html`<section aria-labelledby=${id}>
  <div class="section-head"><h2 id=${id}>${name}</h2><span class="muted">${note}</span></div>
  ${rows.length === 0 && html`<p class="empty">Nothing to show.</p>`}
  <ul class="chart">${rows.map((row) => html`<li key=${row.title}><span class="chart-name" title=${row.title}>${row.name}</span>
    <svg class="chart-bar" aria-hidden="true"><rect width="100%" height="100%" rx="2" class="track" />
      ${row.marks.map((mark) => html`<rect key=${mark.look} x=${`${mark.x}%`} width=${`${mark.width}%`} height="100%" class=${tinted ? tint(row.title) : "fill-accent"} />
        ${mark.look === "lost" && html`<rect x=${`${mark.x}%`} width=${`${mark.width}%`} height="100%" class="borrowed" />`}`)}
      ${row.tick !== null && html`<rect x=${`${Math.min(99, row.tick)}%`} width="2.5" height="100%" class="ink" />`}</svg>
    <span class="chart-text">${row.text}</span></li>`)}</ul></section>`;

/** @param {{usage: Usage, days: number}} props */
function Table({ usage, days }) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([csvOf(usage)], { type: "text/csv" }));
    const link = Object.assign(document.createElement("a"), { href: url, download: `usage-by-${usage.by}-${days}-days.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1_000);
  };
  const row = (/** @type {string} */ name, /** @type {Group} */ group) => html`<tr key=${name}><th scope="row" title=${group.name ?? ""}>${name}</th>
    ${[group.jobs, group.completed, group.failed, group.stopped + group.cancelled].map((value, number) => html`<td key=${number} class="number">${amount(value)}</td>`)}
    <td class="number">${amount(group.instanceHours)}</td><td class="number">${amount(group.acceleratorHours)}</td><td class="number">${money(group.dollars)}</td>
    <td class="number">${wordsOf(group.waitP50Seconds)}</td><td class="number">${wordsOf(group.waitP95Seconds)}</td><td class="number">${amount(group.preemptions)}</td><td class="number">${amount(group.lostAcceleratorHours)}</td></tr>`;
  return html`<section aria-labelledby="table">
    <div class="section-head"><h2 id="table">By ${usage.by}</h2><button type="button" onClick=${save}>Save as CSV</button></div>
    <div class="table"><table aria-labelledby="table">
      <thead><tr><th scope="col">${usage.by[0].toUpperCase() + usage.by.slice(1)}</th>${["Jobs", "Completed", "Failed", "Stopped", "Instance h", "GPU h", "Cost", "Wait p50", "Wait p95", "Preemptions", "Lost GPU h"].map((name) => html`<th key=${name} scope="col" class="number">${name}</th>`)}</tr></thead>
      <tbody>${usage.groups.map((group) => row(nameOf(usage.by, group), group))}${usage.groups.length > 1 && row("Total", { ...usage.total, name: "each job once" })}</tbody>
    </table></div></section>`;
}
