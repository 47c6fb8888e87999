"""Several policies are replayed in processes of their own, with the results of one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from pathlib import Path

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


def waits_for_ever(name, *, on_progress):
    if name == "fails":
        raise ReplayFailed("the job 3 does not exist")
    signal.pause()


def is_interrupted(name, *, on_progress):
    os.kill(os.getpid(), signal.SIGINT)
    return name


def is_killed(name, *, on_progress):
    os.kill(os.getpid(), signal.SIGKILL)


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


def test_the_error_of_a_process_is_raised_while_an_earlier_one_still_works():
    with pytest.raises(ReplayFailed, match="the job 3 does not exist"):
        in_processes(waits_for_ever, ["works", "fails"], 2, lambda _: None)


def test_ctrl_c_is_left_to_the_parent():
    assert in_processes(is_interrupted, ["a"], 1, lambda _: None) == ["a"]


def test_a_killed_process_is_told():
    with pytest.raises(BrokenProcessPool):
        in_processes(is_killed, ["a"], 1, lambda _: None)


def test_no_process_outlives_a_killed_parent():
    command = [sys.executable, str(Path(__file__).with_name("sleeping_workers.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        assert parent.stdout is not None
        workers = {int(parent.stdout.readline()) for _ in range(2)}
        parent.kill()
        try:
            # The workers hold the pipe open as long as they live.
            assert parent.communicate(timeout=20) == ("", None)
        except subprocess.TimeoutExpired:
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            raise
