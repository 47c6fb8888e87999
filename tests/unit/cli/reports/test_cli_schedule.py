"""`trainmaster schedule`: bars over time, or rows for programs."""

from __future__ import annotations

import csv
import json
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cli_terminal import NOW, Terminal
from fake_api import P5, FakeApi, an_interval
from trainmaster.cli.reports.schedule import schedule_chart


def day(hours: int) -> str:
    return (datetime.fromisoformat("2026-11-20T12:00:00+00:00") + timedelta(hours=hours)).isoformat()


def lines_of(text: str) -> dict[str, str]:
    """The lines of jobs by name."""
    return {line.split()[0]: line for line in text.splitlines()[1:] if line.startswith("  ")}


def test_each_kind_has_its_mark_at_its_time(world: FakeApi, run: Terminal) -> None:
    world.intervals = [
        an_interval("past", "old", day(-24), day(-12), units=2),
        an_interval("running", "runs", day(-6), day(12)),
        an_interval("planned", "waits", day(12), day(24)),
        an_interval("external", None, day(0), None, units=3),
    ]
    text = run("schedule").stdout
    bars = lines_of(text)
    assert text.splitlines()[2] == f"{P5} (cap 2)"
    assert all(len(line) <= 100 for line in text.splitlines())
    counts = {name: {mark: bar.count(mark) for mark in "#=-x|" if mark in bar} for name, bar in bars.items()}
    # 100 columns less those of names and units show 72 hours.
    width = 100 - len("(external)") - 1 - 5
    assert counts["old"] == {"#": round(width / 6), "|": 1}
    assert abs(counts["runs"]["="] - width / 4) <= 1
    assert abs(counts["waits"]["-"] - width / 6) <= 1
    assert abs(counts["(external)"]["x"] - width * 2 / 3) <= 1
    assert bars["(external)"].split()[1] == "3"


def test_an_unknown_pool_is_an_error_and_not_an_empty_chart(world: FakeApi, run: Terminal) -> None:
    result = run("schedule", "--pool", "ml.p5")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == f"Error: There is no pool ml.p5. Did you mean '{P5}'? The pools are: {P5}.\n"


def test_attempts_of_one_job_share_a_line(world: FakeApi, run: Terminal) -> None:
    world.intervals = [an_interval("past", "a", day(-9), day(-6)), an_interval("planned", "a", day(6), day(9), units=4)]
    (bar,) = lines_of(run("schedule").stdout).values()
    assert (bar.split()[1], "#" in bar, "-" in bar) == ("4", True, True)


def test_the_lines_nearest_to_now_are_shown(world: FakeApi, run: Terminal) -> None:
    world.intervals = [an_interval("past", f"p{n}", day(-n - 1), day(-n)) for n in range(9, 0, -1)]
    lines = [line for line in run("schedule", "--rows", "3").stdout.splitlines()[1:] if line.startswith("  ")]
    assert [line.split()[0] for line in lines] == ["p3", "p2", "p1", "6"]


def test_the_axis_fits_what_there_is_unless_a_period_is_asked_for(world: FakeApi, run: Terminal) -> None:
    world.intervals = [an_interval("past", "old", day(-2), day(-1)), an_interval("planned", "waits", day(1), day(2))]
    width = 100 - len("waits") - 1 - 5
    fitted, asked = run("schedule").stdout, run("schedule", "--from", "1d").stdout
    for name, mark in (("old", "#"), ("waits", "-")):
        assert abs(lines_of(fitted)[name].count(mark) - width / 4) <= 1
        assert lines_of(asked)[name].count(mark) <= 2
    assert fitted.split()[:2] == ["11-20", "10:00"]


def test_an_axis_of_nothing_is_the_whole_period(world: FakeApi, run: Terminal) -> None:
    assert run("schedule").stdout.split()[:2] == ["11-19", "12:00"]


def test_the_period_and_the_pool_are_asked_for(world: FakeApi, run: Terminal) -> None:
    run("schedule", "--from", "6h", "--to", "+1d", "--pool", P5)
    query = world.calls[0][2]
    assert datetime.fromisoformat(query["from"]) == NOW - timedelta(hours=6)
    assert datetime.fromisoformat(query["to"]) == NOW + timedelta(days=1)
    assert query["pool"] == P5


def test_programs_get_each_interval(world: FakeApi, run: Terminal) -> None:
    world.intervals = [an_interval("running", "=a", day(-6), None, attempt=2)]
    (row,) = csv.DictReader(run("schedule", "-o", "csv").stdout.splitlines())
    assert (row["pool"], row["kind"], row["jobName"], row["attempt"], row["until"]) == (P5, "running", "'=a", "2", "")
    assert json.loads(run("schedule", "--json").stdout)["pools"][0]["intervals"] == world.intervals


@given(
    st.lists(
        st.tuples(st.sampled_from(["past", "running", "planned"]), st.integers(-90, 90), st.integers(0, 90)), max_size=9
    ),
    st.integers(40, 160),
)
def test_lines_keep_to_the_width_whatever_is_in_them(spans, width):  # type: ignore[no-untyped-def]
    intervals = [an_interval(kind, f"j{n}", day(at), day(at + hours)) for n, (kind, at, hours) in enumerate(spans)]
    api = FakeApi()
    api.intervals = intervals
    found = api.get_schedule({})[1]
    lines = schedule_chart(found, NOW, width, 20).splitlines()
    assert all(len(line) <= width for line in lines[:-1])
    assert sum(line.startswith("  j") for line in lines) == len(spans)
