"""The page Settings in Chromium: help, checks, the changes before a save, and a save by another person meanwhile."""

from __future__ import annotations

import json

import pytest
from console_browser import axe_violations, go, served
from playwright.sync_api import expect

PUT = """settings => fetch('api/settings', {method: 'PUT', body: JSON.stringify(settings),
  headers: {'X-Trainmaster-Console': '1', 'Content-Type': 'application/json'}}).then(answer => answer.status)"""
GET = "() => fetch('api/settings').then(answer => answer.json())"


def edit(page, **changes):
    """Replace members of the draft."""
    draft = page.get_by_role("textbox", name="Document")
    draft.fill(json.dumps(json.loads(draft.input_value()) | changes, indent=2))
    return draft


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_the_settings(open_page, scheme):
    page = open_page("#/settings", color_scheme=scheme)
    page.get_by_text("All settings").click()
    edit(page, order="fair", nonsense=1)
    assert axe_violations(page) == []
    edit(page, order="fair", reservations=3)
    page.get_by_role("button", name="Discard the draft").click()
    edit(page, order="fair", reservations=3)
    page.get_by_role("button", name="Review and save…").click()
    assert axe_violations(page, "dialog") == []
    assert page.locator("h1").count() == 1
    page.get_by_role("button", name="Back to the draft").click()
    page.get_by_role("button", name="Discard the draft").click()


def test_the_member_at_the_cursor_is_explained(open_page):
    page = open_page("#/settings")
    draft = page.get_by_role("textbox", name="Document")
    at = draft.input_value().index('"cooldownSeconds"')
    draft.evaluate("(element, at) => { element.focus(); element.setSelectionRange(at, at) }", at)
    page.keyboard.press("ArrowRight")
    aside = page.get_by_label("Help for the draft")
    expect(aside.get_by_role("heading", name="preemption.cooldownSeconds")).to_be_visible()
    expect(aside).to_contain_text("The same for a resumed attempt, if longer.")
    expect(aside).to_contain_text("600")


def test_a_draft_is_checked_while_it_is_written(open_page):
    page = open_page("#/settings")
    draft = edit(page, maxActions=0, orders="fifo")
    expect(page.locator("#draft-problems")).to_contain_text("maxActions is 0; allowed: a whole number, at least 1")
    expect(page.locator("#draft-problems")).to_contain_text("orders is no setting.")
    draft.fill('{\n  "order" "fifo"}')
    expect(page.locator("#draft-problems")).to_contain_text("Line 2:")
    expect(page.get_by_role("button", name="Review and save…")).to_be_disabled()
    page.get_by_role("button", name="Discard the draft").click()
    expect(page.locator(".lead")).to_contain_text("The draft has no changes.")


def test_changes_are_shown_before_they_are_saved(open_page):
    page = open_page("#/settings")
    version = page.evaluate(GET)["version"]
    edit(page, patienceSeconds=7200)
    page.get_by_role("button", name="Review and save…").click()
    dialog = page.get_by_role("dialog", name="Save 1 change as a new version?")
    row = dialog.get_by_role("row", name="patienceSeconds")
    expect(row.get_by_role("cell")).to_have_text(["2419200 (28 d)", "7200 (2 h)"])
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text(f"Version {version + 1} of the settings is in force.")
    expect(page.locator(".lead")).to_have_text(
        f"Version {version + 1} is in force. The draft has no changes.", timeout=10_000
    )
    assert page.evaluate(GET)["patienceSeconds"] == 7200


def test_the_api_refuses_what_the_schema_allows(open_page):
    page = open_page("#/settings")
    edit(page, shares={"vision": {"nominal": {"ml.p5.48xlarge": 9000}}})
    page.get_by_role("button", name="Review and save…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("ml.p5.48xlarge")
    dialog.get_by_role("button", name="Back to the draft").click()
    page.get_by_role("button", name="Discard the draft").click()


def test_a_draft_survives_other_pages_and_what_another_person_saves(open_page):
    page = open_page("#/settings")
    now = page.evaluate(GET)
    edit(page, reservations=5, maxActions=40)
    go(page, "#/now")
    assert page.evaluate(PUT, now | {"order": "fair", "maxActions": 30}) == 200
    go(page, "#/settings")
    told = page.get_by_role("alert")
    expect(told).to_contain_text(f"Version {now['version'] + 1} was saved meanwhile by ada at ")
    expect(told).to_contain_text(f"Your draft began with version {now['version']} and is kept.")
    expect(told).to_contain_text("You changed maxActions too: yours would replace that.")
    assert json.loads(page.get_by_role("textbox", name="Document").input_value())["order"] == "backfill"
    assert axe_violations(page) == []
    told.get_by_role("button", name="Apply my changes").click()
    expect(told).to_have_count(0)
    draft = json.loads(page.get_by_role("textbox", name="Document").input_value())
    assert (draft["order"], draft["reservations"], draft["maxActions"]) == ("fair", 5, 40)
    page.get_by_role("button", name="Discard the draft").click()


def test_a_save_that_comes_second_is_refused_and_keeps_the_draft(open_page, server):
    page = open_page("#/settings")
    now = page.evaluate(GET)
    edit(page, reservations=7)
    page.get_by_role("button", name="Review and save…").click()
    assert page.evaluate(PUT, now | {"cpuWeight": 0.25}) == 200
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("Another person saved a version meanwhile.")
    page.get_by_role("button", name="Back to the draft").click()
    expect(page.get_by_role("button", name="Apply my changes")).to_be_visible(timeout=10_000)
    page.get_by_role("button", name="Apply my changes").click()
    page.get_by_role("button", name="Review and save…").click()
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    after = page.evaluate(GET)
    assert (after["reservations"], after["cpuWeight"]) == (7, 0.25)


def replayed(page):
    """Start a replay of the draft, and wait for its result."""
    page.get_by_role("button", name="Replay the last week with this").click()
    expect(page.get_by_role("region", name="Figures of the replay")).to_be_visible(timeout=60_000)
    return page.get_by_role("region", name="Figures of the replay")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_draft_is_replayed_beside_the_settings_in_force(open_page, scheme):
    page = open_page("#/settings", color_scheme=scheme)
    button = page.get_by_role("button", name="Replay the last week with this")
    if scheme == "light":
        expect(button).to_be_disabled()
    edit(page, preemption={"minRuntimeSeconds": 14_400})
    figures = replayed(page)
    expect(figures.get_by_role("row", name="All jobs")).to_contain_text("→")
    for share in ("language", "speech", "vision"):
        expect(figures.get_by_role("row", name=share)).to_be_visible()
    expect(figures.get_by_role("row", name="priority 50")).to_be_visible()
    expect(page.locator(".replay-headline")).to_contain_text("The draft changes")
    changed = page.get_by_role("region", name="Jobs that change most")
    expect(changed.get_by_role("link").first).to_be_visible()
    expect(page.get_by_text("Jobs arrive when they really did")).to_be_visible()
    assert axe_violations(page) == []
    edit(page, order="fifo")
    expect(page.get_by_text("The draft has changed since this replay.")).to_be_visible()
    page.get_by_role("button", name="Discard the draft").click()


def test_a_wrong_draft_names_its_field_and_a_replay_can_be_cancelled(open_page):
    page = open_page("#/settings")
    edit(page, shares={"vision": {"nominal": {"ml.p5.48xlarge": 9000}}})
    page.get_by_role("button", name="Replay the last week with this").click()
    told = page.locator(".replay").get_by_role("alert")
    expect(told).to_contain_text("shares.vision.nominal.ml.p5.48xlarge", timeout=60_000)
    edit(page, order="fifo")
    page.get_by_role("button", name="Replay the last week with this").click()
    expect(page.get_by_role("progressbar", name="Progress of the replay")).to_be_visible()
    page.get_by_role("button", name="Cancel the replay").click()
    expect(page.get_by_role("progressbar", name="Progress of the replay")).to_have_count(0)
    expect(page.get_by_role("region", name="Figures of the replay")).to_have_count(0)
    page.get_by_role("button", name="Discard the draft").click()


def test_with_read_only_a_draft_can_be_replayed_and_not_saved(open_page):
    with served("--read-only") as reading:
        page = open_page("#/settings", on=reading)
        edit(page, order="fifo")
        expect(page.get_by_role("button", name="Review and save…")).to_be_disabled()
        replayed(page)
        page.context.close()
