"""Days of `simulation` on which image jobs run beside training jobs: acts of their own, workers, and what must hold.

The endpoint is updated, rolled back and out of service for a while, and another queue calls it, too.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from datetime import timedelta
from io import StringIO
from typing import Any

from shared_endpoint import BROKEN, DONE, ROLLED_BACK, SharedEndpoint

from image_runs_world import CUT, QUEUES, WORKERS, Regions, Workers
from image_stores import MemoryImageStore
from simulation import acts
from simulation.faults import FaultyStore
from simulation.play import Day, Result, quiet
from simulation.story import Story, draw
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
from trainmaster.bootstrap import Application
from trainmaster.domain.jobs.job import ENDED, Job, JobState
from trainmaster.images.domain.capacity import NO_OTHERS, NOT_THROTTLED, others_at, throttled_at
from trainmaster.images.domain.endpoint import Endpoint, pool_name
from trainmaster.images.domain.tiling import Window
from trainmaster.images.domain.work import MERGE, Claim, run_of, work_of
from trainmaster.images.kind import image_parts
from trainmaster.images.ports import amend
from trainmaster.images.service.endpoints import Refresher
from trainmaster.images.service.external_load import ExternalLoadMonitor
from trainmaster.service.kinds import KindLauncher
from world import QUEUE

POOL = pool_name("ships", "blue")
BEAT = timedelta(seconds=20)
"""Time between a worker's heartbeats."""
KNOWN_AFTER = timedelta(minutes=20)
"""A smaller concurrency of the endpoint holds after this time: ticks describe it, and regions at work end."""
NOTICED_AFTER = timedelta(minutes=12)
"""An endpoint out of service gets no starts after this time: a description holds five minutes, and ticks get lost."""
TAKES = (4, 8, 12)
ROOMY = 24
STATUSES = ("Completed", "Stopped", "Failed", "Stopping")


@dataclass(frozen=True, repr=False)
class SubmitImage(acts.Act):
    """An image job of so many regions enters the queue."""

    name: str = ""
    regions: int = 2
    priority: int = 0


@dataclass(frozen=True, repr=False)
class Takes(acts.Act):
    """The endpoint takes another number of requests at once."""

    count: int = 8


@dataclass(frozen=True, repr=False)
class UpdateEndpoint(acts.Act):
    """The endpoint is updated to take another number of requests; it ends updated, rolled back or out of service."""

    count: int = 8
    seconds: int = 600
    ends: str = DONE


@dataclass(frozen=True, repr=False)
class OtherQueue(acts.Act):
    """Another queue makes so many requests at the same endpoint for a while."""

    count: int = 2
    seconds: int = 1200


@dataclass(frozen=True, repr=False)
class ForgeRun(acts.Act):
    """A message names an image job's run, or another attempt of it, although nothing has changed.

    With a status it claims to be SageMaker's event about a training job of the run's name.
    """

    name: str = ""
    attempt: int = 1
    status: str = ""


def draw_images(seed: int) -> Story:
    """Return the story of a seed, with image jobs, and people and others who meddle with them."""
    rng, story = random.Random(f"images {seed}"), draw(seed)
    told: list[acts.Act] = []
    start, span = rng.uniform(0, 0.3) * story.hours * 3600, rng.choice((600, 3600))
    for number in range(rng.randint(4, 9)):
        name, at = f"image{number}", round(start + rng.uniform(0, span), 1)
        told.append(SubmitImage(at, name, rng.choice((1, 2, 2, 3, 4, 8)), rng.choice((0, 0, -1, 5))))
        told += _meddling(rng, name, at)
    told += [Takes(round(start + rng.uniform(0, 2 * span), 1), rng.choice(TAKES)) for _ in range(rng.randint(0, 2))]
    told += _endpoint_acts(random.Random(f"endpoint {seed}"), start, span)
    merged = tuple(sorted((*story.acts, *told), key=lambda act: act.at))
    return replace(story, acts=merged)


def _endpoint_acts(rng: random.Random, start: float, span: float) -> list[acts.Act]:
    """Return updates of the endpoint and calls of another queue, in half of the stories each."""
    when = lambda: round(start + rng.uniform(0, 2 * span), 1)  # noqa: E731 -- one line of glue
    told: list[acts.Act] = []
    if rng.random() < 0.5:
        ends = (DONE, DONE, ROLLED_BACK, ROLLED_BACK, BROKEN)
        told += [
            UpdateEndpoint(when(), rng.choice(TAKES), rng.choice((240, 900, 2400)), rng.choice(ends))
            for _ in range(rng.randint(1, 3))
        ]
    if rng.random() < 0.5:
        told += [
            OtherQueue(when(), rng.choice((1, 2, 4)), rng.choice((300, 1800, 5400))) for _ in range(rng.randint(1, 3))
        ]
    return told


def _meddling(rng: random.Random, name: str, at: float) -> list[acts.Act]:
    soon = lambda: round(at + rng.uniform(0, rng.choice((10, 120, 600))), 1)  # noqa: E731 -- one line of glue
    told: list[acts.Act] = []
    if rng.random() < 0.1:
        told.append(acts.Cancel(soon(), name))
    if rng.random() < 0.15:
        told.append(acts.Reprioritize(soon(), name, rng.choice((-5, 3, 20))))
    if rng.random() < 0.05:
        told += [acts.Hold(soon(), name), acts.Hold(at + 900.0, name, hold=False)]
    if rng.random() < 0.3:
        told.append(ForgeRun(soon(), name, rng.randint(1, 3), rng.choice(("", *STATUSES))))
    if rng.random() < 0.3:
        told.append(acts.Overtake(soon(), rng.randint(1, 20), rng.choice((0, 30, 60))))
    if rng.random() < 0.3:
        told.append(acts.Kill(soon(), rng.randint(1, 20)))
    if rng.random() < 0.5:
        told.append(acts.StoreFault(soon(), rng.randint(1, 20), rng.choice(("throttled", "unavailable", "lost"))))
    return told


def play(story: Story, _store: str = "memory") -> Result:
    """Play a story with image jobs, in memory."""
    with quiet(), redirect_stdout(StringIO()):
        return ImageDay(story).play()


class SomeTwice(Regions):
    """The workers' queue, which delivers some messages twice."""

    rng = random.Random(0)

    def dispatch(self, job: str, attempt: int, numbers: Sequence[int], *, after: float = 0.0) -> None:
        twice = [number for number in numbers if self.rng.random() < 0.05]
        super().dispatch(job, attempt, [*numbers, *twice], after=after)


class ImageDay(Workers, Day):
    """A story with image jobs being played."""

    job_kinds = QUEUES
    memory_store = MemoryImageStore

    def __init__(self, story: Story) -> None:
        self.workers = []
        super().__init__(story)
        self.luck = random.Random(f"workers {story.seed}")
        takes = self.luck.choice(TAKES)
        seconds = self.luck.choice((20, 60, 240))
        self.employ(takes=takes, seconds=seconds, fate=self._fate, drops=lambda _claim: self._happens(0.05))
        self.regions = SomeTwice()
        self.regions.rng = self.luck
        self.images: dict[str, int] = {}
        self.deaths: Counter[str] = Counter()
        self.endpoints = SharedEndpoint(takes, self.now, has_instances=self.luck.random() < 0.5)
        self.stores[0].remember(self.endpoints.describe("ships"), None)

    def job(self, name: str) -> Job:
        """Return a job as stored."""
        found = self.stores[0].find(name)
        assert found is not None, name
        return found

    # -- workers ------------------------------------------------------------------------------------------------------
    def tell(self, run: str, dedup: str | None = None) -> None:
        """Tell the queue that a run has changed: late, twice or never as events of SageMaker."""
        configuration, body = self.configuration, json.dumps({"kind": "image", "run": run})
        if self._happens(configuration.lost):
            self.result.faults["lost run report"] += 1
            return
        late = self.luck.uniform(1, 600) if self._happens(configuration.late) else 0.0
        self._post(self.now() + timedelta(seconds=late), body)
        if self._happens(configuration.doubled):
            self.result.faults["repeated run report"] += 1
            self._post(self.now() + timedelta(seconds=self.luck.uniform(0, 300)), body)

    def _happens(self, share: float) -> bool:
        return not self.calm and self.luck.random() < share

    def _fate(self, _begun: int) -> tuple[float | None, float | None]:
        if not self._happens(0.05):
            return None, None
        return self.luck.uniform(1, 60), self.luck.choice((None, 130.0, 400.0))

    def _begin(self, job: str, attempt: int, number: int) -> None:
        before = len(self.workers)
        super()._begin(job, attempt, number)
        if len(self.workers) > before and self.workers[-1].dies_at is not None:
            self.deaths[job] += 1
            self.result.faults["dead worker"] += 1

    def work(self) -> None:
        """Have all workers go on, and judge what they do."""
        super().work()
        self.oracle.now = self.now()
        self.endpoints.sample(self.load())
        self._check_others()
        if self.load() > self._limit():
            self._find("endpoint", f"{self.load()} requests at once, it takes {self._limit()}")
        for (name, number), count in self.finished.items():
            if count > 1:
                self._find("region", f"region {number} of {name} was finished {count} times")

    def _end(self, claim: Claim) -> None:
        """Give the region back if the endpoint is out of service, or serves others and ours more than it takes."""
        overloaded = self.load() + self.endpoints.others() > self.endpoints.takes_now()
        refused = not self.endpoints.serves() or (overloaded and self._happens(0.5))
        if claim.number == MERGE or not refused:
            super()._end(claim)
            return
        self.result.faults["refused requests"] += 1
        run = self.runs.run(claim.job)
        records = () if run is None else run.records
        pauses = next((each.pauses for each in records if each.region.number == claim.number), 0)
        self._told(claim, self.runs.leave(claim, self.now(), reason="throttled", final=False, pauses=pauses + 1))
        amend(self.stores[0], "ships", self._throttled, self._endpoint())

    def _throttled(self, endpoint: Endpoint | None) -> Endpoint | None:
        """Return the endpoint as a worker stores it that was throttled."""
        if endpoint is None:
            return None
        before = endpoint.pressure.get("blue", NOT_THROTTLED)
        return replace(endpoint, pressure={**endpoint.pressure, "blue": throttled_at(before, self.now())})

    def _endpoint(self) -> Endpoint:
        return self.stores[0].known(["ships"])["ships"]

    def _check_others(self) -> None:
        """Judge what is left to the other queue: never more than it has used in these minutes."""
        left = others_at(self._endpoint().others.get("blue", NO_OTHERS), self.now())
        used = self.endpoints.max_others(KNOWN_AFTER)
        if left > used and not self.endpoints.has_changed(KNOWN_AFTER):
            self._find("others", f"{left} requests are left to another queue that made {used}")

    def _limit(self) -> int:
        """Return the largest number of requests that the endpoint took in the last minutes."""
        return self.endpoints.max_taken(KNOWN_AFTER)

    def _find(self, kind: str, text: str) -> None:
        """Add a finding once."""
        if not any(found.kind == kind and found.text == text for found in self.oracle.findings):
            self.oracle.find(kind, text)

    # -- time ---------------------------------------------------------------------------------------------------------
    def _next_moment(self) -> Any:
        moment = super()._next_moment()
        return min(moment, self.now() + BEAT) if self.workers else moment

    def _deliver(self) -> None:
        if self.invoked:
            return
        self.work()
        super()._deliver()
        self.work()
        self._check_units()

    def _hang(self, seconds: float) -> None:
        while seconds > 0:
            super()._hang(min(seconds, BEAT.total_seconds()))
            self.work()
            seconds -= BEAT.total_seconds()

    def _check_units(self) -> None:
        """Judge what the queue's rows hold of the endpoint: never more than it takes, never less than nothing."""
        held = {name: self.job(name).units.get(POOL, 0) for name in self.images}
        if sum(held.values()) > self._limit() or any(count < 0 for count in held.values()):
            self._find("endpoint units", f"{held} are held, the endpoint takes {self._limit()}")

    # -- the manager --------------------------------------------------------------------------------------------------
    def _application(self, version: int) -> Application:
        application = super()._application(version)
        image_parts(application).__dict__ |= {
            "known_endpoints": self.faulty[version],
            "runs": FaultyStore(self.runs, self.calls),
            "region_queue": FaultyStore(self.regions, self.calls),
            "image_queue": FaultyStore(self.aside, self.calls),
            "endpoints": FaultyStore(self.endpoints, self.calls),
        }
        parts, figures = image_parts(application), FaultyStore(self.endpoints, self.calls)
        monitor = ExternalLoadMonitor(parts.known_endpoints, figures, parts.clock)
        parts.__dict__["refresher"] = Refresher(
            parts.known_endpoints, parts.endpoints, parts.clock, parts.settings.limits, monitor
        )
        training = SageMakerLauncher(self.sagemaker, QUEUE)
        application.__dict__["launcher"] = KindLauncher(training, application.runs)
        return application

    # -- acts ---------------------------------------------------------------------------------------------------------
    def _act_SubmitImage(self, act: SubmitImage) -> None:  # noqa: N802 -- named as the act
        work = work_of("ships", "blue", Window(0, 0, 100 * act.regions, 100), CUT, WORKERS)
        fields = {"priority": act.priority, "demand": work.demand(), "work": work, "checkpointed": True}
        job = Job(name=act.name, entry_time=self.now(), digest=act.name, **fields)
        self.api.store.submit(job, {"jobId": act.name})
        self.queue.wake(self.api.store.read_snapshot().pass_number)
        self.images[act.name] = act.regions
        self.next_tick = min(self.next_tick, self.now() + timedelta(seconds=60))

    def _act_Takes(self, act: Takes) -> None:  # noqa: N802
        self.endpoints.scale(act.count)

    def _act_UpdateEndpoint(self, act: UpdateEndpoint) -> None:  # noqa: N802
        self.endpoints.update(act.count, act.seconds, act.ends)

    def _act_OtherQueue(self, act: OtherQueue) -> None:  # noqa: N802
        self.endpoints.call(act.count, act.seconds)

    def _act_ForgeRun(self, act: ForgeRun) -> None:  # noqa: N802
        run = run_of(act.name, act.attempt)
        if not act.status:
            self._post(self.now(), json.dumps({"kind": "image", "run": run}))
            return
        told = {
            "TrainingJobName": run,
            "TrainingJobStatus": act.status,
            "SecondaryStatus": act.status,
            "Tags": {"trainmaster:queue": QUEUE, "trainmaster:job": act.name},
        }
        event = {"detail-type": "SageMaker Training Job State Change", "source": "aws.sagemaker", "detail": told}
        # No training job has such a name, so the message is set aside.
        self.bad_messages.add(json.dumps(event))
        self._post(self.now(), json.dumps(event))

    # -- the end ------------------------------------------------------------------------------------------------------
    def _end_hostility(self) -> None:
        super()._end_hostility()
        self.endpoints.rest(ROOMY)
        for name in self.images:
            job = self.job(name)
            if job.held_by is not None and job.state not in ENDED:
                self._act(acts.Hold(0.0, name, hold=False))

    def _finish(self) -> Result:
        self.oracle.now = self.now()
        for name, regions in self.images.items():
            wrong = self._wrong_image(name, regions)
            if wrong:
                self.oracle.find("image", f"{name} is {self.job(name).state}: {wrong}")
            self.result.states[f"image {self.job(name).state}"] += 1
        if self.workers and all(worker.dies_at is None for worker in self.workers):
            self.oracle.find("image", f"workers go on: {[worker.claim for worker in self.workers]}")
        counted = self.result.states
        result = super()._finish()
        result.states += counted
        result.jobs += len(self.images)
        return result

    def _wrong_image(self, name: str, regions: int) -> str | None:
        """Return what is wrong with the end of an image job."""
        job = self.job(name)
        for attempt in job.attempts:
            if self.endpoints.is_long_out(attempt.created_at, NOTICED_AFTER):
                return f"attempt {attempt.number} started long after the endpoint had gone out of service"
        done = {number for (each, number), count in self.finished.items() if each == name and count}
        if job.state not in ENDED:
            return "long after hostility ended"
        if sum(change.after in ENDED for change in job.history) != 1:
            return "it ended more than once"
        if job.state is JobState.COMPLETED:
            lost = {*range(regions), MERGE} - done
            return f"regions {sorted(lost)} were lost" if lost else None
        if job.state is JobState.FAILED:
            return None if self.deaths[name] else f"no worker died: {job.history[-1].reason}"
        return None if name in self.oracle.cancelled else f"no user cancelled it: {job.history[-1].reason}"
