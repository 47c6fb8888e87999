"""`trainmaster settings replay`: a draft beside the settings in force, replayed by a program of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli_terminal import NOW, Terminal
from fake_api import FakeApi
from trainmaster.cli.queue.settings_replay import replay_text
from trainmaster.domain.text import sanitize

FIGURES = {
    "jobs": 2,
    "ended": 2,
    "waitP50Seconds": 60.0,
    "waitP95Seconds": 3600.0,
    "completionP50Seconds": 7200.0,
    "completionP95Seconds": 7200.0,
    "preemptions": 1,
    "lostInstanceHours": 0.5,
    "dollars": 1234.5,
}


def a_report(name: str = "job1") -> dict:
    """A report in which the draft changes one job."""
    before = {"total": FIGURES, "shares": [{"name": name, **FIGURES}], "priorities": [{"name": "5", **FIGURES}]}
    faster = FIGURES | {"waitP95Seconds": 600.0, "preemptions": 0}
    after = {"total": faster, "shares": [{"name": name, **faster}], "priorities": [{"name": "5", **FIGURES}]}
    sides = [{"waitSeconds": wait, "completionSeconds": 7200.0, "preemptions": 0} for wait in (3600.0, None)]
    return {
        "since": "2026-11-13T12:00:00Z",
        "at": "2026-11-20T12:00:00Z",
        "jobs": 2,
        "leftOut": {"held": 1, "notVisible": 2, "beyondLimit": 1},
        "assumptions": ["Jobs arrive when they really did."],
        "recorded": {"waitP50Seconds": 50.0, "waitP95Seconds": 50.0},
        "inForce": before,
        "draft": after,
        "changedJobs": 1,
        "changed": [{"jobName": name, "share": name, "priority": 5, "inForce": sides[0], "draft": sides[1]}],
    }


def test_both_sides_stand_in_one_table():
    text = replay_text(a_report(), NOW)
    head, figures, jobs, notes = text.split("\n\n")
    assert head.startswith("1 of 2 jobs change with the draft; ")
    assert "60m -> 10m" in figures
    assert "1 -> 0" in figures
    assert figures.count("share job1") == figures.count("priority 5") == 1
    assert "60m -> -" in jobs
    assert notes.splitlines() == [
        "Jobs that are not replayed: 2 that you may not see, 1 held by a person.",
        "The period is shorter than asked for, because a replay has a maximum number of jobs.",
        "The real median wait was 50s.",
        "Jobs arrive when they really did.",
    ]


def test_hostile_names_neither_control_the_terminal_nor_add_lines():
    plain, hostile = replay_text(a_report(), NOW), replay_text(sanitize(a_report("a\x1b[2J\r\nb")), NOW)
    assert "\x1b" not in hostile
    assert "\r" not in hostile
    assert len(hostile.splitlines()) == len(plain.splitlines())


def test_a_draft_is_replayed_and_nothing_is_changed(world: FakeApi, run: Terminal, tmp_path):
    world.page_length = 100
    world.add("job1", "running")
    draft = tmp_path / "draft.json"
    draft.write_text(json.dumps({"order": "fifo", "$schema": "s"}))
    shown = run("settings", "replay", str(draft), "--days", "28", "--json")
    assert shown.exit_code == 0, shown.output
    report = json.loads(shown.stdout)
    assert (report["jobs"], report["draft"]["total"]["jobs"]) == (1, 1)
    assert {method for method, _, _ in world.calls} == {"GET"}


def test_the_commands_of_the_page_succeed(world: FakeApi, run: Terminal, tmp_path, monkeypatch):
    page = Path(__file__).parents[4] / "docs" / "how-to" / "administer.md"
    first, *replays = re.findall(r"^trainmaster (settings (?:--json >|replay).*)$", page.read_text(), re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    command, _, file = first.partition(" > ")
    Path(file).write_text(run(*command.split()).stdout)
    assert len(replays) == 2
    for line in replays:
        assert run(*line.split()).exit_code == 0


def test_a_wrong_draft_is_refused_by_its_field(world: FakeApi, run: Terminal):
    shown = run("settings", "replay", "-", stdin=json.dumps({"preemption": {"maxPreemptions": -1}}))
    assert shown.exit_code == 2
    assert "preemption.maxPreemptions" in shown.stderr


@pytest.mark.parametrize("days", ["0", "29", "-1"])
def test_the_period_is_bounded(run: Terminal, days: str):
    shown = run("settings", "replay", "-", "--days", days, stdin="{}")
    assert shown.exit_code == 2
    assert "28 days" in shown.stderr
