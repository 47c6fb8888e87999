"""Runs a sweep: submits its trials, follows them, stops those that are worse, and asks a search for further ones.

A grid or a random search without early stopping needs no process once its trials are submitted: the queue starts them,
at most `max_concurrent` at a time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from trainmaster.client.api.errors import Conflict
from trainmaster.client.sweeps.metrics import FinalMetrics, MetricCurves
from trainmaster.client.sweeps.search import OptunaSearch
from trainmaster.client.sweeps.stopping import Verdict, median_rule
from trainmaster.client.sweeps.trials import (
    TrialResult,
    TrialStates,
    cancel_trials,
    read_trials,
    results_of,
    submit_trials,
)
from trainmaster.domain.text import MAX_REASON_LENGTH

if TYPE_CHECKING:
    from trainmaster.client.sweeps.queue_api import QueueApi
    from trainmaster.client.sweeps.stopping import Curve
    from trainmaster.client.sweeps.sweep import Sweep, Trial
    from trainmaster.client.views.types import JobView, SubmissionView

INTERVAL_SECONDS: Final = 15.0
"""Default polling interval."""
_COMPARES_EVERY: Final = timedelta(minutes=1)
"""CloudWatch has one value of a metric a minute."""
_AT_WORK: Final = frozenset({"running", "resizing"})


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """Trials by their state, the number that the sweep will have, and the best one so far."""

    states: Counter[str]
    total: int
    best: TrialResult | None
    done: bool


class SweepRun:
    """A sweep in the queue. `ApiClient.sweep` returns it with its trials submitted.

    `client` returns the boto3 client of a service (`sagemaker`, `cloudwatch`), by default of the API client's session;
    `sleep` takes seconds, and `now` returns the time with its zone. Methods raise ApiError.
    """

    def __init__(
        self,
        api: QueueApi,
        sweep: Sweep,
        *,
        client: Callable[[str], Any] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._api, self.sweep = api, sweep
        self._client = client or self._own_client
        self._sleep, self._now = sleep, now
        self._states = TrialStates(api, sweep.name)
        self._values: dict[str, dict[str, str]] = {}
        self._metrics: dict[str, float | None] = {}
        self._compared_at: datetime | None = None
        self._total = 0
        self.stopped: dict[str, Verdict] = {}
        """Trials that were stopped early, with the comparison."""

    @property
    def names(self) -> list[str]:
        """The trials that were submitted."""
        return list(self._values)

    def submit(self, tell: Callable[[SubmissionView], object] = lambda _: None) -> list[SubmissionView]:
        """Submit the trials that are due and not in the queue yet; call `tell` with each answer."""
        if self._search is None:
            return self._submit(self.sweep.planned(), tell)
        self._total = self._total or self._search.remaining()
        due = [trial for trial in self._search.unfinished() if trial.name not in self._values]
        while len(self._states.open) + len(due) < (self.sweep.max_concurrent or 1):
            trial = self._search.ask()
            if trial is None:
                break
            due.append(trial)
        return self._submit(due, tell)

    def step(self) -> SweepProgress:
        """Look at the trials once, act on what has changed, and return the progress."""
        for name in self._states.refresh():
            self._end(self._states.jobs[name])
        if self.sweep.early_stopping:
            self._stop_worse()
        if self._search is not None:
            self.submit()
        return self.progress()

    def progress(self) -> SweepProgress:
        """Return the progress as of the last step."""
        states = Counter[str](self._states.jobs[name]["jobState"] for name in self._values if name in self._states.jobs)
        states["pending"] += len(self._values) - states.total()
        return SweepProgress(states, self._total, self._best(), done=not self._states.open)

    def wait(
        self, interval: float = INTERVAL_SECONDS, show: Callable[[SweepProgress], object] = lambda _: None
    ) -> list[TrialResult]:
        """Follow the sweep until all trials have ended, and return them, the best first. Seconds between two looks.

        Ctrl-C stops the waiting only; the trials stay in the queue.
        """
        while True:
            progress = self.step()
            show(progress)
            if progress.done:
                return self.results()
            self._sleep(interval)

    def results(self) -> list[TrialResult]:
        """Return the sweep's trials in the queue with their metrics so far, the best first."""
        jobs = read_trials(self._api, self.sweep.name)
        return results_of(jobs, self.sweep.objective, self._final)

    def cancel(self, reason: str = "the sweep was cancelled") -> int:
        """Cancel the trials that have not ended, and return their number."""
        return cancel_trials(self._api, self.sweep.name, reason, lambda _: None)

    def _submit(self, trials: list[Trial], tell: Callable[[SubmissionView], object]) -> list[SubmissionView]:
        answers = submit_trials(self._api, self.sweep, trials, tell)
        self._values |= {trial.name: dict(trial.values) for trial in trials}
        self._total = max(self._total, len(self._values))
        self._states.follow(trial.name for trial in trials)
        return answers

    def _end(self, job: JobView) -> None:
        """Keep the metric of an ended trial, and tell the search."""
        if self.sweep.objective is not None:
            self._metrics[job["jobName"]] = self._final.value(job, self.sweep.objective.metric)
        if self._search is not None:
            self._search.tell(job, self._metrics[job["jobName"]])

    def _best(self) -> TrialResult | None:
        objective = self.sweep.objective
        completed = {
            name: value
            for name, value in self._metrics.items()
            if value is not None and self._states.jobs[name]["jobState"] == "completed"
        }
        if objective is None or not completed:
            return None
        choose = min if objective.goal == "Minimize" else max
        name = choose(completed, key=lambda each: completed[each])
        return TrialResult(name, "completed", self._values[name], completed[name], self._states.jobs[name])

    def _stop_worse(self) -> None:
        """Cancel the running trials that the median rule stops; at most once a minute."""
        now = self._now()
        if self._compared_at is not None and now - self._compared_at < _COMPARES_EVERY:
            return
        self._compared_at = now
        jobs = [job for job in self._states.jobs.values() if job["jobState"] in {*_AT_WORK, "completed"}]
        running = [job for job in jobs if job["jobState"] in _AT_WORK and job["jobName"] not in self.stopped]
        if running and len(running) < len(jobs):
            curves = self._curves.read(jobs, now)
            completed = {job["jobName"]: curves[job["jobName"]] for job in jobs if job["jobState"] == "completed"}
            for job in running:
                self._compare(job["jobName"], curves[job["jobName"]], completed)

    def _compare(self, name: str, curve: Curve, completed: dict[str, Curve]) -> None:
        objective = self.sweep.objective
        verdict = None if objective is None else median_rule(curve, completed, objective)
        if verdict is None or objective is None:
            return
        self.stopped[name] = verdict
        try:
            self._api.cancel(name, _reason(objective.metric, verdict))
        except Conflict:  # it has ended meanwhile
            del self.stopped[name]

    @cached_property
    def _search(self) -> OptunaSearch | None:
        return OptunaSearch(self.sweep) if self.sweep.strategy == "optuna" else None

    @cached_property
    def _final(self) -> FinalMetrics:
        return FinalMetrics(lambda: self._client("sagemaker"))

    @cached_property
    def _curves(self) -> MetricCurves:
        objective = self.sweep.objective
        return MetricCurves(self._client("cloudwatch"), "" if objective is None else objective.metric)

    def _own_client(self, service: str) -> Any:
        return self._api.session.client(service, region_name=self._api.region)


def _reason(metric: str, verdict: Verdict) -> str:
    """Return the reason of an early stop, for the job's history."""
    return (
        f"early stop: its best {metric} was {verdict.best:g} after {verdict.seconds / 60:.0f} minutes, worse than "
        f"{verdict.median:g}, the median of {verdict.compared} completed trials"
    )[:MAX_REASON_LENGTH]
