"""Times in local time or UTC: the zone, the one format, and the options that take a time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st

from cli_terminal import NOW, Terminal
from fake_api import FakeApi, an_attempt, starts, waits_for_capacity
from trainmaster.cli.common.moments import moment_option
from trainmaster.cli.output.times import format_moment, job_sentence, timestamp
from trainmaster.client.views.moments import LOCAL, zone_name

BERLIN = ZoneInfo("Europe/Berlin")
SUMMER, WINTER = "2026-07-01T12:00:00Z", "2026-01-01T12:00:00Z"


@pytest.fixture
def in_berlin() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def test_the_local_zone_is_that_of_tz_with_the_offset_of_each_moment(in_berlin: None) -> None:
    now = datetime(2026, 11, 20, 13, 0, tzinfo=UTC).astimezone(LOCAL)
    assert (timestamp(SUMMER, now), timestamp(WINTER, now)) == ("2026-07-01 14:00:00", "2026-01-01 13:00:00")
    assert format_moment(SUMMER, now).startswith("2026-07-01 14:00:00 CEST (")
    assert format_moment(WINTER, now).startswith("2026-01-01 13:00:00 CET (")
    assert zone_name(now) == "CET"


@example(datetime(2026, 10, 25, 0, 30, tzinfo=UTC))
@example(datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
@given(st.integers(946_684_800, 2_114_380_800).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)))
def test_local_times_are_those_of_the_zone_and_go_back_to_the_same_moment(moment: datetime) -> None:
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    try:
        local = moment.astimezone(LOCAL)
        assert local.replace(tzinfo=None) == moment.astimezone(BERLIN).replace(tzinfo=None)
        assert local.astimezone(UTC) == moment
    finally:
        del os.environ["TZ"]
        time.tzset()


def test_the_hour_that_comes_twice_has_the_name_of_its_zone(in_berlin: None) -> None:
    now = datetime(2026, 10, 25, 12, 0, tzinfo=UTC).astimezone(LOCAL)
    assert format_moment("2026-10-25T00:30:00Z", now).startswith("2026-10-25 02:30:00 CEST (")
    assert format_moment("2026-10-25T01:30:00Z", now).startswith("2026-10-25 02:30:00 CET (")


def test_a_long_name_of_a_zone_is_its_offset() -> None:
    zone = timezone(timedelta(hours=1), "W. Europe Standard Time")
    assert format_moment(WINTER, NOW.astimezone(zone)).startswith("2026-01-01 13:00:00 +0100 (")


def test_every_time_of_a_job_is_in_the_zone_and_with_utc_in_utc(world: FakeApi, run: Terminal) -> None:
    run.zone = BERLIN
    reason = waits_for_capacity() | {"message": "waits until 2026-11-20T14:00:00Z"}
    attempts = [an_attempt("job1", outcome="preempted", endedAt="2026-11-20T12:20:05Z", reason="preempted")]
    world.add("job1", "preempted", position=1, reason=reason, attempts=attempts, **starts("2026-11-20T16:00:00Z"))
    for command in (("show", "job1"), ("why", "job1"), ("priority", "job1", "3"), ("wait", "job1", "--timeout", "0")):
        local, utc = run(*command).output, run(*command, "--utc").output
        assert ("CET" in local, "UTC" in local) == (True, False), command
        assert ("CET" in utc, "UTC" in utc) == (False, True), command
        assert "17:00:00" in local
        assert "16:00:00" in utc
        assert "Z" not in local, "a time as the API writes it"
    assert "2026-11-20T12:00:00Z" in run("show", "job1", "--json").stdout
    assert "CET" not in run("why", "job1", "--json").stdout, "programs read UTC"


def test_the_sentence_of_a_job_has_one_zone() -> None:
    job: dict[str, Any] = {
        "jobName": "a",
        "jobState": "pending",
        "reason": waits_for_capacity() | {"message": "until 2026-11-20T14:00:00Z"},
    }
    job |= starts("2026-11-20T14:00:00Z", "2026-11-20T13:00:00Z", "2026-11-20T15:00:00Z")
    assert job_sentence(job, NOW.astimezone(BERLIN)) == (  # type: ignore[arg-type]
        "Waiting in the queue; estimated start 2026-11-20 15:00:00 CET (2026-11-20 14:00:00 to 2026-11-20 16:00:00); "
        "until 2026-11-20 15:00:00 CET (in 60 minutes)."
    )


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2h", "2026-11-20T11:00:00+00:00"),
        ("3D", "2026-11-17T13:00:00+00:00"),
        ("90s", "2026-11-20T12:58:30+00:00"),
        ("1w", "2026-11-13T13:00:00+00:00"),
        ("2026-11-20", "2026-11-19T23:00:00+00:00"),
        ("2026-11-20T09:30", "2026-11-20T08:30:00+00:00"),
        ("2026-11-20 09:30", "2026-11-20T08:30:00+00:00"),
        ("2026-11-20T09:30Z", "2026-11-20T09:30:00+00:00"),
        (None, None),
    ],
)
def test_an_option_takes_a_time_that_is_local_unless_it_says_otherwise(text: str | None, moment: str | None) -> None:
    assert moment_option(text, NOW.astimezone(BERLIN)) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "2 h", "5y", "-2h", "h", "2026-13-01", "0001-01-01"])
def test_a_wrong_time_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a time: use a time such as 2030-01-31"):
        moment_option(text, NOW.astimezone(BERLIN))
