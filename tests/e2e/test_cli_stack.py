"""The command line as a process against the deployed stack: signed requests, real waiting, a preemption to watch.

It brings a pool of its own, so that it waits for no other test's jobs.
"""

from __future__ import annotations

import json
import sys
from functools import partial

import pytest

from deployed_stack import eventually

POOL = "ml.c5.xlarge"


@pytest.fixture
def pool(trainmaster):
    assert trainmaster("pools", "set", f"{POOL}=1").returncode == 0
    yield POOL
    assert trainmaster("pools", "remove", POOL, "--force").returncode == 0


@pytest.fixture
def request_file(request_file):
    return partial(request_file, InstanceType=POOL, InstanceCount=1)


def test_a_preemption_as_the_command_line_shows_it(deployed, trainmaster, pool, request_file):
    low, high = request_file("cli-low", seconds=20), request_file("cli-high")
    assert trainmaster("plan", low).stdout == "It would start immediately.\n"
    assert trainmaster("submit", low, "--priority", "-5").returncode == 0
    deployed.state("cli-low", "running")

    submitted = trainmaster("submit", high, "--priority", "5", "--option", "preemptible=false", "--wait")

    assert (submitted.returncode, submitted.stderr.count("Traceback")) == (0, 0)
    assert "preempts cli-low" in submitted.stdout
    assert submitted.stdout.splitlines()[-1] == "cli-high: Completed."
    told = submitted.stderr.splitlines()
    assert told[-1] == "cli-high: Completed."
    assert "preempted" in trainmaster("show", "cli-low").stdout
    assert [line.split()[:3] for line in trainmaster("ls", "--pool", pool).stdout.splitlines()[2:]] in (
        [["cli-low", state, "-5"]] for state in ("preempted", "starting", "running")
    )
    waited = trainmaster("wait", "cli-low", "cli-high", "--interval", "0.5")
    assert (waited.returncode, waited.stdout) == (0, "cli-low: Completed. Attempt 2.\ncli-high: Completed.\n")


def test_hold_release_and_cancel(deployed, trainmaster, pool, request_file):
    assert trainmaster("submit", request_file("cli-first", seconds=600)).returncode == 0
    deployed.state("cli-first", "running")
    assert trainmaster("submit", request_file("cli-second")).returncode == 0
    why = trainmaster("why", "cli-second").stdout
    assert "cli-second waits at position" in why
    assert f"It waits for 1 of 1 x {pool}: 0 free for it now" in why

    assert trainmaster("hold", "cli-second").returncode == 0
    assert trainmaster("why", "cli-second").stdout.startswith("cli-second was held at ")
    assert trainmaster("priority", "cli-second", "-7").returncode == 0
    assert trainmaster("release", "cli-second").returncode == 0
    assert trainmaster("cancel", "cli-second", "cli-first").returncode == 0
    ended = trainmaster("wait", "cli-first", "cli-second", "--interval", "0.5", "--json")
    assert ended.returncode == 1
    assert [(job["jobState"], job["priority"]) for job in json.loads(ended.stdout)] == [
        ("stopped", 0),
        ("cancelled", -7),
    ]
    assert trainmaster("cancel", "cli-first").returncode == 4
    assert "cli-first was stopped at" in trainmaster("why", "cli-first").stdout


def test_a_pool_is_drained_and_resumed(deployed, trainmaster, pool, request_file):
    assert trainmaster("submit", request_file("cli-drained", seconds=8)).returncode == 0
    deployed.state("cli-drained", "running")
    drained = trainmaster("pools", "drain", pool, "--wait", "--interval", "0.5")
    assert (drained.returncode, drained.stdout.splitlines()) == (
        0,
        [
            f"{pool}: Draining; 1 of 1 instances are still held.",
            f"{pool}: Drained; no instances are held.",
        ],
    )
    deployed.state("cli-drained", "completed")

    assert trainmaster("submit", request_file("cli-later")).returncode == 0
    assert "is draining and starts no jobs" in trainmaster("why", "cli-later").stdout
    refused = trainmaster("pools", "remove", pool)
    assert (refused.returncode, "1 waiting job could run only in" in refused.stderr) == (4, True)
    assert trainmaster("pools", "resume", pool).stdout == f"{pool}: In use; jobs start there.\n"
    deployed.state("cli-later", "completed")


def test_a_request_that_the_door_refuses(trainmaster, request_file):
    path = request_file("cli-wrong")
    path.write_text(path.read_text().replace(POOL, "ml.p3.2xlarge"))
    refused = trainmaster("submit", path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("Error: ")
    assert refused.stderr.count("\n") == 1


def test_credentials_that_are_missing_are_told(deployed):
    without_keys = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    refused = deployed.run(sys.executable, "-m", "trainmaster", "ls", env=without_keys)
    assert refused.returncode == 5
    assert refused.stderr.startswith("Error: No AWS credentials")


def test_a_stack_that_is_not_there_is_told(trainmaster):
    shown = trainmaster("--stack", "no-such-stack", "pools")
    assert (shown.returncode, "no-such-stack" in shown.stderr) == (2, True)


def test_the_logs_of_a_job_are_printed_and_followed_to_its_end(deployed, trainmaster, pool, request_file):
    assert trainmaster("submit", request_file("cli-logs", seconds=20)).returncode == 0
    deployed.state("cli-logs", "running")
    eventually(lambda: len(deployed.lines("cli-logs")) > 2)

    printed, followed = trainmaster("logs", "cli-logs"), trainmaster("logs", "cli-logs", "-f")

    header, start, *progress = printed.stdout.splitlines()
    assert header == "==> attempt 1: cli-logs (active) <=="
    assert start == "[simulated] This machine runs no container for the image x:1. Training takes 20 s."
    assert all(line.endswith("% of the training is done.") for line in progress)
    assert (followed.returncode, followed.stdout.startswith(printed.stdout)) == (0, True)
    assert followed.stdout.splitlines()[-1] == "[simulated] Training has ended."
    assert followed.stderr.splitlines()[-1] == "cli-logs: Completed."
    assert trainmaster("submit", request_file("cli-logs", seconds=20)).returncode == 7
    assert [line.split()[0] for line in trainmaster("ls", "--mine", "-a").stdout.splitlines()[2:]].count(
        "cli-logs"
    ) == 1
