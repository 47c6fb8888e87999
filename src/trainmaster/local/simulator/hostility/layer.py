"""The layer between the clients and the engine that makes SageMaker misbehave.

The caller serializes all calls. `ApiError` is an answer of the service, and an error of botocore is the loss of the
request or of its answer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError

from trainmaster.local.simulator.faults import Throttle
from trainmaster.local.simulator.hostility.clock_offset import shift, shift_filters
from trainmaster.local.simulator.hostility.history import History
from trainmaster.local.simulator.hostility.hostility import Hostility
from trainmaster.local.simulator.hostility.mishaps import Mishaps
from trainmaster.local.simulator.hostility.watched_engine import Mark, WatchedEngine
from trainmaster.local.simulator.service.engine import Engine, Request, Response
from trainmaster.local.simulator.service.job import STOPPING
from trainmaster.local.simulator.wire.client import ENDPOINT
from trainmaster.local.simulator.wire.errors import ApiError, invalid, not_found, throttled
from trainmaster.local.simulator.wire.listing import list_jobs
from trainmaster.local.simulator.wire.views import describe

Operation = Callable[[str, Request, datetime], Response]
Proceed = Callable[[Request, Operation], Response]
"""Carries out a call of the client through the given operation."""
CREATE, STOP, LIST = "CreateTrainingJob", "StopTrainingJob", "ListTrainingJobs"
TIMED = frozenset({"DescribeTrainingJob", LIST})


class HostileLayer:
    """A misbehaving SageMaker over an ideal engine.

    Args:
        ideal: the engine, which stays the truth.
        rng: source of all randomness.
        now: the current time.
        counts: receives how often each setting took effect, by its name; for reads, how often an answer was behind.

    Attributes:
        engine: to be used in place of the ideal engine, for all changes.
    """

    def __init__(self, ideal: Engine, rng: random.Random, now: datetime, counts: Counter[str]) -> None:
        self.ideal = ideal
        self.engine = WatchedEngine(ideal, self._keep, self._changed)
        self._rng = rng
        self._mishaps = Mishaps(ideal.state, rng, counts)
        self._counts = counts
        self._max_lag = timedelta(0)
        self._late: dict[int, Request] = {}
        self._late_number = 0
        self.replace(Hostility(), now)

    def replace(self, hostility: Hostility, now: datetime) -> None:
        """Change the settings. Late creates arrive at once unless the new settings have late creates."""
        self.hostility = self._mishaps.hostility = hostility
        self.offset = timedelta(seconds=hostility.clock_offset)
        self._throttle = Throttle(hostility.rates)
        if not self._max_lag:
            self._begin_history(now)
        self._max_lag = timedelta(seconds=hostility.max_lag)
        self._lags = {
            "DescribeTrainingJob": (hostility.describe_lag, self._describe),
            LIST: (hostility.list_lag, self._list),
            "ListTags": (hostility.tags_lag, self._list_tags),
        }
        if not hostility.late_creates:
            for number in list(self._late):
                self._arrive(number, now)

    def call(self, operation: str, request: Request, now: datetime, proceed: Proceed) -> Response:
        """Carry out a client's call. Raises `ApiError` and errors of botocore."""
        self._check_rate(operation, now)
        if self._happens("failed_calls"):
            raise self._failure()
        if operation == CREATE and self._happens("late_creates"):
            self._delay(request, now)
            raise self._loss()
        if operation == STOP:
            self._refuse_repeated_stop(request)
        lost = self._happens("lost_answers")
        try:
            answer = self._proceed(operation, request, proceed)
        except ApiError as error:
            raise (self._loss() if lost else error) from None
        if lost:
            raise self._loss()
        return answer

    def carry_out(self, operation: str, request: Request, now: datetime) -> Response:
        """Carry out an operation on the engine; a read may lag."""
        lag, read = self._lags.get(operation, (0, None))
        if not lag or read is None:
            return self.engine.call(operation, request, now)
        self._history.prune(now - self._max_lag)
        return read(request, now - timedelta(seconds=self._rng.uniform(0, lag)))

    def _proceed(self, operation: str, request: Request, proceed: Proceed) -> Response:
        if operation not in TIMED:
            return proceed(request, self.carry_out)
        answer = proceed(shift_filters(request, self.offset), self.carry_out)
        return shift(answer, self.offset)

    def _refuse_repeated_stop(self, request: Request) -> None:
        job = self.ideal.state.jobs.get(request["TrainingJobName"])
        if job is not None and job.status == STOPPING and self._happens("refuse_repeated_stops"):
            raise invalid(f"The request was rejected because the training job is in status {STOPPING}.")

    # --- calls that are lost ------------------------------------------------------------------------------------------

    def _check_rate(self, operation: str, now: datetime) -> None:
        try:
            self._throttle.check(operation, now)
        except ApiError:
            self._counts["rates"] += 1
            raise

    def _happens(self, setting: str) -> bool:
        return self._mishaps.happens(setting)

    def _failure(self) -> Exception:
        """Return an error without effect."""
        return self._rng.choice([
            _internal_failure(),
            ApiError("ServiceUnavailable", "The request has failed due to a temporary failure of the server.", 503),
            throttled(),
            EndpointConnectionError(endpoint_url=ENDPOINT),
            ReadTimeoutError(endpoint_url=ENDPOINT),
            ConnectionClosedError(endpoint_url=ENDPOINT),
        ])  # fmt: skip

    def _loss(self) -> Exception:
        """Return an error that hides the effect of a call."""
        return self._rng.choice([_internal_failure(), ReadTimeoutError(endpoint_url=ENDPOINT)])

    def _delay(self, request: Request, now: datetime) -> None:
        """Have a create arrive later, at most once."""
        self._late_number += 1
        number = self._late_number
        self._late[number] = request
        seconds = self._rng.uniform(0, self.hostility.late_seconds)
        self.engine.state.timers.at(now + timedelta(seconds=seconds), lambda time: self._arrive(number, time))

    def _arrive(self, number: int, now: datetime) -> None:
        request = self._late.pop(number, None)
        if request is not None:
            with suppress(ApiError):
                self.engine.call(CREATE, request, now)

    # --- reads that lag -----------------------------------------------------------------------------------------------

    def _begin_history(self, now: datetime) -> None:
        self._history = History(self.ideal.state.jobs)
        for name in self.ideal.state.jobs:
            self._history.record(name, now)

    def _keep(self, name: str, now: datetime) -> None:
        if self._max_lag:
            self._history.keep(name, now)

    def _changed(self, name: str, before: Mark | None, now: datetime) -> None:
        job = self.ideal.state.jobs.get(name)
        if job is not None:
            self._mishaps.draw(job, before, now)
        if self._max_lag:
            self._history.prune(now - self._max_lag)
            self._history.record(name, now)

    def _describe(self, request: Request, time: datetime) -> Response:
        name = request["TrainingJobName"]
        self._counts["describe_lag"] += self._history.is_job_stale(name, time)
        job = self._history.job_at(name, time)
        if job is None:
            raise not_found(self.ideal.account.not_found_code)
        return describe(job, time)

    def _list(self, request: Request, time: datetime) -> Response:
        self._counts["list_lag"] += self._history.is_stale(time)
        return list_jobs(self._history.jobs_at(time), request, time)

    def _list_tags(self, request: Request, time: datetime) -> Response:
        arn = request["ResourceArn"]
        name = arn.rpartition("/")[2]
        self._counts["tags_lag"] += self._history.is_job_stale(name, time)
        job = self._history.job_at(name, time)
        if job is not None and job.arn == arn:
            return {"Tags": _listed(job.tags)}
        now_there = name in self.ideal.state.jobs and self.ideal.state.jobs[name].arn == arn
        if now_there and self._rng.random() < 0.5:
            return {"Tags": []}
        raise not_found(self.ideal.account.not_found_code)


def _internal_failure() -> ApiError:
    return ApiError("InternalFailure", "The request processing has failed because of an unknown error.", 500)


def _listed(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
