// The page Timeline: past attempts, running jobs and planned starts of each pool on one axis, with their units stacked.

import { html, useEffect, useMemo, useRef, useState } from "../lib/html.js";
import { hashOf, readPath } from "../lib/route.js";
import { counted } from "../lib/words.js";
import { Axis, LaneChart, TimePatterns } from "../parts/lanes.js";
import { Empty } from "../parts/small.js";
import { Card, Story, TimeLegend, TimeTable } from "../parts/story.js";
import { drawnAt, fit, following, panned, periodOf, queryOf, readOf, zoomed } from "../views/period.js";
import { story, summary } from "../views/story.js";
import { draw, kept, lanesOf, neighbor } from "../views/timeline.js";

/** @typedef {import("../lib/types.js").Route} Route */
/** @typedef {import("../lib/types.js").Schedule} Schedule */
/** @typedef {import("../views/period.js").Period} Period */
/** @typedef {import("../views/timeline.js").Bar} Bar */

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$/;
const KINDS = ["past", "running", "planned", "reserved", "held", "warm", "external"];
const GUTTER = 190;
/** Width and margins of `main`, as style.css has them. */
const [PAGE, MARGINS] = [1_240, 56];
const ZOOM = 1.5;
const MAX_NAMES = 50;

export const title = () => "Timeline";
export const steady = true;
export const needed = 1;
/** @param {Route} route */
export const reads = ({ query }) => {
  const now = Date.now();
  const job = query.job && NAME.test(query.job) ? [readPath(`/jobs/${query.job}`, { why: "true" })] : [];
  return [readOf(periodOf(query, now), now), ...job];
};

/** Return the width of a chart in a container. @param {number} container */
const chartIn = (container) => Math.max(200, container - (innerWidth > 820 ? GUTTER : 0));

/** Return the width of an element, which follows its container; before it is known, that of a page, so that most charts are drawn once. */
function useWidth() {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(() => chartIn(Math.min(document.documentElement.clientWidth, PAGE) - MARGINS));
  useEffect(() => {
    const found = element.current;
    if (!found) return undefined;
    const observer = new ResizeObserver(() => setWidth(chartIn(found.clientWidth)));
    observer.observe(found);
    return () => observer.disconnect();
  }, []);
  return { element, width };
}

/** @param {{values: any[], now: number, route: Route}} props */
export function View({ values: [schedule, detail], now, route: { query } }) {
  const { element, width } = useWidth();
  const [moving, setMoving] = useState(/** @type {Period | null} */ (null));
  const [current, setCurrent] = useState("");
  const [over, setOver] = useState(/** @type {{bar: Bar, x: number, y: number} | null} */ (null));
  const pressed = useRef(/** @type {{x: number, period: Period, moved: boolean} | null} */ (null));
  const [finding, setFinding] = useState(/** @type {string | null} */ (null));
  const drawn = useRef(/** @type {Bar[][]} */ ([]));
  const exact = moving ?? periodOf(query, now) ?? fit(schedule, now);
  const step = (/** @type {number} */ time) => drawnAt(time, exact.to - exact.from, width);
  const at = step(now);
  const period = moving ?? periodOf(query, at) ?? exact;
  const view = useMemo(() => ({ from: period.from, to: period.to, width }), [period.from, period.to, width]);
  const lanes = useMemo(() => lanesOf(schedule), [schedule]);
  const { bars: made, merged } = useMemo(() => draw(lanes, view, at), [lanes, view, at]);
  const bars = useMemo(() => (drawn.current = kept(drawn.current, made)), [made]);
  const why = detail?.jobName === query.job ? detail : null;
  const way = why?.why?.inTheWay.map((/** @type {any} */ each) => each.jobName).join() ?? "";
  const focus = useMemo(() => (query.job ? story(schedule, query.job, now, way ? way.split(",") : []) : null), [schedule, query.job, now, way]);
  const all = bars.flat();
  const byId = new Map(all.map((/** @type {Bar} */ each) => [each.id, each]));
  const first = byId.has(current) ? current : (all.find((each) => each.jobs.includes(query.job)) ?? all.find((each) => each.kind === "running") ?? all[0])?.id ?? "";

  const go = (/** @type {Record<string, string>} */ changed) => {
    history.replaceState(null, "", hashOf("timeline", { query: { ...query, ...changed } }));
    dispatchEvent(new Event("hashchange"));
  };
  const show = (/** @type {Period} */ shown) => go(queryOf(shown, now));
  const onJob = (/** @type {string} */ job) => go({ job });
  const middle = () => (period.follows ? now : (period.from + period.to) / 2);
  const zoom = (/** @type {number} */ factor) => show(zoomed(period, factor, middle(), now));
  const barOf = (/** @type {Event} */ event) => byId.get(/** @type {Element} */ (event.target).closest("[data-bar]")?.getAttribute("data-bar") ?? "");
  const open = (/** @type {Bar | undefined} */ bar) => {
    if (bar && bar.count > 1) show({ from: bar.begins - (bar.ends - bar.begins) / 4 - 30_000, to: bar.ends + (bar.ends - bar.begins) / 4 + 300_000, follows: false });
    else if (bar?.job) onJob(bar.job === query.job ? "" : bar.job);
  };

  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const bar = barOf(event);
    /** @type {Record<string, () => void>} */
    const acts = { "+": () => zoom(1 / ZOOM), "=": () => zoom(1 / ZOOM), "-": () => zoom(ZOOM), 0: () => go({ before: "", after: "", from: "", to: "" }), Escape: () => onJob(""), Enter: () => open(bar), " ": () => open(bar) };
    const shift = event.shiftKey && { ArrowLeft: -0.25, ArrowRight: 0.25 }[event.key];
    const act = shift ? () => show(panned(period, shift)) : bar && /^(Arrow|Home|End)/.test(event.key) ? () => walk(event.key, bar.id) : acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  const walk = (/** @type {string} */ key, /** @type {string} */ id) => {
    const next = neighbor(bars, id, key);
    const found = next && [...(element.current?.querySelectorAll("[data-bar]") ?? [])].find((each) => each.getAttribute("data-bar") === next.id);
    /** @type {HTMLElement | null} */ (found)?.focus();
  };
  const onFocusIn = (/** @type {Event} */ event) => {
    const bar = barOf(event);
    if (!bar) return;
    setCurrent(bar.id);
    point(bar, /** @type {Element} */ (event.target), Math.max(bar.x, 0));
  };
  const point = (/** @type {Bar} */ bar, /** @type {Element} */ target, /** @type {number} */ x) => {
    const chart = element.current?.getBoundingClientRect();
    const box = target.closest("[data-bar]")?.getBoundingClientRect();
    if (chart && box) setOver({ bar, x: Math.min(x + 12, width - 270) + chart.width - width, y: box.bottom - chart.top + 6 });
  };
  const onPointerDown = (/** @type {PointerEvent} */ event) => {
    if (event.button === 0 && /** @type {Element} */ (event.target).closest("svg")) pressed.current = { x: event.clientX, period, moved: false };
  };
  const onPointerMove = (/** @type {PointerEvent} */ event) => {
    const start = pressed.current;
    if (start && (start.moved || Math.abs(event.clientX - start.x) > 4)) {
      if (!start.moved) element.current?.setPointerCapture(event.pointerId);
      start.moved = true;
      setOver(null);
      setMoving(panned(start.period, (start.x - event.clientX) / width));
      return;
    }
    const bar = barOf(event);
    if (bar) point(bar, /** @type {Element} */ (event.target), event.clientX - (element.current?.getBoundingClientRect().right ?? 0) + width);
    else setOver(null);
  };
  const onPointerUp = () => {
    if (pressed.current?.moved && moving) show(moving);
    setMoving(null);
    setTimeout(() => (pressed.current = null), 0);
  };
  const onClick = (/** @type {MouseEvent} */ event) => !pressed.current?.moved && open(barOf(event));
  const onWheel = (/** @type {WheelEvent} */ event) => {
    const across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!across && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const x = event.clientX - (element.current?.getBoundingClientRect().right ?? 0) + width;
    show(across ? panned(period, event.deltaX / width) : zoomed(period, Math.exp(event.deltaY / 300), period.from + (x * (period.to - period.from)) / width, now));
  };

  const kinds = KINDS.filter((kind) => all.some((each) => each.kind === kind || (kind === "past" && each.kind === "running")));
  const shares = [...new Set(all.flatMap((each) => each.share || []))].sort();
  const names = useMemo(() => (finding === null ? [] : namesWith(schedule, finding)), [schedule, finding]);
  return html`
    <header class="headline compact"><h1>Timeline</h1><p class="lead">${summary(schedule, now)}</p></header>
    <${TimePatterns} />
    <div class="tl-tools" role="toolbar" aria-label="Timeline">
      <span class="tl-group">
        <button type="button" aria-label="Earlier" title="Earlier (Shift ←)" onClick=${() => show(panned(period, -0.5))}>←</button>
        <button type="button" aria-pressed=${period.follows} title="Keep the present in view" onClick=${() => show(following(period, now))}>Follow now</button>
        <button type="button" aria-label="Later" title="Later (Shift →)" onClick=${() => show(panned(period, 0.5))}>→</button></span>
      <span class="tl-group">
        <button type="button" aria-label="Zoom out" title="Zoom out (−)" onClick=${() => zoom(ZOOM)}>−</button>
        <button type="button" title="Show all that is near (0)" onClick=${() => go({ before: "", after: "", from: "", to: "" })}>Fit</button>
        <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick=${() => zoom(1 / ZOOM)}>+</button></span>
      <label class="tl-find"><span class="hidden">Focus a job</span><input id="filter" type="search" list="tl-jobs" placeholder="Focus a job" autocomplete="off" spellcheck="false" value=${finding ?? query.job ?? ""}
        onFocus=${(/** @type {any} */ event) => setFinding(event.target.value)} onInput=${(/** @type {any} */ event) => setFinding(event.target.value)}
        onChange=${(/** @type {any} */ event) => (setFinding(null), onJob(event.target.value.trim()))} onBlur=${() => setFinding(null)} /><datalist id="tl-jobs">${names.map((name) => html`<option key=${name} value=${name} />`)}</datalist></label>
      <button type="button" class="tl-table" aria-pressed=${query.view === "table"} onClick=${() => go({ view: query.view === "table" ? "" : "table" })}>Table</button>
    </div>
    ${query.view === "table" ? html`<section aria-label="Table"><${TimeTable} schedule=${schedule} from=${period.from} to=${period.to} job=${query.job ?? ""} now=${now} /></section>` : html`
    <section class=${moving ? "tl moving" : "tl"} aria-label="Chart" aria-describedby="tl-help" ref=${element} ...${{ onKeyDown, onFocusIn, onPointerDown, onPointerMove, onPointerUp, onClick, onWheel }} onFocusOut=${() => setOver(null)} onPointerLeave=${() => setOver(null)}>
      <div class="tl-row tl-head"><span class="muted">${counted(lanes.length, "pool")}</span><${Axis} view=${view} now=${now} /></div>
      ${lanes.length === 0 && html`<${Empty}>There are no pools. <code>trainmaster pools set</code> makes one.<//>`}
      ${lanes.map((/** @type {any} */ each, /** @type {number} */ number) => html`<div class="tl-row" key=${each.pool.name}>
        <${LaneName} pool=${each.pool} />
        <${LaneChart} lane=${each} bars=${bars[number]} view=${view} now=${at} current=${first} touches=${focus?.touches ?? null} past=${step(Date.parse(schedule.pastFrom))} /></div>`)}
      ${over && html`<${Card} ...${over} now=${now} />`}
    </section>
    <div class="tl-foot"><${TimeLegend} shares=${shares} kinds=${kinds} />
      <span class="muted">${[merged ? `${merged} short intervals are merged` : "", schedule.more ? "further jobs wait without a planned start" : ""].filter(Boolean).join("; ")}</span></div>`}
    ${focus && html`<${Story} name=${query.job} job=${why} chapters=${focus.chapters} now=${now} onJob=${onJob} />`}
    <p class="hidden" id="tl-help">Arrow keys go to other bars, Enter focuses a job, plus and minus zoom, Shift with arrows moves in time, 0 fits.</p>`;
}

/** Return names of jobs that contain a text, as many as a list of proposals shows. @param {import("../lib/types.js").Schedule} schedule @param {string} text */
const namesWith = ({ pools }, text) =>
  [...new Set(pools.flatMap((pool) => pool.intervals.flatMap((each) => each.jobName ?? [])))].filter((name) => name.includes(text.trim())).sort().slice(0, MAX_NAMES);

/** @param {{pool: import("../lib/types.js").SchedulePool}} props */
const LaneName = ({ pool }) => html`<div class="tl-name-of"><h2>${pool.name}</h2>
  <span class="muted">${[pool.cap === null ? "no pool now" : counted(pool.cap, "unit"), pool.kind && pool.kind !== "on-demand" ? pool.kind.replace("-", " ") : "", pool.draining ? "draining" : "", pool.leftOut ? `${pool.leftOut} further away` : ""].filter(Boolean).join(" · ")}</span></div>`;
