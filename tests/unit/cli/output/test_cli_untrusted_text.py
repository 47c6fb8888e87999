"""Text from outside neither controls the terminal nor adds lines: every command, with hostile text in every answer."""

from __future__ import annotations

import io
import json
import os
import random
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx
import pytest
import typer
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import Result

from aws_clients import aws_session
from cli_terminal import NOW, Terminal
from fake_api import (
    G5,
    P5,
    STAGE,
    a_pool,
    a_rendezvous,
    a_request,
    a_view,
    an_attempt,
    an_entry,
    starts,
    waits_for_capacity,
)
from hostile_api import HOSTILE, HostileApi, with_text
from samples import examples
from trainmaster.cli.output.listing import jobs_table
from trainmaster.cli.output.progress import LiveTable
from trainmaster.cli.output.render import colored, history_table
from trainmaster.cli.program import build
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.errors import Conflict
from trainmaster.client.api.retry import Retry
from trainmaster.client.sdk.waiting import Progress
from trainmaster.client.views.wording import sentence_of
from trainmaster.domain.release import VERSION_HEADER
from trainmaster.domain.text import sanitize

REQUEST = json.dumps(a_request("new"))
MOMENT = "2026-11-20T14:00:00Z"
HEADER = frozenset(map(chr, range(1, 127))) - {"\r", "\n"}
ALONE = frozenset({"demo", "exec", "replay", "deploy", "upgrade", "uninstall", "console", "exporter", "top"})
"""Commands that print nothing of an API, and one that takes the terminal: `test_cli_top.py` has its screen."""
OF_PROGRAMS = frozenset({("settings", "replay")})
"""They start a program each time: `test_cli_settings_replay.py` has the names that they print."""
EXPORT = json.dumps({"trainmasterExport": 1, "settings": {}, "pools": [], "jobs": [{"request": a_request("a")}]})

COMMANDS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "ls": (("ls",), None),
    "ls of all, wide": (("ls", "--all", "--wide"), None),
    "ls as csv": (("ls", "--all", "-o", "csv"), None),
    **{f"{verb} {state}": ((verb, state), None) for verb in ("show", "why") for state in ("waiting", "held", "failed")},
    **{f"{verb} {state}": ((verb, state), None) for verb in ("show", "why") for state in ("elastic", "resizing")},
    "show of a request": (("show", "waiting", "--request"), None),
    "logs": (("logs", "held"), None),  # hostile lines are in test_cli_logs.py
    "wait": (("wait", "failed"), None),
    "priority": (("priority", "waiting", "5"), None),
    "scale": (("scale", "elastic", "--max", "8"), None),
    "hold": (("hold", "waiting"), None),
    "release": (("release", "held"), None),
    "cancel": (("cancel", "waiting", "elastic", "failed", "unknown"), None),
    "resized": (("resized", "resizing", "--token", "t", "--done", "2"), None),
    "submit": (("submit", "-"), REQUEST),
    "submit refused": (("submit", "-"), json.dumps(a_request("new", RoleArn="other"))),
    "submit and wait": (("submit", "-", "--wait", "--timeout", "0"), REQUEST),
    "plan": (("plan", "-"), REQUEST),
    "pools": (("pools",), None),
    "pools wide": (("pools", "--wide"), None),
    "pools history": (("pools", "--history"), None),
    "pools set": (("pools", "set", "ml.x9.large=3"), None),
    "pools drain": (("pools", "drain", P5, G5, "--wait", "--timeout", "0"), None),
    "pools resume": (("pools", "resume", P5), None),
    "pools remove": (("pools", "remove", P5, G5, "unknown"), None),
    "schedule": (("schedule",), None),
    "shares": (("shares",), None),
    "usage": (("usage",), None),
    "settings": (("settings",), None),
    "settings set": (("settings", "set", "order=fifo"), None),
    "settings set to what is refused": (("settings", "set", "order=lifo"), None),
    "settings unset": (("settings", "unset", "preemption"), None),
    "settings schema": (("settings", "schema"), None),
    "audit": (("audit",), None),
    "doctor": (("doctor",), None),
    "purge": (("purge", "failed", "waiting", "unknown"), None),
    "pause": (("pause", "--reason", "upgrade"), None),
    "resume": (("resume",), None),
    "restore of differences": (("restore", "--yes"), None),
    "restore, only listed": (("restore", "--dry-run"), None),
    "version": (("version",), None),
    "export": (("export",), None),
    "export to a file": (("export", "--output", os.devnull), None),
    "import": (("import", "-"), EXPORT),
    "sweep submit": (("sweep", "submit", "-", "--integer", "n=1:2", "--strategy", "grid"), REQUEST),
    "sweep show": (("sweep", "show", "tuned", "--minimize", "loss"), None),
    "sweep show as csv": (("sweep", "show", "tuned", "-o", "csv"), None),
    "sweep cancel": (("sweep", "cancel", "tuned"), None),
}
WITHOUT_JSON = frozenset(
    {"logs", "show of a request", "settings schema", "purge", "version", "export", "export to a file"}
)


def an_elastic(**changes: Any) -> dict[str, Any]:
    member = {"trainingJobName": "m", "state": "at work", "createdAt": MOMENT, "startedAt": MOMENT}
    sizes = {"minInstances": 1, "maxInstances": 4, "instanceStep": 1, "instanceValues": None, "size": 2, "wanted": 3}
    times = {"sizedAt": MOMENT, "faultySince": MOMENT, "faultyScaleDownTimeoutSeconds": 300.0, "resizes": 2}
    return {"hook": "custom", "target": "arn", "resizing": None, "members": [member], **sizes, **times} | changes


def a_world(text: str) -> HostileApi:
    """An API with something to say in each of its answers."""
    world = HostileApi()
    world.text, world.page_length = text, 50
    holder = {"jobName": "h", "pool": P5, "instances": 1, "expectedEnd": MOMENT, "overdue": True, "stopping": False}
    story = {
        "inTheWay": [holder],
        "jobsInTheWay": 1,
        "reserved": {"instances": {P5: 1}, "at": MOMENT},
        "advice": [{"message": "add a pool"}],
    }
    deadline = {"message": "probably misses its deadline", "prospect": "late"}
    attempts = [an_attempt("a", outcome="failed", reason="ended", instanceType=P5)]
    world.add("waiting", position=1, reason=waits_for_capacity(), why=story, deadline=deadline, attempts=attempts)
    world.jobs["waiting"] |= starts(MOMENT, MOMENT, "2026-11-20T15:00:00Z")
    world.add("held", "held")
    world.add("failed", "failed", failureReason="AlgorithmError", attempts=attempts)
    world.move("failed", "failed", "stop asked")
    resizing = {"from": 1, "to": 3, "cause": "grow", "givenUp": False, "message": "waits for members"}
    for name, state, elastic in (
        ("elastic", "running", an_elastic()),
        ("resizing", "resizing", an_elastic(resizing=resizing)),
    ):
        world.add(name, state, elastic=elastic, attempts=[an_attempt("a")], trainingJobName="a")
        node = {"rank": 0, "trainingJobName": "a", "host": "algo-1", "role": "member"}
        world.rendezvous[name] = a_rendezvous(run="a", round=1, closed=True, reason="stop", nodes=[node])
    world.pools["pools"] += [a_pool(G5, 4, used=3, quota=2, quotaAt=MOMENT, madeFor="h", countExternal=True)]
    event = {
        "at": MOMENT,
        "change": "expand",
        "pool": G5,
        "before": 0,
        "after": 2,
        "dollarsPerHour": 3.0,
        "why": "jobs",
    }
    world.pools["history"] = [event | {"jobs": ["a", "b"], "jobCount": 9}]
    created = {"pool": G5, "instanceType": G5, "instances": 2, "dollarsPerHour": 3.0}
    world.planned = {
        "reason": {"type": "Shrinks", "message": "others shrink", "shrinks": ["e"]},
        "wouldPreempt": ["p"],
        "wouldStart": ["s"],
        "wouldDelay": [{"jobName": "d", "bySeconds": 60}],
        "wouldCreate": [created],
        "wouldChange": [event],
        "wouldTake": {P5: 1},
    }
    world.settings["shares"]["vision"]["roles"] = ["arn"]
    world.entries = [an_entry("settings", before={"order": "fifo"}, after={"order": "fair"})]
    compared = {"askedAt": MOMENT, "askedBy": "arn", "adopt": False, "comparedAt": MOMENT, "differences": []}
    world.manager["pause"] = {"reason": "r", "by": "arn", "at": MOMENT}
    world.manager["restore"] = compared | {"leftOut": 0, "adopted": [], "failed": []}
    world.differences = [
        {"job": "a", "trainingJob": "t", "kind": "newer", "stored": "pending", "status": "s", "action": "adopt"}
    ]
    world.imported = [{"jobName": "a", "outcome": "conflict", "message": "another job has the name"}]
    # Headers are ASCII without line breaks.
    world.headers = [(VERSION_HEADER, "0.2.0" + "".join(each for each in text if each in HEADER))]
    return world


def run(command: tuple[tuple[str, ...], str | None], text: str, *more: str) -> Result:
    arguments, stdin = command
    session = aws_session(aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret", region_name="us-east-1")
    transport: Any = httpx.WSGITransport(app=a_world(text))
    retry = Retry(max_attempts=1, sleep=lambda _: None, rng=random.Random(1))
    with ApiClient(f"https://api{STAGE}", session=session, transport=transport, retry=retry, environ={}) as api:
        return Terminal(api, meanwhile=[lambda: None] * 3)(*arguments, *more, stdin=stdin)


def unseen(output: str) -> list[str]:
    """Characters that control a terminal or reorder what it shows."""
    shown = output.replace("\n", "")
    return [character for character in shown if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def check(command: tuple[tuple[str, ...], str | None], text: str) -> None:
    hostile, harmless = run(command, text), run(command, "x" * len(text))
    for seen, expected in ((hostile.stdout, harmless.stdout), (hostile.stderr, harmless.stderr)):
        assert unseen(seen) == []
        assert len(seen.splitlines()) == len(expected.splitlines())
    assert hostile.exit_code == harmless.exit_code


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_shows_hostile_text_without_effect(name: str) -> None:
    check(COMMANDS[name], HOSTILE)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - WITHOUT_JSON))
def test_each_command_prints_json_that_has_the_text_unchanged_and_no_controls(name: str) -> None:
    result = run(COMMANDS[name], HOSTILE, "--json")
    assert unseen(result.output) == []
    if result.stdout:
        assert HOSTILE in _strings(json.loads(result.stdout))


@pytest.mark.parametrize("command", [("ls", "--all"), ("show", "failed")])
def test_yaml_has_the_text_unchanged_and_no_controls(command: tuple[str, ...]) -> None:
    result = run((command, None), HOSTILE, "-o", "yaml")
    assert unseen(result.output) == []
    assert HOSTILE in _strings(yaml.safe_load(result.stdout))


def _strings(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(map(_strings, value.values()))
    return "".join(map(_strings, value)) if isinstance(value, list) else str(value)


PARTS = st.sampled_from([HOSTILE, "\x1b[1m", "\x9b", "\n", "\r", "2026-13-45T99:99:99Z", "[bold]", "{", "%s", "\u202e"])


@given(st.sampled_from(sorted(COMMANDS)), st.lists(PARTS | st.text(max_size=3), max_size=6).map("".join))
@examples(25, deadline=None)
def test_no_text_has_an_effect_in_any_command(name: str, text: str) -> None:
    check(COMMANDS[name], text)


def test_no_command_is_left_out() -> None:
    whole = typer.main.get_command(build())
    rows = {_path_of(whole, arguments) for arguments, _ in COMMANDS.values()}
    left_out = {path for path in _paths(whole) if path not in rows | OF_PROGRAMS and path[0] not in ALONE}
    assert left_out == set(), "add them to COMMANDS"


def test_a_new_command_would_be_missed() -> None:
    app = build()
    app.command("other")(lambda: None)
    assert ("other",) in set(_paths(typer.main.get_command(app)))


def _paths(command: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that can be called."""
    for name, one in command.commands.items():
        inside = getattr(one, "commands", None)
        if inside is None or one.invoke_without_command:
            yield (*above, name)
        if inside is not None:
            yield from _paths(one, (*above, name))


def _path_of(command: Any, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the words of these arguments that name the command."""
    inside = getattr(command, "commands", {}).get(arguments[0]) if arguments else None
    return () if inside is None else (arguments[0], *_path_of(inside, arguments[1:]))


def test_on_a_terminal_only_our_own_words_have_colors() -> None:
    job: Any = sanitize(with_text(a_view("j", "failed", failureReason="bad"), HOSTILE))
    ours = {typer.style("failed", fg="red"), typer.style("pending")}
    for table in (jobs_table([job], NOW, colored, width=200), history_table(job["history"], NOW, colored)):
        rest = re.sub("|".join(map(re.escape, ours)), "", table)
        assert unseen(rest) == []


def test_markup_in_names_and_reasons_is_shown_as_it_is() -> None:
    reason = {"type": "X", "message": "[red]no[/] [link=file:///etc/passwd]capacity[/link]"}
    job: Any = a_view("[bold]j[/bold]", reason=reason)
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=True, color_system=None)
    console.print(LiveTable(console, lambda: NOW).renderable([job]))
    assert "[bold]j[/bold]" in out.getvalue()
    assert reason["message"] in out.getvalue()


@pytest.mark.parametrize(
    "of_job",
    [
        sentence_of,
        lambda job: _progress(job).rstrip("\n"),
        lambda job: str(Conflict(job["failureReason"], field=job["jobName"], hint=job["share"])),
    ],
)
def test_what_sdks_print_is_one_line_without_controls(of_job: Callable[[Any], str]) -> None:
    job: Any = with_text(a_view("j", reason=waits_for_capacity(), failureReason="bad"), HOSTILE)
    assert unseen(of_job(job)) == []
    assert len(of_job(job).splitlines()) == 1


def _progress(job: Any) -> str:
    out = io.StringIO()
    Progress(out, in_place=False)(job)
    return out.getvalue()
