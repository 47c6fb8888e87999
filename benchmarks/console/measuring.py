"""A console over a queue with many running and waiting jobs, and what its pages and polls cost.

The queue is the shipped code on a DynamoDB engine; between two polls, priorities change and a running job ends.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Event, RLock, Thread
from typing import Any
from urllib.parse import parse_qsl, unquote

import boto3
import httpx

from api_world import CONTEXT, rest_event
from benchmarks import ROOT
from benchmarks.common.world import CALLER, MeteredWorld
from benchmarks.queue.waiting import WITH_REQUEST, waiting_table
from builders import G5, P5
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.retry import Retry
from trainmaster.console.app import Console, Options
from trainmaster.console.feed import Feed
from trainmaster.console.identity import Identity
from trainmaster.domain.policy.settings import Policy
from trainmaster.handlers.api.app import build_app

PAGES = ("#/now", "#/queue", "#/queue?state=active")
DRAWN = "drawn"
"""A timeline of 4,000 intervals, drawn by `timeline.js` in the console's page."""
POLL_SECONDS = 1.0
"""Pause between two polls, and between two changes of the queue."""
CHANGED = 3
"""Waiting jobs whose priority changes each time."""
STAGE = "https://a1b2c3.execute-api.us-east-1.amazonaws.com/prod"
Figures = dict[str, Any]


@dataclass
class Network(httpx.BaseTransport):
    """The way to the API in this process, with the cost of each read.

    Attributes:
        app: the API.
        reads: seconds, bytes and read units of each answer, by path.
    """

    world: MeteredWorld
    lock: RLock = field(default_factory=RLock)
    reads: dict[str, list[tuple[float, int, float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Build the API once, as a warm function has it."""
        self.app = build_app(self.world.application())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        path, query = unquote(request.url.path.removeprefix("/prod")), dict(parse_qsl(request.url.query.decode()))
        with self.lock:
            self.world.meter.reset()
            begin = time.perf_counter()
            tag = request.headers.get("if-none-match")
            event = rest_event(request.method, path, request.content.decode() or None, query, caller=CALLER, tag=tag)
            found = self.app.resolve(event, CONTEXT)
            taken = time.perf_counter() - begin
            units = sum(cost.reads for cost in self.world.meter.reset().values())
        body = (found["body"] or "").encode()
        name = _read_name(path, query) + (", unchanged" if found["statusCode"] == HTTPStatus.NOT_MODIFIED else "")
        self.reads.setdefault(name, []).append((taken, len(body), units))
        headers = {name: values[-1] for name, values in found["multiValueHeaders"].items()}
        return httpx.Response(found["statusCode"], content=body, headers=headers)


def _read_name(path: str, query: dict[str, str]) -> str:
    """Return a short name of a read: its path, and the kind of states for lists of jobs."""
    return f"{path} {query['state'].split(',')[0]}…" if "state" in query else path


def measure(running: int, waiting: int, on_step: Callable[[str], None] = lambda _: None) -> Figures:
    """Measure one size."""
    on_step("loading")
    with waiting_table(waiting + running) as client:
        caps = {P5: running // 2, G5: running - running // 2}
        pools = ",".join(f"{kind}={cap}" for kind, cap in caps.items())
        world = MeteredWorld(client, pools=pools, policy=Policy(max_actions=500))
        on_step(f"starting {running:,} jobs")
        for _ in range(2 + running // 500):
            world.wake_and_settle()
            world.run(60, step=60)
        if sum(world.in_use().values()) != running:
            raise RuntimeError(f"the pools are not full: {world.in_use()}")
        on_step("browsing")
        network = Network(world)
        with _console(world, network) as console:
            *pages, drawn = _browsed(console, world.now().isoformat(), lambda: _changing(world, network))
    return {"running": running, "waiting": waiting, "pages": pages, "drawn": drawn, "reads": list(_costs(network))}


@contextmanager
def _console(world: MeteredWorld, network: Network) -> Iterator[Console]:
    """Serve a console over the world."""
    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    api = ApiClient(STAGE, session=session, transport=network, retry=Retry(max_attempts=1), environ={})
    console = Console(
        api,
        Options(),
        identity=Identity(lambda: session, lambda _: CALLER),
        feed=lambda read: Feed(read, poll_seconds=POLL_SECONDS, now=world.now),
    )
    thread = Thread(target=console.serve, daemon=True)
    thread.start()
    try:
        yield console
    finally:
        console.server.shutdown()
        thread.join()


@contextmanager
def _changing(world: MeteredWorld, network: Network) -> Iterator[None]:
    """Change the queue in a thread: each time jobs change their places, and a running job ends and another starts."""
    ended = Event()

    def change() -> None:
        for number in itertools.count():
            with network.lock:
                _change(world, network, number)
            if ended.wait(POLL_SECONDS):
                return

    thread = Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _change(world: MeteredWorld, network: Network, number: int) -> None:
    snapshot = world.api_context.store.read_snapshot()
    known = [job for job in snapshot.waiting if int(job.name[-7:]) < WITH_REQUEST]
    for job in known[:CHANGED]:
        asked = rest_event("PATCH", f"/jobs/{job.name}", {"priority": 10 + number % 3}, caller=CALLER)
        if network.app.resolve(asked, CONTEXT)["statusCode"] != HTTPStatus.OK:
            raise RuntimeError(f"{job.name} was not changed")
    runs = next(job.attempt.training_job_name for job in snapshot.active if not job.attempt.stop_sent)
    world.simulator.call("StopTrainingJob", TrainingJobName=runs)
    world.run(10, step=10)


def _browsed(console: Console, now: str, changing: Callable[[], AbstractContextManager[None]]) -> Iterator[Figures]:
    """Yield the figures of each page, and of the drawn timeline. Nothing changes until a page has been shown."""
    python = ROOT / ".venv-browser" / "bin" / "python"
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not python.exists() or chromium is None:
        raise SystemExit("The benchmark needs Debian's chromium, or CHROMIUM=path, and `make bench-console`.")
    command = [str(python), str(ROOT / "benchmarks" / "console" / "browse.py"), chromium, now]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as browsing:
        assert browsing.stdin is not None
        assert browsing.stdout is not None
        for page in PAGES:
            browsing.stdin.write(f"{console.url} {page}\n")
            browsing.stdin.flush()
            if not browsing.stdout.readline():
                raise RuntimeError("the browser has ended")
            with changing():
                line = browsing.stdout.readline()
            yield json.loads(line)
        browsing.stdin.write(f"{console.url} {DRAWN}\n")
        browsing.stdin.flush()
        yield json.loads(browsing.stdout.readline())
        browsing.stdin.close()


def _costs(network: Network) -> Iterator[Figures]:
    """Yield the cost of each read: the median of its time, and the largest answer and units."""
    for name, reads in sorted(network.reads.items()):
        seconds, sizes, units = zip(*reads, strict=True)
        yield {
            "read": name,
            "times": len(reads),
            "ms": round(1000 * statistics.median(seconds), 1),
            "kilobytes": round(max(sizes) / 1024, 1),
            "read_units": max(units),
        }
