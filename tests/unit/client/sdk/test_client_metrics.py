"""Metrics of several attempts read as one curve, over CloudWatch as moto serves it."""

import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import boto3
import pytest
from client_world import World, request_for

from trainmaster import ApiClient, route_to_queue
from trainmaster.client.sdk.hook import Route, unroute

NAMESPACE = "/aws/sagemaker/TrainingJobs"
MINUTE = timedelta(minutes=1)
NOW = datetime.now(timezone.utc).replace(second=0, microsecond=0)
STARTS = [NOW - timedelta(days=days) for days in (5, 3, 1)]
"""Of three attempts, days apart: a single request for all would exceed CloudWatch's limit of points."""


class Curves:
    """A job of three attempts, each of ten minutes, with a loss in the second minute of each."""

    def __init__(self, world: World, api: ApiClient, cloudwatch: Any) -> None:
        self.world, self.cloudwatch = world, cloudwatch
        self.name = f"job-{uuid.uuid4().hex[:8]}"
        api.submit(request_for(self.name))

    def attempt(self, start: datetime, loss: float) -> None:
        """Run an attempt, which prints a loss once and is preempted."""
        name = self.world.start(self.name)
        times = {"startedAt": start.isoformat(), "createdAt": (start - 5 * MINUTE).isoformat()}
        self.world.jobs[self.name]["attempts"][-1] |= times
        self.put(name, start + MINUTE, loss)
        self.world.preempt(self.name)
        self.world.settle(self.name)
        self.world.jobs[self.name]["attempts"][-1]["endedAt"] = (start + 10 * MINUTE).isoformat()

    def put(self, name: str, at: datetime, loss: float) -> None:
        dimensions = [{"Name": "TrainingJobName", "Value": name}]
        data = {"MetricName": "loss", "Dimensions": dimensions, "Value": loss, "Timestamp": at}
        self.cloudwatch.put_metric_data(Namespace=NAMESPACE, MetricData=[data])


@pytest.fixture
def route(session: boto3.session.Session, api: ApiClient, moto: str, monkeypatch: pytest.MonkeyPatch) -> Route:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    return route_to_queue(session, api)


@pytest.fixture
def cloudwatch(session: boto3.session.Session, route: Route) -> Iterator[Any]:
    client: Any = session.client("cloudwatch")
    yield client
    client.close()


@pytest.fixture
def job(world: World, route: Route, cloudwatch: Any) -> Curves:
    job = Curves(world, route.api, cloudwatch)
    for start, loss in zip(STARTS, (3.0, 2.0, 1.0), strict=True):
        job.attempt(start, loss)
    route.cache.look_up(job.name)
    return job


@pytest.fixture
def losses(cloudwatch: Any) -> Callable[..., list[float]]:
    """Read the losses of a name as the SDKs do, in order of time."""

    def read(name: str, start: datetime = STARTS[-1], end: datetime = NOW) -> list[float]:
        answer = cloudwatch.get_metric_statistics(
            Namespace=NAMESPACE,
            MetricName="loss",
            Dimensions=[{"Name": "TrainingJobName", "Value": name}],
            StartTime=start,
            EndTime=end,
            Period=60,
            Statistics=["Average"],
        )
        points = sorted(answer["Datapoints"], key=lambda point: point["Timestamp"])
        return [point["Average"] for point in points]

    return read


def test_the_metrics_of_a_job_are_those_of_all_its_attempts(job: Curves, losses: Callable[..., list[float]]) -> None:
    assert losses(job.name) == [3.0, 2.0, 1.0]


def test_a_period_of_the_callers_own_is_kept(job: Curves, losses: Callable[..., list[float]]) -> None:
    assert losses(job.name, STARTS[1], STARTS[1] + 10 * MINUTE) == [2.0]
    assert losses(job.name, STARTS[2] + 2 * MINUTE) == []


def test_an_attempt_has_its_own_metrics(job: Curves, losses: Callable[..., list[float]]) -> None:
    assert losses(f"{job.name}-qstamp-3") == [1.0]
    assert losses(f"{job.name}-qstamp-2", STARTS[1]) == [2.0]


def test_a_local_time_without_zone_is_understood(job: Curves, losses: Callable[..., list[float]]) -> None:
    assert losses(job.name, STARTS[-1].astimezone().replace(tzinfo=None)) == [3.0, 2.0, 1.0]


def test_where_attempts_overlap_in_a_period_the_later_one_counts(
    job: Curves, losses: Callable[..., list[float]]
) -> None:
    job.put(f"{job.name}-qstamp-2", STARTS[0] + MINUTE, 9.0)
    assert losses(job.name, STARTS[0]) == [9.0, 2.0, 1.0]


def test_jobs_of_one_attempt_and_other_metrics_pass_through(
    job: Curves, losses: Callable[..., list[float]], route: Route, session: boto3.session.Session
) -> None:
    other = f"{job.name}-other"
    job.put(other, STARTS[-1] + MINUTE, 7.0)
    assert losses(other) == [7.0]
    route.api.submit(request_for(other))
    job.world.start(other)
    route.cache.look_up(other)
    assert losses(other) == [7.0]
    unroute(session)
    assert losses(job.name) == []


def test_a_client_made_before_the_route_ended_passes_calls_on(
    job: Curves, losses: Callable[..., list[float]], route: Route
) -> None:
    route.enabled = False
    assert losses(job.name) == []


def test_a_job_that_waits_to_resume_tells_when_it_started(job: Curves, session: boto3.session.Session) -> None:
    described = session.client("sagemaker").describe_training_job(TrainingJobName=job.name)
    assert described["SecondaryStatus"] == "Pending"
    assert described["TrainingStartTime"] == STARTS[-1]
    assert "TrainingEndTime" not in described


def test_two_routes_of_one_session_read_each_value_once(
    job: Curves, losses: Callable[..., list[float]], session: boto3.session.Session, cloudwatch: Any, api: ApiClient
) -> None:
    other = Route(session, api)
    for events in (session.events, cloudwatch.meta.events):
        other.attach_readers(events)
    other.cache.look_up(job.name)
    assert losses(job.name) == [3.0, 2.0, 1.0]


def test_a_route_that_does_not_know_the_job_leaves_it_to_the_other(
    job: Curves, losses: Callable[..., list[float]], session: boto3.session.Session, cloudwatch: Any, route: Route
) -> None:
    other = Route(session, route.api)
    for events in (session.events, cloudwatch.meta.events):
        other.attach_readers(events)
    other.cache.look_up(job.name)
    route.cache.forget(job.name)
    assert losses(job.name) == [3.0, 2.0, 1.0]


def test_the_newest_view_of_a_job_counts_whichever_route_has_it(
    job: Curves, losses: Callable[..., list[float]], session: boto3.session.Session, cloudwatch: Any, route: Route
) -> None:
    other = Route(session, route.api)
    for events in (session.events, cloudwatch.meta.events):
        other.attach_readers(events)
    job.attempt(STARTS[-1] + timedelta(hours=1), 0.5)
    other.cache.look_up(job.name)
    assert losses(job.name, STARTS[-1] + timedelta(hours=1)) == [3.0, 2.0, 1.0, 0.5]
