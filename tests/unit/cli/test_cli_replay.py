"""`trainmaster replay` replaces itself with the replay and passes its options on."""

from __future__ import annotations

import sys

import pytest
from typer.main import get_command

from cli_terminal import Terminal
from trainmaster.cli.program import build
from trainmaster.local.replay.options import parse

PROGRAM = [sys.executable, "-m", "trainmaster.local.replay"]
EVERYTHING = {
    "--cap": "8",
    "--policy": "gittins",
    "--vc": "vision",
    "--limit": "10",
    "--restart-cost": "5.0",
    "--guaranteed-lane": "0.5",
    "--eta": "20",
    "--out": "pictures",
    "--days": "3.0",
    "--save-trace": "saved.csv",
    "--compare": None,
    "--json": None,
    "--from-account": None,
}


def test_it_becomes_the_replay_with_what_was_given_and_nothing_else(run: Terminal) -> None:
    assert run("replay", "trace.csv", "--cap", "128", "--policy", "fifo").exit_code == 0
    assert run.started == [[*PROGRAM, "--cap=128", "--policy=fifo", "--", "trace.csv"]]


def test_the_account_is_that_of_the_global_options(run: Terminal) -> None:
    run("replay", "--from-account", "--cap", "8", "--profile", "lab", "--region", "eu-west-1")
    assert run.started == [[*PROGRAM, "--cap=8", "--from-account", "--profile=lab", "--region=eu-west-1"]]


def test_every_option_is_handed_on_and_understood(run: Terminal) -> None:
    command = get_command(build()).commands["replay"]  # type: ignore[attr-defined]
    options = {name for param in command.params if param.param_type_name == "option" for name in param.opts}
    assert options - {"--help"} == EVERYTHING.keys()
    words = [word for name, value in EVERYTHING.items() for word in (name, value) if word is not None]
    run("replay", *words)
    (started,) = run.started
    understood = vars(parse(started[len(PROGRAM) :]))
    assert understood == {
        "trace": None,
        "cap": 8,
        "policy": ["gittins"],
        "compare": True,
        "vc": "vision",
        "limit": 10,
        "restart_cost": 5.0,
        "guaranteed_lane": 0.5,
        "eta": 20,
        "out": "pictures",
        "json": True,
        "from_account": True,
        "days": 3.0,
        "save_trace": "saved.csv",
        "region": None,
        "profile": None,
    }


@pytest.mark.parametrize("name", ["-", "-strange.csv"])
def test_a_trace_may_have_any_name(run: Terminal, name: str) -> None:
    run("replay", "--cap", "8", "--", name)
    assert parse(run.started[0][len(PROGRAM) :]).trace == name


def test_pictures_need_a_package(run: Terminal) -> None:
    run.missing = {"matplotlib"}
    result = run("replay", "trace.csv", "--cap", "8", "--out", "pictures")
    assert (result.exit_code, run.started) == (2, [])
    assert 'pip install "trainmaster[replay]"' in result.stderr
    assert run("replay", "trace.csv", "--cap", "8").exit_code == 0
