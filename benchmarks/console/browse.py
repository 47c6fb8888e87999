"""Measures the console's pages in Chromium; a program of `.venv-browser`, started by `benchmarks.console.measuring`.

Arguments: the path of Chromium and the queue's time. For each page it reads an address from standard input. It prints
"shown" once the page has its data, and then the page's figures, each as a line of JSON.
"""

from __future__ import annotations

import json
import statistics
import sys

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

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
  bytes: performance.getEntriesByType('resource').reduce((sum, each) => sum + each.encodedBodySize, 0),
})"""
ROWS = "() => document.querySelectorAll('tbody tr, .next li, .events li, .pool').length"


def main(chromium: str, now: str) -> None:
    """Measure one page for each line of standard input."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for line in sys.stdin:
            url, hash_ = line.split()
            print(json.dumps(measured(browser, url, hash_, now)), flush=True)


def measured(browser: Browser, url: str, hash_: str, now: str) -> dict[str, object]:
    """Return the figures of a page: its first load in a fresh browser, and its updates."""
    context = browser.new_context(viewport={"width": 1320, "height": 900})
    context.add_init_script(CLOCK.replace("NOW", json.dumps(now)))
    page = context.new_page()
    page.goto(url)
    page.wait_for_url("**/")
    page.goto(page.url.split("?")[0] + hash_)
    session = context.new_cdp_session(page)
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.send("Performance.enable")
    page.reload()
    page.wait_for_selector("main section", timeout=60_000)
    shown = page.evaluate("performance.now()")
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
        "first_paint_ms": round(paint["first"], 1),
        "shown_ms": round(shown, 1),
        "requests": paint["requests"],
        "kilobytes": round(paint["bytes"] / 1024, 1),
        "first_message_kilobytes": round(first / 1024, 1),
        "update_kilobytes": round(statistics.mean(each["bytes"] for each in told) / 1024, 2),
        "largest_update_kilobytes": round(max(each["bytes"] for each in told) / 1024, 2),
        "update_script_ms": round(1000 * (after["ScriptDuration"] - before["ScriptDuration"]) / len(told), 2),
        "update_ms": round(1000 * (after["TaskDuration"] - before["TaskDuration"]) / len(told), 2),
        "updates": len(told),
        "rows": rows,
    }


def _await_updates(page: Page, count: int) -> None:
    """Wait until the page was told this many times. The page's policy forbids to wait for an expression."""
    while page.evaluate("told.length") < count:
        page.wait_for_timeout(100)


def _seconds(session: CDPSession) -> dict[str, float]:
    """Return for how long the page has worked: in tasks of any kind, and in script."""
    return {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}


if __name__ == "__main__":
    main(*sys.argv[1:])
