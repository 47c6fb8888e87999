"""Traces: what is written is read again, whatever it is."""

from __future__ import annotations

import io
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.local.replay.files import replaced_file
from trainmaster.local.replay.trace.csv_trace import write_trace
from trainmaster.local.replay.trace.reading import parse_trace, read_trace
from trainmaster.local.replay.trace.trace import BadTrace, TraceJob, select_jobs

SECONDS = st.floats(0, 1e8).map(lambda value: round(value, 3))
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12)
JOBS = st.builds(TraceJob, NAMES, SECONDS, SECONDS, st.integers(1, 999), NAMES, st.none() | SECONDS)


@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.gz"])
def test_written_traces_are_read_back(tmp_path_factory, name):
    path = str(tmp_path_factory.mktemp("traces") / name)

    @given(st.lists(JOBS, min_size=1, max_size=20))
    def holds(jobs):
        write_trace(path, jobs)
        assert read_trace(path) == sorted(jobs, key=lambda job: job.submit)

    holds()


def test_the_same_jobs_give_the_same_gzipped_file(tmp_path):
    first, second = tmp_path / "a.gz", tmp_path / "b.gz"
    for path in (first, second):
        write_trace(str(path), [TraceJob("a", 0, 1, 1)])
    assert first.read_bytes() == second.read_bytes()


def test_jobs_of_one_second_stay_in_the_files_order():
    jobs = parse_trace(b"job_id,submit_time_s,duration_s,num_gpus\nlate,9,1,1\nb,5,2,1\na,5,1,1\n")
    assert [job.job_id for job in jobs] == ["b", "a", "late"]


def test_columns_may_come_in_any_order_with_others_between_and_a_byte_order_mark():
    (job,) = parse_trace(b"\xef\xbb\xbfnum_gpus,user,max_runtime_s,duration_s,submit_time_s\n4,ada,3600,2,1\n")
    assert job == TraceJob("line-2", 1, 2, 4, "default", 3600)


def test_blanks_around_names_and_whole_numbers_with_a_point_are_accepted():
    (job,) = parse_trace(b"submit_time_s, duration_s , num_gpus\n1, 2, 4.0\n")
    assert (job.submit, job.duration, job.gpus) == (1, 2, 4)


def test_a_row_of_several_lines_is_named_by_its_first():
    jobs = parse_trace(b'submit_time_s,duration_s,num_gpus,user\n\n1,2,4,"a\nb"\n1,2,4,c\n')
    assert [job.job_id for job in jobs] == ["line-3", "line-5"]


def interrupted_writing(path):
    with replaced_file(path) as file:
        file.write_text("half")
        raise KeyboardInterrupt


def test_a_trace_that_cannot_be_written_leaves_the_earlier_one(tmp_path):
    path = tmp_path / "trace.csv"
    write_trace(str(path), [TraceJob("a", 0, 1, 1)])
    with pytest.raises(KeyboardInterrupt):
        interrupted_writing(str(path))
    assert [job.job_id for job in read_trace(str(path))] == ["a"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as readers:
        text = readers.submit(path.read_text)
        write_trace(str(path), [TraceJob("a", 0, 1, 1)])
        assert "a,0,1,1" in text.result(timeout=10)
    assert path.is_fifo()


def test_standard_input_is_a_file_as_well(capsys):
    write_trace("-", [TraceJob("a", 0, 1, 1)])
    text = capsys.readouterr().out
    standard, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(text.encode()))
    try:
        assert read_trace("-") == [TraceJob("a", 0, 1, 1)]
    finally:
        sys.stdin = standard


@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_being_refused(raw):
    try:
        jobs = parse_trace(raw)
    except BadTrace:
        return
    assert all(job.gpus >= 1 for job in jobs)


def test_the_limit_counts_the_jobs_of_the_share():
    jobs = [TraceJob("a", 0, 1, 9, "x"), TraceJob("b", 1, 1, 1, "y"), TraceJob("c", 2, 1, 1, "x")]
    assert [job.job_id for job in select_jobs(jobs, cap=4, share="x", limit=2)] == ["a", "c"]
    assert select_jobs(jobs, cap=4)[0].gpus == 4
