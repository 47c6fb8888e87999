// The Timeline's drawing: one SVG for the axis and one for each pool, from the bars of views/timeline.js.

import { html, memo } from "../lib/html.js";
import { clock, HOUR } from "../lib/time.js";
import { axis } from "../views/period.js";
import { KINDS, labelOf, place } from "../views/timeline.js";
import { tint } from "./small.js";

/** @typedef {import("../views/timeline.js").Bar} Bar */
/** @typedef {import("../views/timeline.js").Lane} Lane */
/** @typedef {import("../views/timeline.js").Rect} Rect */
/** @typedef {import("../views/timeline.js").View} View */

const TALLEST = 24;
const LANE = 168;
const AXIS = 30;
const LETTER = 6.5;
/** Marks of how an attempt ended. @type {Record<string, string>} */
const ENDS = { failed: "✕", preempted: "↺", resized: "⇄", stopped: "■", cancelled: "–" };

/** Patterns of running and planned bars in the color of each share. */
export const TimePatterns = () => html`<svg class="patterns" aria-hidden="true" width="0" height="0"><defs>
  ${Array.from({ length: 8 }, (_, number) => html`
    <pattern key=${`r${number}`} id=${`runs-tint${number}`} class=${`tint${number}`} width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect width="7" height="7" class="soft" /><rect width="2.6" height="7" class="strong" /></pattern>
    <pattern key=${`p${number}`} id=${`planned-tint${number}`} class=${`tint${number}`} width="6" height="6" patternUnits="userSpaceOnUse">
      <rect width="6" height="6" class="faint" /><circle cx="3" cy="3" r="0.9" class="strong" /></pattern>`)}
</defs></svg>`;

/** The axis, with the present. @param {{view: View, now: number}} props */
export function Axis({ view, now }) {
  const here = place(view)(now);
  const shown = here >= 0 && here <= view.width;
  return html`<svg class="tl-axis" width=${view.width} height=${AXIS} aria-hidden="true">
    ${axis(view).map(({ at, x, label, major }) => html`<g key=${at} class=${major ? "major" : ""}>
      <line x1=${x} x2=${x} y1=${AXIS - 6} y2=${AXIS} class="tl-grid" />
      ${x > 18 && x < view.width - 18 && (!shown || Math.abs(x - here) > 66) && html`<text x=${x} y="17" text-anchor="middle">${label}</text>`}</g>`)}
    ${shown && html`<g class="tl-here"><rect x=${pill(here, view)} y="4" width="78" height="18" rx="9" /><text x=${pill(here, view) + 39} y="17" text-anchor="middle">now ${clock(new Date(now).toISOString(), now)}</text>
      <line x1=${here} x2=${here} y1="22" y2=${AXIS} /></g>`}
  </svg>`;
}

/** @param {number} here @param {View} view */
const pill = (here, view) => Math.min(view.width - 79, Math.max(1, here - 39));

/** Return the height of one unit of a lane. @param {number} rows */
const unitOf = (rows) => Math.min(TALLEST, LANE / rows);

/**
 * A lane group: its units stacked from below. It is drawn again only when its bars, the view or the focus change.
 */
export const LaneChart = memo((/** @type {{lane: Lane, bars: Bar[], view: View, now: number, current: string, touches: Set<string> | null, past: number}} */ props) => {
  const { lane, bars, view, now, current, touches, past } = props;
  const unit = unitOf(lane.rows);
  const height = Math.round(lane.rows * unit);
  const at = place(view);
  const cap = lane.pool.cap;
  const here = at(now);
  return html`<svg class="tl-lane" width=${view.width} height=${height} role="group" aria-label=${`${lane.pool.name}, ${bars.length} bars`}>
    <rect width=${view.width} height=${height} class="tl-ground" />
    ${here < view.width && html`<rect x=${Math.max(0, here)} width=${view.width - Math.max(0, here)} height=${height} class="tl-future" />`}
    ${past > view.from && html`<rect width=${Math.max(0, at(past))} height=${height} class="tl-unknown"><title>Not all attempts before ${clock(new Date(past).toISOString(), now)} are shown.</title></rect>`}
    ${unit >= 7 && Array.from({ length: lane.rows - 1 }, (_, row) => html`<line key=${row} x1="0" x2=${view.width} y1=${(row + 1) * unit} y2=${(row + 1) * unit} class="tl-unit" />`)}
    ${axis(view).map(({ at: time, x, major }) => html`<line key=${time} x1=${x} x2=${x} y1="0" y2=${height} class=${major ? "tl-grid major" : "tl-grid"} />`)}
    ${lane.closed.map((each) => html`<g key=${each.from} class="tl-closed"><rect x=${at(each.begins)} width=${Math.max(1, at(each.ends) - at(each.begins))} height=${height}><title>Capacity that is not usable from ${clock(each.from, now)}${each.until ? ` to ${clock(each.until, now)}` : ""}</title></rect>
      ${each.begins > now && html`<line x1=${at(each.begins)} x2=${at(each.begins)} y1="0" y2=${height} />`}</g>`)}
    ${cap !== null && lane.rows > cap && html`<line x1="0" x2=${view.width} y1=${height - cap * unit} y2=${height - cap * unit} class="tl-cap"><title>The cap is ${cap}.</title></line>`}
    ${bars.map((bar) => html`<${Shape} key=${bar.id} ...${{ bar, unit, height, width: view.width }} hour=${Math.floor(now / HOUR) * HOUR} first=${bar.id === current}
      dim=${touches !== null && !bar.jobs.some((each) => touches.has(each))} />`)}
    ${bars.map((bar) => whiskers(bar, unit, height, touches))}
    ${here >= 0 && here <= view.width && html`<line x1=${here} x2=${here} y1="0" y2=${height} class="tl-now" />`}
  </svg>`;
});

/** A bar; it is drawn again only when it changes. */
const Shape = memo((/** @type {{bar: Bar, unit: number, height: number, width: number, hour: number, first: boolean, dim: boolean}} */ props) => {
  const { bar, unit, height, width, hour, first, dim } = props;
  return html`<g data-bar=${bar.id} role="img" tabindex=${first ? 0 : -1} aria-label=${labelOf(bar, hour)} class=${`tl-bar ${bar.kind} ${bar.share ? tint(bar.share) : "tint-none"} ${dim ? "dim" : ""}`}>
    ${bar.kind === "merged" ? html`<path class="body" d=${outline(bar.rects, unit, height)} />` : bar.rects.map((rect, number) => box(bar, rect, unit, height, width, number === 0))}</g>`;
});

/** Return a number as short as a screen needs it. @param {number} value */
const short = (value) => Math.round(value * 10) / 10;

/** Return one path around all rows of a merged bar: it may have many. @param {Rect[]} rects @param {number} unit @param {number} height */
const outline = (rects, unit, height) => rects.map(({ x, width, low, units }) =>
  `M${short(x)} ${short(height - (low + units) * unit)}h${short(width)}v${short(units * unit)}h${short(-width)}z`).join("");

/** The rows of a bar: what has run in one look, what is expected in another. @param {Bar} bar @param {Rect} rect @param {number} unit @param {number} height @param {number} right the end of the chart @param {boolean} named */
function box(bar, rect, unit, height, right, named) {
  const inset = unit * rect.units > 5 ? 1 : 0;
  const y = height - (rect.low + rect.units) * unit + inset;
  const tall = Math.max(1, rect.units * unit - 2 * inset);
  const width = Math.max(1.5, rect.width - (rect.width > 6 ? 1 : 0));
  const split = bar.split === null ? null : Math.min(rect.x + width, Math.max(rect.x, bar.split));
  const round = Math.min(4, tall / 3, width / 3);
  const look = bar.share ? tint(bar.share) : "";
  const fill = look && ["running", "planned"].includes(bar.kind) ? `url(#${bar.kind === "running" ? "runs" : "planned"}-${look})` : undefined;
  const seen = Math.min(rect.x + width, right) - Math.max(rect.x, 0);
  const inner = { x: short(rect.x + 0.5), y: short(y + 0.5), width: short(Math.max(0.5, width - 1)), height: short(Math.max(0.5, tall - 1)), rx: short(round) };
  const body = { x: short(rect.x), y: short(y), width: short(width), height: short(tall), rx: short(round) };
  return html`<rect class="body" ...${bar.kind === "past" ? inner : body} fill=${fill} />
    ${split !== null && split > rect.x && html`<rect class="done" ...${body} width=${short(split - rect.x)} />`}
    ${bar.kind !== "past" && html`<rect class="edge" ...${inner} />`}
    ${named && tall >= 12 && label(bar, Math.max(rect.x, 0), bar.start ? y + Math.max(8, tall / 2 - 6) : y + tall / 2, seen)}
    ${tall >= 12 && seen >= 26 && ENDS[bar.outcome] && rect.x + width <= right && html`<text class="tl-end" x=${rect.x + width - 9} y=${y + tall / 2 + 4} text-anchor="middle">${ENDS[bar.outcome]}</text>`}`;
}

/** @param {Bar} bar @param {number} x @param {number} y @param {number} width */
function label(bar, x, y, width) {
  const letters = Math.floor((width - (ENDS[bar.outcome] ? 26 : 12)) / LETTER);
  const name = bar.job || (bar.count > 1 ? `${bar.count}` : KINDS[bar.kind] ?? "");
  if (letters < Math.min(4, name.length)) return null;
  return html`<text class="tl-name" x=${x + 6} y=${y + 4}>${name.length > letters ? `${name.slice(0, letters - 1)}…` : name}</text>`;
}

/** The range of a planned start; also that of the end for a job in focus. @param {Bar} bar @param {number} unit @param {number} height @param {Set<string> | null} touches */
function whiskers(bar, unit, height, touches) {
  const rect = bar.rects[0];
  const tall = rect.units * unit;
  const y = height - rect.low * unit - Math.min(tall < 26 ? 5 : 9, tall / 2); // below the name
  const focused = touches !== null && bar.jobs.some((each) => touches.has(each));
  const shown = [bar.start, focused ? bar.end : null].filter((each) => each && each.high - each.low >= 4);
  return shown.map((each) => each && html`<g key=${`w${bar.id}${each.at}`} class=${`tl-whisker ${touches && !focused ? "dim" : ""}`} aria-hidden="true">
    ${["under", "over"].map((layer) => html`<path key=${layer} class=${layer} d=${`M${each.low} ${y - 4}V${y + 4}M${each.low} ${y}H${each.high}M${each.high} ${y - 4}V${y + 4}`} />`)}
    <circle cx=${each.at} cy=${y} r="3" /></g>`);
}
