"""The console in Chromium, over a lively queue in memory: pages, actions, keyboard, both themes, and what breaks."""

from __future__ import annotations

import json
import re

import pytest
from console_browser import axe_violations, go, served
from playwright.sync_api import expect

PAGES = [
    "#/now",
    "#/queue",
    "#/queue?state=active",
    "#/queue?state=ended",
    "#/job/llm-pretrain-13b",
    "#/job/vit-large-sweep-3",
    "#/job/llm-pretrain-7b",
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("hash_", PAGES)
def test_axe_finds_no_violation(open_page, hash_, scheme):
    page = open_page(hash_, color_scheme=scheme)
    page.wait_for_timeout(200)
    assert axe_violations(page) == []
    assert page.locator("h1").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_dialogs(open_page, scheme):
    page = open_page("#/queue", color_scheme=scheme)
    page.get_by_label("Select llm-sft-7b").check()
    for opening in (
        lambda: page.get_by_role("button", name="Cancel…").click(),
        lambda: page.get_by_role("button", name="Priority…").click(),
        lambda: page.keyboard.press("Control+k"),
        lambda: page.get_by_role("button", name="Keyboard help").click(),
    ):
        opening()
        page.wait_for_selector("dialog[open]")
        assert axe_violations(page, "dialog") == []
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)


def test_now_tells_the_story_of_the_queue(open_page):
    page = open_page("#/now")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^\d+ jobs run, \d+ wait\.$"))
    bar = page.get_by_role("img", name=re.compile("ml.p5.48xlarge: .*used by language.*used by speech"))
    expect(bar).to_be_visible()
    assert page.locator(".events li").count() >= 5
    page.get_by_role("link", name="llm-pretrain-13b").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("llm-pretrain-13b waits for 8")


def test_the_queue_is_in_its_order_and_filters_are_in_the_address(open_page):
    page = open_page("#/queue")
    places = page.locator("table").first.locator("tbody td:nth-child(2)").all_inner_texts()
    assert places == [str(number + 1) for number in range(len(places))]
    page.get_by_label("Name, share or person").fill("llm")
    expect(page.locator("table").first.locator("tbody tr")).to_have_count(2)
    assert page.evaluate("location.hash") == "#/queue?text=llm"
    page.get_by_role("combobox", name="Share").select_option("vision")
    expect(page.get_by_text("No job matches the filters.")).to_be_visible()
    page.get_by_label("Name, share or person").fill("")
    expect(page.get_by_role("link", name="depth-anything")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="depth-anything")).to_be_visible()
    assert page.get_by_role("combobox", name="Share").input_value() == "vision"


def test_filters_offer_shares_and_pools_without_a_job_on_the_page(open_page):
    page = open_page("#/queue?state=held")
    for label, names in (
        ("Share", ["default", "language", "speech", "vision"]),
        ("Pool", ["ml.g5.2xlarge", "ml.p5.48xlarge"]),
    ):
        expect(page.get_by_role("combobox", name=label).locator("option")).to_have_text(["all", *names])


def test_a_job_says_why_it_waits(open_page):
    page = open_page("#/job/vit-large-sweep-3")
    expect(page.get_by_role("heading", level=1)).to_contain_text("was preempted and waits to resume")
    expect(page.get_by_role("heading", name="In the way")).to_be_visible()
    assert page.get_by_role("table", name="In the way").locator("tbody tr").count() >= 1
    expect(page.get_by_role("img", name=re.compile("^Attempt 1: starting from"))).to_be_visible()
    expect(page.get_by_role("link", name="Training job in SageMaker")).to_have_attribute("rel", "noreferrer")
    page.get_by_text("The whole request").click()
    expect(page.locator("pre")).to_contain_text('"TrainingJobName": "vit-large-sweep-3"')


def test_an_action_shows_what_follows_and_then_its_result(open_page):
    page = open_page("#/queue")
    page.get_by_label("Select reward-model").check()
    page.get_by_role("button", name="Priority…").click()
    page.get_by_label("New priority").fill("40")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Priority 5 becomes 40. It goes ahead of llm-sft-7b.")
    dialog.get_by_role("button", name="Set priority 40").click()
    expect(page.get_by_role("status")).to_contain_text("reward-model is waiting, with priority 40")
    row = page.get_by_role("row", name=re.compile("reward-model"))
    expect(row.locator("td").nth(3)).to_have_text("40")
    expect(page.get_by_role("region", name="Selection")).to_have_count(0)


def test_several_jobs_are_held_and_released_at_once(open_page):
    page = open_page("#/queue")
    for name in ("depth-anything", "llm-pretrain-13b"):
        page.get_by_label(f"Select {name}").check()
    page.get_by_role("button", name="Hold").click()
    page.get_by_role("button", name="Hold 2 jobs").click()
    held = page.get_by_role("table", name="Held")
    expect(held.get_by_role("link", name="depth-anything")).to_be_visible()
    for name in ("depth-anything", "llm-pretrain-13b"):
        held.get_by_label(f"Select {name}").check()
    page.get_by_role("button", name="Release").click()
    page.get_by_role("button", name="Release 2 jobs").click()
    expect(page.get_by_role("table", name="In the queue").get_by_role("link", name="depth-anything")).to_be_visible()


def test_a_job_that_has_ended_has_no_actions(open_page):
    page = open_page("#/job/tokenizer-probe")
    expect(page.get_by_role("heading", level=1)).to_contain_text("is completed")
    assert page.get_by_role("button", name="Cancel…").count() == 0


def test_the_page_follows_the_queue_without_flicker(open_page, server):
    page = open_page("#/now")
    page.evaluate("window.marked = document.querySelector('.pools')")
    server.tell("run 1800")
    expect(page.locator(".bar")).to_contain_text(f"as of {server.now[11:16]}", timeout=10_000)
    assert page.evaluate("window.marked === document.querySelector('.pools')"), "the page was drawn anew"


def test_the_keyboard_reaches_everything(open_page):
    page = open_page("#/now")
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue")
    page.wait_for_selector("tbody tr")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.locator("tbody tr").first.locator("a").inner_text()
    assert page.evaluate("document.activeElement.textContent") == first
    page.keyboard.press("x")
    expect(page.get_by_label(f"Select {first}")).to_be_checked()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.type("g n ?")
    assert page.get_by_role("dialog").count() == 0, "what is typed into a field is text"
    page.get_by_label("Name, share or person").fill("")
    page.locator("tbody tr").first.locator("a").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(first)


def test_the_keyboard_goes_on_where_it_was_after_a_job(open_page):
    page = open_page("#/queue")
    names = page.locator("table").first.locator("tbody a").all_inner_texts()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(names[1])
    expect(page.locator("#main"), "the new page is read from its beginning").to_be_focused()
    page.go_back()
    page.wait_for_selector("tbody tr")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == names[2]


def test_the_focus_returns_when_a_dialog_is_left(open_page):
    page = open_page("#/job/llm-sft-7b")
    page.get_by_role("button", name="Priority…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("document.activeElement.textContent") == "Priority…"


def test_the_identity_is_shown_within_seconds(open_page):
    page = open_page("#/now")
    page.clock.run_for(6_000)
    expect(page.locator(".bar").get_by_text("ada", exact=True)).to_be_visible()


def test_the_palette_goes_to_a_job(open_page):
    page = open_page("#/queue")
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_label("Name").fill("sft")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("llm-sft-7b")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_palette_finds_jobs_that_the_page_does_not_show(open_page):
    page = open_page("#/queue")
    expect(page.get_by_role("link", name="embed-3")).to_have_count(0)
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_label("Name").fill("embed-3")
    page.clock.run_for(400)
    page.get_by_role("dialog").get_by_role("button", name="embed-3").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("embed-3")


def test_shortcuts_of_one_letter_can_be_switched_off(open_page):
    page = open_page("#/now")
    page.keyboard.press("?")
    page.get_by_label("Shortcuts of one letter").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    page.keyboard.press("g")
    page.keyboard.press("q")
    assert page.get_by_role("dialog").count() == 0
    assert page.evaluate("location.hash") == "#/now"
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_have_count(1)


def test_the_theme_can_be_chosen(open_page):
    page = open_page("#/now", color_scheme="light")
    shade = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(shade)
    page.get_by_label("Theme").select_option("dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = page.evaluate(shade)
    assert dark != light
    page.reload()
    page.wait_for_selector("main section")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(shade) == dark


def test_an_outage_is_told_with_the_age_of_what_is_shown(open_page, server):
    page = open_page("#/now")
    server.tell("outage on")
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text(re.compile(r"Could not connect .* Shown as of \d\d:\d\d:\d\d\."))
    expect(page.get_by_role("heading", level=1)).to_contain_text("run")
    server.tell("outage off")
    expect(banner).to_have_count(0)


def test_read_only_shows_everything_and_changes_nothing(open_page):
    with served("--read-only") as reading:
        page = open_page("#/job/llm-sft-7b", on=reading)
        expect(page.get_by_text("read only", exact=True)).to_be_visible()
        expect(page.get_by_role("button", name="Cancel…")).to_be_disabled()
        go(page, "#/queue")
        expect(page.get_by_label("Select llm-sft-7b")).to_be_disabled()
        page.context.close()


def test_nothing_is_asked_of_other_hosts_and_all_addresses_are_relative(open_page):
    page = open_page("#/now")
    seen = []
    page.on("request", lambda request: seen.append(request.url))
    page.reload()
    page.wait_for_selector("main section")
    assert {url.split("/")[2] for url in seen} == {page.url.split("/")[2]}
    links = page.locator("[href], [src]").evaluate_all(
        "all => all.map(one => one.getAttribute('href') ?? one.getAttribute('src'))"
    )
    assert [each for each in links if each.startswith(("/", "http:"))] == []
    assert len(links) > 10


def test_a_hidden_page_watches_nothing(open_page):
    page = open_page("#/now")
    hide = """hidden => {
      Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    opened_ = []
    page.on("request", lambda request: opened_.append(request.url) if "/events" in request.url else None)
    with page.expect_event("requestfailed", lambda request: "/events" in request.url):
        page.evaluate(hide, True)
    assert opened_ == []
    page.evaluate(hide, False)
    page.wait_for_timeout(300)
    assert len(opened_) == 1


def test_the_structure_is_that_of_a_document(open_page):
    page = open_page("#/queue")
    tree = page.locator("main").aria_snapshot()
    assert 'heading "Queue" [level=1]' in tree
    assert 'table "In the queue"' in tree
    assert 'columnheader "Priority"' in tree
    assert json.dumps("Select llm-sft-7b")[1:-1] in tree


def test_a_name_from_the_api_is_text_and_never_markup(open_page):
    page = open_page("#/now")
    page.evaluate("location.hash = '#/job/' + encodeURIComponent('<img src=x onerror=alert(1)>')")
    expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x")
    expect(page.get_by_text("This is no name of a job.")).to_be_visible()
    assert page.locator("main img").count() == 0


DRAW = """async () => {
  const { html, render } = await import('./lib/html.js');
  const { View } = await import('./pages/queue.js');
  const base = await (await fetch('api/queue?limit=1')).json();
  const route = {page: 'queue', name: '', query: {}};
  const job = (number, priority) => ({...base.jobs[0], jobName: `job-${number}`, priority, position: number + 1});
  let jobs = Array.from({length: 100}, (_, number) => job(number, 0));
  const root = document.body.appendChild(document.createElement('div'));
  const now = Date.now();
  const changed = new MutationObserver(() => {});
  const draw = priority => {
    jobs = jobs.map((each, number) => number % 10 ? each : job(number, priority));
    const values = [{...base, jobs}, {jobs: [], nextCursor: null}];
    render(html`<${View} ...${{values, now, route, readOnly: false, announce: () => {}}} />`, root);
  };
  draw(0);
  const shown = root.querySelectorAll('tbody tr').length;
  changed.observe(root, {subtree: true, childList: true, characterData: true, attributes: true});
  draw(1);
  const parts = changed.takeRecords().map(({target}) => (target.closest ? target : target.parentElement).closest('tr'));
  const rows = parts.filter((row) => row);
  render(null, root);
  root.remove();
  return {shown, changed: new Set(rows).size};
}"""


def test_an_update_of_a_full_page_touches_the_rows_that_have_changed(open_page):
    """A page has a hundred rows however many jobs wait; here every tenth of them changes."""
    assert open_page("#/queue").evaluate(DRAW) == {"shown": 100, "changed": 10}
