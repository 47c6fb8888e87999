"""Measures the console's pages in Chromium; a program of `.venv-browser`, started by `benchmarks.console.measuring`.

Arguments: the path of Chromium and the queue's time. For each page it reads an address from standard input. It prints
"shown" once the page has its data, and then the page's figures, each as a line of JSON. For the page `drawn` it draws a
timeline of 4,000 intervals.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

DRAWN = "drawn"
LOADS = 5
"""Loads of a page; the first one finds no data of it in the console."""
STEPS = ("first", "update", "tick", "zoom")
"""Steps of a round of `timeline.js`."""
ROUNDS = 7
PROCESSOR_TIME = {"timeDomain": "threadTicks"}
"""Durations without the time in which other programs had the processor."""
UPDATES = 12
"""Updates whose script time is measured, after one that is not."""
CLOCK = """
const behind = Date.now() - Date.parse(NOW);
const Real = Date;
globalThis.Date = class extends Real {
  constructor(...given) { given.length ? super(...given) : super(Real.now() - behind); }
  static now() { return Real.now() - behind; }
};
const Source = EventSource;
globalThis.told = [];
globalThis.EventSource = class extends Source {
  set onmessage(act) {
    super.onmessage = (event) => {
      const start = performance.now();
      act(event);
      globalThis.told.push({bytes: event.data.length, script: performance.now() - start, at: start});
    };
  }
};
"""
PAINT = """() => ({
  first: performance.getEntriesByType('paint').find((each) => each.name === 'first-contentful-paint')?.startTime,
  requests: performance.getEntriesByType('resource').length,
})"""
ROWS = "() => document.querySelectorAll('tbody tr, .next li, .events li, .pool').length"


def main(chromium: str, now: str) -> None:
    """Measure one page for each line of standard input."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for line in sys.stdin:
            url, hash_ = line.split()
            figures = drawn(browser, url) if hash_ == DRAWN else measured(browser, url, hash_, now)
            print(json.dumps(figures), flush=True)


def measured(browser: Browser, url: str, hash_: str, now: str) -> dict[str, object]:
    """Return the figures of a page: its loads in a fresh browser, without the browser's cache, and its updates."""
    context = browser.new_context(viewport={"width": 1320, "height": 900})
    context.add_init_script(CLOCK.replace("NOW", json.dumps(now)))
    context.request.get(url)  # signs in
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.send("Performance.enable", PROCESSOR_TIME)
    page.goto(url.partition("?")[0] + hash_)
    loads = [_loaded(page)]
    for _ in range(LOADS - 1):
        page.reload()
        loads.append(_loaded(page))
    paint = page.evaluate(PAINT)
    print(json.dumps("shown"), flush=True)
    first = page.evaluate("told.reduce((sum, each) => sum + each.bytes, 0)")
    _await_updates(page, 1)
    begun, before = page.evaluate("told.length"), _seconds(session)
    _await_updates(page, begun + UPDATES)
    after, told = _seconds(session), page.evaluate(f"told.slice({begun})")
    rows = page.evaluate(ROWS)
    context.close()
    return {
        "page": hash_,
        "first_paint_ms": round(statistics.median(first for first, _ in loads), 1),
        "shown_ms": round(loads[0][1], 1),
        "shown_again_ms": round(statistics.median(shown for _, shown in loads[1:]), 1),
        "requests": paint["requests"],
        "first_message_kilobytes": round(first / 1024, 1),
        "update_kilobytes": round(statistics.mean(each["bytes"] for each in told) / 1024, 2),
        "largest_update_kilobytes": round(max(each["bytes"] for each in told) / 1024, 2),
        "update_script_ms": round(1000 * (after["ScriptDuration"] - before["ScriptDuration"]) / len(told), 2),
        "update_ms": round(1000 * (after["TaskDuration"] - before["TaskDuration"]) / len(told), 2),
        "updates": len(told),
        "rows": rows,
    }


def drawn(browser: Browser, url: str) -> dict[str, object]:
    """Return the figures of a timeline with 4,000 intervals: medians of rounds, in milliseconds of the processor."""
    context = browser.new_context(viewport={"width": 1320, "height": 900})
    context.request.get(url)
    page = context.new_page()
    page.goto(url.partition("?")[0] + "#/job/a.b")
    page.wait_for_selector("main h1")
    session = context.new_cdp_session(page)
    session.send("Performance.enable", PROCESSOR_TIME)
    page.evaluate((Path(__file__).parent / "timeline.js").read_text())
    found: dict[str, list[float]] = {step: [] for step in STEPS}
    for _ in range(ROUNDS):
        for step in STEPS:
            before = _seconds(session)["TaskDuration"]
            page.evaluate("step => timeline[step]()", step)
            found[step].append(1000 * (_seconds(session)["TaskDuration"] - before))
        bars, nodes = page.evaluate("timeline.size()")
        page.evaluate("timeline.close()")
    context.close()
    medians = {f"{step}_ms": round(statistics.median(times), 1) for step, times in found.items()}
    return {"page": DRAWN, **medians, "bars": bars, "nodes": nodes}


def _loaded(page: Page) -> tuple[float, float]:
    """Return when a page was painted first, and when it had its data, in milliseconds since its navigation."""
    page.wait_for_selector("main section", timeout=60_000)
    return page.evaluate(PAINT)["first"], page.evaluate("performance.now()")


def _await_updates(page: Page, count: int) -> None:
    """Wait until the page was told this many times. The page's policy forbids to wait for an expression."""
    while page.evaluate("told.length") < count:
        page.wait_for_timeout(100)


def _seconds(session: CDPSession) -> dict[str, float]:
    """Return for how long the page has worked: in tasks of any kind, and in script."""
    return {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}


if __name__ == "__main__":
    main(*sys.argv[1:])
