"""The state machine of the page: AWS's rules for definitions accept it, and its task runs on the queue."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from cfnlint.api import lint

from builders import P5, ROLE
from doc_pages import DOCS, table
from trainmaster.handlers.tasks import ERRORS, MEMBERS, submit_task
from trainmaster.service.callbacks import ends
from world import BRISK, World

PAGE = (DOCS / "how-to" / "step-functions.md").read_text()
(MACHINE,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
TRAIN = MACHINE["States"]["Train"]

pytestmark = pytest.mark.usefixtures("quiet")


def findings(machine: dict[str, Any]) -> list[str]:
    role = "arn:aws:iam::111122223333:role/states"
    properties = {"Definition": machine, "RoleArn": role}
    resource = {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}
    matches = lint(json.dumps({"Resources": {"Machine": resource}}), regions=["us-east-1"])
    return [match.rule.id for match in matches if match.rule.severity == "error"]


def test_the_definition_is_a_valid_one():
    assert findings(MACHINE) == []
    assert findings({**MACHINE, "StartAt": "Nowhere"}) != []


def filled(value: Any, given: dict[str, Any]) -> Any:
    """The parameters as Step Functions fills them in."""
    if not isinstance(value, dict):
        return value
    return {
        name.removesuffix(".$"): given[each] if name.endswith(".$") else filled(each, given)
        for name, each in value.items()
    }


def test_its_task_runs_on_the_queue_and_gives_what_its_selector_reads():
    world = World(profile=BRISK, pools=f"{P5}=1", step_functions=True)
    task = world.fake_states.start("run-1", TRAIN["HeartbeatSeconds"])
    given = {"$$.Task.Token": task.token, "$$.Execution.Id": task.execution, "$.output": "s3://bucket/output"}
    task.payload = filled(TRAIN["Parameters"]["Payload"], given)
    task.payload["Request"]["RoleArn"] = ROLE
    task.payload["Queue"].pop("share")
    name = submit_task(world.application(), task.payload)["TrainingJobName"]
    world.run_until_ended(name)
    world.run(60, step=60)
    assert task.outcome is not None
    assert task.outcome[0] == "Success"
    assert (world.job(name).priority, world.job(name).preemption_overrides.max_preemptions) == (5, 3)
    assert TRAIN["ResultSelector"] == {"model.$": "$.ModelArtifacts.S3ModelArtifacts"}
    assert task.outcome[1]["ModelArtifacts"]["S3ModelArtifacts"]


def test_the_page_has_every_error_and_every_member():
    told = set(re.findall(r"the error `([\w.]+)`", PAGE))
    assert told == {*ends.ERRORS.values(), *ERRORS.values()}
    members = {name for row in table(PAGE, "member of `Payload`") for name in re.findall(r"`(\w+)`", row[0])}
    assert members == MEMBERS
