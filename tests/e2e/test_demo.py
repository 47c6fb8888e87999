"""`trainmaster demo` as a person runs it: the article's three tables, and nothing left running."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deployed_stack import eventually
from trainmaster.local.stack.address import clean_environment

TABLES = """
job1 and job2 run on the two instances; job3 waits

Job Name    State      Priority
----------  -------  ----------
job2        running           2
job1        running           1
job3        pending           1

job4 has the highest priority: job1 was preempted for it, and keeps its place in the queue

Job Name    State        Priority
----------  ---------  ----------
job4        running             3
job2        running             2
job1        preempted           1
job3        pending             1

job2 is completed: job1 resumes from its checkpoint, before job3

Job Name    State      Priority
----------  -------  ----------
job4        running           3
job1        running           1
job3        pending           1

All jobs are completed: the queue is empty

Job Name    State    Priority
----------  -------  ----------
"""


def started(checkout, mark):
    """The demo, its processes marked by a variable that they inherit."""
    environment = {**clean_environment(os.environ), "DEMO_MARK": mark}
    command = [sys.executable, "-m", "trainmaster", "demo"]
    return subprocess.Popen(
        command, cwd=checkout.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def marked(mark):
    """Command lines of the processes that carry the mark."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if f"DEMO_MARK={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def test_the_demo_shows_the_articles_tables_and_each_jobs_attempts(checkout):
    with started(checkout, "whole") as demo:
        shown, said = demo.communicate(timeout=900)
    assert demo.returncode == 0, said
    tables, _, attempts = shown.partition("\nAll attempts, and the steps that each counted\n")
    assert tables == TABLES
    rows = [line.split() for line in attempts.splitlines()[3:]]
    assert [row[:4] for row in rows] == [
        ["job1", "1", "job1", "preempted"],
        ["job1", "2", "job1-qstamp-2", "completed"],
        ["job2", "1", "job2", "completed"],
        ["job3", "1", "job3", "completed"],
        ["job4", "1", "job4", "completed"],
    ]
    (first, second) = (re.fullmatch(r"(\d+) to (\d+)", " ".join(row[4:])) for row in rows[:2])
    assert int(second[1]) == int(first[2]) + 1
    assert marked("whole") == []


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_demo_leaves_nothing_running(checkout, number):
    mark = f"interrupted-{number}"
    with started(checkout, mark) as demo:
        for line in demo.stdout:
            if line.startswith("job1"):
                break
        assert len(marked(mark)) > 3
        demo.send_signal(number)
        demo.communicate(timeout=60)
    assert demo.returncode == (-number if number == signal.SIGKILL else 128 + number)
    eventually(lambda: marked(mark) == [])
