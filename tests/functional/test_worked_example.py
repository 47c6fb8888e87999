"""The worked example of `docs/explanation/how-it-decides.md` happens as the page says, and its figures are the code's.

The page is the test's input: its jobs are submitted, its figures looked up, and what happens is compared line by line.
"""

from __future__ import annotations

import importlib
import re
from datetime import timedelta

import pytest

from builders import NOW, P5, a_job, a_pool
from doc_pages import DOCS, Row, plain, section, table
from planner_sim import PlannerSim
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.plan import Snapshot, Start, Wait
from trainmaster.domain.policy.settings import Policy
from trainmaster.planner.orders.ranking import Ranking
from trainmaster.planner.preemption.preempt import Candidates

SOURCE = DOCS.parent / "src" / "trainmaster"
HOW_IT_DECIDES, GITTINS = (DOCS / "explanation" / f"{name}.md" for name in ("how-it-decides", "gittins"))


def hour(text: str) -> timedelta:
    """Time since 12:00 of a time on the page."""
    hours, minutes = map(int, text.split(":"))
    return timedelta(hours=hours - 12, minutes=minutes)


def minutes(text: str) -> timedelta:
    """A duration of the page."""
    return timedelta(minutes=int(text.removesuffix(" min")))


class RecordingSim(PlannerSim):
    """A simulation that records what happens, in the page's words; reasons, once for each that is new."""

    def __init__(self, *args: object, **fields: object) -> None:
        super().__init__(*args, **fields)
        self.lines: list[Row] = []
        self.reasons: dict[str, str] = {}
        self.preempted_from: Snapshot | None = None

    def arrive(self, row: Row) -> None:
        """One row of the page's jobs is submitted at its time."""
        name, at, priority, instances, limit, work = (plain(cell) for cell in row)
        self.run((NOW + hour(at) - self.now).total_seconds())
        job = a_job(
            name, priority=int(priority), units={P5: int(instances)}, max_runtime=minutes(limit), checkpointed=True
        )
        self._tell(job, "is submitted")
        self.submit(job, seconds=minutes(work).total_seconds())

    def _pass(self) -> bool:
        before = self.snapshot()
        moved = super()._pass()
        if self.plan.preemptions:
            self.preempted_from = before
        for decision in self.plan.decisions:
            if isinstance(decision, Start):
                self._tell(decision.job, "starts")
            elif isinstance(decision, Wait) and self.reasons.get(decision.job.name) != decision.reason.message():
                self.reasons[decision.job.name] = decision.reason.message()
                self._tell(decision.job, decision.reason.message())
        return moved

    def _see(self, job: Job, status: Status, **fields: object) -> None:
        if status is not Status.IN_PROGRESS:
            self._tell(job, "has completed" if status is Status.COMPLETED else "has stopped, and waits again")
        super()._see(job, status, **fields)

    def _tell(self, job: Job, words: str) -> None:
        short = re.sub(r"\d{4}-\d\d-\d\dT(\d\d:\d\d):\d\dZ", r"\1", words)
        self.lines.append([f"{self.now:%H:%M}", f"`{job.name}`", short])


@pytest.fixture(scope="module")
def example() -> str:
    return section(HOW_IT_DECIDES, "A worked example")


@pytest.fixture(scope="module")
def told(example: str) -> RecordingSim:
    sim = RecordingSim(a_pool(P5, 4), stops=60)
    for row in table(example, "job"):
        sim.arrive(row)
    sim.run_until_ended()
    return sim


def test_everything_happens_as_the_page_says(example, told):
    now = "\n".join(f"| {' | '.join(line)} |" for line in told.lines)
    assert table(example, "at") == told.lines, f"the page should say:\n{now}"


def test_losses_on_the_page_equal_the_compared_losses(example, told):
    snapshot, at = told.preempted_from, NOW + hour("12:25")
    candidates = Candidates.of(snapshot, at, Ranking(snapshot, at).rank)
    costs = {name: f"{candidate.cost:,.0f} GPU-seconds" for name, candidate in candidates.by_name.items()}
    assert {plain(name): cost for name, _, _, cost in table(example, "candidate")} == costs
    for name, instances, worked, _ in table(example, "candidate"):
        job = told.job(plain(name))
        assert int(instances) == job.demand.size
        assert minutes(worked) == at - job.attempts[0].started_at


def test_the_remarks_name_only_times_and_jobs_of_the_example(example, told):
    remarks = example.rpartition("|\n")[2]
    lines = " ".join(" ".join(line) for line in told.lines)
    times, names = re.findall(r"\b\d\d:\d\d\b", remarks), re.findall(r"`([a-z]+)`", remarks)
    assert times
    assert names
    assert [time for time in times if time not in lines] == []
    assert [name for name in names if name not in told.jobs] == []


def value_of(name: str) -> object:
    """Value of a dotted name of the page: a setting's default, or a constant of the planner or the domain."""
    first, *rest = name.split(".")
    if first == "policy":
        found: object = Policy()
    else:
        (path,) = [path for layer in ("domain", "planner") for path in (SOURCE / layer).rglob(f"{first}.py")]
        found = importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
    for part in rest:
        found = getattr(found, part)
    return found


def shown(value: object) -> str:
    """A value as the pages write it."""
    if isinstance(value, timedelta):
        for unit, name in ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min")):
            if value and value % unit == timedelta(0):
                return f"{value // unit} {name}"
        return f"{value.total_seconds():g} s"
    return f"{value:,g}" if isinstance(value, int | float) else str(value)


@pytest.mark.parametrize("page", [HOW_IT_DECIDES, GITTINS], ids=lambda page: page.stem)
def test_the_figures_of_the_page_are_those_of_the_code(page):
    rows = table(section(page, "The figures"), "figure")
    wrong = {row[2]: shown(value_of(plain(row[2]))) for row in rows if shown(value_of(plain(row[2]))) != row[1]}
    assert wrong == {}
