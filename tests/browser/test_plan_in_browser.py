"""The page Plan in Chromium: answers while typing, errors at their fields, a pasted request, and its submission."""

from __future__ import annotations

import json
import re

import pytest
from console_browser import axe_violations, served
from playwright.sync_api import expect

P5 = "ml.p5.48xlarge"
REQUEST = {
    "TrainingJobName": "pasted-job",
    "RoleArn": "arn:aws:iam::111122223333:role/training",
    "AlgorithmSpecification": {
        "TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/image:1",
        "TrainingInputMode": "File",
    },
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
    "CheckpointConfig": {"S3Uri": "s3://bucket/checkpoints/pasted-job"},
    "ResourceConfig": {"InstanceType": P5, "InstanceCount": 2, "VolumeSizeInGB": 50},
    "StoppingCondition": {"MaxRuntimeInSeconds": 7200},
    "Tags": [{"Key": "priority", "Value": "3"}, {"Key": "team", "Value": "vision"}],
}


def answer(page):
    return page.get_by_role("region", name="If you submitted it now")


def field(page, label):
    return page.get_by_label(label, exact=True)


def paste(page, request):
    page.get_by_label("Or paste a CreateTrainingJob request").fill(json.dumps(request))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_a_plan(open_page, scheme):
    page = open_page("#/plan", color_scheme=scheme)
    expect(answer(page)).to_contain_text("It would start at once on")
    assert axe_violations(page) == []
    field(page, "Instance type").fill(P5)
    field(page, "Priority").fill("x")
    expect(page.get_by_role("alert")).to_contain_text("is not an integer")
    page.wait_for_timeout(400)
    assert axe_violations(page) == []


def test_the_answer_follows_what_is_typed(open_page):
    page = open_page("#/plan")
    expect(answer(page)).to_contain_text("It would start at once on 1\u00a0\u00d7\u00a0ml.g5.2xlarge.")
    expect(answer(page)).to_contain_text("$1.52 per hour, at most $36.36 until its time limit")
    field(page, "Instance type").fill(P5)
    field(page, "Instances").fill("2")
    expect(answer(page)).to_contain_text(re.compile(r"It would wait, and start at \d\d:\d\d\."))
    field(page, "Priority").fill("90")
    field(page, "Share").fill("language")
    expect(answer(page)).to_contain_text("It would preempt llm-pretrain-7b.")
    expect(answer(page)).to_contain_text(re.compile(r"Expected start \d\d:\d\d, between \d\d:\d\d and \d\d:\d\d\."))
    delays = page.get_by_role("table", name="Delays")
    expect(delays.get_by_role("row", name=re.compile(r"^llm-sft-7b \d+ min later"))).to_be_visible()
    expect(page.get_by_role("button", name="Submit")).to_be_disabled()


def test_resources_take_the_place_of_the_type(open_page):
    page = open_page("#/plan")
    field(page, "or resources of each instance").fill("accelerators=8+vcpus=96")
    expect(field(page, "Instance type")).to_have_value("")
    expect(answer(page)).to_contain_text(re.compile("waits for 1 of 1.*p5"))


ERRORS = [
    ("Priority", "x", "priority", "is not an integer"),
    ("Instance type", "ml.p3.2xlarge", "type", "There is no pool for ml.p3.2xlarge."),
    ("Instances", "0", "count", ""),
    ("or resources of each instance", "wheels=4", "resources", "wheels"),
    ("Not before", "tomorrow", "notBefore", ""),
    ("Largest size", "-1", "max", ""),
]


@pytest.mark.parametrize(("label", "value", "name", "message"), ERRORS)
def test_an_error_is_shown_at_its_field(open_page, label, value, name, message):
    page = open_page("#/plan")
    expect(answer(page)).to_contain_text("at once")
    field(page, label).fill(value)
    expect(page.locator(f"#wrong-{name}")).to_contain_text(message or " ")
    expect(page.locator(f"#plan-{name}")).to_have_attribute("aria-invalid", "true")
    expect(answer(page)).to_contain_text("The request is not valid yet.")


def test_a_pasted_request_fills_the_form_and_is_submitted(open_page):
    page = open_page("#/plan")
    paste(page, {**REQUEST, "RoleArn": 5})
    expect(page.get_by_role("alert")).to_contain_text("RoleArn")
    paste(page, REQUEST)
    expect(field(page, "Instances")).to_have_value("2")
    expect(field(page, "Time limit in hours")).to_have_value("2")
    field(page, "Priority").fill("4")
    expect(page.get_by_role("button", name="Submit pasted-job")).to_be_enabled()
    page.get_by_role("button", name="Submit pasted-job").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("pasted-job waits for 2")
    page.get_by_text("The whole request").click()
    request = json.loads(page.locator("pre").inner_text())
    assert {"Key": "priority", "Value": "4"} in request["Tags"]
    assert {"Key": "team", "Value": "vision"} in request["Tags"]
    assert request["ResourceConfig"] == REQUEST["ResourceConfig"]


def test_what_is_no_request_is_told(open_page):
    page = open_page("#/plan")
    page.get_by_label("Or paste a CreateTrainingJob request").fill("{'a': 1}")
    expect(page.get_by_role("alert")).to_contain_text("This is no JSON.")
    expect(page.get_by_role("button", name="Submit")).to_be_disabled()


def test_read_only_plans_and_submits_nothing(open_page):
    with served("--read-only") as reading:
        page = open_page("#/plan", on=reading)
        paste(page, REQUEST)
        expect(answer(page)).to_contain_text("It would wait")
        expect(page.get_by_role("button", name="Submit")).to_be_disabled()
        page.context.close()
