"""Several policies are replayed in processes of their own, with the results of one process."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from trainmaster.local.replay.processes import in_processes
from trainmaster.local.replay.runs import run_replay
from trainmaster.local.replay.trace.trace import TraceJob
from trainmaster.local.replay.virtual_queue import ReplayFailed

POLICIES = ["fifo", "baseline-skip", "backfill"]
JOBS = [TraceJob(str(n), submit=60.0 * n, duration=600.0 + n, gpus=1 + n % 3) for n in range(12)]


def fails_for(name, *, on_progress):
    on_progress(1)
    if name == "fails":
        raise ReplayFailed("the job 3 does not exist")
    return name


def test_processes_give_the_same_results_as_this_one_in_the_given_order():
    play = partial(run_replay, jobs=JOBS, cap=4)
    told = []
    runs = in_processes(play, POLICIES, 2, told.append)
    alone = [play(name) for name in POLICIES]
    assert [replace(run, wall=0.0) for run in runs] == [replace(run, wall=0.0) for run in alone]
    assert told == sorted(told)
    assert 0 < told[-1] <= len(JOBS) * len(POLICIES)


def test_the_error_of_a_process_is_raised():
    with pytest.raises(ReplayFailed, match="the job 3 does not exist"):
        in_processes(fails_for, ["fails", "ends"], 1, lambda _: None)
