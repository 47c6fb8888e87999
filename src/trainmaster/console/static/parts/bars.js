// Bars as SVG, drawn from the marks of views/scale.js.

import { html } from "../lib/html.js";
import { rangeText } from "../views/queue.js";
import { startRange } from "../views/scale.js";
import { tint } from "./small.js";

/** @typedef {import("../views/scale.js").Segment} Segment */

/** Patterns for what is not used: they tell states apart without color. */
export const Patterns = () => html`<svg class="patterns" aria-hidden="true" width="0" height="0">
  <defs>
    <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect width="6" height="6" class="fill-surface" /><rect width="2.4" height="6" class="fill-held" />
    </pattern>
    <pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
      <rect width="2.6" height="6" class="fill-surface" />
    </pattern>
    <pattern id="dots" width="5" height="5" patternUnits="userSpaceOnUse">
      <rect width="5" height="5" class="fill-surface" /><circle cx="2.5" cy="2.5" r="1.2" class="fill-quiet" />
    </pattern>
    <pattern id="grid" width="5" height="5" patternUnits="userSpaceOnUse">
      <rect width="5" height="5" class="fill-surface" /><path d="M0 0H5M0 0V5" class="stroke-quiet" />
    </pattern>
  </defs>
</svg>`;

/** @type {Record<string, string>} */
const KINDS = { used: "used", external: "outside the queue", held: "reserved", warm: "warm", free: "free", closed: "closed" };

/** @param {Segment} segment */
const nameOf = ({ kind, share, units }) => `${units} ${share ? `used by ${share}` : KINDS[kind]}`;

/** The bar of a pool. @param {{segments: Segment[], label: string}} props */
export const PoolBar = ({ segments, label }) => html`
  <svg class="poolbar" role="img" aria-label=${`${label}: ${segments.map(nameOf).join(", ")}`}>
    ${segments.map((each) => html`<rect key=${each.kind + each.share} x=${`${each.x}%`} width=${`${each.width}%`} height="100%"
      class=${each.kind === "used" ? (each.share ? tint(each.share) : "fill-quiet") : `seg-${each.kind}`}><title>${nameOf(each)}</title></rect>`)}
    ${dividers(segments).map((x) => html`<line x1=${`${x}%`} x2=${`${x}%`} y1="0" y2="100%" class="divider" />`)}
  </svg>`;

/** Return lines between instances, where they are few enough to count. @param {Segment[]} segments */
function dividers(segments) {
  const total = segments.reduce((sum, each) => sum + each.units, 0);
  return total > 40 ? segments.slice(1).map((each) => each.x) : Array.from({ length: total - 1 }, (_, number) => (100 * (number + 1)) / total);
}

/** What the parts of the bars mean. @param {{all: Segment[][], shares: string[]}} props */
export function Legend({ all, shares }) {
  const kinds = [...new Set(all.flat().map((each) => each.kind))].filter((kind) => kind !== "used");
  const used = shares.filter((share) => all.flat().some((each) => each.share === share));
  return html`<ul class="legend" aria-label="Legend">
    ${used.map((share) => html`<li key=${share}>${swatch(tint(share))}${share}</li>`)}
    ${kinds.map((kind) => html`<li key=${`kind ${kind}`}>${swatch(`seg-${kind}`)}${KINDS[kind]}</li>`)}
  </ul>`;
}

/** @param {string} look */
const swatch = (look) => html`<svg class="swatch" aria-hidden="true"><rect width="100%" height="100%" rx="2" class=${look} /></svg>`;

/** The range of a start on the axis of the page. @param {{job: import("../lib/types.js").Job, now: number, span: number}} props */
export function RangeBar({ job, now, span }) {
  const range = startRange(job, now, span);
  if (!range) return null;
  return html`<svg class="rangebar" role="img" aria-label=${rangeText(job, now)}>
    <title>${rangeText(job, now)}</title>
    <line x1="0" x2="100%" y1="50%" y2="50%" class="axis" />
    <rect x=${`${range.x}%`} width=${`${range.width}%`} y="30%" height="40%" rx="2" class="range" />
    <rect x=${`${Math.min(99, range.tick)}%`} width="2" y="10%" height="80%" class="tick" />
  </svg>`;
}
