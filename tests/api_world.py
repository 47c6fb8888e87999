"""The API over the in-memory store, called as API Gateway calls it; what it answered, read back.

The application is the shipped one with its store, publisher and clock replaced. It must not hold any rule of the queue.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

from builders import NOW, P5, ROLE, a_request, pools_of
from trainmaster.bootstrap import Application, Settings
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import Job
from trainmaster.handlers.api.app import build_app
from trainmaster.local.memory.rendezvous import MemoryRendezvousControl
from trainmaster.local.memory.store import MemoryStore

RESEARCH = "arn:aws:sts::111122223333:assumed-role/research"
ALICE = f"{RESEARCH}/alice"
CONTEXT = SimpleNamespace(
    function_name="sagemaker-queue-api",
    memory_limit_in_mb=1024,
    invoked_function_arn="arn:aws:lambda:us-east-1:111122223333:function:sagemaker-queue-api",
    aws_request_id="11111111-2222-3333-4444-555555555555",
)


class StillClock:
    """Time that stands still until it is moved."""

    def __init__(self, now: datetime = NOW) -> None:
        self.moment = now

    def now(self) -> datetime:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class Recorder:
    """A publisher that keeps what it was given."""

    def __init__(self) -> None:
        self.wakes: list[int] = []
        self.aside: list[tuple[str, str]] = []

    def wake(self, follows: int) -> None:
        self.wakes.append(follows)

    def set_aside(self, message: str, reason: str) -> None:
        self.aside.append((message, reason))


class CountingStore:
    """The in-memory store, counting its calls; `failing` makes the named one raise."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()
        self.failing: dict[str, Exception] = {}

    def __getattr__(self, verb: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[verb] += 1
            if verb in self.failing:
                raise self.failing[verb]
            return getattr(self._store, verb)(*args, **kwargs)

        return call


@dataclass(frozen=True)
class Reply:
    """An answer, read as a client reads it."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def error(self) -> dict[str, Any]:
        """The error's members, after a look at its shape."""
        assert isinstance(self.body, dict)
        assert list(self.body) == ["error"]
        assert list(self.body["error"]) == ["type", "message", "field", "hint"]
        return self.body["error"]

    @property
    def kind(self) -> tuple[int, str, str | None]:
        """Status, type and field of an error."""
        return self.status, self.error["type"], self.error["field"]


def read(answer: Mapping[str, Any]) -> Reply:
    """A proxy response as the client gets it from API Gateway."""
    assert answer["isBase64Encoded"] is False
    headers = {name.lower(): ", ".join(values) for name, values in answer["multiValueHeaders"].items()}
    assert headers["content-type"] == "application/json"
    return Reply(answer["statusCode"], json.loads(answer["body"] or "null"), headers)


def rest_event(
    method: str,
    path: str,
    body: Any = None,
    query: Mapping[str, str | list[str]] | None = None,
    *,
    caller: str | None = ALICE,
    tag: str | None = None,
    **members: Any,
) -> dict[str, Any]:
    """Return API Gateway's event for a request; a body that is not text becomes JSON."""
    many = {name: value if isinstance(value, list) else [value] for name, value in (query or {}).items()}
    headers = {"Content-Type": "application/json", "Host": "a1b2c3.execute-api.us-east-1.amazonaws.com"}
    if tag is not None:
        headers["If-None-Match"] = tag
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": {name: values[-1] for name, values in many.items()} or None,
        "multiValueQueryStringParameters": many or None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            "path": f"/prod{path}",
            "stage": "prod",
            "requestId": "0aa1bb2c-request",
            "httpMethod": method,
            "identity": {"userArn": caller, "sourceIp": "10.0.0.7", "userAgent": "trainmaster/1.0"},
        },
        "body": body if body is None or isinstance(body, str) else json.dumps(body),
        "isBase64Encoded": False,
        **members,
    }


@dataclass
class ApiWorld:
    """An API, its store and its clock.

    Args:
        pools: the pools in force.
        settings: of the deployment, beside its pools; every caller is an admin unless they say otherwise.
    """

    stores: ClassVar[type[MemoryStore]] = MemoryStore
    pools: Mapping[str, Pool] = field(default_factory=pools_of)
    settings: Mapping[str, Any] = field(default_factory=lambda: {"allowed_roles": (ROLE,)})

    def __post_init__(self) -> None:
        self.clock, self.publisher = StillClock(), Recorder()
        self.memory = self.stores(default_pools=self.pools, now=self.clock.now)
        self.store = CountingStore(self.memory)
        self.application = Application(
            Settings(queue="sagemaker-queue", table="sagemaker-queue", **({"admins": ("*",)} | self.settings))
        )
        self.application.clock = self.clock
        self.application.store = self.store
        self.application.publisher = self.publisher
        self.rendezvous = MemoryRendezvousControl()
        self.application.rendezvous = self.rendezvous
        self.app = build_app(self.application)

    def event(self, *args: Any, **kwargs: Any) -> Reply:
        """The answer to an event made of `rest_event`'s arguments."""
        return read(self.app.resolve(rest_event(*args, **kwargs), CONTEXT))

    def get(self, path: str, **query: Any) -> Reply:
        return self.event("GET", path, query=query)

    def post(self, path: str, body: Any, **kwargs: Any) -> Reply:
        return self.event("POST", path, body, **kwargs)

    def put(self, path: str, body: Any) -> Reply:
        return self.event("PUT", path, body)

    def patch(self, path: str, body: Any) -> Reply:
        return self.event("PATCH", path, body)

    def delete(self, path: str) -> Reply:
        return self.event("DELETE", path)

    def submit(self, name: str, **kwargs: Any) -> Reply:
        """Submit a job, a second after the one before."""
        self.clock.sleep(1)
        reply = self.post("/add-job", a_request(name, **kwargs))
        assert reply.status == 202, reply.body
        return reply

    def seed(self, *jobs: Job) -> None:
        """Put jobs of any state into the store, each with a request of its own."""
        for job in jobs:
            units = next(iter(job.demand.alternatives), {P5: job.demand.instances})
            instance_type, count = next(iter(units.items()))
            self.memory.submit(job, a_request(job.name, instance_type=instance_type, count=count))
