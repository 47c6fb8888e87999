"""The start of a job and the reason for waiting: in a few words for tables, in sentences for `why` and `plan`."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from cli_terminal import NOW, Terminal
from fake_api import P5, FakeApi, a_request, a_view, starts, waits_for_capacity
from trainmaster.cli.output.explanation import explanation
from trainmaster.cli.output.outlook import short_reason, start_range, start_sentence
from trainmaster.domain.reasons import REASONS


def _at(hours: float) -> str:
    return (NOW + timedelta(hours=hours)).isoformat().replace("+00:00", "Z")


A_DEADLINE = {
    "deadline": _at(9),
    "prospect": "late",
    "latestStart": _at(1),
    "urgentFrom": None,
    "message": f"is done by {_at(9)} only if it is faster than most similar jobs",
}
A_STORY: dict[str, Any] = {
    "inTheWay": [
        {"jobName": "a", "pool": P5, "instances": 2, "expectedEnd": _at(1), "overdue": True, "stopping": False},
        {"jobName": "b", "pool": P5, "instances": 1, "expectedEnd": _at(0.05), "overdue": False, "stopping": True},
    ],
    "jobsInTheWay": 5,
    "external": [{"pool": P5, "instances": 6, "trainingJobNames": ["t1", "t2", "t3", "t4"], "trainingJobs": 5}],
    "reserved": {"instances": {P5: 4}, "at": _at(1)},
    "rule": "Share a would borrow.",
    "advice": [
        {"message": "raise its priority above 5: it preempts a", "priority": 6, "pool": None},
        {"message": f"ask for 2 x {P5} instead: it starts", "priority": None, "pool": P5},
    ],
}


@pytest.mark.parametrize(
    ("low", "expected", "high", "told"),
    [
        (2, 3, 5, "in 2 h to 5 h"),
        (0.5, 3, 50, "in 30 min to 2 d"),
        (3, 3, 3, "in 3 h"),
        (0, 1, 5, "within 5 h"),
        (-1, 0, 0, "now"),
        (None, None, None, ""),
    ],
)
def test_a_range_in_a_few_words(low: float | None, expected: float | None, high: float | None, told: str) -> None:
    times = [None if hours is None else _at(hours) for hours in (expected, low, high)]
    assert start_range(a_view("a", **starts(*times)), NOW) == told


def test_a_server_that_tells_no_range_is_taken_at_its_word() -> None:
    view = a_view("a", estimatedStart=_at(3))
    del view["estimatedStartLow"], view["estimatedStartHigh"], view["deadline"]
    assert start_range(view, NOW) == "in 3 h"
    assert start_sentence(view, NOW) == "It is expected to start at 2026-11-20 16:00:00 UTC (in 3 hours)."


def test_a_range_in_a_sentence() -> None:
    assert start_sentence(a_view("a", **starts(_at(3), _at(2), _at(5))), NOW) == (
        "It is expected to start at 2026-11-20 16:00:00 UTC (in 3 hours), probably between "
        "2026-11-20 15:00:00 UTC (in 2 hours) and 2026-11-20 18:00:00 UTC (in 5 hours)."
    )


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ({"type": "WaitsForCapacity", "pool": P5, "needed": 8, "free": 3}, f"needs 5 more {P5}"),
        ({"type": "ReservedForOther", "pool": P5, "job": "big"}, f"{P5} reserved for big"),
        ({"type": "Preempts", "victims": ["a", "b", "c", "d", "e"]}, "preempts a, b, c and 2 more"),
        ({"type": "ShareFull", "share": "vision", "bound": "borrow limit"}, "borrow limit of share vision"),
        ({"type": "WaitsForJobs", "jobs": ["a", "b"]}, "after a, b"),
        ({"type": "Infeasible", "needed": 2}, "no pool could hold it"),
        ({"type": "Draining", "pools": [P5, "spring"]}, f"{P5}, spring draining"),
        ({"type": "WaitsForCapacity"}, "the whole message"),
        ({"type": "Unheard"}, "the whole message"),
    ],
)
def test_a_reason_in_a_few_words(reason: dict[str, Any], told: str) -> None:
    assert short_reason(a_view("a", reason={"message": "the whole message"} | reason)) == told


def test_every_reason_has_a_few_words() -> None:
    members = {"needed": 2, "free": 1, "pool": P5, "job": "b", "jobs": ["b"], "victims": ["b"], "share": "s"}
    members |= {
        "shrinks": ["b"],
        "bound": "cap",
        "limit": 3,
        "quota": 2,
        "group": "g",
        "pools": [P5],
        "cause": "Creating",
        "until": _at(1),
    }
    for name in REASONS:
        told = short_reason(a_view("a", reason={"type": name, "message": "the whole message"} | members))
        assert told
        assert told != "the whole message", name


def test_a_deadline_at_risk_is_told_beside_the_reason() -> None:
    job = a_view("a", reason={"type": "GroupFull", "message": "", "group": "sweep", "limit": 20}, deadline=A_DEADLINE)
    assert short_reason(job) == "group sweep full (20); deadline late"


def test_why_tells_the_whole_story() -> None:
    job = a_view(
        "job1",
        position=2,
        reason=waits_for_capacity(),
        why=A_STORY,
        deadline=A_DEADLINE,
        **starts(_at(3), _at(2), _at(5)),
    )
    text = explanation(job, NOW)
    assert text.startswith("job1 waits at position 2, with priority 0, since 2026-11-20 12:00:00 UTC (60 minutes ago).")
    told = [
        f"It waits for 1 x {P5}: 0 free for it now.",
        f"The capacity it needs is held by a (2 x {P5}, until about 2026-11-20 14:00:00 UTC (in 60 minutes), longer",
        f"than expected), b (1 x {P5}, stopping, until 2026-11-20 13:03:00 UTC (in 3 minutes)) and 3 more.",
        f"Training jobs outside the queue hold 6 x {P5}: t1, t2, t3 and 2 more.",
        f"Reserved for it: 4 x {P5}, expected to be free at 2026-11-20 14:00:00 UTC (in 60 minutes).",
        "Share a would borrow. Suggestions:",
        f"Suggestions: raise its priority above 5: it preempts a; or ask for 2 x {P5} instead: it starts.",
        "It is expected to start at 2026-11-20 16:00:00 UTC (in 3 hours), probably between",
        "It is done by 2026-11-20 22:00:00 UTC (in 9 hours) only if it is faster than most similar jobs.",
    ]
    places = [text.index(each) for each in told]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (
            {"type": "NotBefore", "message": f"starts no earlier than {_at(2)}, as requested"},
            "job1 starts no earlier than 2026-11-20 15:00:00 UTC (in 2 hours), as requested. Then it enters the queue.",
        ),
        (
            {"type": "WaitsForJobs", "message": "waits for jobs a, b to end"},
            "job1 waits for jobs a, b to end. Then it enters the queue.",
        ),
    ],
)
def test_jobs_without_a_users_hold_show_when_they_enter_the_queue(reason: dict[str, Any], told: str) -> None:
    assert explanation(a_view("job1", "held", reason=reason), NOW) == told


def test_show_has_the_range_and_the_deadline(world: FakeApi, run: Terminal) -> None:
    world.add("job1", deadline=A_DEADLINE, **starts(_at(3), _at(2), _at(5)))
    text = run("show", "job1").stdout
    assert "Expected Start    2026-11-20 16:00:00 UTC (in 3 hours)" in text
    assert "Probably Between  2026-11-20 15:00:00 and 2026-11-20 18:00:00 UTC" in text
    assert "Deadline          is done by 2026-11-20 22:00:00 UTC (in 9 hours) only if" in text


def test_plan_lists_delayed_jobs_and_delays(world: FakeApi, run: Terminal, tmp_path: Any) -> None:
    delays = [
        {"jobName": f"late{n}", "bySeconds": 3600 * n, "expectedStart": _at(1), "wouldStart": _at(1 + n)}
        for n in range(2, 7)
    ]
    world.planned = {"decision": "preempt", "wouldPreempt": ["job7"], "wouldDelay": delays, "deadline": A_DEADLINE}
    world.planned |= {"wouldStart": ["new", "rest"]}
    file = tmp_path / "request.json"
    file.write_text(json.dumps(a_request("new")))
    text = run("plan", str(file)).stdout
    assert "It would delay late2 by 2 hours, late3 by 3 hours, late4 by 4 hours and 2 more." in text
    assert "It would also start rest." in text
    assert text.endswith("only if it is faster than most similar jobs.\n")
    world.planned["warnings"] = [f"This job {A_DEADLINE['message']}."]
    assert "only if it is faster" not in run("plan", str(file)).stdout
