"""The page Timeline in Chromium: its bars, keyboard, pointer, one job's story, the table, and the number of bars."""

from __future__ import annotations

import re

import pytest
from console_browser import axe_violations, go
from playwright.sync_api import expect

KINDS = "all => [...new Set(all.map(each => each.classList[1]))].sort()"


def bar(page, job):
    return page.get_by_role("img", name=re.compile(f"^{job}, share")).first


def hash_of(page):
    return page.evaluate("location.hash")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("query", ["", "?job=vit-large-sweep-3", "?view=table"])
def test_axe_finds_no_violation_in_the_timeline(open_page, query, scheme):
    page = open_page(f"#/timeline{query}", color_scheme=scheme)
    expect(page.get_by_role("heading", level=1)).to_have_text("Timeline")
    page.wait_for_timeout(300)
    assert axe_violations(page) == []


def test_past_running_and_planned_jobs_are_bars_with_labels(open_page):
    page = open_page("#/timeline")
    assert page.locator("[data-bar]").evaluate_all(KINDS) == ["past", "planned", "running"]
    expect(bar(page, "llm-pretrain-7b")).to_have_attribute("aria-label", re.compile(r"runs on 4 . ml.* since 14:00"))
    expect(bar(page, "llm-sft-7b")).to_have_attribute("aria-label", re.compile(r"expected to start .* \(.* to .*\)"))
    assert page.locator(".tl-whisker").count() >= 3
    expect(page.get_by_role("group", name=re.compile("^ml.p5.48xlarge, "))).to_be_visible()
    assert page.locator(".tl-here text").text_content().startswith("now 16:")


def test_stacked_bars_do_not_cover_each_other(open_page):
    page = open_page("#/timeline")
    covered = page.evaluate(
        """() => [...document.querySelectorAll('.tl-lane')].flatMap(lane => {
          const boxes = [...lane.querySelectorAll('.edge, .past .body')].map(each => each.getBoundingClientRect());
          return boxes.flatMap((one, number) => boxes.slice(number + 1).filter(other =>
            one.left + 2 < other.right && other.left + 2 < one.right &&
            one.top + 1 < other.bottom && other.top + 1 < one.bottom));
        }).length"""
    )
    assert covered == 0


def test_one_job_is_in_focus_with_its_story(open_page):
    page = open_page("#/timeline")
    bar(page, "vit-large-sweep-3").click()
    assert hash_of(page) == "#/timeline?job=vit-large-sweep-3"
    panel = page.get_by_role("region", name=re.compile("^vit-large-sweep-3 was preempted"))
    expect(panel).to_contain_text("was preempted after 1 h 1 min · then started whisper-finetune")
    assert "dim" in bar(page, "embed-1").get_attribute("class")
    assert "dim" not in bar(page, "whisper-finetune").get_attribute("class")
    panel.get_by_role("button", name="whisper-finetune").click()
    expect(page.get_by_role("heading", name=re.compile("^whisper-finetune has been running"))).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name=re.compile("^whisper-finetune has been running"))).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(panel).to_have_count(0)
    assert page.locator(".dim").count() == 0


def test_a_job_is_found_by_its_name(open_page):
    page = open_page("#/timeline")
    page.keyboard.press("/")
    page.keyboard.type("clip-distill")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=re.compile("^clip-distill"))).to_be_visible()
    page.get_by_role("link", name="Open the job").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("clip-distill")


def test_a_name_without_a_job_leaves_the_chart(open_page):
    page = open_page("#/timeline?job=no-such-job")
    expect(page.get_by_text("It has no interval in the period that was read.")).to_be_visible()
    expect(bar(page, "llm-pretrain-7b")).to_be_visible()


def test_the_keyboard_walks_zooms_and_focuses(open_page):
    page = open_page("#/timeline")
    bar(page, "vit-large-sweep-3").focus()
    told = "document.activeElement.getAttribute('aria-label').split(',')[0]"
    page.keyboard.press("ArrowRight")
    after = page.evaluate(told)
    assert after != "vit-large-sweep-3"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(told) == "llm-pretrain-7b"
    page.keyboard.press("Enter")
    assert "job=llm-pretrain-7b" in hash_of(page)
    page.keyboard.press("Escape")
    assert hash_of(page) == "#/timeline"
    assert page.locator("[data-bar][tabindex='0']").count() == 1
    page.keyboard.press("-")
    assert re.search(r"before=\d+", hash_of(page)), "zooming about the present goes on following it"
    page.keyboard.press("Shift+ArrowLeft")
    assert "from=2026-11-21" in hash_of(page)
    page.keyboard.press("0")
    assert hash_of(page) == "#/timeline"


def test_buttons_pan_zoom_and_follow(open_page):
    page = open_page("#/timeline")
    page.get_by_role("button", name="Earlier").click()
    expect(page.get_by_role("button", name="Follow now")).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="Zoom in").click()
    before = hash_of(page)
    page.reload()
    page.wait_for_selector(".tl-lane")
    assert hash_of(page) == before
    page.get_by_role("button", name="Follow now").click()
    expect(page.get_by_role("button", name="Follow now")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".tl-here")).to_be_visible()


def test_dragging_pans_and_does_not_focus(open_page):
    page = open_page("#/timeline")
    box = bar(page, "llm-pretrain-7b").bounding_box()
    page.mouse.move(box["x"] + 90, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 10, box["y"] + 30, steps=5)
    page.mouse.up()
    moved = bar(page, "llm-pretrain-7b").bounding_box()
    assert abs(box["x"] - moved["x"] - 80) < 3
    assert "from=" in hash_of(page)
    assert "job=" not in hash_of(page)


def test_a_period_far_away_is_read_and_the_chart_stays(open_page):
    page = open_page("#/timeline")
    page.evaluate("window.marked = document.querySelector('.tl')")
    with page.expect_request(lambda request: "/events" in request.url and "from%3D2026-11-1" in request.url):
        go(page, "#/timeline?from=2026-11-12T00:00:00Z&to=2026-11-18T00:00:00Z")
    expect(page.locator(".tl-axis")).to_contain_text("Sat 14 Nov")
    expect(page.locator("[data-bar]")).to_have_count(0)
    assert page.evaluate("window.marked === document.querySelector('.tl')")


def test_the_pointer_shows_a_card(open_page):
    page = open_page("#/timeline")
    bar(page, "asr-eval").hover()
    expect(page.locator(".tl-card")).to_contain_text(re.compile(r"runs on 4 . ml\.g5\.2xlarge since 15:00"))


def test_the_table_has_the_same_intervals(open_page):
    page = open_page("#/timeline")
    bars = page.locator("[data-bar]").count()
    page.get_by_role("button", name="Table").click()
    table = page.get_by_role("table", name="Intervals")
    expect(table.get_by_role("row", name=re.compile("llm-sft-7b .*language .*expected 3"))).to_be_visible()
    assert table.locator("tbody tr").count() >= bars
    assert hash_of(page) == "#/timeline?view=table"


def test_the_timeline_follows_the_queue(open_page, server):
    page = open_page("#/timeline")
    server.tell("run 7200")
    expect(page.get_by_role("img", name=re.compile("^segment-everything, .*: runs on 6"))).to_be_visible(timeout=10_000)


DRAW = """async () => {
  const { html, render } = await import('./lib/html.js');
  const { View } = await import('./pages/timeline.js');
  const now = Date.now();
  const iso = minutes => new Date(now + minutes * 60000).toISOString();
  const never = {jobState: null, fromLow: null, fromHigh: null, untilLow: null, untilHigh: null};
  const interval = (pool, number, lasts) => {
    const planned = number % 10 === 0;
    const from = (planned ? -1 : 1) * (-1400 + (number * 7) % 1390 + pool);
    const job = {jobName: `job-${pool}-${number}`, share: 'abcdefgh'[number % 8], priority: 0, units: 1 + number % 4};
    const attempt = {attempt: 1, outcome: 'completed', from: iso(from), until: iso(from + lasts)};
    return {...never, ...job, ...attempt, kind: planned ? 'planned' : 'past'};
  };
  const kind = {kind: 'on-demand', instanceType: 't', cap: 64, draining: false, leftOut: 0};
  const list = (count, make) => Array.from({length: count}, (_, number) => make(number));
  const pool = (number, lasts) =>
    ({...kind, name: `pool-${number}`, intervals: list(1000, each => interval(number, each, lasts))});
  const period = {at: iso(0), from: iso(-1440), to: iso(2880), pastFrom: iso(-1440), more: false};
  const schedule = lasts => ({...period, pools: list(4, number => pool(number, lasts))});
  const root = document.body.appendChild(document.createElement('div'));
  const route = {page: 'timeline', name: '', query: {}};
  render(html`<${View} ...${{values: [schedule(20)], now, route}} />`, root);
  const shown = root.querySelectorAll('[data-bar]').length;
  render(null, root);
  root.remove();
  return shown;
}"""


def test_four_thousand_intervals_are_drawn_as_at_most_two_thousand_bars(open_page):
    assert 300 < open_page("#/timeline").evaluate(DRAW) <= 2_000
