"""`make console` as a person has it: every page and every action against the deployed local stack, and Ctrl-C.

All details of the pages are tested on the queue in memory. The pictures of README and docs come from this run.
"""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import pytest
from console_browser import HEIGHT, REFUSED, ROOT, WIDTH, axe_violations
from console_browser import go as go_to
from playwright.sync_api import expect

pytestmark = pytest.mark.stack
STACK_TIMEOUT = 30_000
"""Milliseconds for what the deployed queue does; a loaded machine is slow."""
NEVER = "too-large-1"
"""It waits for good, so that nothing else changes it."""
G5, G6, P5 = "ml.g5.12xlarge", "ml.g6.12xlarge", "ml.p5.48xlarge"
ENDPOINT = "endpoint/ship-detector/only"
SHARES = ["language", "speech", "vision"]
LAST = -9
"""A priority behind all jobs of the example queue."""
SCHEMES = ["light", "dark"]
PICTURES = [
    ("now", "#/now", "light", 1180),
    ("timeline", "#/timeline?job={job}", "light", 1190),
    ("job", "#/job/{job}", "dark", 900),
    ("shares", "#/shares", "light", 1330),
]
"""Pictures of README and docs: name, page, theme and height; `{job}` is a job that was preempted."""
POST = """request => fetch('api/add-job', {method: 'POST', body: JSON.stringify(request),
  headers: {'X-Trainmaster-Console': '1', 'Content-Type': 'application/json'}}).then(answer => answer.status)"""
NAMES = (
    "query => fetch('api/jobs?' + query).then(answer => answer.json()).then(page => page.jobs.map(job => job.jobName))"
)


@pytest.fixture(scope="module")
def page(browser, example):
    """One browser that stays open, as a person leaves it; whatever it writes to its console fails the tests."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(STACK_TIMEOUT)
    expect.set_options(timeout=STACK_TIMEOUT)
    said = []
    page.on(
        "console",
        lambda message: said.append(f"{message.text} {message.location['url']}") if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(example.address())
    page.wait_for_url("**/")
    page.wait_for_selector("main section")
    yield page
    context.close()
    expect.set_options(timeout=5_000)
    assert [each for each in said if not REFUSED.search(each)] == []


def go(page, hash_):
    """Open a page. The first request of a kind may start a process."""
    go_to(page, hash_, timeout=STACK_TIMEOUT)


def title(page):
    return page.get_by_role("heading", level=1)


def told(page):
    """Return the console's answer to the last change."""
    return page.locator("[role=status][aria-live]")


def act(page, verb):
    """Choose an action of the job's page, and confirm it."""
    page.get_by_role("group", name="Actions").get_by_role("button", name=re.compile(f"^{verb}")).click()
    page.get_by_role("dialog").locator("button[type=submit]").click()
    expect(page.get_by_role("dialog")).to_have_count(0, timeout=STACK_TIMEOUT)


def request(name, *, on=G5, count=12, priority=LAST, seconds=60, **options):
    """A CreateTrainingJob request; by default it needs the whole pool behind all others, so that it waits."""
    tags = {"priority": priority, "trainmaster:share": "vision"}
    tags |= {f"trainmaster:{option}": value for option, value in options.items()}
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::000000000000:role/vision-training",
        "AlgorithmSpecification": {
            "TrainingImage": "000000000000.dkr.ecr.us-east-1.amazonaws.com/vision:1",
            "TrainingInputMode": "File",
        },
        "Environment": {"SIMULATOR_TRAINING_SECONDS": str(seconds)},
        "OutputDataConfig": {"S3OutputPath": "s3://vision/output"},
        "CheckpointConfig": {"S3Uri": f"s3://vision/checkpoints/{name}"},
        "ResourceConfig": ({"InstanceType": on, "InstanceCount": count} if on else {}) | {"VolumeSizeInGB": 50},
        "StoppingCondition": {"MaxRuntimeInSeconds": 900},
        "Tags": [{"Key": key, "Value": str(value)} for key, value in tags.items()],
    }


def submit(page, *requests):
    """Submit jobs as the page Plan does."""
    assert [page.evaluate(POST, each) for each in requests] == [200] * len(requests)


def wait_for_jobs(page, query):
    """Return the names of the jobs that a query lists, once there are any."""
    for _ in range(8 * STACK_TIMEOUT // 1_000):
        if names := page.evaluate(NAMES, query):
            return names
        page.wait_for_timeout(1_000)
    raise AssertionError(f"there is no job: {query}")


# ---------------------------------------------------------------- pages


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_shows_the_queue_and_axe_finds_no_violation(page, scheme):
    page.emulate_media(color_scheme=scheme)
    expect(page.get_by_role("link", name="Image jobs")).to_be_visible()
    links = [link.get_attribute("href") for link in page.locator("nav[aria-label=Pages] a").all()]
    assert len(links) == 10
    (running, *_), (ended, *_) = (
        wait_for_jobs(page, "state=running&kind=training"),
        wait_for_jobs(page, "state=completed"),
    )
    jobs = [f"#/job/{name}" for name in (NEVER, "paused-by-hand-1", running, ended)]
    others = ["#/queue?state=active", "#/queue?state=ended", "#/timeline?view=table", f"#/pools/{P5}"]
    for hash_ in [*links, *jobs, *others]:
        go(page, hash_)
        expect(page.get_by_role("alert")).to_have_count(0)
        assert page.locator("h1").count() == 1
        assert (hash_, axe_violations(page)) == (hash_, [])


def test_now_follows_the_queue(page):
    go(page, "#/now")
    expect(title(page)).to_have_text(re.compile(r"^\d+ jobs? runs?, \d+ waits?\.$"))
    for pool in (P5, G5, G6):
        expect(page.get_by_role("img", name=re.compile(f"^{re.escape(pool)}: "))).to_be_visible()
    expect(page.get_by_role("region", name="Needs attention")).to_contain_text(NEVER)
    shown = page.locator(".bar").get_by_text("as of").inner_text()
    expect(page.locator(".bar").get_by_text("as of")).not_to_have_text(shown, timeout=STACK_TIMEOUT)


def test_jobs_end_and_others_take_their_place(page):
    go(page, "#/queue?state=ended")
    ended = page.locator("tbody tr")
    expect(ended.nth(1)).to_be_visible(timeout=4 * STACK_TIMEOUT)
    go(page, "#/queue?state=active")
    expect(page.locator("tbody tr").first).to_be_visible(timeout=STACK_TIMEOUT)


def test_the_queue_is_filtered_by_state_share_and_pool(page):
    go(page, "#/queue")
    expect(page.get_by_role("combobox", name="Share").locator("option")).to_have_text(["all", "default", *SHARES])
    page.get_by_role("combobox", name="Jobs").select_option("infeasible")
    expect(page.get_by_role("link", name=NEVER)).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("combobox", name="Jobs").select_option("held")
    expect(page.get_by_role("link", name="nightly-1")).to_be_visible()
    page.get_by_role("combobox", name="Share").select_option("vision")
    expect(page.get_by_role("link", name="nightly-1")).to_have_count(0)
    expect(page.get_by_role("link", name="paused-by-hand-1")).to_be_visible()
    page.get_by_role("combobox", name="Pool").select_option(P5)
    expect(page.get_by_text("No job matches the filters.")).to_be_visible()
    assert page.evaluate("location.hash") == f"#/queue?state=held&share=vision&pool={P5}"


def test_the_palette_finds_a_job(page):
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_label("Name").fill("nightly-1")
    page.get_by_role("dialog").get_by_role("button", name="nightly-1").click()
    expect(title(page)).to_contain_text("nightly-1 is held", timeout=STACK_TIMEOUT)


def test_the_timeline_tells_the_story_of_a_job(page):
    (job, *_) = wait_for_jobs(page, f"state=running&pool={P5}")
    go(page, f"#/timeline?job={job}")
    expect(page.get_by_role("heading", name=re.compile(f"^{job} has been running"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile(f"^{job}, share .*: runs on")).first).to_be_visible()
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Fit").click()
    page.get_by_role("button", name="Clear").click()
    assert page.locator(".dim").count() == 0
    page.get_by_role("button", name="Table").click()
    expect(page.get_by_role("table", name="Intervals").get_by_role("row", name=re.compile(job)).first).to_be_visible()


def test_shares_lead_to_their_jobs_and_their_settings(page):
    go(page, "#/shares")
    table = page.get_by_role("table", name="Usage and budgets")
    assert [name for name in table.get_by_role("rowheader").all_inner_texts() if name in SHARES] == SHARES
    expect(table.get_by_role("row", name=re.compile("^language"))).to_contain_text("of 200 GPU hours")
    page.get_by_role("link", name="Edit vision in the settings").click()
    expect(page.get_by_label("Help for the draft").get_by_role("heading", name="shares.vision")).to_be_visible()


def test_reports_are_saved_as_csv(page):
    go(page, "#/reports?days=30")
    page.wait_for_selector("#table")
    table = page.get_by_role("table", name="By share")
    names = table.get_by_role("rowheader").all_inner_texts()
    assert names == [*SHARES, "Total"]
    with page.expect_download() as started:
        page.get_by_role("button", name="Save as CSV").click()
    assert started.value.suggested_filename == "usage-by-share-30-days.csv"
    with Path(started.value.path()).open(newline="") as file:
        rows = {row["share"]: float(row["instanceHours"]) for row in csv.DictReader(file)}
    assert list(rows) == SHARES
    assert all(hours > 0 for hours in rows.values())
    page.get_by_role("combobox", name="By").select_option("pool")
    expect(page.get_by_role("table", name="By pool").get_by_role("rowheader", name=G5)).to_be_visible()


def test_image_jobs_show_their_endpoint_and_one_is_cancelled(page):
    go(page, "#/images")
    expect(title(page)).to_contain_text("image job", timeout=STACK_TIMEOUT)
    expect(page.get_by_role("table", name="Endpoints").get_by_role("row", name=ENDPOINT)).to_contain_text("at once")
    (job, *_) = wait_for_jobs(page, "kind=image&state=running,pending")
    page.get_by_role("button", name=f"Cancel {job}…").click()
    assert axe_violations(page, "dialog") == []
    page.get_by_role("dialog").get_by_role("button", name=f"Cancel {job}").click()
    expect(told(page)).to_contain_text(f"{job} is")
    go(page, f"#/job/{job}")
    expect(title(page)).to_contain_text(re.compile("is cancelled|is stopped"), timeout=2 * STACK_TIMEOUT)


# ---------------------------------------------------------------- actions on jobs


def test_the_actions_change_a_job(page):
    go(page, f"#/job/{NEVER}")
    page.get_by_role("button", name="Priority…").click()
    page.get_by_label("New priority").fill("7")
    page.get_by_role("dialog").get_by_role("button", name="Set priority 7").click()
    expect(told(page)).to_contain_text("with priority 7")
    act(page, "Hold")
    expect(title(page)).to_contain_text("is held")
    act(page, "Release")
    expect(title(page)).to_contain_text("waits for")
    act(page, "Cancel")
    expect(title(page)).to_contain_text("is cancelled")


def test_the_size_bounds_of_an_elastic_job_are_set(page):
    submit(page, request("resized-1", count=10, **{"max-instances": 12}))
    go(page, "#/job/resized-1")
    page.get_by_role("button", name="Size…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Its size is 10 to 12 instances now.")
    dialog.get_by_label("Minimum instances").fill("11")
    expect(dialog).to_contain_text("To start it needs 11 instances instead of 10.")
    dialog.get_by_role("button", name="Set bounds").click()
    expect(told(page)).to_contain_text("11 to 12 instances")
    expect(page.get_by_role("table", name="History")).to_contain_text("size bounds 10 to 12 -> 11 to 12 instances by")
    act(page, "Cancel")
    expect(title(page)).to_contain_text("is cancelled")


def test_several_jobs_are_changed_at_once(page):
    names = [f"batch-{number}" for number in (1, 2, 3)]
    submit(page, *map(request, names))
    go(page, "#/queue?text=batch-")
    for place, table, action, confirm in (
        ("In the queue", "Held", "Hold", "Hold 3 jobs"),
        ("Held", "In the queue", "Release", "Release 3 jobs"),
        ("In the queue", "In the queue", "Priority…", "Set priority -8"),
        ("In the queue", "", "Cancel…", "Cancel 3 jobs"),
    ):
        for name in names:
            page.get_by_role("table", name=place).get_by_label(f"Select {name}").check()
        page.get_by_role("region", name="Selection").get_by_role("button", name=action).click()
        dialog = page.get_by_role("dialog")
        if action == "Priority…":
            dialog.get_by_label("New priority").fill("-8")
        for name in names:
            expect(dialog).to_contain_text(name)
        dialog.get_by_role("button", name=confirm).click()
        expect(dialog).to_have_count(0)
        expect(told(page)).to_contain_text("3 jobs changed.")
        page.get_by_role("button", name="Dismiss").click()
        for name in names if table else ():
            expect(page.get_by_role("table", name=table).get_by_role("link", name=name)).to_be_visible()
    expect(page.get_by_text("No job matches the filters.")).to_be_visible()


def test_a_running_job_is_cancelled_at_sagemaker(page):
    (job, *_) = wait_for_jobs(page, "state=running&prefix=eval-elastic")
    go(page, f"#/job/{job}")
    expect(title(page)).to_contain_text("has been running")
    act(page, "Cancel")
    expect(title(page)).to_contain_text("is stopped", timeout=2 * STACK_TIMEOUT)


def test_a_job_is_planned_and_submitted(page):
    go(page, "#/plan")
    page.get_by_label("Instance type", exact=True).fill(P5)
    page.get_by_label("Instances", exact=True).fill("8")
    answer = page.get_by_role("region", name="If you submitted it now")
    expect(answer).to_contain_text(f"8\u00a0\u00d7\u00a0{P5}")
    page.get_by_label("Or paste a CreateTrainingJob request").fill(json.dumps(request("pasted-1")))
    expect(answer).to_contain_text("It would wait")
    page.get_by_role("button", name="Submit pasted-1").click()
    expect(title(page)).to_contain_text("pasted-1 waits for 12")
    act(page, "Cancel")
    expect(title(page)).to_contain_text("is cancelled")


# ---------------------------------------------------------------- pools and settings


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_no_violation_in_dialogs(page, scheme):
    page.emulate_media(color_scheme=scheme)
    go(page, f"#/pools/{G5}")
    for action in ("Set cap…", "Drain…", "Remove…"):
        page.get_by_role("button", name=action).click()
        page.wait_for_selector("dialog[open]")
        assert axe_violations(page, "dialog") == []
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)


def test_a_cap_is_changed(page):
    for cap in (11, 12):
        go(page, f"#/pools/{G5}")
        page.get_by_role("button", name="Set cap…").click()
        page.get_by_label("New cap").fill(str(cap))
        page.get_by_role("button", name=f"Set cap {cap}").click()
        expect(told(page)).to_contain_text(f"{G5} has a cap of {cap}")
        expect(page.locator(".lead")).to_contain_text(f"of {cap} used")


def test_a_pool_is_drained_and_resumed_and_its_removal_refused(page):
    go(page, f"#/pools/{G5}")
    page.get_by_role("button", name="Drain…").click()
    page.get_by_role("dialog").get_by_role("button", name=f"Drain {G5}").click()
    expect(page.locator(".lead")).to_contain_text("drain")
    page.get_by_role("button", name="Resume…").click()
    page.get_by_role("dialog").get_by_role("button", name=f"Resume {G5}").click()
    expect(told(page)).to_contain_text("is in use")
    page.get_by_role("button", name="Remove…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Remove it even so").check()
    dialog.get_by_role("button", name=f"Remove {G5}").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The settings name a pool")
    page.keyboard.press("Escape")


def edit(page, **changes):
    """Replace members of the settings' draft."""
    go(page, "#/settings")
    draft = page.get_by_role("textbox", name="Document")
    draft.fill(json.dumps(json.loads(draft.input_value()) | changes, indent=2))


def test_the_past_is_replayed_with_a_draft(page):
    edit(page, order="fifo")
    page.get_by_role("button", name="Replay the last week with this").click()
    figures = page.get_by_role("region", name="Figures of the replay")
    expect(figures.get_by_role("row", name="All jobs")).to_contain_text("→", timeout=4 * STACK_TIMEOUT)
    for share in SHARES:
        expect(figures.get_by_role("row", name=share)).to_be_visible()
    assert axe_violations(page) == []
    page.get_by_role("button", name="Discard the draft").click()


def test_settings_are_saved(page):
    edit(page, patienceSeconds=7200)
    page.get_by_role("button", name="Review and save…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("row", name="patienceSeconds")).to_contain_text("7200 (2 h)")
    dialog.get_by_role("button", name="Save").click()
    expect(told(page)).to_contain_text("of the settings is in force")


# ---------------------------------------------------------------- pictures


def test_pictures(page):
    """They are written to build/console; PICTURES=docs/images renews those of README and docs."""
    folder = ROOT / os.environ.get("PICTURES", "build/console")
    folder.mkdir(parents=True, exist_ok=True)
    wait_for_jobs(page, "prefix=urgent-fix-2")  # some minutes have passed
    (job, *_) = wait_for_jobs(page, f"state=preempted&pool={P5}")
    page.reload()  # without the last change's answer
    page.mouse.move(0, 0)
    for name, hash_, scheme, height in PICTURES:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": WIDTH, "height": height})
        go(page, hash_.format(job=job))
        page.wait_for_timeout(1_000)
        page.screenshot(path=folder / f"console-{name}.png", scale="css")
        assert (folder / f"console-{name}.png").stat().st_size > 10_000
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pictures_to_look_at(page, scheme):
    """They are written to build/console."""
    folder = ROOT / "build" / "console"
    folder.mkdir(parents=True, exist_ok=True)
    page.emulate_media(color_scheme=scheme)
    for link in page.locator("nav[aria-label=Pages] a").all():
        href = link.get_attribute("href")
        go(page, href)
        page.wait_for_timeout(500)
        page.screenshot(path=folder / f"stack-{href.removeprefix('#/')}-{scheme}.png", full_page=True)


# ---------------------------------------------------------------- the end


def test_a_pool_is_removed_and_its_waiting_jobs_run_elsewhere(page):
    """Four instances that each have four accelerators: it could run in two pools, and waits behind all others."""
    submit(page, request("moves-1", on=None, resources="accelerators=4+accelerator=nvidia", instances=4))
    go(page, f"#/pools/{G6}")
    expect(page.get_by_role("table", name="Could run there").get_by_role("link", name="moves-1")).to_be_visible()
    page.get_by_role("button", name="Remove…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile("can run elsewhere: .*moves-1"))
    button = dialog.get_by_role("button", name=f"Remove {G6}")
    if button.is_disabled():  # as long as jobs hold some of it
        dialog.get_by_label("Remove it even so").check()
    button.click()
    expect(told(page)).to_contain_text(f"{G6} is removed.")
    expect(told(page)).to_contain_text(re.compile(r"[1-9]\d* waiting jobs? can run elsewhere, 0 nowhere else\."))
    expect(title(page)).to_have_text("Pools")
    expect(page.get_by_role("link", name=G6)).to_have_count(0)
    go(page, "#/job/moves-1")
    expect(title(page)).to_contain_text("moves-1 waits for 4")
    act(page, "Cancel")
    expect(title(page)).to_contain_text("is cancelled")


def test_the_audit_log_has_what_was_done(page):
    go(page, "#/audit")
    rows = page.locator("tbody")
    for job, texts in ((NEVER, ["priority0 becomes", "held", "released", "cancelled"]), ("pasted-1", ["submitted"])):
        page.get_by_label("Job", exact=True).fill(job)
        expect(rows.locator("tr").filter(has_not_text=job)).to_have_count(0)
        for text in texts:
            expect(rows).to_contain_text(text)
    page.get_by_label("Job", exact=True).fill("")
    page.get_by_role("combobox", name="Change").select_option("pools")
    for text in (f"{G5}.cap", f"{G5}.draining", G6):
        expect(rows).to_contain_text(text)


def test_ctrl_c_ends_all_of_it(page, example):
    page.goto("about:blank")
    assert "The example queue has ended; nothing is left running." in example.interrupt()
