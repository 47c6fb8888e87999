"""Mutants: each breaks one guarantee in a copy of the sources, and days are played until one notices.

A mutant is a substitution of text, applied in a temporary folder and run in a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[2]
DAYS = 150
"""Days within which each mutant must be caught."""
MAX_BROKEN = 8
"""Days that are looked for, since some may break the same rule without the mutant."""


@dataclass(frozen=True)
class Mutant:
    """A substitution in one module.

    Attributes:
        module: path below `src/trainmaster`.
        before: text that must occur.
        after: what it becomes, wherever it occurs.
        finds: the rules of which one must notice it.
        hostile: whether SageMaker is hostile, in which most mistakes take longer to show.
    """

    name: str
    module: str
    before: str
    after: str
    finds: frozenset[str]
    hostile: bool = False


MUTANTS = (
    Mutant(
        "cap + 1",
        "planner/placement/ledger.py",
        "pool.cap - used.get(name, 0)",
        "pool.cap + 1 - used.get(name, 0)",
        frozenset({"cap"}),
    ),
    Mutant(
        "CheckpointConfig lost",
        "adapters/sagemaker/request.py",
        '    built = {**request, "TrainingJobName": attempt.training_job_name}\n',
        '    built = {**request, "TrainingJobName": attempt.training_job_name}\n'
        '    if attempt.number > 1:\n        built.pop("CheckpointConfig", None)\n',
        frozenset({"request"}),
    ),
    Mutant(
        "a person's stop resumed",
        "domain/jobs/lifecycle/reports.py",
        'return _stopped(job, now, "stopped outside the queue")',
        "return _preempted(job, now)",
        frozenset({"resumed"}),
    ),
    Mutant(
        "priority reversed",
        "domain/jobs/job.py",
        "return (-self.priority, self.entry_time, self.name)",
        "return (self.priority, self.entry_time, self.name)",
        frozenset({"inversion"}),
    ),
    Mutant(
        "no fence",
        "service/apply_plan.py",
        "fence=self.report.pass_number",
        "fence=None",
        frozenset({"cap", "double", "inversion"}),
    ),
    Mutant(
        "no grace after create",
        "domain/times.py",
        "VISIBLE_AFTER = timedelta(minutes=10)",
        "VISIBLE_AFTER = timedelta(0)",
        frozenset({"cap", "double", "orphan", "after the end", "lost", "ended as stopped", "ended as failed"}),
        hostile=True,
    ),
    Mutant(
        "number reused",
        "adapters/sagemaker/launcher.py",
        "Creator.EARLIER_START: CreateResult.EARLIER_START",
        "Creator.EARLIER_START: CreateResult.ALREADY_THERE",
        frozenset({"lost", "ended as stopped"}),
        hostile=True,
    ),
    Mutant(
        "forged report believed",
        "service/observe.py",
        "told = _confirmed(context, job, seen)",
        "told = seen",
        frozenset({"cap", "double", "orphan", "after the end", "lost"}),
        hostile=True,
    ),
    Mutant(
        "a stranger's training job stopped",
        "service/launch.py",
        "    if creator in UNSETTLED and _may_appear(job, now):\n",
        "    if creator is Creator.UNKNOWN:\n        creator = Creator.ATTEMPT\n    if creator in UNSETTLED:\n",
        frozenset({"stranger"}),
        hostile=True,
    ),
)


def mutated(mutant: Mutant, folder: Path) -> Path:
    """Copy the sources with the mutant applied; return the copy. Raises `ValueError` if its text does not occur."""
    copy = folder / "src"
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / "trainmaster" / mutant.module
    text = path.read_text()
    if mutant.before not in text:
        raise ValueError(f"{mutant.module} does not have the text that {mutant.name!r} replaces")
    path.write_text(text.replace(mutant.before, mutant.after))
    return copy


def days_until_caught(mutant: Mutant, days: int = DAYS) -> int | None:
    """Return after how many days the mutant was noticed by a rule of its own; None if it never was.

    Days that break such a rule without the mutant do not count.
    """
    with tempfile.TemporaryDirectory() as folder:
        broken = _broken(mutated(mutant, Path(folder)), mutant, range(days))
    anyway = _broken(ROOT / "src", mutant, broken)
    return next((number + 1 for number in broken if number not in anyway), None)


def _broken(sources: Path, mutant: Mutant, seeds: Iterable[int]) -> list[int]:
    """Return the seeds of days that break one of the rules with these sources, at most `MAX_BROKEN`."""
    paths = [sources, ROOT / "tests"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
    asked = json.dumps([sorted(mutant.finds), mutant.hostile, list(seeds)])
    command = [sys.executable, "-m", "simulation.mutants", asked]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: list[int] = json.loads(ran.stdout)
    return found


def broken_days(finds: frozenset[str], hostile: bool, seeds: Iterable[int]) -> list[int]:
    """Return the seeds that break one of the rules with the sources that this process has, at most `MAX_BROKEN`."""
    return list(islice((seed for seed in seeds if finds.intersection(_kinds(seed, hostile))), MAX_BROKEN))


def _kinds(seed: int, hostile: bool) -> set[str]:
    """Return the rules that a day breaks."""
    from simulation.play import play
    from simulation.story import draw

    story = draw(seed)
    if not hostile:
        story = replace(story, configuration=replace(story.configuration, hostility=()))
    return {found.kind for found in play(story).findings}


if __name__ == "__main__":
    rules, with_hostility, days_asked = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(broken_days(frozenset(rules), with_hostility, days_asked)))
