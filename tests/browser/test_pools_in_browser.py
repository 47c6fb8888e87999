"""The page Pools in Chromium: the table, the detail, and each action with its consequences first."""

from __future__ import annotations

import json
import re

import pytest
from console_browser import axe_violations, go, served
from playwright.sync_api import expect

P5, G5 = "ml.p5.48xlarge", "ml.g5.2xlarge"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("hash_", ["#/pools", f"#/pools/{P5}"])
def test_axe_finds_no_violation_in_the_pools(open_page, hash_, scheme):
    page = open_page(hash_, color_scheme=scheme)
    assert axe_violations(page) == []
    assert page.locator("h1").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_the_dialogs_of_pools(open_page, scheme):
    page = open_page(f"#/pools/{P5}", color_scheme=scheme)
    for action in ("Set cap…", "Drain…", "Remove…"):
        page.get_by_role("button", name=action).click()
        page.wait_for_selector("dialog[open]")
        assert axe_violations(page, "dialog") == []
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)


def test_the_table_leads_to_a_pool(open_page):
    page = open_page("#/pools")
    row = page.get_by_role("row", name=re.compile(P5))
    expect(row).to_contain_text("$63.30 on demand")
    page.keyboard.press("g")
    page.keyboard.press("p")
    row.get_by_role("link", name=P5).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(P5)
    expect(page.get_by_role("table", name="Running there").get_by_role("link", name="llm-pretrain-7b")).to_be_visible()
    expect(page.get_by_role("table", name="Could run there").get_by_role("link", name="llm-sft-7b")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("8 accelerators (nvidia)")
    page.get_by_role("link", name="All pools").click()
    expect(page.get_by_role("table", name="Pools")).to_be_visible()


def test_a_name_without_a_pool_is_told(open_page):
    page = open_page("#/pools/nothing")
    expect(page.get_by_text("There is no pool of this name.")).to_be_visible()
    assert page.get_by_role("button", name="Drain…").count() == 0


def test_a_cap_is_set_with_its_consequences_first(open_page):
    page = open_page(f"#/pools/{P5}")
    page.get_by_role("button", name="Set cap…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("New cap").fill("6")
    expect(dialog).to_contain_text("The cap 8 becomes 6.")
    expect(dialog).to_contain_text("They keep running, 2 beyond the cap")
    expect(dialog).to_contain_text("llm-pretrain-13b asks for more and could never start.")
    dialog.get_by_role("button", name="Set cap 6").click()
    expect(page.get_by_role("status")).to_contain_text(f"{P5} has a cap of 6 and is in use.")
    expect(page.locator(".lead")).to_contain_text("8 of 6 used")
    go(page, "#/timeline")
    expect(page.locator(".tl-cap")).to_have_count(1)
    go(page, f"#/pools/{P5}")
    page.get_by_role("button", name="Set cap…").click()
    page.get_by_label("New cap").fill("8")
    page.get_by_role("button", name="Set cap 8").click()
    expect(page.locator(".lead")).to_contain_text("8 of 8 used")


def test_a_pool_is_drained_and_resumed(open_page):
    page = open_page(f"#/pools/{G5}")
    page.get_by_role("button", name="Drain…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It starts no more jobs.")
    expect(dialog).to_contain_text("asr-eval and clip-distill keep 7 until the end.")
    expect(dialog).to_contain_text("can run nowhere else and wait until you resume it: segment-everything.")
    dialog.get_by_role("button", name=f"Drain {G5}").click()
    expect(page.locator(".lead")).to_contain_text("draining")
    page.get_by_role("button", name="Resume…").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 waiting job could run there.")
    page.get_by_role("button", name=f"Resume {G5}").click()
    expect(page.get_by_role("status")).to_contain_text(f"{G5} has a cap of 12 and is in use.")


def test_a_refused_removal_shows_the_reason_of_the_api(open_page):
    page = open_page(f"#/pools/{G5}")
    page.get_by_role("button", name="Remove…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("asr-eval and clip-distill hold 7 of it and would count toward no pool.")
    button = dialog.get_by_role("button", name=f"Remove {G5}")
    expect(button).to_be_disabled()
    dialog.get_by_label("Remove it even so").check()
    button.click()
    expect(dialog.get_by_role("alert")).to_contain_text("The settings name a pool that would be removed")


def test_a_removal_is_sent_with_its_version_and_answered_with_numbers(open_page):
    """The queue's shares name both pools, so that its API refuses every removal: this answer is made up."""
    page = open_page(f"#/pools/{G5}")
    sent = []

    def answer(route):
        sent.append((route.request.method, route.request.url.partition("/api")[2]))
        numbers = {"moved": 0, "stranded": 1, "running": ["asr-eval"], "more": False}
        route.fulfill(status=200, content_type="application/json", body=json.dumps(numbers))

    page.route("**/api/pools/*", answer)
    page.get_by_role("button", name="Remove…").click()
    page.get_by_label("Remove it even so").check()
    page.get_by_role("button", name=f"Remove {G5}").click()
    expect(page.get_by_role("status")).to_contain_text(
        f"{G5} is removed. 0 waiting jobs can run elsewhere, 1 nowhere else. asr-eval keeps running."
    )
    expect(page.get_by_role("heading", level=1)).to_have_text("Pools")
    assert [method for method, _ in sent] == ["DELETE"]
    assert re.fullmatch(rf"/pools/{re.escape(G5)}\?version=\d+&force=true", sent[0][1])


MADE = """async () => {
  const { html, render } = await import('./lib/html.js');
  const { View } = await import('./pages/pools.js');
  const found = await (await fetch('api/pools')).json();
  const now = Date.now();
  const iso = hours => new Date(now + hours * 3600000).toISOString();
  const plan = {...found.pools[0], name: 'plan', kind: 'training-plan', planStatus: 'Active',
    trainingPlanArn: 'arn:plan', startsAt: iso(-1), endsAt: iso(5), madeFor: 'bert', madeAt: iso(-2)};
  const history = [{change: 'expand', pool: 'plan', instanceType: 't', before: 0, after: 2,
    dollarsPerHour: 3, at: iso(-2), madeFor: 'bert', jobs: [], jobCount: 0, why: 'bert waits for it'}];
  const none = {jobs: [], nextCursor: null};
  const root = document.querySelector('main').appendChild(document.createElement('div'));
  const values = [{...found, pools: [plan], history}, none, none, {shares: []}];
  const parts = {values, now, route: {page: 'pools', name: '', query: {}}, readOnly: false, announce: () => {}};
  render(html`<${View} ...${parts} />`, root);
  return root.textContent;
}"""


def test_training_plans_count_down_and_made_pools_have_their_price(open_page):
    text = open_page("#/now").evaluate(MADE)
    assert re.search(r"ends in 5 h, .*made for bert", text)
    assert "made or enlarged0 to 2+$3.00 per hourbert waits for it" in text


def test_read_only_changes_no_pool(open_page):
    with served("--read-only") as reading:
        page = open_page(f"#/pools/{P5}", on=reading)
        expect(page.get_by_role("button", name="Drain…")).to_be_disabled()
        page.context.close()
