# ruff: noqa: E501 - screens are as wide as they are
"""The table of `ls`: screens at several widths, and through a pipe."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_terminal import NOW
from fake_api import a_view, an_attempt, starts, waits_for_capacity
from trainmaster.cli.output.fit import columns_of, cut, cut_middle
from trainmaster.cli.output.listing import jobs_table, run_seconds, short_user
from trainmaster.cli.output.render import colored, without_color
from trainmaster.cli.output.times import compact_duration, compact_moment

SSO = "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_DataScientist_0123456789abcdef"
LONG = "llama-3-70b-finetune-2026-11-20-seed-7"
OOM = "AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage RuntimeError: CUDA out of memory"
RANGE = starts("2026-11-20T16:00:00Z", "2026-11-20T15:00:00Z", "2026-11-20T18:00:00Z")
ENDED = {"endedAt": "2026-11-19T12:20:00Z"}
JOBS: list[Any] = [
    a_view(LONG, "running", 10, attempts=[an_attempt("a")]),
    a_view("bert", "pending", 1, reason=waits_for_capacity(), submittedBy=SSO, **RANGE),
    a_view("gpt", "preempted", 1, attempts=[an_attempt("a", outcome="preempted", endedAt="2026-11-20T12:20:00Z")]),
    a_view(
        "old",
        "completed",
        entryTime="2026-11-18T10:00:00Z",
        attempts=[an_attempt("a", startedAt="2026-11-18T12:00:00Z", outcome="completed", **ENDED)],
        **ENDED,
    ),
    a_view("bad", "failed", failureReason=OOM, endedAt="2026-11-20T12:59:00Z"),
]
SCREENS = {
    60: """\
Job Name    State      Priority  Start   End     Reason
----------  ---------  --------  ------  ------  ----------…
llama…ed-7  running          10  12:01
bert        pending           1  in 3h           needs 1 mo…
gpt         preempted         1
old         completed         0  Nov 18  Nov 19
bad         failed            0          12:59   AlgorithmE…""",
    80: """\
Job Name       State      Priority  User       Start   End     Reason
-------------  ---------  --------  ---------  ------  ------  -----------------
llama-…seed-7  running          10  ann        12:01
bert           pending           1  Data…tist  in 3h           needs 1 more ml.…
gpt            preempted         1  ann
old            completed         0  ann        Nov 18  Nov 19
bad            failed            0  ann                12:59   AlgorithmError:…""",
    100: """\
Job Name             State      Priority  User         Age   Ran  Start   End     Reason
-------------------  ---------  --------  -----------  ----  ---  ------  ------  ------------------
llama-3-7…20-seed-7  running          10  ann          60m   59m  12:01
bert                 pending           1  DataS…ntist  60m        in 3h           needs 1 more ml.p…
gpt                  preempted         1  ann          60m   19m
old                  completed         0  ann          2d3h  24h  Nov 18  Nov 19
bad                  failed            0  ann          60m                12:59   AlgorithmError: E…""",
    120: """\
Job Name                      State      Priority  User           Age   Ran  Start   End     Reason
----------------------------  ---------  --------  -------------  ----  ---  ------  ------  ---------------------------
llama-3-70b-fi…-11-20-seed-7  running          10  ann            60m   59m  12:01
bert                          pending           1  DataScientist  60m        in 3h           needs 1 more ml.p5.48xlarge
gpt                           preempted         1  ann            60m   19m
old                           completed         0  ann            2d3h  24h  Nov 18  Nov 19
bad                           failed            0  ann            60m                12:59   AlgorithmError: ExecuteUse…""",
}
PIPED = [
    ["Job Name", "State", "Priority", "User", "Age", "Ran", "Start", "End", "Reason"],
    [LONG, "running", "10", "ann", "60m", "59m", "2026-11-20 12:01:00"],
    ["bert", "pending", "1", "DataScientist", "60m", "in 2 h to 5 h", waits_for_capacity()["message"]],
    ["gpt", "preempted", "1", "ann", "60m", "19m"],
    ["old", "completed", "0", "ann", "2d3h", "24h", "2026-11-18 12:00:00", "2026-11-19 12:20:00"],
    ["bad", "failed", "0", "ann", "60m", "2026-11-20 12:59:00", OOM],
]


@pytest.mark.parametrize("width", SCREENS)
def test_a_screen_of_this_width(width: int) -> None:
    assert jobs_table(JOBS, NOW, width=width) == SCREENS[width]


def test_on_a_pipe_nothing_is_shortened() -> None:
    lines = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in jobs_table(JOBS, NOW).splitlines()]
    assert [*lines[:1], *lines[2:]] == PIPED
    assert jobs_table(JOBS, NOW, width=225) == jobs_table(JOBS, NOW), "a terminal that is wide enough"


def test_a_reason_that_fits_is_whole_and_else_brief_before_anything_else_is_cut() -> None:
    (job,) = JOBS[1:2]
    assert waits_for_capacity()["message"] in jobs_table([job], NOW, width=140)
    assert "needs 1 more ml.p5.48xlarge" in jobs_table([job], NOW, width=110)
    assert "in 2 h to 5 h" in jobs_table([job], NOW, width=110)


def test_on_eighty_columns_each_waiting_job_of_a_busy_queue_has_its_reason() -> None:
    sizes = {"instanceValues": None, "instanceStep": 1, "resizing": None}
    elastic = {"elastic": {**sizes, "size": 6, "minInstances": 1, "maxInstances": 6}}
    ends = {"expectedEnd": "2026-11-20T13:09:15Z"}
    jobs: list[Any] = [
        a_view("eval-elastic-1", "running", attempts=[an_attempt("a")], **elastic, **ends),
        a_view("urgent-evaluation-2", "preempting", attempts=[an_attempt("a")], **ends),
        a_view("bert-1", "infeasible", reason=waits_for_capacity(), **starts("2026-11-20T13:02:45Z")),
    ]
    assert jobs_table(jobs, NOW, width=80).splitlines()[-1].endswith("  needs 1 more m…")


TEXTS = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")), max_size=200)
NAMES = st.from_regex(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", fullmatch=True)


@given(
    st.lists(st.tuples(NAMES, TEXTS, st.sampled_from(["running", "pending", "failed"]), TEXTS), max_size=4),
    st.integers(40, 200),
)
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, str, str, str]], width: int) -> None:
    jobs: list[Any] = [
        a_view(name, state, reason={"type": "X", "message": text}, failureReason=text, submittedBy=f"a:user/{user}")
        for name, text, state, user in rows
    ]
    for paint in (colored, str):
        lines = jobs_table(jobs, NOW, paint, width=width).splitlines()
        assert len(lines) == len(jobs) + 2
        assert max(columns_of(without_color(line)) for line in lines) <= width


@given(TEXTS, st.integers(2, 80))
def test_shortened_text_fits_and_text_that_fits_is_whole(text: str, width: int) -> None:
    for shorten in (cut, cut_middle):
        short = shorten(text, width)
        assert columns_of(short) <= width
        assert (short == text) == (columns_of(text) <= width)


@pytest.mark.parametrize(
    ("principal", "user"),
    [
        ("arn:aws:iam::111122223333:user/ann", "ann"),
        ("arn:aws-cn:iam::111122223333:user/research/ann", "ann"),
        ("arn:aws:sts::111122223333:assumed-role/research", "research"),
        (SSO, "DataScientist"),
        ("arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Data_Science_0123456789abcdef", "Data_Science"),
        ("arn:aws:iam::111122223333:root", "root"),
        ("arn:aws:sts::111122223333:federated-user", "federated-user"),
        (None, ""),
    ],
)
def test_a_user_is_the_name_in_the_principal(principal: str | None, user: str) -> None:
    assert short_user(principal) == user


def test_the_run_time_counts_every_attempt() -> None:
    attempts = [
        an_attempt("a", 1, startedAt="2026-11-20T12:00:00Z", endedAt="2026-11-20T12:10:00Z", outcome="preempted"),
        an_attempt("a", 2, startedAt=None, endedAt="2026-11-20T12:20:00Z", outcome="failed"),
        an_attempt("a", 3, startedAt="2026-11-20T12:30:00Z"),
    ]
    assert run_seconds(a_view("a", "running", attempts=attempts), NOW) == 40 * 60  # type: ignore[arg-type]
    starting = a_view("a", "starting", attempts=[an_attempt("a", startedAt=None)])
    assert jobs_table([starting], NOW).splitlines()[-1].split() == ["a", "starting", "0", "ann", "60m"]  # type: ignore[list-item]
    earlier = {"count": 1, "outcomes": {}, "beganAt": "", "atWorkSeconds": 60.0, "instanceSeconds": 60.0}
    assert run_seconds(a_view("a", attempts=attempts, earlierAttempts=earlier), NOW) == 41 * 60  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (0.4, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (25_500, "7h5m"),
        (172_799, "47h"),
        (172_800, "2d"),
        (273_600, "3d4h"),
        (864_000, "10d"),
    ],
)
def test_a_compact_duration(seconds: float, text: str) -> None:
    assert compact_duration(seconds) == text


def test_a_compact_moment_is_a_time_of_today_or_a_day() -> None:
    assert [compact_moment(iso, NOW) for iso in ("2026-11-20T01:02:03Z", "2026-11-19T23:59:59Z", None)] == [
        "01:02",
        "Nov 19",
        "",
    ]
