"""The page Audit in Chromium: entries, filters that are in the address, and pages."""

from __future__ import annotations

import re

import pytest
from console_browser import axe_violations
from playwright.sync_api import expect


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_the_audit_log(open_page, scheme):
    page = open_page("#/audit", color_scheme=scheme)
    assert axe_violations(page) == []
    assert page.locator("h1").count() == 1


def test_a_change_appears_with_its_caller_and_a_link_to_its_job(open_page):
    page = open_page("#/queue")
    page.get_by_label("Select reward-model").check()
    page.get_by_role("button", name="Priority…").click()
    page.get_by_label("New priority").fill("6")
    page.get_by_role("button", name="Set priority 6").click()
    expect(page.get_by_role("status")).to_contain_text("with priority 6")
    page.keyboard.press("g")
    page.keyboard.press("a")
    row = page.get_by_role("row", name=re.compile("ada changed the priority reward-model priority 5 becomes 6"))
    expect(row.get_by_role("rowheader")).to_have_attribute("title", re.compile(":user/ada$"))
    row.get_by_role("link", name="reward-model").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("reward-model")


def test_filters_are_sent_to_the_api_and_stay_in_the_address(open_page):
    page = open_page("#/audit")
    page.get_by_label("Job", exact=True).fill("llm-sft-7b")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.evaluate("location.hash") == "#/audit?job=llm-sft-7b"
    assert page.evaluate("document.activeElement.value") == "llm-sft-7b", "the field keeps the focus"
    page.get_by_role("combobox", name="Change").select_option("purge")
    expect(page.get_by_text("No entry matches the filters.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Job", exact=True)).to_have_value("llm-sft-7b")
    page.get_by_role("combobox", name="Change").select_option("")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Caller").fill("grace")
    expect(page.get_by_text("No entry matches the filters.")).to_be_visible()
    page.get_by_label("Caller").fill("ada")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Since").fill("2026-11-21")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.evaluate("location.hash").endswith("since=2026-11-21")
    page.evaluate("location.hash = '#/audit?job=llm-sft-7b&since=2026-12-24'")
    expect(page.get_by_label("Since")).to_have_value("2026-12-24")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_older_entries_are_on_further_pages(open_page, server):
    page = open_page("#/audit")
    seen = page.locator("tbody tr").count()
    change = """number => fetch('api/jobs/depth-anything', {method: 'PATCH', body: JSON.stringify({priority: number}),
      headers: {'X-Trainmaster-Console': '1', 'Content-Type': 'application/json'}}).then(answer => answer.status)"""
    assert {page.evaluate(change, 100 + number) for number in range(50)} == {200}
    page.get_by_role("link", name="Older 50").click(timeout=10_000)
    expect(page.locator("tbody tr")).to_have_count(seen, timeout=10_000)
    page.get_by_role("link", name="Newest 50").click()
    expect(page.locator("tbody tr").first).to_contain_text("149")
