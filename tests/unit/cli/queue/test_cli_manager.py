"""`trainmaster pause`, `resume` and `restore`."""

from __future__ import annotations

import json

from cli_terminal import Terminal
from fake_api import FakeApi

DIFFERENCE = {
    "job": "job1", "trainingJob": "job1-qstamp-2", "kind": "newer", "stored": "pending", "status": "InProgress",
    "action": "the job takes the attempt as its own",
}  # fmt: skip


def paused(run: Terminal) -> None:
    """The manager is paused, and makes each comparison while a command waits for it."""
    run("pause")
    run.meanwhile = [lambda: None, lambda: None]


def changes(world: FakeApi) -> list[tuple[str, str]]:
    return [(method, path) for method, path, *_ in world.calls if method != "GET"]


def test_the_manager_is_paused_with_a_reason_and_resumed(world: FakeApi, run: Terminal) -> None:
    assert run("pause", "--reason", "restore").stdout == "The manager is paused.\n"
    assert world.manager["pause"]["reason"] == "restore"
    assert run("resume").stdout == "The manager goes on.\n"
    assert world.manager["pause"] is None


def test_a_restore_needs_a_pause(world: FakeApi, run: Terminal) -> None:
    result = run("restore")
    assert result.exit_code != 0
    assert "The manager is not paused." in result.stderr


def test_a_dry_run_lists_differences_and_adopts_nothing(world: FakeApi, run: Terminal) -> None:
    paused(run)
    world.differences = [DIFFERENCE]
    line = run("restore", "--dry-run").stdout.splitlines()[-1]
    assert line.split()[:5] == ["job1", "job1-qstamp-2", "newer", "pending", "InProgress"]
    assert world.manager["restore"]["adopt"] is False
    assert world.manager["pause"] is not None


def test_differences_are_adopted_and_the_manager_goes_on(world: FakeApi, run: Terminal) -> None:
    paused(run)
    world.differences = [DIFFERENCE]
    result = run("restore", "--yes", "--json")
    assert json.loads(result.stdout)["adopted"] == ["job1"]
    assert changes(world)[1:] == [("POST", "/restore"), ("POST", "/restore"), ("DELETE", "/pause")]


def test_without_differences_the_manager_goes_on_at_once(world: FakeApi, run: Terminal) -> None:
    paused(run)
    result = run("restore")
    assert result.stdout == "The table and SageMaker agree.\n"
    assert changes(world)[1:] == [("POST", "/restore"), ("DELETE", "/pause")]
