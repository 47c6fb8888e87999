"""The page Image jobs in Chromium, over a queue that has the kind: endpoints, regions, and cancelling a job."""

from __future__ import annotations

import re

import pytest
from console_browser import ROOT, axe_violations, served
from playwright.sync_api import expect

PROGRAM = ROOT / "tests" / "images" / "image_console_server.py"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="The checkout lacks the kind.")


@pytest.fixture(scope="module")
def imaging():
    with served(program=PROGRAM) as running:
        yield running


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_image_jobs(open_page, imaging, scheme):
    page = open_page("#/images", on=imaging, color_scheme=scheme)
    assert axe_violations(page) == []
    assert page.locator("h1").count() == 1


def test_endpoints_show_their_load_and_jobs_their_regions(open_page, imaging):
    page = open_page("#/images", on=imaging)
    expect(page.get_by_role("heading", level=1)).to_have_text("1 image job runs, 3 wait.")
    endpoint = page.get_by_role("table", name="Endpoints").get_by_role("row", name="endpoint/ships/blue")
    expect(endpoint).to_contain_text("8 of 8 requests at once")
    expect(endpoint).to_contain_text("3 jobs")
    row = page.get_by_role("table", name="Running").get_by_role("row", name=re.compile("^harbour-7"))
    expect(row.get_by_role("img", name="15 of 24 regions done, 1 failed")).to_be_visible()
    endpoint.get_by_role("link").click()
    expect(page.locator(".lead")).to_contain_text("Only those of endpoint/ships/blue.")
    assert page.evaluate("location.hash") == "#/images?pool=endpoint%2Fships%2Fblue"
    expect(row).to_be_visible()


def test_a_waiting_image_job_is_cancelled_after_its_consequence_is_shown(open_page, imaging):
    page = open_page("#/images", on=imaging)
    page.get_by_role("button", name="Cancel fields-2026…").click()
    dialog = page.get_by_role("dialog", name="Cancel fields-2026?")
    expect(dialog).to_contain_text("fields-2026")
    dialog.get_by_role("button", name="Cancel fields-2026").click()
    expect(page.get_by_role("status")).to_contain_text("fields-2026 is cancelled")
    expect(page.get_by_role("heading", level=1)).to_have_text("1 image job runs, 2 wait.")


def test_the_page_is_there_only_where_the_queue_has_the_kind(open_page, imaging):
    pages = open_page("#/now", on=imaging).get_by_role("navigation", name="Pages")
    expect(pages.get_by_role("link", name="Image jobs")).to_be_visible()
    other = open_page("#/now")
    other.wait_for_function("() => fetch('api/openapi.json').then(answer => answer.ok)")
    other.wait_for_timeout(300)
    expect(other.get_by_role("navigation", name="Pages").get_by_role("link", name="Shares")).to_be_visible()
    expect(other.get_by_role("navigation", name="Pages").get_by_role("link", name="Image jobs")).to_have_count(0)


def test_image_jobs_cannot_be_cancelled_with_read_only(open_page):
    with served("--read-only", program=PROGRAM) as reading:
        page = open_page("#/images", on=reading)
        expect(page.get_by_role("button", name="Cancel harbour-7…")).to_be_disabled()
        page.context.close()
