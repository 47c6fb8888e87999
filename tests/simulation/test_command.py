"""`python -m tests.simulation`: its exit codes, its figures, and what it prints of a failing day."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simulation import command
from simulation.checks import Finding
from simulation.play import Result
from world import EPOCH

ROOT = Path(__file__).parents[2]


def test_good_days_end_with_0_and_write_figures(tmp_path, capsys):
    path = tmp_path / "figures.json"
    assert command.main(["--days", "2", "--seed", "3", "--json", str(path)], lambda *_: Result(jobs=7)) == 0
    figures = json.loads(path.read_text())
    assert figures["days"] == 2
    assert figures["jobs"] == 14
    assert figures["failing"] == []
    assert "2 simulated days" in capsys.readouterr().out


def test_a_failing_day_ends_with_1_and_is_printed_as_a_test(capsys):
    def failing(story, _store):
        kept = any(type(act).__name__ == "Submit" for act in story.acts)
        return Result(findings=[Finding("cap", EPOCH, "too many")] if kept else [], jobs=1)

    assert command.main(["--days", "5"], failing) == 1
    told = capsys.readouterr().out
    assert "def test_story_of_seed_0" in told
    assert told.count("Submit(at=") == 1
    assert "1 simulated days" in told


def test_it_goes_on_when_told(capsys):
    result = Result(findings=[Finding("cap", EPOCH, "too many")])
    assert command.main(["--days", "3", "--keep-going", "--no-shrink"], lambda *_: result) == 1
    assert "failing seeds: 0, 1, 2" in capsys.readouterr().out


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_shows_what_was_played(jobs):
    arguments = [sys.executable, "-m", "tests.simulation", "--days", "5000", "--keep-going", "--no-shrink"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    ran = subprocess.Popen([*arguments, "--jobs", jobs], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    assert ran.stdout is not None
    assert ran.stdout.readline() == "playing 5000 days from seed 0\n"
    ran.send_signal(signal.SIGINT)
    told, _ = ran.communicate(timeout=30)
    assert ran.returncode == 130
    assert "interrupted" in told
    assert "simulated days" in told
    assert "Traceback" not in told
