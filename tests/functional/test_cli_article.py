"""The article's use case through the command line: the shipped API, manager and adapters, SageMaker simulated.

Time is the simulator's: it passes only where a command waits or the test lets it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import boto3
import httpx
import pytest
from typer.testing import CliRunner, Result

from api_world import CONTEXT, rest_event
from builders import P5
from trainmaster.bootstrap import Application, Settings
from trainmaster.cli.common.context import CliContext
from trainmaster.cli.program import build
from trainmaster.client.api.client import ApiClient
from trainmaster.handlers.api.app import build_app
from world import QUEUE, TABLE, World, a_request

Run = Callable[..., Result]


def _transport_to(world: World) -> httpx.MockTransport:
    """The shipped API over the world's store, called as API Gateway calls it."""
    settings = Settings(queue=QUEUE, table=TABLE, pools=world.pools, allowed_roles=("*",), admins=("*",))
    application = Application(settings)
    application.clock = world
    application.__dict__ |= {"store": world.api_context.store, "publisher": world.queue}
    app = build_app(application)

    def handle(request: httpx.Request) -> httpx.Response:
        url = urlsplit(request.url.raw_path.decode())
        event = rest_event(
            request.method, url.path.removeprefix("/prod"), request.content.decode() or None, parse_qs(url.query)
        )
        answer = app.resolve(event, CONTEXT)
        return httpx.Response(answer["statusCode"], content=answer["body"])

    return httpx.MockTransport(handle)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def run(world: World, tmp_path: Path) -> Run:
    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    api = ApiClient("https://api/prod", session=session, transport=_transport_to(world), environ={})
    cli = CliContext(
        connect=lambda target, environ: api,
        environ={},
        now=world.now,
        clock=lambda: world.now().timestamp(),
        sleep=world.run,
    )

    def invoke(*arguments: str, stdin: str = "") -> Result:
        result = CliRunner().invoke(build(), list(arguments), input=stdin, obj=cli, prog_name="trainmaster")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


def _submit(run: Run, name: str, priority: int, seconds: int, *more: str) -> Result:
    return run("submit", "-", "--priority", str(priority), *more, stdin=_request(name, seconds))


def _request(name: str, seconds: int) -> str:
    return json.dumps(a_request(name, training_seconds=seconds))


def _first_columns(table: str) -> list[list[str]]:
    """The article's columns: name, state and priority."""
    return [line.split()[:3] for line in table.splitlines()[2:]]


def test_the_articles_three_tables(world: World, run: Run) -> None:
    """Article, "use case example"; the jobs' lengths are such that job2 ends first."""
    for name, priority, seconds in (("job1", 1, 900), ("job2", 2, 600), ("job3", 1, 300)):
        assert _submit(run, name, priority, seconds).exit_code == 0
        world.run(200)
    assert _first_columns(run("ls").stdout) == [
        ["job2", "running", "2"],
        ["job1", "running", "1"],
        ["job3", "pending", "1"],
    ]
    job4 = _submit(run, "job4", 3, 900)
    assert "preempts job1; the capacity is reserved for it until" in job4.stdout
    world.run(200)
    assert _first_columns(run("ls").stdout) == [
        ["job4", "running", "3"],
        ["job2", "running", "2"],
        ["job1", "preempted", "1"],
        ["job3", "pending", "1"],
    ]
    assert run("wait", "job2").exit_code == 0
    world.run(120)
    assert _first_columns(run("ls").stdout) == [
        ["job4", "running", "3"],
        ["job1", "running", "1"],
        ["job3", "pending", "1"],
    ]
    done = run("wait", "job1", "job3", "job4")
    assert (done.exit_code, done.stdout) == (
        0,
        "job1: Completed. Attempt 2.\njob3: Completed.\njob4: Completed.\n",
    )
    assert run("ls").stdout.splitlines()[2:] == []


def test_why_a_job_waits_is_what_the_plan_says(world: World, run: Run) -> None:
    for name, priority in (("job1", 1), ("job2", 2), ("job3", 1), ("job4", 0)):
        _submit(run, name, priority, 600)
        world.run(60)

    third, fourth = run("why", "job3").stdout, run("why", "job4").stdout

    assert "job3 waits at position 1, with priority 1," in third
    assert f"It waits for 1 of 1 x {P5}: 0 free for it now, expected by " in third
    assert "It is expected to start at " in third
    assert f"The capacity it needs is held by job1 (1 x {P5}, until about " in third
    assert "job4 waits at position 2, with priority 0," in fourth
    wide = [line.split()[3] for line in run("ls", "--wide").stdout.splitlines()[4:]]
    assert wide == ["1", "2"]


def test_people_can_change_what_waits(world: World, run: Run) -> None:
    for name in ("job1", "job2", "job3", "job4"):
        _submit(run, name, 1, 600)
    world.run(300)
    running = {line.split()[0] for line in run("ls", "--state", "running").stdout.splitlines()[2:]}
    assert running == {"job1", "job2"}

    assert run("priority", "job3", "-5").exit_code == 0
    assert run("hold", "job4").exit_code == 0
    assert "Held by arn:" in run("why", "job4").stdout
    assert run("pools", "set", f"{P5}=3").exit_code == 0
    world.run(120)
    assert run("wait", "job3").exit_code == 0
    assert run("release", "job4").exit_code == 0
    assert run("cancel", "job4").stdout.startswith("job4: ")
    assert run("wait", "job4").exit_code == 1
    assert run("release", "job4").exit_code == 4


def test_a_plan_is_what_then_happens(world: World, run: Run) -> None:
    assert run("plan", "-", stdin=_request("job1", 600)).stdout == "It would start immediately.\n"
    for name in ("job1", "job2"):
        _submit(run, name, 1, 600)
    world.run(300)

    told = run("plan", "-", "--priority", "5", stdin=_request("job3", 600))
    assert told.stdout.startswith(("It would preempt job1 ", "It would preempt job2 "))
    assert [line.split()[0] for line in run("ls", "--all").stdout.splitlines()[2:]] == ["job1", "job2"]

    refused = run("plan", "-", "--option", "preemptable=true", stdin=_request("job4", 60))
    assert refused.exit_code == 2
    assert "Did you mean --option preemptible?" in refused.stderr


def test_a_failed_job_ends_its_wait_with_one(world: World, run: Run) -> None:
    request = json.dumps(a_request("job1", training_seconds=60, outcome="failed"))
    result = run("submit", "-", "--wait", stdin=request)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-4].startswith("job1: Failed; ")
    assert result.stdout.splitlines()[-1] == "  Logs: trainmaster logs job1"
