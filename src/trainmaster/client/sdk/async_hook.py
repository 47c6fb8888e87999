"""Routes an aiobotocore session's training jobs to the queue, with the handlers of a `Route` in threads of their own.

A waiter counts its polls, and few callers expect a job to wait for hours before it starts. So a client that asks again
for a job that waits in the queue gets its answer when the job has left the queue: only the polls of a job that runs
count, as without the queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from trainmaster.client.api.errors import ApiError
from trainmaster.client.kinds import is_training_job
from trainmaster.client.sdk.once import Once
from trainmaster.client.sdk.response_codec import request_of
from trainmaster.client.views.changes import JobChanges
from trainmaster.client.views.states import WAITING
from trainmaster.client.views.wording import sentence_of
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from trainmaster.client.sdk.hook import Route
    from trainmaster.client.views.types import JobDetailView

logger = logging.getLogger("trainmaster")

_DESCRIBE = "before-call.sagemaker.DescribeTrainingJob"
_MAX_THREADS = 16
# Not the event loop's own: calls that time out must not keep the loop's other users waiting.
_threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="trainmaster")

Result = TypeVar("Result")


class AsyncRoute:
    """Attaches a route's handlers to an aiobotocore session or client.

    `poll_seconds` is the time between two looks at a job that waits, for a client that asks again.
    """

    def __init__(
        self, route: Route, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep, poll_seconds: float = 30.0
    ) -> None:
        self._route, self._sleep, self._poll_seconds = route, sleep, poll_seconds
        self._described = Once()
        self._changes = JobChanges()

    def attach(self, emitter: Any) -> None:
        """Register on the events of an aiobotocore session (its component `event_emitter`) or client."""
        self._route.attach(_AsyncEvents(emitter, self._async_handler))  # type: ignore[arg-type]

    def _async_handler(self, event: str, handler: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        """Return the handler as a coroutine function."""
        before = self._hold if event == _DESCRIBE else _no_hold

        async def call(**arguments: Any) -> Any:
            await before(arguments)
            return await _in_thread(handler, **arguments)

        return call

    async def _hold(self, arguments: dict[str, Any]) -> None:
        """Return once the job does not wait in the queue; at once if the client asks for the first time."""
        name, region = request_of(arguments["params"])["TrainingJobName"], arguments["context"]["client_region"]
        if not self._route.enabled or self._described.is_first((name, region)):
            return
        while await self._waits(name, region):
            await self._sleep(self._poll_seconds)

    async def _waits(self, name: str, region: str) -> bool:
        """Return whether the queue has a training job that waits, and log its changes; an error is the handler's."""
        try:
            job = await _in_thread(self._look_up, name, region)
        except ApiError:
            return False
        if job is None or job["jobState"] not in WAITING or not is_training_job(job):
            return False
        if self._changes.is_due(job):
            logger.info("%s: %s", one_line(name), sentence_of(job))
        return True

    def _look_up(self, name: str, region: str) -> JobDetailView | None:
        return None if self._route.is_elsewhere(region) else self._route.cache.look_up(name)


class _AsyncEvents:
    """The part of an event emitter that a route needs: it registers each handler as a coroutine function."""

    def __init__(self, emitter: Any, adapt: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
        self._emitter, self._adapt = emitter, adapt

    def register(self, event: str, handler: Callable[..., Any], unique_id: str) -> None:
        """Register the handler, made asynchronous."""
        self._emitter.register(event, self._adapt(event, handler), unique_id=unique_id)

    def unregister(self, event: str, unique_id: str) -> None:
        """Unregister what has that ID."""
        self._emitter.unregister(event, unique_id=unique_id)


async def _no_hold(_: dict[str, Any]) -> None:
    """Let the call proceed."""


async def _in_thread(function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
    """Call the function in a thread, with the context variables of the caller."""
    call = partial(copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads, call)
