"""The worked example of `docs/explanation/elastic.md` happens as the page says.

The page is the test's input: its jobs are submitted at their times, and what happens is compared line by line.
"""

from __future__ import annotations

import re
from datetime import timedelta

from builders import NOW, P5, a_job, a_pool
from doc_pages import DOCS, Row, plain, section, table
from elastic_planner_sim import ElasticPlannerSim
from trainmaster.domain.elastic.sizes import Elastic, Hook
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.plan import Resize, Start, Wait

LIMIT = timedelta(hours=10)
PAGE = DOCS / "explanation" / "elastic.md"


def hour(text: str) -> timedelta:
    """Time since 12:00 of a time on the page."""
    hours, minutes = map(int, text.split(":"))
    return timedelta(hours=hours - 12, minutes=minutes)


class RecordingSim(ElasticPlannerSim):
    """A simulation that records what happens, in the page's words."""

    def __init__(self, *args: object, **fields: object) -> None:
        super().__init__(*args, **fields)
        self.lines: list[Row] = []
        self.reasons: dict[str, str] = {}

    def arrive(self, row: Row) -> None:
        """One row of the page's jobs is submitted at its time."""
        name, at, priority, instances, work = (plain(cell) for cell in row)
        self.run((NOW + hour(at) - self.now).total_seconds())
        least, *most = map(int, instances.split(" to "))
        elastic = Elastic(min_instances=least, max_instances=most[0], hook=Hook.MEMBERS) if most else None
        minutes = timedelta(minutes=int(work.removesuffix(" min")))
        job = a_job(
            name, priority=int(priority), units={P5: least}, elastic=elastic, checkpointed=True, max_runtime=LIMIT
        )
        self._tell(job, "is submitted")
        self.submit(job, seconds=minutes.total_seconds())

    def _pass(self) -> bool:
        moved = super()._pass()
        for decision in self.plan.decisions:
            if isinstance(decision, Start):
                self._tell(decision.job, f"starts with {decision.units[P5]}")
            elif isinstance(decision, Resize):
                self._tell(decision.job, f"is to have {decision.size}: {decision.cause}")
            elif isinstance(decision, Wait) and self.reasons.get(decision.job.name) != decision.reason.message():
                self.reasons[decision.job.name] = decision.reason.message()
                self._tell(decision.job, decision.reason.message())
        return moved

    def _put(self, after: Job) -> None:
        before = self.jobs[after.name]
        super()._put(after)
        if before.state == "resizing" and after.state == "running":
            self._tell(after, f"runs with {self.size(after.name)}")

    def _see(self, job: Job, status: Status, **fields: object) -> None:
        if status is not Status.IN_PROGRESS and not (job.attempt and job.attempt.members):
            self._tell(job, "has completed" if status is Status.COMPLETED else "has stopped, and waits again")
        super()._see(job, status, **fields)

    def _tell(self, job: Job, words: str) -> None:
        short = re.sub(r"\d{4}-\d\d-\d\dT(\d\d:\d\d):\d\dZ", r"\1", words)
        self.lines.append([f"{self.now:%H:%M}", f"`{job.name}`", short])


def test_the_worked_example_happens_as_the_page_says():
    jobs = table(section(PAGE, "A worked example"), "job")
    sim = RecordingSim(a_pool(P5, 8), stops=60, moves=60)
    for row in jobs:
        sim.arrive(row)
    sim.run_until_ended()
    assert sim.lines == table(section(PAGE, "A worked example"), "time")
