"""`trainmaster settings`: shown by line, set from a file or individually, and their schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cli_terminal import Terminal
from fake_api import G5, P5, FakeApi, some_settings
from trainmaster.cli.queue.setting_paths import parse_value, remove_value, set_value, setting_lines, split_path
from trainmaster.client.api.errors import Refused

SHARE = some_settings()["shares"]["vision"]


def sent(world: FakeApi) -> dict[str, Any]:
    """Return the settings of the last PUT."""
    method, path, body = world.calls[-1]
    assert (method, path) == ("PUT", "/settings")
    return dict(body)


def test_settings_are_shown_as_set_takes_them(world: FakeApi, run: Terminal) -> None:
    assert run("settings").stdout.splitlines() == [
        "order=backfill",
        "preemption.minRuntimeSeconds=0",
        "preemption.maxPreemptions=null",
        f"shares.vision.nominal.{P5}=2",
        "shares.vision.lending=lend",
        "shares.vision.lends={}",
        "shares.vision.weight=1.0",
        "shares.vision.budget=null",
        "shares.vision.admins=[]",
        "shares.vision.submitters=[]",
        "shares.vision.resizers=[]",
    ]
    assert json.loads(run("settings", "--json").stdout) == some_settings()


def test_single_settings_leave_the_others_as_they_are(world: FakeApi, run: Terminal) -> None:
    result = run("settings", "set", "order=fifo", "preemption.minRuntimeSeconds=600", f"shares.vision.lends.{P5}=1")
    assert result.exit_code == 0
    assert sent(world) == {
        "order": "fifo",
        "preemption": {"minRuntimeSeconds": 600, "maxPreemptions": None},
        "shares": {"vision": {**SHARE, "lends": {P5: 1}}},
        "version": 4,
    }
    assert "order: backfill -> fifo\n" in result.stdout


def test_a_share_is_made_by_what_is_said_of_it(world: FakeApi, run: Terminal) -> None:
    run("settings", "set", f"shares.a.b.nominal.{G5}=8", "shares.a.b.budget.gpuHours=10.5", 'shares.c={"weight": 2}')
    assert sent(world)["shares"] == {
        "vision": SHARE,
        "a.b": {"nominal": {G5: 8}, "budget": {"gpuHours": 10.5}},
        "c": {"weight": 2},
    }


def test_a_file_replaces_all_settings(world: FakeApi, run: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"$schema": "schema.json", "order": "fair"}')
    assert run("settings", "set", str(file)).exit_code == 0
    assert sent(world) == {"order": "fair"}
    assert run("settings", "set", "-", stdin='{"order": "fifo", "version": 5}').exit_code == 0
    assert sent(world) == {"order": "fifo", "version": 5}


def test_settings_shown_as_json_can_be_set(world: FakeApi, run: Terminal) -> None:
    shown = run("settings", "--json").stdout
    assert run("settings", "set", "-", stdin=shown).exit_code == 0
    assert sent(world) == some_settings()


def test_a_version_of_a_file_that_is_not_in_force_any_more_is_a_conflict(world: FakeApi, run: Terminal) -> None:
    result = run("settings", "set", "-", stdin='{"order": "fifo", "version": 3}')
    assert (result.exit_code, result.stdout) == (4, "")


def test_concurrent_changes_are_kept(world: FakeApi, run: Terminal) -> None:
    def another_writer() -> None:
        world.on_set_settings = lambda: None
        world.settings = {**world.settings, "order": "fair", "version": 5}

    world.on_set_settings = another_writer
    assert run("settings", "set", "preemption.maxPreemptions=3").exit_code == 0
    assert (world.settings["order"], world.settings["preemption"]["maxPreemptions"], world.settings["version"]) == (
        "fair",
        3,
        6,
    )


def test_where_others_never_stop_it_is_given_up(world: FakeApi, run: Terminal) -> None:
    world.on_set_settings = lambda: world.settings.update(version=world.settings["version"] + 1)
    assert run("settings", "set", "order=fifo").exit_code == 4
    assert sum(call[0] == "PUT" for call in world.calls) == 5


def test_unset_goes_back_to_the_default(world: FakeApi, run: Terminal) -> None:
    assert run("settings", "unset", "preemption.maxPreemptions", "shares.vision").exit_code == 0
    assert sent(world)["preemption"] == {"minRuntimeSeconds": 0}
    assert sent(world)["shares"] == {}
    assert run("settings", "unset", "shares.speech").exit_code == 2


def test_a_wrong_setting_is_told_with_its_field(world: FakeApi, run: Terminal) -> None:
    result = run("settings", "set", "order=lifo")
    assert result.exit_code == 2
    assert result.stderr == "Error: order is lifo. It should be 'fifo', 'backfill' or 'fair'. Did you mean fifo?\n"
    assert world.settings == some_settings()


@pytest.mark.parametrize(
    "arguments", [["order=fifo", "file.json"], ["=5"], ["nothing.json"], ["order.first=1"], ["order=fifo", ""]]
)
def test_invalid_assignments_are_rejected_before_any_change(
    world: FakeApi, run: Terminal, arguments: list[str]
) -> None:
    assert run("settings", "set", *arguments).exit_code == 2
    assert not [call for call in world.calls if call[0] == "PUT"]


def test_the_schema_checks_settings_files(run: Terminal) -> None:
    schema = json.loads(run("settings", "schema").stdout)
    validator = Draft202012Validator(schema)
    Draft202012Validator.check_schema(schema)
    page = (Path(__file__).parents[4] / "docs" / "reference" / "settings.md").read_text()
    validator.validate(json.loads(page.split("```json\n")[1].split("```")[0]))
    for wrong in ({"ordre": "fifo"}, {"shares": {"a": {"weight": -1}}}, {"preemption": {"maxPreemptions": True}}):
        assert not validator.is_valid(wrong)


# -- paths


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("order", ["order"]),
        ("preemption.maxPreemptions", ["preemption", "maxPreemptions"]),
        ("retries.spot.firstDelaySeconds", ["retries", "spot", "firstDelaySeconds"]),
        ("shares", ["shares"]),
        ("shares.vision", ["shares", "vision"]),
        ("shares.a.b", ["shares", "a.b"]),
        ("shares.weight", ["shares", "weight"]),
        ("shares.weight.weight", ["shares", "weight", "weight"]),
        ("shares.a.b.budget.gpuHours", ["shares", "a.b", "budget", "gpuHours"]),
        (f"shares.a.nominal.{P5}", ["shares", "a", "nominal", P5]),
        ("shares.a.nominal", ["shares", "a", "nominal"]),
        (f"shares.a.b.maxPerUser.{P5}", ["shares", "a.b", "maxPerUser", P5]),
    ],
)
def test_a_path_is_read_along_the_members_that_settings_have(path: str, steps: list[str]) -> None:
    assert split_path(path) == steps


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("fifo", "fifo"),
        ("600", 600),
        ("0.5", 0.5),
        ("true", True),
        ("null", None),
        ('"600"', "600"),
        ('{"a": 1}', {"a": 1}),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_a_value_is_json_or_itself(text: str, value: object) -> None:
    assert parse_value(text) == value


def test_the_listed_settings_reproduce_the_document() -> None:
    made: dict[str, Any] = {}
    for line in setting_lines(some_settings()):
        path, _, text = line.partition("=")
        made = set_value(made, path, parse_value(text))
    assert made == some_settings()


def test_nothing_is_changed_in_place() -> None:
    before = some_settings()
    assert set_value(before, "shares.vision.weight", 3) != before
    assert remove_value(before, "shares.vision.weight") != before
    assert before == some_settings()
    with pytest.raises(Refused):
        remove_value(before, "preemption.cooldown")
