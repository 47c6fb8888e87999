"""`trainmaster shares`: the shares as tables, or for programs."""

from __future__ import annotations

import csv
import json

from cli_terminal import Terminal
from fake_api import G5, P5, FakeApi, a_budget, a_part, a_share


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_two_tables_show_parts_of_pools_and_usage(world: FakeApi, run: Terminal) -> None:
    world.shares = [
        a_share("speech", a_part(own=4, used=1, lent=2), running=1, fadedGpuHours=1234.56, budget=a_budget()),
        a_share("vision", a_part(own=2, used=4), a_part(G5, used=1), waiting=3, weight=2.0),
    ]
    parts, usage = run("shares").stdout.split("\n\n")
    assert rows(parts)[0] == ["Share", "Pool", "Own", "Used", "Borrowed", "Lent"]
    assert rows(parts)[2:] == [
        ["speech", P5, "4", "1", "0", "2"],
        ["vision", P5, "2", "4", "2", "0"],
        ["vision", G5, "0", "1", "1", "0"],
    ]
    assert "Renews (UTC)" in usage
    assert "$ Left" not in usage
    assert rows(usage)[2:] == [
        ["speech", "1", "1", "0", "1,234.6", "60.0", "of", "100.0", "2026-11-23", "00:00:00"],
        ["vision", "2", "0", "3", "0.0"],
    ]


def test_limits_and_holds_have_columns_where_there_are_any(world: FakeApi, run: Terminal) -> None:
    world.shares = [a_share("a", a_part(own=2, held=1, limit=3, maxPerUser=0)), a_share("b", a_part(used=1))]
    parts = rows(run("shares").stdout.partition("\n\n")[0])
    assert parts[0] == ["Share", "Pool", "Own", "Used", "Borrowed", "Lent", "Held", "Limit", "Per", "User"]
    assert [line[6:] for line in parts[2:]] == [["1", "3", "0"], []]


def test_programs_get_all_values(world: FakeApi, run: Terminal) -> None:
    world.shares = [a_share("a", a_part(own=2, used=3), budget=a_budget(spent=True)), a_share("=b")]
    assert json.loads(run("shares", "-o", "json").stdout)["shares"] == world.shares
    assert json.loads(run("shares", "--json").stdout)["shares"] == world.shares
    assert "name: =b" in run("shares", "-o", "yaml").stdout
    first, second = csv.DictReader(run("shares", "-o", "csv").stdout.splitlines())
    assert (first["share"], first["pool"], first["own"], first["borrowed"]) == ("a", P5, "2", "1")
    assert (first["budget.gpuHoursLeft"], first["budget.spent"]) == ("60.0", "True")
    assert (second["share"], second["pool"], second["budget.spent"]) == ("'=b", "", "")


def test_a_share_without_pools_has_only_usage(world: FakeApi, run: Terminal) -> None:
    world.shares = [a_share("a", waiting=1)]
    assert run("shares").stdout.splitlines()[0].startswith("Share  Weight")
