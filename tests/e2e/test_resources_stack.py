"""Jobs that ask for resources, on the deployed stack: the pool that fits best, and a pool that is made for one.

It brings pools of its own, of types that no other test's jobs could run on, and takes back what it has set.
"""

from __future__ import annotations

import json

import pytest

from deployed_stack import eventually

SMALL, LARGE, MADE = "ml.g5.12xlarge", "ml.p4d.24xlarge", "ml.p5e.48xlarge"
"""Four, eight and eight accelerators; only the last has 1,000 GiB of accelerator memory."""
FOUR, EIGHT, HUGE = "accelerators=4", "accelerators=8", "accelerators=8,accelerator_memory_gib=1000,accelerator=nvidia"
RETIRE_AFTER = 5
"""Seconds."""
SOME_TICKS = 300.0
"""Seconds: ministack ticks every 60 to 70 seconds."""


@pytest.fixture
def pools(trainmaster):
    assert trainmaster("pools", "set", f"{SMALL}=1", f"{LARGE}=1").returncode == 0
    yield (SMALL, LARGE)
    assert trainmaster("pools", "remove", SMALL, LARGE).returncode == 0


@pytest.fixture
def expansion(trainmaster):
    rules = (
        f'types=["{MADE}"]',
        "maxInstances=1",
        "maxPerType=1",
        f"retireAfterSeconds={RETIRE_AFTER}",
        "enabled=true",
    )

    def enable():
        done = trainmaster("settings", "set", *(f"expansion.{rule}" for rule in rules))
        assert done.returncode == 0, done.stderr

    yield enable
    assert trainmaster("settings", "unset", "expansion").returncode == 0


def given(deployed, name):
    """Instance type and count that SageMaker was asked for."""
    config = deployed.aws("sagemaker").describe_training_job(TrainingJobName=name)["ResourceConfig"]
    return config["InstanceType"], config["InstanceCount"]


def pool_rows(trainmaster):
    """The pools as the command line shows them, by name."""
    return {pool["name"]: pool for pool in json.loads(trainmaster("pools", "--json").stdout)["pools"]}


def test_each_job_starts_on_the_pool_that_fits_it_best(deployed, trainmaster, pools, request_file):
    for name, resources in (("asks-4", FOUR), ("asks-8", EIGHT)):
        done = trainmaster("submit", request_file(name), "--resources", resources)
        assert done.returncode == 0, done.stderr
    assert deployed.state("asks-4", "completed")["attempts"][0]["units"] == {SMALL: 1}
    assert deployed.state("asks-8", "completed")["attempts"][0]["units"] == {LARGE: 1}
    assert given(deployed, "asks-4") == (SMALL, 1)
    assert given(deployed, "asks-8") == (LARGE, 1)


def test_the_next_best_is_taken_where_the_best_is_busy(deployed, trainmaster, pools, request_file):
    for name in ("spills-1", "spills-2"):
        path = request_file(name, seconds=600)
        assert trainmaster("submit", path, "--resources", FOUR).returncode == 0
        deployed.state(name, "running")
    assert (given(deployed, "spills-1"), given(deployed, "spills-2")) == ((SMALL, 1), (LARGE, 1))
    assert trainmaster("cancel", "spills-1", "spills-2").returncode == 0
    trainmaster("wait", "spills-1", "spills-2", "--interval", "0.5")


def test_an_infeasible_job_waits_until_a_pool_is_made_for_it_which_is_retired(
    deployed, trainmaster, pools, expansion, request_file
):
    path = request_file("huge", seconds=10)
    assert trainmaster("submit", path, "--resources", HUGE).returncode == 0
    waiting = deployed.state("huge", "pending")
    assert (waiting["reason"]["type"], waiting["reason"]["resources"]) == ("Infeasible", HUGE)
    assert f"infeasible: needs 1 x ({HUGE})" in trainmaster("why", "huge").stdout
    assert MADE not in pool_rows(trainmaster)
    planned = trainmaster("plan", request_file("huge-too"), "--resources", HUGE).stdout
    assert f"With expansion.enabled=true, the queue would create the pool {MADE}" in planned

    expansion()

    deployed.state("huge", "running", seconds=SOME_TICKS)
    made = pool_rows(trainmaster)[MADE]
    assert (made["madeFor"], made["cap"], made["used"], made["waiting"]) == (f"1 x ({HUGE})", 1, 1, 0)
    assert MADE in trainmaster("pools").stdout
    done = deployed.state("huge", "completed")
    assert [(attempt["units"], attempt["outcome"]) for attempt in done["attempts"]] == [({MADE: 1}, "completed")]
    assert f"a pool of 1 x {MADE} was created for it" in trainmaster("show", "huge").stdout
    assert given(deployed, "huge") == (MADE, 1)
    eventually(lambda: MADE not in pool_rows(trainmaster), seconds=SOME_TICKS)
    assert set(pools) <= pool_rows(trainmaster).keys()
    told = json.loads(trainmaster("pools", "--history", "--json").stdout)["history"]
    assert [(each["change"], each["pool"]) for each in told][:2] == [("retire", MADE), ("expand", MADE)]
