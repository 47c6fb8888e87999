"""Reads and changes the trials of a sweep in the queue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from trainmaster.client.api.errors import Conflict, NotFound
from trainmaster.client.sweeps.sweep import GROUP_TAG, Objective, Sweep, Trial, trial_pattern
from trainmaster.client.views.states import ENDED, UNFINISHED, WAITING

if TYPE_CHECKING:
    from trainmaster.client.sweeps.metrics import FinalMetrics
    from trainmaster.client.sweeps.queue_api import QueueApi
    from trainmaster.client.views.types import JobDetailView, JobView, SubmissionView

T = TypeVar("T")
R = TypeVar("R")
_CONCURRENCY: Final = 8
"""Calls of the API at once."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A trial as it is now.

    Attributes:
        name: its job.
        state: the job's state.
        values: its hyperparameters.
        metric: the objective's value; None if there is none.
        job: the job's view.
    """

    name: str
    state: str
    values: Mapping[str, str]
    metric: float | None
    job: JobView


def submit_trials(
    api: QueueApi, sweep: Sweep, trials: Sequence[Trial], tell: Callable[[SubmissionView], object]
) -> list[SubmissionView]:
    """Submit trials that the queue does not have yet, and call `tell` with each answer.

    The first goes alone, so that an invalid request is refused before others are submitted. Raises ApiError.
    """

    def submit(trial: Trial) -> SubmissionView:
        try:
            return api.submit(sweep.request_of(trial))
        except Conflict as error:
            if error.type == "NameTaken":
                error.hint = f"The sweep {sweep.name} was submitted with another request: give this one another name."
            raise

    answers: list[SubmissionView] = []
    for part in (trials[:1], trials[1:]):
        for answer in _parallel(submit, part):
            tell(answer)
            answers.append(answer)
    return answers


def read_trials(api: QueueApi, sweep: str, states: Collection[str] | None = None) -> list[JobDetailView]:
    """Return the sweep's trials in the order of their entry. Raises NotFound if there are none, ApiError."""
    pattern = trial_pattern(sweep)
    listed = api.all_jobs(states, prefix=f"{sweep}-", kind="training")
    names = dict.fromkeys(job["jobName"] for job in listed if pattern.fullmatch(job["jobName"]))
    details = [job for job in _parallel(lambda name: _detail(api, name), names) if job is not None]
    trials = [job for job in details if tags_of(job).get(GROUP_TAG) == sweep]
    if not trials and states is None:
        hint = "The names of its trials begin with the sweep's: see `trainmaster ls --all`."
        raise NotFound(f"The queue has no trials of a sweep {sweep}.", type="SweepNotFound", hint=hint)
    return sorted(trials, key=lambda job: (job["entryTime"], job["jobName"]))


def tags_of(job: JobDetailView) -> dict[str, str]:
    """Return the tags of a job's request."""
    return {tag["Key"]: tag["Value"] for tag in job["jobDetails"].get("Tags", [])}


def objective_of(jobs: Iterable[JobDetailView]) -> Objective | None:
    """Return the objective that the trials were submitted with; None if they have none."""
    return next((found for job in jobs if (found := Objective.of_tags(tags_of(job))) is not None), None)


def results_of(jobs: Sequence[JobDetailView], objective: Objective | None, metrics: FinalMetrics) -> list[TrialResult]:
    """Return the trials with their metrics: completed ones first, the best at the top. Raises ApiError."""
    values = (
        [None] * len(jobs) if objective is None else _parallel(lambda job: metrics.value(job, objective.metric), jobs)
    )
    results = [
        TrialResult(job["jobName"], job["jobState"], job["jobDetails"].get("HyperParameters", {}), value, job)
        for job, value in zip(jobs, values, strict=True)
    ]
    return ranked(results, objective)


def ranked(results: Iterable[TrialResult], objective: Objective | None) -> list[TrialResult]:
    """Return the results in their order: completed trials by their metric, then others by theirs."""
    sign = -1.0 if objective is not None and objective.goal == "Maximize" else 1.0

    def rank(result: TrialResult) -> tuple[bool, bool, float]:
        value = result.metric
        comparable = value is not None and value == value  # noqa: PLR0124 -- not for NaN
        return (result.state != "completed", not comparable, sign * value if value is not None and comparable else 0.0)

    return sorted(results, key=rank)


def varied(results: Iterable[TrialResult]) -> list[str]:
    """Return the hyperparameters in which the trials differ."""
    results = list(results)
    names = dict.fromkeys(name for result in results for name in result.values)
    return [name for name in names if len({result.values.get(name) for result in results}) > 1]


def cancel_trials(api: QueueApi, sweep: str, reason: str, tell: Callable[[JobView], object]) -> int:
    """Cancel the trials that have not ended, and return their number. Raises ApiError."""
    open_trials = read_trials(api, sweep, UNFINISHED)
    # Waiting ones first: they would start on what running ones give back.
    for job in sorted(open_trials, key=lambda job: job["jobState"] not in WAITING):
        try:
            tell(api.cancel(job["jobName"], reason))
        except Conflict:  # it has ended meanwhile
            continue
    return len(open_trials)


class TrialStates:
    """Newest views of trials, with few requests: a list of the open ones, and a look at each that has left it."""

    def __init__(self, api: QueueApi, sweep: str) -> None:
        self._api, self._prefix = api, f"{sweep}-"
        self._open: dict[str, None] = {}
        self.jobs: dict[str, JobView] = {}
        """The newest view of each trial that was looked at."""

    def follow(self, names: Iterable[str]) -> None:
        """Look at further trials from the next refresh on."""
        self._open |= dict.fromkeys(name for name in names if name not in self.jobs)

    @property
    def open(self) -> list[str]:
        """The trials that had not ended at the last refresh, or were never looked at."""
        return list(self._open)

    def refresh(self) -> list[str]:
        """Look at the open trials, and return those that have ended. Raises ApiError."""
        if not self._open:
            return []
        listed = {job["jobName"]: job for job in self._api.all_jobs(UNFINISHED, prefix=self._prefix)}
        gone = [name for name in self._open if name not in listed]
        found = listed | dict(zip(gone, _parallel(self._api.job, gone), strict=True))
        self.jobs |= {name: found[name] for name in self._open}
        ended = [name for name in self._open if self.jobs[name]["jobState"] in ENDED]
        self._open = {name: None for name in self._open if name not in ended}
        return ended


def _detail(api: QueueApi, name: str) -> JobDetailView | None:
    """Return a job; None if it was purged since it was listed."""
    try:
        return api.job(name)
    except NotFound:
        return None


def _parallel(call: Callable[[T], R], arguments: Iterable[T]) -> Any:
    """Iterate over the results in order; after an error or Ctrl-C, no further call begins."""
    pool = ThreadPoolExecutor(_CONCURRENCY)
    try:
        yield from pool.map(call, arguments)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
