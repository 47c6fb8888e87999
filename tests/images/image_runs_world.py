"""A whole Trainmaster with image jobs on a virtual clock: the manager is the shipped handler, workers are played.

What the manager asks of its memory, of the regions' and of SQS is counted, may fail, and may be the last that it does.
Workers take regions as messages come, say that they live, and some die. It must not hold any rule of the queue.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from image_stores import DynamoImageStore, MemoryImageStore
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
from trainmaster.bootstrap import Application, Settings
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.images.domain.endpoint import Endpoint, Variant
from trainmaster.images.domain.tiling import Cut, Window
from trainmaster.images.domain.work import MERGE, Claim, Rest, run_of, work_of
from trainmaster.images.kind import image_parts
from trainmaster.images.local.memory_runs import MemoryRuns
from trainmaster.service.kinds import KindLauncher
from world import QUEUE, TABLE, WakeQueue, World

QUEUES = {"image": {"REGION_QUEUE_URL": "regions", "IMAGE_QUEUE_URL": "images"}}
WORKERS = 2
CUT = Cut(region=(100, 100), tile=(50, 50), overlap=(0, 0))
DEAD = timedelta(seconds=120)


MAX_INVOCATIONS = 2_000
EMPLOYED = ("workers", "seconds", "fate", "fails", "tells", "drops")
"""Arguments of `ImageRunsWorld` about its workers."""


class EndlessError(BaseException):
    """The manager does not come to an end; nothing in it can catch this."""


class Watched:
    """An object whose calls are the manager's: they are counted, fail, or are the last."""

    def __init__(self, inner: Any, around: Callable[[str, Callable[[], Any]], Any]) -> None:
        self._inner, self._around = inner, around

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._inner, name)
        return lambda *args, **kwargs: self._around(name, partial(called, *args, **kwargs))


@dataclass
class Regions:
    """The workers' queue: what was dispatched and not received."""

    messages: list[tuple[str, int, int]] = field(default_factory=list)
    dispatched: int = 0

    def dispatch(self, job: str, attempt: int, numbers: Sequence[int], *, after: float = 0.0) -> None:
        self.dispatched += len(numbers)
        self.messages += [(job, attempt, number) for number in numbers]


@dataclass
class Aside:
    """The dead-letter queue of requests: bodies with their reasons."""

    letters: list[tuple[str, str]] = field(default_factory=list)

    def send(self, body: str, *, caller: str | None = None) -> None:
        raise AssertionError("the manager takes nothing in")

    def set_aside(self, body: str, reason: str, *, attributes: Any = None) -> None:
        self.letters.append((body, reason))


@dataclass
class Endpoints:
    """SageMaker's endpoints: all take as many requests as is said; `trouble` is raised instead."""

    takes: int
    trouble: Exception | None = None
    asked: list[str] = field(default_factory=list)

    def describe(self, key: str, *, role: str | None = None) -> Endpoint:
        self.asked.append(key)
        if self.trouble is not None:
            raise self.trouble
        return Endpoint(key=key, variants=(Variant(name="blue", max_concurrency=self.takes),))


@dataclass
class Worker:
    """A worker at a region.

    Attributes:
        dies_at: when it falls silent; None for one that does not.
        late_at: when one that fell silent comes back and finishes; None for never.
    """

    claim: Claim
    ends_at: datetime
    dies_at: datetime | None = None
    late_at: datetime | None = None


class Workers:
    """The workers of a world's runs: they take regions as messages come, say that they live, and some die."""

    queue: WakeQueue
    now: Callable[[], datetime]
    job: Callable[[str], Job]

    def employ(
        self,
        *,
        takes: int,
        workers: int = WORKERS,
        seconds: float = 20,
        fate: Callable[[int], tuple[float | None, float | None]] = lambda begun: (None, None),
        fails: Callable[[Claim], bool] = lambda claim: False,
        tells: bool = True,
        drops: Callable[[Claim], bool] = lambda claim: False,
    ) -> None:
        """Have workers; the arguments are those of `ImageRunsWorld`."""
        self.endpoints, self.regions, self.aside = Endpoints(takes), Regions(), Aside()
        self.runs = MemoryRuns()
        self.takes, self.seconds, self.fate, self.fails, self.tells = takes, seconds, fate, fails, tells
        self.drops, self.each = drops, workers
        self.workers: list[Worker] = []
        self.begun = self.most = 0
        self.finished: Counter[tuple[str, int]] = Counter()

    def work(self) -> None:
        """All workers, as of now."""
        for worker in list(self.workers):
            self._go_on(worker)
        while self.regions.messages:
            self._begin(*self.regions.messages.pop(0))
        self.most = max(self.most, self.load())

    def tell(self, run: str, dedup: str | None = None) -> None:
        """Tell the queue that a run has changed."""
        self.queue.send(json.dumps({"kind": "image", "run": run}), dedup)

    def load(self) -> int:
        """Requests that live workers make now; the merging makes none."""
        now = self.now()
        living = [each for each in self.workers if each.dies_at is None or each.dies_at > now]
        return sum(self.each for each in living if each.claim.number != MERGE)

    def _begin(self, job: str, attempt: int, number: int) -> None:
        now = self.now()
        claim = Claim(job=job, attempt=attempt, number=number, worker=f"w{self.begun}")
        if self.runs.begin(claim, now, dead_before=now - DEAD) is None:
            return
        self.begun += 1
        dies, late = self.fate(self.begun)
        moments = [None if after is None else now + timedelta(seconds=after) for after in (dies, late)]
        self.workers.append(Worker(claim, now + timedelta(seconds=self.seconds), *moments))
        if self.tells and self.job(job).state is JobState.STARTING:
            self.tell(run_of(job, attempt), f"begun-{job}-{attempt}")

    def _go_on(self, worker: Worker) -> None:
        now, claim = self.now(), worker.claim
        if worker.dies_at is not None and worker.dies_at <= now:
            if worker.late_at is None or worker.late_at > now:
                return
        elif not self.runs.beat(claim, now, tiles_done=1):
            self.workers.remove(worker)
            self._told(claim, self.runs.leave(claim, now, reason="", final=False))
            return
        if worker.ends_at <= now:
            self.workers.remove(worker)
            self._end(claim)

    def _end(self, claim: Claim) -> None:
        now = self.now()
        if self.fails(claim):
            rest = self.runs.leave(claim, now, reason="a broken tile", final=True)
        else:
            rest = self.runs.finish(claim, now, features=1)
            self.finished[claim.job, claim.number] += rest is not None
        if rest is not None and not self.drops(claim):
            self.regions.dispatch(claim.job, claim.attempt, rest.next)
            self._told(claim, rest)

    def _told(self, claim: Claim, rest: Rest | None) -> None:
        """The queue hears of what has changed, if it hears of anything."""
        if rest is not None and self.tells:
            self.tell(run_of(claim.job, claim.attempt))


class ImageRunsWorld(Workers, World):
    """The world with one endpoint, `ships/blue`, and workers.

    Args:
        takes: requests that the endpoint takes at once.
        workers: requests that a region makes at once.
        seconds: that a region takes.
        fate: given how many regions have been begun so far, after how many seconds its worker dies (None: never) and
            after how many it comes back.
        fails: whether a region is broken: its workers give it back for good.
        tells: whether the queue hears of regions.
        drops: whether the worker that ends with a region dies before it dispatches what is next.
    """

    stores = (MemoryImageStore, DynamoImageStore)
    job_kinds = QUEUES

    def __init__(self, *, takes: int = 8, **options: Any) -> None:
        employed = {name: options.pop(name) for name in EMPLOYED if name in options}
        super().__init__(**options)
        self.employ(takes=takes, **employed)
        self.invocations = 0
        store = self._store()
        assert store.remember(Endpoint(key="ships", variants=(Variant(name="blue", max_concurrency=takes),)), None)

    def enter(self, name: str, count: int = 2, *, request: dict[str, Any] | None = None, **fields: Any) -> Job:
        """An image job of so many regions enters the queue, and the manager is woken."""
        part = Window(0, 0, 100 * count, 100)
        work = work_of("ships", "blue", part, CUT, self.each)
        fields = {"priority": 0, "demand": work.demand(), "work": work, "checkpointed": True, **fields}
        job = self.api_context.store.submit(
            Job(name=name, entry_time=self.now(), digest=name, **fields), request or {"jobId": name, "ours": "kept"}
        )
        self.queue.wake(self.api_context.store.read_snapshot().pass_number)
        return job

    def application(self) -> Application:
        """A fresh process, whose calls are watched."""
        watched = partial(Watched, around=self.faults.around)
        application = Application(
            Settings(
                queue=QUEUE,
                table=TABLE,
                pools=self.pools,
                allowed_roles=("*",),
                job_kinds=self.job_kinds,
                events=self.published,
            )
        )
        store = watched(self._store())
        application.clock = self
        application.__dict__ |= {
            "store": store,
            "publisher": self.queue,
            "checkpoints": self,
            "rendezvous": self.rendezvous,
            "resize_requesters": self.resize_requesters,
        }
        application.__dict__["outbox"] = self.outbox_of(application)
        image_parts(application).__dict__ |= {
            "known_endpoints": store,
            "runs": watched(self.runs),
            "region_queue": watched(self.regions),
            "image_queue": watched(self.aside),
            "endpoints": watched(self.endpoints),
        }
        assert application.runs.keys() == {"image"}
        application.__dict__["launcher"] = KindLauncher(SageMakerLauncher(self.sagemaker, QUEUE), application.runs)
        return application

    def settle(self) -> None:
        """Workers do what is due, then all that is due is delivered."""
        self.work()
        super().settle()
        self.work()

    def before_pass(self) -> None:
        """A manager that fails forever fails the test."""
        self.invocations += 1
        if self.invocations > MAX_INVOCATIONS:
            raise EndlessError
