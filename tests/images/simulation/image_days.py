"""Days of `simulation` on which image jobs run beside training jobs: acts of their own, workers, and what must hold."""

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

from image_runs_world import CUT, QUEUES, WORKERS, Regions, Workers
from image_stores import MemoryImageStore
from simulation import acts
from simulation.faults import FaultyStore
from simulation.play import Day, Result, quiet
from simulation.story import Story, draw
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
from trainmaster.bootstrap import Application
from trainmaster.domain.jobs.job import ENDED, Job, JobState
from trainmaster.images.domain.endpoint import Endpoint, Variant, pool_name
from trainmaster.images.domain.tiling import Window
from trainmaster.images.domain.work import MERGE, run_of, work_of
from trainmaster.images.kind import image_parts
from trainmaster.service.kinds import KindLauncher
from world import EPOCH, QUEUE

POOL = pool_name("ships", "blue")
BEAT = timedelta(seconds=20)
"""Time between a worker's heartbeats."""
KNOWN_AFTER = timedelta(minutes=20)
"""A smaller concurrency of the endpoint holds after this time: ticks describe it, and regions at work end."""
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
    merged = tuple(sorted((*story.acts, *told), key=lambda act: act.at))
    return replace(story, acts=merged)


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
        self.limits = [(EPOCH, takes)]
        self.stores[0].remember(Endpoint(key="ships", variants=(Variant(name="blue", max_concurrency=takes),)), None)

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
        if self.load() > self._limit():
            self._find("endpoint", f"{self.load()} requests at once, it takes {self._limit()}")
        for (name, number), count in self.finished.items():
            if count > 1:
                self._find("region", f"region {number} of {name} was finished {count} times")

    def _limit(self) -> int:
        """Return the largest number of requests that the endpoint took in the last minutes."""
        since = self.now() - KNOWN_AFTER
        before = [count for at, count in self.limits if at <= since][-1:]
        return max([*before, *(count for at, count in self.limits if at > since)])

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
        self.endpoints.takes = act.count
        self.limits.append((self.now(), act.count))

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
        self._act_Takes(Takes(0.0, ROOMY))
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
