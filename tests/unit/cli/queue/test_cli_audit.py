"""`trainmaster audit`: changes with their callers, as a table or as JSON."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cli_terminal import NOW, Terminal
from fake_api import FakeApi, an_entry


def asked(world: FakeApi) -> dict[str, str]:
    """The query of the first call."""
    method, path, query = world.calls[0]
    assert (method, path) == ("GET", "/audit")
    return dict(query)


def test_a_change_is_one_line(world: FakeApi, run: Terminal) -> None:
    world.entries = [an_entry(), an_entry("submit", before={}, after={"state": "pending", "priority": 3})]
    lines = run("audit").stdout.splitlines()
    assert lines[0].split("  ")[0] == "Time (UTC)"
    assert lines[2].split() == [
        "2026-11-20",
        "12:00:00",
        "priority",
        "job1",
        "user/ann",
        "198.51.100.7",
        "priority:",
        "1",
        "->",
        "9",
    ]
    assert lines[3].endswith("state: pending; priority: 3")


def test_a_large_change_is_cut_in_the_table_and_whole_in_json(world: FakeApi, run: Terminal) -> None:
    world.entries = [an_entry("settings", job=None, before={}, after={f"k{number}": number for number in range(5)})]
    assert run("audit").stdout.splitlines()[-1].endswith("k0: 0; k1: 1; k2: 2; 2 more")
    assert json.loads(run("audit", "--json").stdout) == world.entries


def test_removed_values_and_unknown_callers_say_so(world: FakeApi, run: Terminal) -> None:
    world.entries = [an_entry("pools", job=None, arn=None, principal=None, sourceIp=None, before={"p": 1}, after={})]
    line = run("audit").stdout.splitlines()[-1]
    assert line.split() == ["2026-11-20", "12:00:00", "pools", "unknown", "p:", "1", "->", "removed"]


def test_all_pages_are_read_up_to_the_limit(world: FakeApi, run: Terminal) -> None:
    world.entries = [an_entry(job=f"job{number}") for number in range(250)]
    assert len(json.loads(run("audit", "--limit", "220", "--json").stdout)) == 220
    result = run("audit", "--limit", "2")
    assert "There are more changes than these: see --limit." in result.stderr


def test_filters_are_passed_on(world: FakeApi, run: Terminal) -> None:
    run("audit", "--job", "job1", "--who", "ann", "--action", "hold", "--until", "2026-11-20")
    assert asked(world) == {
        "job": "job1",
        "who": "ann",
        "action": "hold",
        "until": "2026-11-20T00:00:00+00:00",
        "limit": "100",
    }


@pytest.mark.parametrize(("text", "ago"), [("90m", 90), ("12h", 720), ("90d", 129_600)])
def test_a_time_may_be_a_duration_before_now(world: FakeApi, run: Terminal, text: str, ago: int) -> None:
    run("audit", "--since", text)
    assert asked(world)["since"] == (NOW - timedelta(minutes=ago)).isoformat()


@pytest.mark.parametrize("arguments", [("--since", "yesterday"), ("--action", "start"), ("--limit", "0")], ids=str)
def test_an_invalid_option_is_refused_before_any_call(
    world: FakeApi, run: Terminal, arguments: tuple[str, ...]
) -> None:
    assert run("audit", *arguments).exit_code == 2
    assert world.calls == []
