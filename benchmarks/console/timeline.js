// Makes `timeline`, which draws the page Timeline with many intervals in the console's own page; `browse.py` measures each step.
async () => {
  const { html, render } = await import("./lib/html.js");
  const { View } = await import("./pages/timeline.js");
  const now = Date.now();
  const iso = (minutes) => new Date(now + minutes * 60_000).toISOString();
  const none = { jobState: null, fromLow: null, fromHigh: null, untilLow: null, untilHigh: null };
  const interval = (pool, number) => {
    const planned = number % 10 === 0;
    const from = (planned ? -1 : 1) * (-1_400 + ((number * 7) % 1_390) + pool);
    const job = { jobName: `job-${pool}-${number}`, share: "abcdefgh"[number % 8], priority: 0, units: 1 + (number % 4) };
    return { ...none, ...job, attempt: 1, outcome: "completed", from: iso(from), until: iso(from + 20), kind: planned ? "planned" : "past" };
  };
  const list = (count, make) => Array.from({ length: count }, (_, number) => make(number));
  const pool = (number) => ({ kind: "on-demand", instanceType: "t", cap: 64, draining: false, leftOut: 0, name: `pool-${number}`, intervals: list(1_000, (each) => interval(number, each)) });
  let schedule = { at: iso(0), from: iso(-1_440), to: iso(2_880), pastFrom: iso(-1_440), more: false, pools: list(4, pool) };
  let root = document.createElement("main");
  const drawn = (query, at) => {
    render(html`<${View} ...${{ values: [schedule], now: at, route: { page: "timeline", name: "", query } }} />`, root);
    root.getBoundingClientRect();
    return new Promise((done) => setTimeout(done, 100)); // effects, and the width of the chart
  };
  const changed = () => {
    const [first, ...others] = schedule.pools;
    const intervals = first.intervals.map((each, number) => (number === 500 ? { ...each, share: each.share === "x" ? "y" : "x" } : each));
    schedule = { ...schedule, pools: [{ ...first, intervals }, ...others] };
  };
  let after = 1_000;
  globalThis.timeline = {
    first: () => {
      root = document.body.appendChild(document.createElement("main"));
      return drawn({}, now);
    },
    close: () => {
      render(null, root);
      root.remove();
    },
    update: () => (changed(), drawn({}, now + 2_000)),
    tick: () => drawn({}, now + 5_000),
    zoom: () => drawn({ before: "1400", after: String((after += 1)) }, now + 5_000),
    size: () => [root.querySelectorAll("[data-bar]").length, root.querySelectorAll("*").length],
  };
}
