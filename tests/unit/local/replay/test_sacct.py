"""Slurm's accounting as a trace: what a real Slurm 22.05 printed (its GPUs were plain files), and what it can print."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.local.replay.program import INVALID, OK, main
from trainmaster.local.replay.trace.reading import parse_trace, read_trace
from trainmaster.local.replay.trace.sacct import FORMAT
from trainmaster.local.replay.trace.trace import BadTrace, TraceJob

DOCUMENTED = """\
JobID|Submit|State|ElapsedRaw|TimelimitRaw|AllocTRES|Account
1|2026-11-30T11:00:29|COMPLETED|5|5|billing=1,cpu=1,gres/gpu:a100=2,gres/gpu=2,node=1|vision
3|2026-11-30T11:00:29|COMPLETED|2|UNLIMITED|billing=1,cpu=1,node=1|vision
4|2026-11-30T11:00:29|FAILED|2|2880|billing=1,cpu=1,gres/gpu:a100=4,gres/gpu=4,node=1|vision
5|2026-11-30T11:00:29|REQUEUED|8|30|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|speech
6|2026-11-30T11:00:29|COMPLETED|1|UNLIMITED|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|speech
7|2026-11-30T11:00:29|CANCELLED by 0|126|UNLIMITED|billing=1,cpu=1,gres/gpu:a100=3,gres/gpu=3,node=1|speech
2_0|2026-11-30T11:00:29|COMPLETED|3|60|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|speech
2_1|2026-11-30T11:00:29|COMPLETED|3|60|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|speech
2_2|2026-11-30T11:00:29|COMPLETED|3|60|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|speech
2_3|2026-11-30T11:00:29|COMPLETED|3|60|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|speech
5|2026-11-30T11:01:36|COMPLETED|26|30|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|speech
12|2026-11-30T11:03:37|TIMEOUT|64|1|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|vision
13|2026-11-30T11:03:37|COMPLETED|2|1|billing=1,cpu=1,gres/gpu:a100=8,gres/gpu=8,node=1|vision
"""
"""With the documented options: job 5 was requeued, 7 canceled while it ran, 8 while it waited, and 3 has no GPU."""
WITH_STEPS = """\
JobIDRaw|JobID|Submit|Elapsed|Timelimit|AllocTRES|Partition|State|
1|1|2026-11-30T11:00:29|00:00:05|00:05:00|billing=1,cpu=1,gres/gpu:a100=2,gres/gpu=2,node=1|train|COMPLETED|
1.batch|1.batch|2026-11-30T11:01:25|00:00:05||cpu=1,gres/gpu:a100=2,gres/gpu=2,mem=0,node=1||COMPLETED|
1.0|1.0|2026-11-30T11:01:29|00:00:01||cpu=1,gres/gpu:a100=2,gres/gpu=2,mem=0,node=1||COMPLETED|
4|4|2026-11-30T11:00:29|00:00:02|2-00:00:00|billing=1,cpu=1,gres/gpu:a100=4,gres/gpu=4,node=1|train|FAILED|
5|5|2026-11-30T11:00:29|00:00:08|00:30:00|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|train|REQUEUED|
5.batch|5.batch|2026-11-30T11:01:28|00:00:08||cpu=1,gres/gpu:a100=1,gres/gpu=1,mem=0,node=1||CANCELLED|
9|2_0|2026-11-30T11:00:29|00:00:03|01:00:00|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|train|COMPLETED|
2|2_3|2026-11-30T11:00:29|00:00:03|01:00:00|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|train|COMPLETED|
2.batch|2_3.batch|2026-11-30T11:01:31|00:00:03||cpu=1,gres/gpu:a100=1,gres/gpu=1,mem=0,node=1||COMPLETED|
5|5|2026-11-30T11:01:36|00:00:26|00:30:00|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|train|COMPLETED|
5.batch|5.batch|2026-11-30T11:03:37|00:00:26||cpu=1,gres/gpu:a100=1,gres/gpu=1,mem=0,node=1||COMPLETED|
12|12|2026-11-30T11:03:37|00:01:04|00:01:00|billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,node=1|train|TIMEOUT|
"""
"""`sacct --allusers --parsable --duplicates`, with other columns, and with rows for the steps of jobs."""
FOR_PEOPLE = """\
JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
1                 plain      train     vision          1  COMPLETED      0:0
1.batch           batch                vision          1  COMPLETED      0:0
"""
HEADER = FORMAT.replace(",", "|")
JOBS = [
    TraceJob("1", 0, 5, 2, "vision", 300),
    TraceJob("4", 0, 2, 4, "vision", 172_800),
    TraceJob("5", 0, 8 + 26, 1, "speech", 1_800),
    TraceJob("6", 0, 1, 1, "speech"),
    TraceJob("7", 0, 126, 3, "speech"),
    *(TraceJob(f"2_{task}", 0, 3, 1, "speech", 3_600) for task in range(4)),
    TraceJob("12", 188, 64, 1, "vision", 60),
    TraceJob("13", 188, 2, 8, "vision", 60),
]


def parse(text: str) -> list[TraceJob]:
    return parse_trace(text.encode())


def row(**values: str) -> str:
    """Return the header, and a row with these values in place of those of an ordinary job."""
    usual = dict(zip(FORMAT.split(","), DOCUMENTED.splitlines()[1].split("|"), strict=True))
    return f"{HEADER}\n{'|'.join({**usual, **values}.values())}\n"


def test_the_documented_command_gives_the_jobs_that_ran_on_gpus():
    assert parse(DOCUMENTED) == JOBS


def test_steps_are_part_of_their_jobs_and_the_partition_is_the_share_without_accounts():
    assert parse(WITH_STEPS) == [
        TraceJob("1", 0, 5, 2, "train", 300),
        TraceJob("4", 0, 2, 4, "train", 172_800),
        TraceJob("5", 0, 34, 1, "train", 1_800),
        TraceJob("2_0", 0, 3, 1, "train", 3_600),
        TraceJob("2_3", 0, 3, 1, "train", 3_600),
        TraceJob("12", 188, 64, 1, "train", 60),
    ]


@pytest.mark.parametrize("last", ["RUNNING", "PENDING", "SUSPENDED", "REQUEUED"])
def test_a_job_that_goes_on_is_omitted_with_all_its_runs(last):
    unfinished = DOCUMENTED.replace("COMPLETED|26|", f"{last}|26|")
    assert parse(unfinished) == [job for job in JOBS if job.job_id != "5"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"AllocTRES": "billing=11,cpu=8,gres/gpu:a100=1,gres/gpu=1,mem=64G,node=1"}, 1),
        ({"AllocTRES": "cpu=96,gres/gpu:h100=8,gres/gpu:a100=4,mem=1000M,node=2"}, 12),
        ({"AllocTRES": "cpu=4,energy=262,fs/disk=7,gres/gpu=16,gres/gpumem=80G,node=2"}, 16),
    ],
)
def test_gpus_are_those_of_all_types(values, expected):
    (job,) = parse(row(**values))
    assert job.gpus == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:17:02", 1_022), ("3-08:24:04", 289_444), ("1-00:00:00", 86_400), ("59:01", 3_541), ("00:43.900", 43)],
)
def test_times_in_parts_are_read_as_sacct_prints_them(text, seconds):
    (job,) = parse(row(ElapsedRaw=text))
    assert job.duration == seconds


@pytest.mark.parametrize("limit", ["UNLIMITED", "Partition_Limit", ""])
def test_a_job_can_be_without_a_limit(limit):
    (job,) = parse(row(TimelimitRaw=limit))
    assert job.max_runtime is None


def test_times_of_submission_can_be_seconds_and_have_a_time_zone():
    times = ("1796036429", "2026-11-30T11:00:39+00:00", "2026-11-30T12:00:49+01:00", "2026-11-30T11:00:59")
    rows = [row(JobID=f"{place}", Submit=text).splitlines()[1] for place, text in enumerate(times)]
    assert [job.submit for job in parse("\n".join((HEADER, *rows)))] == [0, 10, 20, 30]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (row(Submit="Unknown"), "line 2: Submit is 'Unknown', not a time such as 2026-01-31T23:59:59"),
        (row(ElapsedRaw="soon"), "line 2: ElapsedRaw is 'soon', not a time of at most 100 years"),
        (row(AllocTRES="gres/gpu=1K"), "line 2: AllocTRES is 'gres/gpu=1K', not resources with a whole number"),
        (row(AllocTRES="cpu=1"), "of its 1 jobs, none has run on GPUs and ended"),
        (
            row(Account="a|b"),
            "line 2: 8 fields, but the header has 7; leave out columns with free text, such as JobName",
        ),
        (HEADER.replace("|AllocTRES", "") + "\n", f"the column AllocTRES is missing .*--format={FORMAT}"),
        (HEADER, "of its 0 jobs, none has run"),
        (FOR_PEOPLE, "run sacct with --parsable2"),
        (DOCUMENTED.partition("\n")[2], "run sacct with --parsable2 and without --noheader"),
    ],
)
def test_errors_name_line_and_column_and_say_what_to_do(text, problem):
    with pytest.raises(BadTrace, match=problem):
        parse(text)


@given(st.text(alphabet="JobIDSubmit|\n,-:=0123456789TgresUNKNOWN/ \x85é", max_size=200))
def test_any_other_text_is_an_error_and_no_crash(text):
    for tried in (text, f"{HEADER}\n{text}"):
        with pytest.raises(BadTrace):
            parse(tried)


def test_the_replay_takes_the_output_as_it_is(tmp_path, capsys):
    path, saved = tmp_path / "jobs.txt.gz", tmp_path / "trace.csv"
    path.write_bytes(gzip.compress(DOCUMENTED.encode()))
    assert main([str(path), "--cap", "8", "--policy", "fifo", "--json", "--save-trace", str(saved)]) == OK
    assert json.loads(capsys.readouterr().out)["jobs"] == len(JOBS)
    assert read_trace(str(saved)) == JOBS


def test_a_wrong_file_is_named(tmp_path, capsys):
    path = tmp_path / "jobs.txt"
    path.write_text(FOR_PEOPLE)
    assert main([str(path), "--cap", "8"]) == INVALID
    assert capsys.readouterr().err.startswith(f"Error: {path}: line 1: ")
