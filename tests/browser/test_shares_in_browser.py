"""The page Shares in Chromium: bars and figures by pool, usage, budgets, and the way to the settings."""

from __future__ import annotations

import re

import pytest
from console_browser import axe_violations
from playwright.sync_api import expect


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_the_shares(open_page, scheme):
    page = open_page("#/shares", color_scheme=scheme)
    assert axe_violations(page) == []
    assert page.locator("h1").count() == 1


def test_bars_and_figures_say_the_same(open_page):
    page = open_page("#/shares")
    shares = page.evaluate("() => fetch('api/shares').then(answer => answer.json())")["shares"]
    parts = [(share["name"], part) for share in shares for part in share["pools"] if part["nominal"] + part["used"]]
    assert any(part["borrowed"] for _, part in parts)
    for name, part in parts:
        row = page.get_by_role("table", name=part["pool"]).get_by_role("row", name=re.compile(f"^{name} "))
        cells = row.locator("td.number").all_inner_texts()
        assert [int(text.split()[0]) for text in cells] == [
            part[member] for member in ("own", "used", "borrowed", "lent", "held")
        ]
        bar = row.get_by_role("img").get_attribute("aria-label")
        assert sum(map(int, re.findall(r"(\d+) (?:used|borrowed)", bar))) == part["used"]
        assert sum(map(int, re.findall(r"(\d+) lent", bar))) == part["lent"]


def test_a_budget_says_what_is_left_and_when_it_renews(open_page):
    page = open_page("#/shares")
    row = page.get_by_role("table", name="Usage and budgets").get_by_role("row", name=re.compile("^language "))
    expect(row).to_contain_text(re.compile(r"[\d.]+ of 500 GPU hours, [\d.]+ left"))
    expect(row).to_contain_text(re.compile(r"It renews \d+ \w+ \d\d:\d\d, in \d+ d"))
    expect(row).to_contain_text(re.compile(r"[\d.]+ GPU hours"))
    row.get_by_role("link", name="waiting jobs of language").click()
    assert page.evaluate("location.hash") == "#/queue?share=language"


def test_edit_opens_the_share_in_the_settings(open_page):
    page = open_page("#/now")
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.get_by_role("link", name="Edit vision in the settings").click()
    draft = page.get_by_role("textbox", name="Document")
    expect(draft).to_be_focused()
    assert draft.evaluate("element => element.value.slice(element.selectionStart).split(':')[0]") == 'vision"'
    expect(page.get_by_label("Help for the draft").get_by_role("heading", name="shares.vision")).to_be_visible()
