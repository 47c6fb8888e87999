"""Serves a console over a lively queue in memory, for tests in a real browser; run as a program of its own.

It prints the console's address and the queue's time as a line of JSON, then follows commands on its standard input:
`run SECONDS` lets the queue's time pass, `outage on` and `outage off` cut the API off, `speed JOB INSTANCES PER_SECOND`
reports a speed of a size that it has had, `address` prints an address that signs in another browser. After each it
prints a line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from threading import RLock, Thread
from typing import Any, Protocol, TextIO
from urllib.parse import parse_qsl, unquote

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

import boto3
import httpx

import builders
from api_world import CONTEXT, rest_event
from builders import G5, P5
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.retry import Retry
from trainmaster.console.app import Console, Options
from trainmaster.console.feed import Feed
from trainmaster.console.identity import Identity
from trainmaster.console.replays import Replays
from trainmaster.domain.jobs.job import Change, JobState
from trainmaster.domain.policy.settings import Budget, Policy, Preemption, Share
from trainmaster.handlers.api.app import build_app
from world import World, a_request

STAGE = "https://a1b2c3.execute-api.us-east-1.amazonaws.com/prod"
ADA = builders.ADA.name
SHARES = {
    name: Share(name=name, nominal={P5: units, G5: small}, weight=1.0, budget=budget)
    for name, units, small, budget in (
        ("language", 4, 4, Budget(gpu_hours=500)),
        ("speech", 2, 2, None),
        ("vision", 2, 6, Budget(gpu_hours=120, period=timedelta(days=7))),
    )
}
HOUR = 3600.0


class Queue(Protocol):
    """A queue that is served."""

    world: World

    def run(self, seconds: float) -> None:
        """Let the queue's time pass."""


class Lively:
    """A queue that has worked for some hours: jobs of three shares run, wait, were preempted, failed and are held."""

    def __init__(self) -> None:
        policy = Policy(shares=SHARES, preemption=Preemption(cooldown=timedelta(0)))
        self.world = World(pools=f"{P5}=8,{G5}=12", policy=policy)
        self._play()

    def add(self, name: str, share: str, *, priority: int = 0, **of_request: Any) -> None:
        options = of_request.pop("options", {})
        request = a_request(name, priority=priority, **of_request)
        tags = {"trainmaster:share": share} | {f"trainmaster:{key}": value for key, value in options.items()}
        request["Tags"] += [{"Key": key, "Value": str(value)} for key, value in tags.items()]
        request["Tags"].append({"Key": "team", "Value": share})
        self.world.submit_request(request)

    def _play(self) -> None:
        world, add = self.world, self.add
        for number in range(6):  # the queue knows how long such jobs run
            add(f"embed-{number + 1}", "vision", kind=G5, count=2, training_seconds=1_500 + 300 * number)
        add("ablation-2", "speech", count=1, training_seconds=2_400)
        world.run(2 * HOUR, step=60)
        add("llm-pretrain-7b", "language", priority=50, count=4, training_seconds=8 * HOUR)
        add("vit-large-sweep-3", "vision", count=3, training_seconds=5 * HOUR)
        world.run(HOUR, step=60)
        add("whisper-finetune", "speech", priority=20, count=2, training_seconds=3 * HOUR)
        add("asr-eval", "speech", kind=G5, count=4, training_seconds=2 * HOUR)
        add("clip-distill", "vision", kind=G5, count=3, training_seconds=4 * HOUR)
        world.run(0.6 * HOUR, step=60)
        add("diffusion-base", "vision", priority=10, count=2, training_seconds=3 * HOUR)
        add("segment-everything", "vision", kind=G5, count=6, training_seconds=2 * HOUR)
        add("llm-sft-7b", "language", priority=30, count=3, training_seconds=2 * HOUR)
        add("tts-voices", "speech", kind=G5, count=2, training_seconds=0.2 * HOUR)
        add("reward-model", "language", priority=5, count=1, training_seconds=HOUR)
        world.run(0.3 * HOUR, step=60)
        add(
            "tokenizer-probe",
            "language",
            kind=G5,
            count=1,
            training_seconds=400,
            options={"min-instances": 1, "max-instances": 4},
        )
        add("llm-pretrain-13b", "language", priority=5, count=8, training_seconds=9 * HOUR)
        add("depth-anything", "vision", count=2, training_seconds=2 * HOUR)
        add("nightly-regression", "vision", kind=G5, count=1, options={"not-before": "2026-11-21T23:00:00Z"})
        world.run(600, step=30)

    def run(self, seconds: float) -> None:
        self.world.run(seconds, step=30)


class Network(httpx.BaseTransport):
    """The way to the API: API Gateway's event and back, one request at a time."""

    def __init__(self, lively: Queue) -> None:
        application = lively.world.application()
        application.settings = replace(application.settings, admins=(builders.ADA.principal,))
        self._app, self.lock, self.is_out = build_app(application), RLock(), False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_out:
            raise httpx.ConnectError("no route to the API", request=request)
        path = unquote(request.url.path.removeprefix("/prod"))
        query = dict(parse_qsl(request.url.query.decode()))
        body = request.content.decode() or None
        event = rest_event(request.method, path, body, query, caller=ADA, tag=request.headers.get("if-none-match"))
        with self.lock:
            found = self._app.resolve(event, CONTEXT)
        headers = {name: values[-1] for name, values in found["multiValueHeaders"].items()}
        return httpx.Response(found["statusCode"], content=(found["body"] or "").encode(), headers=headers)


def main(made: Callable[[], Queue]) -> None:
    """Serve until standard input ends. What handlers print, such as metrics, is dropped."""
    out, sys.stdout = sys.stdout, StringIO()
    lively = made()
    network = Network(lively)
    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    retry = Retry(max_attempts=1)
    api = ApiClient(STAGE, session=session, transport=network, retry=retry, environ={})
    console = Console(
        api,
        Options(read_only="--read-only" in sys.argv),
        identity=Identity(lambda: api.session, lambda _: ADA),
        feed=lambda read: Feed(read, poll_seconds=0.3, quick_seconds=0.1, now=lively.world.now),
        replays=Replays(api, lively.world.now),
    )
    Thread(target=console.serve, daemon=True).start()

    def command(word: str, value: str) -> None:
        if word == "run":
            with network.lock:
                lively.run(float(value))
        elif word == "outage":
            network.is_out = value == "on"
        elif word == "speed":
            name, instances, per_second = value.split()
            note_size(lively.world, name, int(instances))
            api.report_speed(name, int(instances), float(per_second))

    say(out, console, lively)
    for line in sys.stdin:
        word, _, value = line.strip().partition(" ")
        command(word, value)
        say(out, console, lively)


def note_size(world: World, name: str, size: int) -> None:
    """Add to a running job's history that it has had a size, which it gets only if so much is idle."""
    job = world.job(name)
    line = Change(world.now(), JobState.RESIZING, JobState.RUNNING, "resized", len(job.attempts), size)
    assert world.api_context.store.transition(
        [(job, job.changed(version=job.version + 1, history=(*job.history, line)))]
    )


def say(out: TextIO, console: Console, lively: Queue) -> None:
    """Print the address for a new browser, and the queue's time."""
    print(json.dumps({"url": console.url, "now": lively.world.now().isoformat()}), file=out, flush=True)


if __name__ == "__main__":
    main(Lively)
