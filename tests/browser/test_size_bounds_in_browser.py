"""Elastic jobs in Chromium: bounds with their consequences, then what the queue answered; speeds; light and dark."""

from __future__ import annotations

import re

import pytest
from console_browser import axe_violations
from playwright.sync_api import expect

SUBMIT = """job => fetch('api/add-job', {method: 'POST', body: JSON.stringify(job),
  headers: {'X-Trainmaster-Console': '1', 'Content-Type': 'application/json'}}).then(answer => answer.status)"""


def request(name, kind="ml.p5.48xlarge"):
    """A request of an elastic job of two to six instances."""
    tags = {"trainmaster:share": "language", "trainmaster:max-instances": "6", "trainmaster:instance-step": "2"}
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::111122223333:role/training",
        "AlgorithmSpecification": {
            "TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/image:1",
            "TrainingInputMode": "File",
        },
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
        "CheckpointConfig": {"S3Uri": f"s3://bucket/checkpoints/{name}"},
        "ResourceConfig": {"InstanceType": kind, "InstanceCount": 2, "VolumeSizeInGB": 50},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


def submitted(page, *requests):
    assert {page.evaluate(SUBMIT, each) for each in requests} <= {200, 202}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_waiting_job_gets_other_bounds_from_its_page(open_page, scheme):
    name = f"elastic-{scheme}"
    page = open_page("#/now", color_scheme=scheme)
    submitted(page, request(name))
    page.evaluate("name => location.hash = `#/job/${name}`", name)
    page.get_by_role("button", name="Size…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Its size is 2 to 6 instances now.")
    dialog.get_by_label("Minimum instances").fill("4")
    dialog.get_by_label("Maximum instances").fill("7")
    expect(dialog).to_contain_text(
        "Its size of 2 to 6 instances becomes 4 to 7. To start it needs 4 instances instead of 2."
    )
    assert axe_violations(page, "dialog") == []
    dialog.get_by_role("button", name="Set bounds").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Specify 6 or 8.")
    assert axe_violations(page, "dialog") == []
    dialog.get_by_label("Maximum instances").fill("8")
    dialog.get_by_role("button", name="Set bounds").click()
    expect(page.get_by_role("status")).to_contain_text("with priority 0 and 4 to 8 instances")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".chips")).to_contain_text("4 to 8")
    expect(page.get_by_role("table", name="History")).to_contain_text("size bounds 2 to 6 -> 4 to 8 instances by")


def test_bounds_of_a_running_job_and_of_several_are_set_from_the_queue(open_page, server):
    page = open_page("#/now")
    submitted(page, request("elastic-runs", "ml.g5.2xlarge"), request("elastic-waits"))
    server.tell("run 120")
    page.evaluate("location.hash = '#/queue?state=active'")
    page.get_by_label("Select elastic-runs").check()
    page.get_by_role("button", name="Size…").click()
    dialog = page.get_by_role("dialog")
    size = int(re.search(r"It has (\d), which", filled(dialog, "Maximum instances", "8"))[1])
    expect(dialog).to_contain_text(f"becomes 2 to 8. It has {size}, which stay.")
    filled(dialog, "Minimum instances", "8")
    expect(dialog).to_contain_text(f"It keeps its {size} until {8 - size} more are idle in its pool, and then grows.")
    page.keyboard.press("Escape")
    page.evaluate("location.hash = '#/queue'")
    for name in ("elastic-waits", "depth-anything"):
        page.get_by_label(f"Select {name}").check()
    page.get_by_role("button", name="Size…").click()
    expect(dialog).to_contain_text("1 selected job is left out: the state does not allow it.")
    filled(dialog, "Minimum instances", "")
    filled(dialog, "Maximum instances", "4")
    dialog.get_by_role("button", name="Set bounds").click()
    expect(page.get_by_role("status")).to_contain_text("elastic-waits is waiting, with priority 0 and 2 to 4 instances")


def filled(dialog, label, value):
    """Fill a field of the dialog; return what the dialog says then."""
    dialog.get_by_label(label).fill(value)
    return dialog.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_job_shows_its_speed_by_size(open_page, server, scheme):
    name = f"elastic-speed-{scheme}"
    page = open_page("#/now", color_scheme=scheme)
    urgent = request(name, "ml.g5.2xlarge")
    urgent["Tags"].append({"Key": "priority", "Value": "90"})
    submitted(page, urgent)
    server.tell("run 240")
    for size, rate in ((2, 10), (4, 18), (6, 9), (6, 9), (6, 9)):
        server.tell(f"speed {name} {size} {rate}")
        server.tell("run 60")
    page.evaluate("name => location.hash = `#/job/${name}`", name)
    speeds = page.get_by_role("table", name="Speed by size")
    expect(speeds.get_by_role("row")).to_have_count(4)
    for row, told in (("2", "10"), ("4", "18"), ("6", re.compile("slower than 4, not used before"))):
        expect(speeds.get_by_role("row", name=re.compile(f"^{row} "))).to_contain_text(told)
    expect(speeds.get_by_role("row", name="the present size")).to_have_count(1)  # by what else runs
    assert axe_violations(page) == []
