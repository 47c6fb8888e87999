"""The hook for aiobotocore: its handlers as coroutines, called as an asynchronous client calls them."""

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import boto3
import httpx
import pytest
from client_world import REGION, World, request_for, transport_to

from trainmaster import ApiClient
from trainmaster.client.sdk.async_hook import AsyncRoute
from trainmaster.client.sdk.hook import Route
from trainmaster.client.sdk.response_codec import request_of


class Emitter:
    """An event emitter whose handlers are awaited, as aiobotocore's are."""

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[..., Awaitable[Any]]] = {}

    def register(self, event: str, handler: Callable[..., Awaitable[Any]], unique_id: str) -> None:
        self.handlers[event] = handler

    def unregister(self, event: str, unique_id: str) -> None:
        self.handlers.pop(event, None)


class Client:
    """The part of an asynchronous client that emits events."""

    def __init__(self, route: Route, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep) -> None:
        self.route, self._emitter = route, Emitter()
        AsyncRoute(route, sleep).attach(self._emitter)
        self._model = boto3.session.Session(region_name=REGION).client("sagemaker").meta.service_model

    async def call(self, operation: str, region: str = REGION, **request: Any) -> Any:
        """Give the handler's answer; for a call that it passes on, the request that it passes on."""
        params = {"body": json.dumps(request).encode(), "url": "https://api.sagemaker.us-east-1.amazonaws.com"}
        answer = await self._emitter.handlers[f"before-call.sagemaker.{operation}"](
            model=self._model.operation_model(operation), params=params, context={"client_region": region}
        )
        return request_of(params) if answer is None else answer[1]

    async def status(self, name: str = "job1") -> str:
        answer = await self.call("DescribeTrainingJob", TrainingJobName=name)
        return str(answer.get("TrainingJobStatus", "passed on"))


@pytest.fixture
def route(session: boto3.session.Session, api: ApiClient) -> Route:
    api.submit(request_for("job1"))
    return Route(session, api)


async def unslept(_: float) -> None:
    raise AssertionError("it waited")


def test_the_first_question_about_a_job_that_waits_is_answered_at_once(route: Route) -> None:
    client = Client(route, unslept)
    assert asyncio.run(client.status()) == "InProgress"


def test_a_job_of_another_region_is_none_of_the_queues(route: Route) -> None:
    client = Client(route, unslept)
    for _ in range(2):
        answer = asyncio.run(client.call("DescribeTrainingJob", "eu-west-1", TrainingJobName="job1"))
        assert answer == {"TrainingJobName": "job1"}


@pytest.mark.parametrize("state", ["pending", "held", "preempted"])
def test_a_repeated_one_is_answered_when_the_job_has_left_the_queue(
    route: Route, world: World, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 100:
            world.start("job1")

    world.jobs["job1"]["jobState"] = state
    client = Client(route, sleep)

    async def ask_twice() -> list[str]:
        return [await client.status(), await client.status()]

    with caplog.at_level(logging.INFO, logger="trainmaster"):
        assert asyncio.run(ask_twice()) == ["InProgress", "passed on"]
    assert slept == [30.0] * 100
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("job1: ")


@pytest.mark.parametrize("ending", ["cancelled", "failed"])
def test_a_job_that_ends_in_the_queue_ends_the_wait(route: Route, world: World, ending: str) -> None:
    async def sleep(_: float) -> None:
        world.jobs["job1"]["jobState"] = ending

    client = Client(route, sleep)

    async def ask_twice() -> list[str]:
        return [await client.status(), await client.status()]

    assert asyncio.run(ask_twice())[1] == {"cancelled": "Stopped", "failed": "Failed"}[ending]


def test_jobs_that_run_or_are_unknown_are_never_waited_for(route: Route, world: World) -> None:
    world.start("job1")
    client = Client(route, unslept)

    async def ask() -> list[str]:
        return [await client.status(name) for name in ("job1", "job1", "other", "other")]

    assert asyncio.run(ask()) == ["passed on"] * 4


def test_a_route_that_is_switched_off_passes_everything_on(route: Route) -> None:
    client = Client(route, unslept)
    route.enabled = False

    async def ask() -> list[str]:
        return [await client.status(), await client.status()]

    assert asyncio.run(ask()) == ["passed on"] * 2


def test_an_outage_becomes_the_error_that_clients_retry(
    session: boto3.session.Session, client_on: Callable[[httpx.BaseTransport], ApiClient], world: World
) -> None:
    world.outage = [503] * 99
    client = Client(Route(session, client_on(transport_to(world))), unslept)

    async def ask_twice() -> list[Any]:
        return [await client.call("DescribeTrainingJob", TrainingJobName="job1") for _ in range(2)]

    assert [answer["Error"]["Code"] for answer in asyncio.run(ask_twice())] == ["ServiceUnavailable"] * 2


def test_a_slow_queue_does_not_keep_the_event_loop_waiting(
    session: boto3.session.Session, client_on: Callable[[httpx.BaseTransport], ApiClient], world: World
) -> None:
    free = threading.Event()

    def answer(request: httpx.Request) -> httpx.Response:
        assert free.wait(10)
        return transport_to(world).handle_request(request)

    client = Client(Route(session, client_on(httpx.MockTransport(answer))))

    async def submit() -> Any:
        submission = asyncio.ensure_future(client.call("CreateTrainingJob", **request_for("job1")))
        await asyncio.sleep(0)
        free.set()  # reached only because the loop is not blocked
        return await submission

    assert asyncio.run(submit())["TrainingJobArn"].endswith("/job1")


def test_a_cancelled_wait_ends(route: Route) -> None:
    client = Client(route)

    async def cancel() -> None:
        await client.status()
        waiting = asyncio.ensure_future(client.status())
        await asyncio.sleep(0.01)
        waiting.cancel()
        await waiting

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
