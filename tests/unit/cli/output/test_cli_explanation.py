"""The sentences of `why` in each state, and the format of timestamps and durations."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_terminal import NOW
from fake_api import ANN, G5, P5, a_view, an_attempt
from trainmaster.cli.output.explanation import explanation
from trainmaster.cli.output.times import elapsed_time, format_duration, format_moments, relative_time, timestamp
from trainmaster.domain.jobs.job import JobState

SUBMITTED = {"at": "2026-11-20T12:00:00Z", "from": None, "to": "pending", "reason": "submitted", "attempt": None}


def _line(before: str, after: str, reason: str, at: str = "2026-11-20T12:30:00Z") -> dict[str, Any]:
    return {"at": at, "from": before, "to": after, "reason": reason, "attempt": 1}


def _why(state: str, **changes: Any) -> str:
    return explanation(a_view("job1", state, **changes), NOW)


def test_a_job_that_is_sent_back_says_so_and_when_it_is_tried_again() -> None:
    reason = {"type": "BackingOff", "message": "retried at 2026-11-20T13:02:00Z: ResourceLimitExceeded"}
    attempt = an_attempt("job1", outcome="returned", reason="ResourceLimitExceeded: the limit is 0 Instances.")
    text = _why("pending", position=1, reason=reason, attempts=[attempt])
    assert "Attempt 1: ResourceLimitExceeded: the limit is 0 Instances." in text
    assert "It is retried at 2026-11-20 13:02:00 UTC (in 2 minutes): ResourceLimitExceeded." in text
    assert text.endswith("Its start cannot be estimated.")


def test_a_job_that_the_next_pass_starts_says_so() -> None:
    assert _why("pending", position=1).endswith("It starts in the next pass.")


def test_a_job_too_deep_to_count_says_how_deep_at_least() -> None:
    assert "waits at position 1001 or later," in _why("pending", positionAtLeast=1001)


def test_a_reason_of_a_type_that_is_not_known_is_told_as_it_is() -> None:
    assert " No power." in _why("pending", reason={"type": "New", "message": "no power"})


def test_a_preempted_job_names_the_beneficiary_and_keeps_its_place() -> None:
    text = _why("preempted", position=3, attempts=[an_attempt("job1", reason="preempted for job4")])
    assert text.startswith("job1 was preempted and waits at position 3, with priority 0, to resume.")
    assert "Attempt 1: preempted for job4." in text
    assert "It keeps its entry time, 2026-11-20 12:00:00 UTC (60 minutes ago)." in text


def test_a_held_job_names_the_holder_and_the_release_command() -> None:
    lines = [SUBMITTED, _line("pending", "held", f"held by {ANN}"), _line("held", "held", "priority 0 -> 1 by x")]
    assert _why("held", history=lines) == (
        f"job1 was held at 2026-11-20 12:30:00 UTC (30 minutes ago). Held by {ANN}. "
        "It keeps its entry time and waits for `trainmaster release job1`."
    )


def test_a_running_job_says_for_how_long_where_and_whether_it_may_be_preempted() -> None:
    attempts = [an_attempt("job1"), an_attempt("job1", 2)]
    assert _why("running", attempts=attempts, demand=[{P5: 2, G5: 1}], preemptible=False) == (
        f"job1 has been running for 59 minutes on 2 x {P5} + {G5}, as job1-qstamp-2 (attempt 2). It is not preemptible."
    )


def test_a_running_job_whose_start_lies_ahead_of_our_clock_runs_for_no_time() -> None:
    text = _why("running", attempts=[an_attempt("job1", startedAt="2026-11-20T13:00:02Z")])
    assert "running for 0 seconds" in text


def test_a_running_job_whose_stop_was_asked_says_so() -> None:
    asked = _line("running", "running", f"stop requested by {ANN}", "2026-11-20T12:59:30Z")
    lines = [SUBMITTED, asked, _line("running", "running", "priority 0 -> 1 by x")]
    text = _why("running", attempts=[an_attempt("job1")], history=lines)
    assert text.endswith(f"(attempt 1). Stop requested by {ANN} at 2026-11-20 12:59:30 UTC (30 seconds ago).")


def test_a_stop_that_was_asked_of_an_earlier_attempt_is_past() -> None:
    lines = [SUBMITTED, _line("running", "running", "stop asked"), _line("starting", "running", "at work")]
    text = _why("running", attempts=[an_attempt("job1")], history=lines)
    assert text.endswith("A job of higher priority may preempt it.")


def test_a_job_being_preempted_names_the_beneficiary() -> None:
    lines = [SUBMITTED, _line("running", "preempting", "is preempted for job4")]
    text = _why("preempting", attempts=[an_attempt("job1")], history=lines)
    assert "being preempted since 2026-11-20 12:30:00 UTC (30 minutes ago). Is preempted for job4." in text


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("completed", "job1 completed at 2026-11-20 12:30:00 UTC (30 minutes ago), after 2 attempts."),
        ("failed", "job1 failed at 2026-11-20 12:30:00 UTC (30 minutes ago). AlgorithmError: exit code 1."),
        ("stopped", "job1 was stopped at 2026-11-20 12:30:00 UTC (30 minutes ago) for good. Because."),
        ("cancelled", "job1 was cancelled at 2026-11-20 12:30:00 UTC (30 minutes ago) while waiting. Because."),
    ],
)
def test_an_ended_job_says_when_and_why(state: str, told: str) -> None:
    attempts = [an_attempt("job1"), an_attempt("job1", 2)]
    failure = "AlgorithmError: exit code 1" if state == "failed" else None
    lines = [SUBMITTED, _line("running", state, "because")]
    assert _why(state, attempts=attempts, failureReason=failure, history=lines) == told


@pytest.mark.parametrize("state", list(JobState))
def test_every_state_has_words_of_whole_sentences(state: str) -> None:
    text = _why(state, attempts=[an_attempt("job1")])
    assert text.startswith("job1 ")
    assert text.endswith(".")
    assert not set(text) & set("{}[]_")
    assert "  " not in text
    assert "None" not in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (89, "89 seconds"),
        (90, "2 minutes"),
        (3600, "60 minutes"),
        (89 * 60, "89 minutes"),
        (2 * 3600 - 1, "2 hours"),
        (47 * 3600, "47 hours"),
        (49 * 3600, "2 days"),
    ],
)
def test_durations_have_one_unit(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.floats(min_value=0, max_value=1e9))
def test_durations_are_near_the_truth(seconds: float) -> None:
    count, unit = format_duration(seconds).split()
    size = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}[unit.removesuffix("s")]
    assert abs(int(count) * size - seconds) <= size / 2
    assert size == 1 or abs(int(count) * size - seconds) <= seconds / 2


def test_distances_know_before_and_after() -> None:
    assert [relative_time(timedelta(seconds=s)) for s in (-120, 0.2, 120)] == ["2 minutes ago", "now", "in 2 minutes"]


def test_moments_in_a_text_are_told_with_their_distance() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    text = "from 2026-01-01T00:00:00Z until 2026-01-01T00:10:00.25+00:00; 12:30 stays"
    assert format_moments(text, now) == (
        "from 2026-01-01 00:00:00 UTC (now) until 2026-01-01 00:10:00 UTC (in 10 minutes); 12:30 stays"
    )


def test_stamps_are_in_the_zone_of_now() -> None:
    assert timestamp("2026-01-01T02:00:00+02:00", NOW) == "2026-01-01 00:00:00"
    assert timestamp(None, NOW) == ""


def test_an_attempt_that_has_not_begun_has_no_duration() -> None:
    assert elapsed_time(None, None, NOW) == ""
    assert elapsed_time("2026-11-20T10:58:59Z", None, NOW) == "2:01:01"
    assert elapsed_time("2026-11-20T13:00:05Z", None, NOW) == "0:00:00"
