// The console's page: its frame, its addresses, and the stream that feeds the page in view.

import * as api from "./lib/api.js";
import { html, render, useEffect, useRef, useState } from "./lib/html.js";
import { listen } from "./lib/keys.js";
import { parseRoute } from "./lib/route.js";
import { keep, kept } from "./lib/store.js";
import { watch } from "./lib/stream.js";
import { duration, HOUR, seconds } from "./lib/time.js";
import { person } from "./lib/words.js";
import * as audit from "./pages/audit.js";
import * as images from "./pages/images.js";
import * as job from "./pages/job.js";
import * as now_ from "./pages/now.js";
import * as plan from "./pages/plan.js";
import * as pools from "./pages/pools.js";
import * as queue from "./pages/queue.js";
import * as reports from "./pages/reports.js";
import * as settings from "./pages/settings.js";
import * as shares from "./pages/shares.js";
import * as timeline from "./pages/timeline.js";
import { Patterns } from "./parts/bars.js";
import { Help, Palette } from "./parts/help.js";

/** @typedef {import("./lib/types.js").Reading} Reading */

/** @type {Record<string, any>} */
const PAGES = { now: now_, queue, timeline, pools, plan, job, shares, images, reports, settings, audit };
const LINKS = [
  ["now", "Now"],
  ["queue", "Queue"],
  ["timeline", "Timeline"],
  ["pools", "Pools"],
  ["plan", "Plan"],
  ["shares", "Shares"],
  ["images", "Image jobs"],
  ["reports", "Reports"],
  ["settings", "Settings"],
  ["audit", "Audit"],
];
const THEMES = ["auto", "light", "dark"];
const STALE = 15_000;
const TICK = 5_000;
const NEWS = 12_000;

/** Return a value that follows the address. */
function useRoute() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return parseRoute(hash);
}

/** Return the time, which moves every few seconds. */
function useNow() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/**
 * Return the newest results of the reads, and when the last good one came. Results for another address of the same `steady` page
 * stay until the new ones come.
 * @param {string[]} reads @param {string} steady
 */
function useReadings(reads, steady) {
  const key = reads.join("\n");
  const [state, setState] = useState({ key, steady, readings: /** @type {Reading[]} */ ([]), connected: true, good: Date.now() });
  useEffect(() => !reads.length ? undefined : watch(reads, (readings, connected) =>
    setState((before) => ({ key, steady, readings: filled(readings, steady && before.steady === steady ? before.readings : []), connected, good: connected && !readings.some((each) => each.error) ? Date.now() : before.good }))), [key]);
  return state.key === key || (steady && state.steady === steady) ? state : { ...state, readings: [] };
}

/** Return readings with earlier values where there is none yet. @param {Reading[]} readings @param {Reading[]} before */
const filled = (readings, before) => readings.map((each, number) => (each.value === undefined ? { ...each, value: before[number]?.value } : each));

function App() {
  const route = useRoute();
  const now = useNow();
  const page = PAGES[route.page] ?? PAGES.now;
  const reads = page.reads(route);
  const { readings, connected, good } = useReadings(reads, page.steady ? route.page : "");
  const [session, setSession] = useState(/** @type {any} */ ({}));
  const [shown, setShown] = useState("");
  const [keys, setKeys] = useState(kept("keys", "on") === "on");
  const [news, setNews] = useState("");
  const [paths, setPaths] = useState(/** @type {Record<string, any>} */ ({}));
  useEffect(() => {
    const timer = setTimeout(() => setNews(""), NEWS);
    return () => clearTimeout(timer);
  }, [news]);
  const values = readings.map((each) => each.value);
  const ready = readings.length > 0 && values.slice(0, page.needed).every((value) => value !== undefined);
  const last = useRef({ route, values });
  if (ready) last.current = { route, values };
  // While other filters load, the page keeps what it shows, and what is typed into its fields.
  const shownPage = ready || (last.current.values.length > 0 && last.current.route.page === route.page && last.current.route.name === route.name) ? last.current : null;
  const problem = readings.find((each) => each.error)?.error ?? null;
  useEffect(() => { api.session().then(setSession, () => undefined); }, [session.arn ? now - (now % 60_000) : now]);
  useEffect(() => { if (ready) api.apiDocument().then((document) => setPaths(document.paths), () => undefined); }, [ready && !paths["/jobs"]]);
  useEffect(() => { document.title = `${page.title(route)} · Trainmaster`; }, [route.page, route.name]);
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) document.getElementById("main")?.focus({ preventScroll: true });
    first.current = false;
    scrollTo(0, 0);
  }, [route.page, route.name]);
  useEffect(() => listen({ enabled: () => kept("keys", "on") === "on", help: () => setShown("help"), palette: () => setShown("palette") }), []);
  const onKeys = (/** @type {boolean} */ on) => { keep("keys", on ? "on" : "off"); setKeys(on); };
  const names = [...new Set(values.flatMap((value) => value?.jobs ?? []).map((each) => each.jobName))];
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the page</a>
    <${Patterns} />
    <${Bar} route=${route} paths=${paths} session=${session} now=${now} asOf=${readings[0]?.asOf ?? null} onHelp=${() => setShown("help")} />
    <${Banner} problem=${problem} connected=${connected} stale=${now - good > STALE} asOf=${readings[0]?.asOf ?? null} known=${ready} />
    <main id="main" tabindex="-1" aria-busy=${!ready}>
      ${shownPage
        ? html`<${page.View} key=${route.page + route.name} ...${{ ...shownPage, now, announce: setNews }} readOnly=${Boolean(session.readOnly)} region=${session.region ?? null} />`
        : html`<header class="headline"><h1>${page.title(route)}</h1><p class="lead muted">${!reads.length ? "This is no name of a job." : problem ? "There is nothing to show." : "Asking the queue …"}</p></header>`}
    </main>
    <div class="hidden" role="status" aria-live="polite">${news}</div>
    ${news && html`<section class="toast" aria-label="Last change"><span>${news}</span><button type="button" class="plain" onClick=${() => setNews("")}>Dismiss</button></section>`}
    ${shown === "help" && html`<${Help} enabled=${keys} onEnabled=${onKeys} onClose=${() => setShown("")} />`}
    ${shown === "palette" && html`<${Palette} names=${names} onClose=${() => setShown("")} />`}`;
}

/** @param {{route: any, paths: Record<string, any>, session: any, now: number, asOf: string | null, onHelp: () => void}} props */
const Bar = ({ route, paths, session, now, asOf, onHelp }) => html`<header class="bar">
  <a class="brand" href="#/now"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 6h16M4 12h10M4 18h13" /></svg>Trainmaster</a>
  <nav aria-label="Pages">${LINKS.filter(([page]) => !PAGES[page].needs || paths[PAGES[page].needs]).map(([page, text]) => html`<a key=${page} href=${`#/${page}`} aria-current=${route.page === page ? "page" : undefined}>${text}</a>`)}</nav>
  <div class="who">
    ${session.readOnly && html`<span class="badge">read only</span>`}
    ${asOf && html`<span class="muted">as of ${seconds(asOf)}</span>`}
    ${session.region && html`<span class="muted">${session.region}</span>`}
    ${session.arn && html`<span title=${session.arn}>${person(session.arn)}</span>`}
    ${session.expiresAt && html`<span class=${Date.parse(session.expiresAt) - now < HOUR / 4 ? "warn" : "muted"}>${expiry(session.expiresAt, now)}</span>`}
    <${Theme} />
    <button type="button" class="plain" aria-label="Keyboard help" onClick=${onHelp}>?</button>
  </div>
</header>`;

/** @param {string} at @param {number} now */
const expiry = (at, now) => (Date.parse(at) > now ? `signed in for ${duration(Date.parse(at) - now)}` : "credentials have expired");

function Theme() {
  const [theme, setTheme] = useState(kept("theme", "auto"));
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    keep("theme", theme);
  }, [theme]);
  return html`<label class="theme"><span class="hidden">Theme</span><select value=${theme} onChange=${(/** @type {any} */ event) => setTheme(event.target.value)}>
    ${THEMES.map((each) => html`<option key=${each} value=${each} selected=${each === theme}>${each}</option>`)}</select></label>`;
}

/** @param {{problem: any, connected: boolean, stale: boolean, asOf: string | null, known: boolean}} props */
function Banner({ problem, connected, stale, asOf, known }) {
  if (!problem && !stale) return null;
  const shown = known && asOf ? ` Shown as of ${seconds(asOf)}.` : "";
  const text = problem ? [problem.message, problem.hint].filter(Boolean).join(" ")
    : connected ? "The queue does not answer." : "The console does not answer. Is `trainmaster console` still running?";
  return html`<div class="banner" role="alert">${text}${shown}</div>`;
}

const root = /** @type {Element} */ (document.getElementById("app"));
root.replaceChildren(); // what index.html paints until the modules are here
render(html`<${App} />`, root);
