"""`make console` as a person has it: its pages, its actions and Ctrl-C, against the deployed local stack.

All details of the pages are tested on the queue in memory.
"""

from __future__ import annotations

import json
import re

import pytest
from console_browser import HEIGHT, ROOT, WIDTH
from console_browser import go as go_to
from playwright.sync_api import expect

pytestmark = pytest.mark.stack
STACK_TIMEOUT = 30_000
"""Milliseconds for what the deployed queue does; a loaded machine is slow."""
NEVER = "too-large-1"
"""It waits for good, so that nothing else changes it."""
G5 = "ml.g5.12xlarge"
REQUEST = {
    "TrainingJobName": "pasted-1",
    "RoleArn": "arn:aws:iam::000000000000:role/vision-training",
    "AlgorithmSpecification": {
        "TrainingImage": "000000000000.dkr.ecr.us-east-1.amazonaws.com/vision:1",
        "TrainingInputMode": "File",
    },
    "OutputDataConfig": {"S3OutputPath": "s3://vision/output"},
    "CheckpointConfig": {"S3Uri": "s3://vision/checkpoints/pasted-1"},
    "ResourceConfig": {"InstanceType": G5, "InstanceCount": 12, "VolumeSizeInGB": 50},
    "StoppingCondition": {"MaxRuntimeInSeconds": 900},
    "Tags": [{"Key": "priority", "Value": "0"}, {"Key": "trainmaster:share", "Value": "vision"}],
}
"""It needs the whole pool at the lowest priority, so that it waits."""


@pytest.fixture(scope="module")
def page(browser, example):
    """One browser that stays open, as a person leaves it; whatever it writes to its console fails the tests."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(STACK_TIMEOUT)
    said = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(example.address())
    page.wait_for_url("**/")
    page.wait_for_selector("main section")
    yield page
    context.close()
    assert said == []


def go(page, hash_):
    """Open a page. The first request of a kind may start a process."""
    go_to(page, hash_, timeout=STACK_TIMEOUT)


def act(page, verb):
    """Choose an action of the job's page, and confirm it."""
    page.get_by_role("group", name="Actions").get_by_role("button", name=re.compile(f"^{verb}")).click()
    page.get_by_role("dialog").locator("button[type=submit]").click()
    expect(page.get_by_role("dialog")).to_have_count(0, timeout=STACK_TIMEOUT)


def test_every_page_of_the_navigation_shows_the_queue(page):
    for link in page.locator("nav[aria-label=Pages] a").all():
        go(page, link.get_attribute("href"))
        expect(page.get_by_role("alert")).to_have_count(0)
        assert page.locator("h1").count() == 1


def test_now_follows_the_queue(page):
    go(page, "#/now")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^\d+ jobs? runs?, \d+ waits?\.$"))
    shown = page.locator(".bar").get_by_text("as of").inner_text()
    expect(page.locator(".bar").get_by_text("as of")).not_to_have_text(shown, timeout=STACK_TIMEOUT)


def test_jobs_end_and_others_take_their_place(page):
    go(page, "#/queue?state=ended")
    ended = page.locator("tbody tr")
    expect(ended.nth(1)).to_be_visible(timeout=4 * STACK_TIMEOUT)
    go(page, "#/queue?state=active")
    expect(page.locator("tbody tr").first).to_be_visible(timeout=STACK_TIMEOUT)


def test_an_image_job_has_its_page(page):
    go(page, "#/job/harbour-scan-1")
    expect(page.get_by_role("heading", level=1)).to_contain_text("harbour-scan-1", timeout=STACK_TIMEOUT)


def test_the_actions_change_the_queue(page):
    go(page, f"#/job/{NEVER}")
    title = page.get_by_role("heading", level=1)
    page.get_by_role("button", name="Priority…").click()
    page.get_by_label("New priority").fill("7")
    page.get_by_role("dialog").get_by_role("button", name="Set priority 7").click()
    expect(page.get_by_role("status")).to_contain_text("with priority 7", timeout=STACK_TIMEOUT)
    act(page, "Hold")
    expect(title).to_contain_text("is held", timeout=STACK_TIMEOUT)
    act(page, "Release")
    expect(title).to_contain_text("waits for", timeout=STACK_TIMEOUT)
    act(page, "Cancel")
    expect(title).to_contain_text("is cancelled", timeout=STACK_TIMEOUT)


def test_a_running_job_is_cancelled_at_sagemaker(page):
    go(page, "#/job/eval-elastic-1")
    title = page.get_by_role("heading", level=1)
    expect(title).to_contain_text("has been running", timeout=4 * STACK_TIMEOUT)
    act(page, "Cancel")
    expect(title).to_contain_text("is stopped", timeout=2 * STACK_TIMEOUT)


def test_a_cap_is_changed(page):
    for cap in (11, 12):
        go(page, f"#/pools/{G5}")
        page.get_by_role("button", name="Set cap…").click()
        page.get_by_label("New cap").fill(str(cap))
        page.get_by_role("button", name=f"Set cap {cap}").click()
        expect(page.get_by_role("status")).to_contain_text(f"{G5} has a cap of {cap}", timeout=STACK_TIMEOUT)


def test_a_pool_is_drained_and_resumed_and_its_removal_refused(page):
    go(page, f"#/pools/{G5}")
    page.get_by_role("button", name="Drain…").click()
    page.get_by_role("dialog").get_by_role("button", name=f"Drain {G5}").click()
    expect(page.locator(".lead")).to_contain_text("draining", timeout=STACK_TIMEOUT)
    page.get_by_role("button", name="Resume…").click()
    page.get_by_role("dialog").get_by_role("button", name=f"Resume {G5}").click()
    expect(page.get_by_role("status")).to_contain_text("is in use", timeout=STACK_TIMEOUT)
    page.get_by_role("button", name="Remove…").click()
    dialog = page.get_by_role("dialog")
    if dialog.get_by_label("Remove it even so").count():
        dialog.get_by_label("Remove it even so").check()
    dialog.get_by_role("button", name=f"Remove {G5}").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The settings name a pool", timeout=STACK_TIMEOUT)
    page.keyboard.press("Escape")


def test_a_job_is_planned_and_submitted(page):
    go(page, "#/plan")
    page.get_by_label("Or paste a CreateTrainingJob request").fill(json.dumps(REQUEST))
    answer = page.get_by_role("region", name="If you submitted it now")
    expect(answer).to_contain_text("start", timeout=STACK_TIMEOUT)
    page.get_by_role("button", name="Submit pasted-1").click()
    title = page.get_by_role("heading", level=1)
    expect(title).to_contain_text("pasted-1", timeout=STACK_TIMEOUT)
    act(page, "Cancel")
    expect(title).to_contain_text(re.compile("is cancelled|is stopped"), timeout=2 * STACK_TIMEOUT)


def test_settings_are_saved(page):
    go(page, "#/settings")
    draft = page.get_by_role("textbox", name="Document")
    draft.fill(json.dumps(json.loads(draft.input_value()) | {"patienceSeconds": 7200}, indent=2))
    page.get_by_role("button", name="Review and save…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("row", name="patienceSeconds")).to_contain_text("7200 (2 h)")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("of the settings is in force", timeout=STACK_TIMEOUT)


def test_the_audit_log_has_what_was_done(page):
    go(page, "#/audit")
    rows = page.locator("tbody")
    for text in (G5, "pasted-1", NEVER):
        expect(rows).to_contain_text(text, timeout=STACK_TIMEOUT)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_to_look_at(page, scheme):
    """They are written to build/console."""
    folder = ROOT / "build" / "console"
    folder.mkdir(parents=True, exist_ok=True)
    page.emulate_media(color_scheme=scheme)
    for link in page.locator("nav[aria-label=Pages] a").all():
        href = link.get_attribute("href")
        go(page, href)
        page.wait_for_timeout(300)
        page.screenshot(path=folder / f"stack-{href.removeprefix('#/')}-{scheme}.png", full_page=True)


def test_ctrl_c_ends_all_of_it(page, example):
    page.goto("about:blank")
    assert "The example queue has ended; nothing is left running." in example.interrupt()
