"""Elastic jobs on the deployed stack, as real processes: by members of one rendezvous, and by stopping and going on."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from deployed_stack import eventually
from trainmaster.local.demo.elastic_requests import ELASTIC, STEPS, URGENT, Requests
from trainmaster.local.demo.elastic_scenario import ElasticScenario
from trainmaster.local.demo.picture import draw
from trainmaster.local.demo.queue import Queue
from trainmaster.local.stack.address import clean_environment

MEMBERS, RESTARTED = "ml.c5.xlarge", "ml.c5.2xlarge"
"""Instance types of pools that no other test uses."""
PNG = b"\x89PNG\r\n\x1a\n"
NEVER = "10000"
"""Steps that no test waits for."""
FIRST_COUNTS = 'if [ "$SM_CURRENT_HOST" = algo-1 ]; then exec "$0" "$1"; else exec sleep 3600; fi'
"""A command for a script that knows nothing of other instances: the others wait."""


@pytest.fixture
def pool(trainmaster):
    """Makes a pool that is gone after the test; growth always pays meanwhile."""
    made = []

    def make(instance_type, cap):
        assert trainmaster("pools", "set", f"{instance_type}={cap}").returncode == 0
        made.append(instance_type)

    assert trainmaster("settings", "set", "resizes.payback=0").returncode == 0
    yield make
    assert trainmaster("settings", "unset", "resizes").returncode == 0
    assert trainmaster("pools", "remove", *made).returncode == 0


def nodes_of(shown):
    """The nodes in what `trainmaster show --json` says, as a set of role and rank."""
    return {(node["role"], node["rank"]) for node in json.loads(shown)["rendezvous"]["nodes"]}


@pytest.fixture
def played(deployed, checkout, pool, trainmaster, tmp_path):
    """The elastic story's record, and what `trainmaster show` said at the end of each scene but the last."""
    pool(MEMBERS, 3)
    story = ElasticScenario(Queue(deployed.address), Requests(checkout, tmp_path, MEMBERS))
    seen = []
    scenes = story.run()
    for _ in range(4):
        next(scenes)
        shown = trainmaster("show", ELASTIC, "--json").stdout
        seen.append((nodes_of(shown), trainmaster("show", ELASTIC).stdout))
    assert list(scenes), "it completes"
    return story.record(), seen


def test_a_job_of_members_grows_makes_room_and_grows_back_without_losing_a_step(played, tmp_path):
    record, seen = played

    assert record.worlds == (1, 3, 1, 3)
    assert [step.step for step in record.steps] == list(range(1, STEPS + 1)), "no step was lost, or done twice"
    losses = [step.loss for step in record.steps]
    assert statistics.fmean(losses[-50:]) < statistics.fmean(losses[:10]) / 5
    new_worlds = [number for number, (a, b) in enumerate(pairwise(record.steps), start=1) if a.round != b.round]
    assert len(new_worlds) == 3
    for number in new_worlds:
        assert statistics.fmean(losses[number : number + 20]) < 3 * statistics.fmean(losses[number - 20 : number])

    assert [(each["trainingJobName"], each["outcome"]) for each in record.job["attempts"]] == [(ELASTIC, "completed")]
    assert set(record.states) <= {"pending", "starting", "running", "resizing", "completed"}
    held = {each.name: each for each in record.training_jobs}
    members = [each for each in record.training_jobs if each.name.startswith(f"{ELASTIC}-qstamp-")]
    assert {each.status for each in record.training_jobs if each not in members} == {"Completed"}
    # One that has left is stopped where its container has not ended by itself until a pass looks.
    assert {each.status for each in members} <= {"Completed", "Stopped"}, "who is drained ends in peace"
    assert [each.instances for each in members] == [1, 1, 1, 1]
    drained, back = members[:2], members[2:]
    assert held[URGENT].start >= max(each.end for each in drained), "its instances were free only then"
    assert min(each.start for each in back) >= held[URGENT].end
    most = max(_instances_at(record.training_jobs, each.start) for each in record.training_jobs)
    assert most == 3, "the cap holds in the middle of every resize"

    one, three = {("member", 0)}, {("member", 0), ("member", 1), ("member", 2)}
    assert [nodes for nodes, _ in seen] == [one, three, one, three]
    for nodes, page in seen:
        assert len(re.findall(rf"^\d +{ELASTIC}\S*/algo-1 +member", page, re.MULTILINE)) == len(nodes), page

    draw(record, tmp_path / "story.png")
    assert (tmp_path / "story.png").read_bytes().startswith(PNG)


@pytest.mark.slow
def test_a_killed_elastic_demo_leaves_no_container_running(checkout):
    command = [sys.executable, "-m", "trainmaster", "demo", "--elastic"]
    with subprocess.Popen(
        command, cwd=checkout.root, env=clean_environment(os.environ), stdout=subprocess.PIPE, text=True
    ) as demo:
        for line in demo.stdout:
            if "has started" in line:
                break
        running = containers()
        demo.kill()
    assert len(running) >= 3, "the entry point, torchrun and the script"
    eventually(lambda: not running & containers())


def containers():
    """The processes that were started for the elastic job, by their number."""
    found = set()
    for process in Path("/proc").iterdir():
        try:
            if f"TRAINING_JOB_NAME={ELASTIC}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.add(process.name)
        except OSError:
            continue
    return found


def _instances_at(held, moment):
    return sum(each.instances for each in held if each.start <= moment < each.end)


def test_a_job_that_restarts_to_change_its_size_goes_on_from_its_checkpoint(
    deployed, checkout, pool, trainmaster, request_file
):
    pool(RESTARTED, 2)
    script = checkout.examples / "count_steps.py"
    counts = ("restarts", "trainmaster:max-instances=2", "trainmaster:scaling-timeout=1", "trainmaster:cooldown=0")

    def submit(name, *tags, command=(), instances=1):
        path = request_file(name, seconds=3600, InstanceType=RESTARTED, InstanceCount=instances)
        request = json.loads(path.read_text())
        request["Tags"] = [dict(zip(("Key", "Value"), tag.split("="), strict=True)) for tag in tags]
        if command:
            request["AlgorithmSpecification"] |= {"ContainerEntrypoint": ["sh", "-c", *map(str, command)]}
            request["HyperParameters"] = {"steps": NEVER, "seconds": "0.1"}
        path.write_text(json.dumps(request))
        done = trainmaster("submit", path)
        assert done.returncode == 0, done.stderr

    def counted(attempt):
        said = (re.fullmatch(r"step (\d+) of \d+", line) for line in deployed.lines(attempt))
        return [int(found[1]) for found in said if found]

    submit("beside-it")
    deployed.state("beside-it", "running")
    submit(*counts, command=(FIRST_COUNTS, sys.executable, script))
    eventually(lambda: len(counted("restarts")) > 10)
    assert trainmaster("cancel", "beside-it").returncode == 0
    eventually(lambda: len(counted("restarts-qstamp-2")) > 10)
    submit("comes-first", "priority=5")
    eventually(lambda: len(counted("restarts-qstamp-3")) > 10)

    job = deployed.state("restarts", "running")
    assert deployed.api.job("comes-first")["jobState"] in ("starting", "running"), "it was given the instance"
    assert [(each["outcome"], each["units"]) for each in job["attempts"]] == [
        ("resized", {RESTARTED: 1}),
        ("resized", {RESTARTED: 2}),
        ("active", {RESTARTED: 1}),
    ]
    described = [
        deployed.aws("sagemaker").describe_training_job(TrainingJobName=each["trainingJobName"])
        for each in job["attempts"]
    ]
    assert [each["ResourceConfig"]["InstanceCount"] for each in described] == [1, 2, 1]
    steps = [step for each in job["attempts"] for step in counted(each["trainingJobName"])]
    assert steps == list(range(1, len(steps) + 1)), "each attempt goes on where the one before was stopped"
    assert trainmaster("cancel", "restarts", "comes-first").returncode == 0
    trainmaster("wait", "restarts", "comes-first", "--interval", "0.5")
