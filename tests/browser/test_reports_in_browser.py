"""The page Reports in Chromium: charts, figures, the CSV file, and choices that are in the address."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from console_browser import axe_violations
from playwright.sync_api import expect


def opened_report(open_page, hash_="#/reports", **options):
    page = open_page(hash_, **options)
    page.wait_for_selector("#table")
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_reports(open_page, scheme):
    page = opened_report(open_page, color_scheme=scheme)
    assert axe_violations(page) == []
    assert page.locator("h1").count() == 1


def test_a_report_says_what_shares_used_and_how_long_they_waited(open_page):
    page = opened_report(open_page)
    expect(page.get_by_role("heading", level=1)).to_contain_text(
        re.compile(r"^\d+ jobs used [\d.,]+ GPU hours in 7 days")
    )
    table = page.get_by_role("table", name="By share")
    names = table.get_by_role("rowheader").all_inner_texts()
    assert names == ["language", "speech", "vision", "Total"]
    hours = [float(row.locator("td").nth(5).inner_text().replace(",", "")) for row in table.locator("tbody tr").all()]
    assert hours[-1] == pytest.approx(sum(hours[:-1]), abs=0.5)
    assert hours[-1] > 0
    assert page.get_by_role("region", name="Waits").locator("li").count() == 3
    assert page.get_by_role("region", name="Utilization of the pools").locator("li").count() == 2


def test_the_csv_file_has_the_same_numbers(open_page):
    page = opened_report(open_page)
    with page.expect_download() as started:
        page.get_by_role("button", name="Save as CSV").click()
    assert started.value.suggested_filename == "usage-by-share-7-days.csv"
    with Path(started.value.path()).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["share"] for row in rows] == ["language", "speech", "vision"]
    asked = page.evaluate("query => fetch(`api/usage?${query}`).then(answer => answer.json())", "by=share")
    assert [float(row["instanceHours"]) for row in rows] == pytest.approx(
        [group["instanceHours"] for group in asked["groups"]], abs=0.01
    )


def test_the_period_and_the_grouping_are_in_the_address(open_page):
    page = opened_report(open_page)
    page.get_by_role("combobox", name="Period").select_option("30")
    expect(page.get_by_role("heading", level=1)).to_contain_text("in 30 days")
    page.get_by_role("combobox", name="By").select_option("pool")
    expect(page.get_by_role("table", name="By pool").get_by_role("rowheader").first).to_have_text("ml.g5.2xlarge")
    assert page.evaluate("location.hash") == "#/reports?days=30&by=pool"
    page.reload()
    expect(page.get_by_role("table", name="By pool")).to_be_visible()
    page.get_by_role("combobox", name="By").select_option("user")
    expect(page.get_by_role("table", name="By user").get_by_role("rowheader").first).to_have_text("ada")


def test_a_report_that_cannot_be_read_says_why(open_page, server):
    page = opened_report(open_page)
    server.tell("outage on")
    page.get_by_role("button", name="Read again").click()
    expect(page.locator(".lead")).to_contain_text("Could not connect")
    server.tell("outage off")
    page.get_by_role("button", name="Read again").click()
    expect(page.locator(".lead")).to_contain_text(" to ")
