"""`trainmaster usage`: a report as a table, or for programs."""

from __future__ import annotations

import csv
import json

from cli_terminal import Terminal
from fake_api import FakeApi, a_usage_group

VISION = a_usage_group(
    "vision", 60.0, 600.0, jobs=3, completed=2, failed=1, instanceHours=10.0, acceleratorHours=80.0, dollars=1234.5
)


def test_the_table_has_a_row_for_each_group_and_the_total(world: FakeApi, run: Terminal) -> None:
    world.usage = [(a_usage_group(None, 60.0, jobs=3, preemptions=1, lostAcceleratorHours=4.0), [VISION])]
    lines = run("usage").stdout.splitlines()
    assert lines[0] == "2026-11-13 12:00:00 to 2026-11-20 12:00:00 (UTC)"
    assert lines[2].split("  ")[0] == "Share"
    assert lines[4].split() == ["vision", "3", "2", "1", "0", "10.0", "80.0", "1,234.50", "10m", "10m", "0", "0.0"]
    assert lines[5].split() == ["Total", "3", "0", "0", "0", "0.0", "0.0", "0.00", "60s", "60s", "1", "4.0"]


def test_the_period_and_the_groups_are_asked_for(world: FakeApi, run: Terminal) -> None:
    run("usage", "--from", "2026-11-01", "--to", "2026-11-08", "--by", "user")
    _, path, query = world.calls[0]
    assert path == "/usage"
    assert query == {"from": "2026-11-01T00:00:00+00:00", "to": "2026-11-08T00:00:00+00:00", "by": "user"}


def test_all_parts_are_added_up(world: FakeApi, run: Terminal) -> None:
    world.usage = [
        (a_usage_group(None, 5.0, 90.0, jobs=2), [a_usage_group("b", 5.0, 90.0, jobs=2)]),
        (a_usage_group(None, 30.0, 40.0, jobs=2, dollars=7.5), [a_usage_group("a", 30.0, jobs=1)]),
        (a_usage_group(None, jobs=1), [a_usage_group("b", jobs=1, dollars=0.25)]),
    ]
    found = json.loads(run("usage", "--json").stdout)
    assert (found["jobsRead"], found["nextCursor"]) == (3, None)
    assert (found["total"]["jobs"], found["total"]["dollars"]) == (5, 7.5)
    assert found["total"]["waits"] == [5.0, 30.0, 40.0, 90.0]
    assert (found["total"]["waitP50Seconds"], found["total"]["waitP95Seconds"]) == (30.0, 90.0)
    assert [(group["name"], group["jobs"], group["dollars"]) for group in found["groups"]] == [
        ("a", 1, 0.0),
        ("b", 3, 0.25),
    ]
    # All parts are of the period of the first, which ends when it was read.
    assert {(query["from"], query["to"]) for _, _, query in world.calls[1:]} == {(found["from"], found["to"])}


def test_programs_get_rows_without_a_total(world: FakeApi, run: Terminal) -> None:
    world.usage = [(a_usage_group(None), [VISION, a_usage_group("=x")])]
    first, second = csv.DictReader(run("usage", "--csv").stdout.splitlines())
    assert (first["share"], first["dollars"], first["waitP95Seconds"]) == ("vision", "1234.5", "600.0")
    assert (second["share"], second["waitP50Seconds"]) == ("'=x", "")
    assert run("usage", "-o", "csv").stdout == run("usage", "--csv").stdout


def test_what_the_numbers_lack_is_said(world: FakeApi, run: Terminal) -> None:
    world.usage = [(a_usage_group(None, unpricedInstanceHours=3.0, unlistedAttempts=60), [])]
    assert run("usage").stderr.splitlines() == [
        "3.0 instance hours have no known price: `trainmaster pools set POOL=CAP --price DOLLARS` sets one.",
        "The hours of 60 attempts that jobs no longer list are missing.",
    ]
