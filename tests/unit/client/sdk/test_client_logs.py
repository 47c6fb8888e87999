"""Log streams of several attempts read as one, over CloudWatch Logs as moto serves it."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from client_world import World, request_for

from trainmaster import ApiClient, route_to_queue
from trainmaster.client.sdk.hook import Route, unroute

GROUP = "/aws/sagemaker/TrainingJobs"


class Attempts:
    """One job of several attempts, whose containers write."""

    def __init__(self, world: World, route: Route, writer: Any) -> None:
        self.world, self.route, self.writer = world, route, writer
        self.name = f"job-{uuid.uuid4().hex[:8]}"
        self.now = int(time.time() * 1000) - 100_000
        route.api.submit(request_for(self.name))

    def begin(self) -> str:
        if self.world.jobs[self.name]["attempts"]:
            self.world.preempt(self.name)
            self.world.settle(self.name)
        attempt = self.world.start(self.name)
        self.route.cache.look_up(self.name)
        return attempt

    def write(self, attempt: str, host: int, *lines: str) -> None:
        stream = f"{attempt}/algo-{host}-17"
        events = []
        for line in lines:
            self.now += 1
            events.append({"timestamp": self.now, "message": line})
        with contextlib.suppress(self.writer.exceptions.ResourceAlreadyExistsException):
            self.writer.create_log_stream(logGroupName=GROUP, logStreamName=stream)
        self.writer.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=events)


@pytest.fixture
def route(session: boto3.session.Session, api: ApiClient, moto: str, monkeypatch: pytest.MonkeyPatch) -> Route:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    return route_to_queue(session, api)


@pytest.fixture
def logs_client(session: boto3.session.Session, route: Route) -> Iterator[Callable[[], Any]]:
    made: list[Any] = []

    def make() -> Any:
        made.append(session.client("logs"))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def job(world: World, route: Route, logs_client: Callable[[], Any]) -> Attempts:
    writer = logs_client()
    with contextlib.suppress(writer.exceptions.ResourceAlreadyExistsException):
        writer.create_log_group(logGroupName=GROUP)
    return Attempts(world, route, writer)


@pytest.fixture
def logs(job: Attempts, logs_client: Callable[[], Any]) -> Any:
    return logs_client()


def streams(logs: Any, name: str) -> list[str]:
    found = logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=f"{name}/", orderBy="LogStreamName")
    return [stream["logStreamName"] for stream in found["logStreams"]]


class Reader:
    """Reads a stream as SDK v3 does: from the head, by tokens, until a page is empty."""

    def __init__(self, logs: Any, stream: str) -> None:
        self.logs, self.stream, self.token = logs, stream, None

    def more(self) -> list[str]:
        lines: list[str] = []
        while True:
            token = {"nextToken": self.token} if self.token else {}
            page = self.logs.get_log_events(logGroupName=GROUP, logStreamName=self.stream, startFromHead=True, **token)
            self.token = page["nextForwardToken"]
            if not page["events"]:
                return lines
            lines += [event["message"] for event in page["events"]]


def test_a_reader_goes_on_into_the_next_attempt(logs: Any, job: Attempts) -> None:
    first = job.begin()
    job.write(first, 1, "step 1", "step 2")
    assert streams(logs, job.name) == [f"{job.name}/algo-1-17"]
    reader = Reader(logs, f"{job.name}/algo-1-17")
    assert reader.more() == ["step 1", "step 2"]

    second = job.begin()
    job.write(first, 1, "saved")
    assert reader.more() == ["saved"]
    job.write(second, 1, "resumed at 2", "step 3")
    assert reader.more() == ["resumed at 2", "step 3"]
    job.write(second, 1, "step 4")
    assert reader.more() == ["step 4"]
    third = job.begin()
    assert reader.more() == []
    job.write(third, 1, "resumed at 4")
    assert reader.more() == ["resumed at 4"]
    assert streams(logs, job.name) == [f"{job.name}/algo-1-17"]


def test_a_reader_of_an_attempt_that_is_not_listed_any_more_goes_on_into_those_that_are(
    logs: Any, world: World, job: Attempts
) -> None:
    first = job.begin()
    job.write(first, 1, "step 1")
    reader = Reader(logs, f"{job.name}/algo-1-17")
    assert reader.more() == ["step 1"]
    for line in ("step 2", "step 3"):
        job.write(job.begin(), 1, line)
    del world.jobs[job.name]["attempts"][0]
    job.route.cache.look_up(job.name)
    assert reader.more() == ["step 2", "step 3"]


def test_a_late_reader_reads_every_attempt_from_the_first(logs: Any, job: Attempts) -> None:
    for line in ("one", "two", "three"):
        job.write(job.begin(), 1, line)
    assert Reader(logs, f"{job.name}/algo-1-17").more() == ["one", "two", "three"]


def test_a_reader_by_time_skips_what_it_has_read(logs: Any, job: Attempts) -> None:
    """SDK v2 keeps no token between polls but asks again from the last line's time."""
    job.write(job.begin(), 1, "one")
    job.write(job.begin(), 1, "two", "three")
    page = logs.get_log_events(
        logGroupName=GROUP, logStreamName=f"{job.name}/algo-1-17", startTime=job.now, startFromHead=True
    )
    assert [event["message"] for event in page["events"]] == ["three"]


def test_each_host_is_one_stream_begun_where_it_first_wrote(logs: Any, job: Attempts) -> None:
    first = job.begin()
    job.write(first, 1, "a")
    second = job.begin()
    job.write(second, 1, "b")
    job.write(second, 2, "c")
    assert streams(logs, job.name) == [f"{first}/algo-1-17", f"{second}/algo-2-17"]
    assert Reader(logs, f"{first}/algo-1-17").more() == ["a", "b"]
    assert Reader(logs, f"{second}/algo-2-17").more() == ["c"]


def test_an_attempt_that_never_wrote_is_passed_over(logs: Any, job: Attempts) -> None:
    first = job.begin()
    job.write(first, 1, "a")
    job.begin()
    job.write(job.begin(), 1, "c")
    assert Reader(logs, f"{first}/algo-1-17").more() == ["a", "c"]


def test_other_streams_are_cloudwatchs_own_business(logs: Any, job: Attempts, world: World) -> None:
    asked = len(world.calls)
    job.write("other-qstamp-2", 1, "not ours")
    job.write("other", 1, "not ours")
    assert streams(logs, "other") == ["other/algo-1-17"]
    assert Reader(logs, "other/algo-1-17").more() == ["not ours"]
    with pytest.raises(ClientError, match="ResourceNotFound"):
        logs.describe_log_streams(logGroupName="/aws/sagemaker/Nothing")
    assert len(world.calls) == asked


def test_reading_backwards_and_unrouted_is_cloudwatchs_own_business(
    logs: Any, job: Attempts, session: boto3.session.Session
) -> None:
    first = job.begin()
    job.write(first, 1, "a")
    job.write(job.begin(), 1, "b")
    page = logs.get_log_events(logGroupName=GROUP, logStreamName=f"{first}/algo-1-17")
    assert [event["message"] for event in page["events"]] == ["a"]
    unroute(session)
    assert Reader(logs, f"{first}/algo-1-17").more() == ["a"]


def test_a_job_that_lost_its_base_is_read_on_in_the_member_that_took_its_place(job: Attempts, logs: Any) -> None:
    base, member = job.begin(), f"{job.name}-qstamp-1-m1"
    job.write(base, 1, "one")
    job.world.lose_base(job.name, member)
    job.route.cache.look_up(job.name)
    job.write(member, 1, "two")
    (stream,) = streams(logs, job.name)
    assert stream == f"{base}/algo-1-17"
    first = logs.get_log_events(logGroupName=GROUP, logStreamName=stream, startFromHead=True)
    token = first["nextForwardToken"]
    second = logs.get_log_events(logGroupName=GROUP, logStreamName=stream, startFromHead=True, nextToken=token)
    assert [event["message"] for page in (first, second) for event in page["events"]] == ["one", "two"]


def test_two_routes_of_one_session_read_each_line_once(
    job: Attempts, logs: Any, session: boto3.session.Session, api: ApiClient
) -> None:
    other = Route(session, api)
    other.attach_readers(session.events)
    other.attach_readers(logs.meta.events)
    for line in ("one", "two"):
        job.write(job.begin(), 1, line)
    other.cache.look_up(job.name)
    assert streams(logs, job.name) == [f"{job.name}/algo-1-17"]
    assert Reader(logs, f"{job.name}/algo-1-17").more() == ["one", "two"]
