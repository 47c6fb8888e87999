"""Sends the SageMaker training jobs of Airflow's operators, sensors and triggers to the queue.

Airflow loads `QueueSessionFactory` if `[aws] session_factory` names it; nothing in a DAG changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from airflow.providers.amazon.aws.hooks.base_aws import BaseSessionFactory  # type: ignore[import-not-found]

from trainmaster.client.api.config import environment_address
from trainmaster.client.sdk.async_hook import AsyncRoute
from trainmaster.client.sdk.hook import Route
from trainmaster.client.sdk.job_cache import JobCache
from trainmaster.client.sdk.waiting import SteadyMessage
from trainmaster.integrations.connection import QueueConnection

MEMBER = "trainmaster"
"""The member of a connection's Extra that names the queue and the options of its jobs."""

_caches: WeakValueDictionary[str, JobCache] = WeakValueDictionary()
_lock = threading.Lock()


class QueueSessionFactory(BaseSessionFactory):  # type: ignore[misc]
    """Creates the provider's sessions, and routes their training jobs to the queue.

    The connection's Extra has `trainmaster`: an object with the address of the queue and the options of jobs that do
    not set them (`QueueConnection`), true for the queue that the environment names, false for none. Without it, jobs go
    to the queue if the environment names one.
    """

    queue_poll_seconds = 30.0
    """Time between two looks at a job that waits, for a trigger that asks again."""

    def create_session(self, deferrable: bool = False) -> Any:  # noqa: FBT001, FBT002 - the provider's own signature
        """Create a boto3 or aiobotocore session. Raises ValueError for an invalid Extra."""
        session = super().create_session(deferrable)
        connection = self._queue_connection()
        if connection is None:
            return session
        if deferrable:
            route = self._route(connection, super().create_session)
            AsyncRoute(route, poll_seconds=self.queue_poll_seconds).attach(session.get_component("event_emitter"))
        else:
            self._route(connection, lambda: session).attach(session.events)
        return session

    def _queue_connection(self) -> QueueConnection | None:
        """Return the queue for this connection's jobs; None if they pass by it."""
        address = environment_address()
        given = self.extra_config.get(MEMBER, bool(address))
        if given is False:
            return None
        try:
            return QueueConnection.parse({} if given is True else given, address)
        except ValueError as error:
            raise ValueError(f"Extra of connection {self.conn.conn_id}: {MEMBER} is invalid: {error}") from error

    def _route(self, connection: QueueConnection, signer: Callable[[], Any]) -> Route:
        """Return a route; `signer` creates the boto3 session that signs calls, unless another route has one."""
        cache = self._cache(connection, signer)
        session: Any = cache.api.session  # the one that the cache keeps: hooks keep their clients, not their sessions
        route = Route(session, cache.api)
        route.cache = cache
        route.message_of = SteadyMessage()
        connection.set_defaults(route)
        return route

    def _cache(self, connection: QueueConnection, signer: Callable[[], Any]) -> JobCache:
        """Return the cache of this connection's jobs, shared by all of its sessions in this process.

        Each hook has a session of its own. Thus the one that reads logs knows the attempts of the job that the other
        describes, and a triggerer has one client of the queue for all of its triggers.
        """
        identity = repr((connection, self.conn.conn_id, self.conn.session_kwargs, self.extra_config, self.region_name))
        with _lock:
            cache = _caches.get(identity)
            if cache is None:
                cache = _caches[identity] = JobCache(connection.client(signer()))
            return cache
