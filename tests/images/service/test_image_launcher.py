"""An image job's attempt as a run of regions: created, stopped, asked after, tended, cleared up."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import builders as b
from image_builders import a_started_image, an_endpoint_pool, an_image_work
from image_runs_world import CUT, Aside, Regions
from image_stores import MemoryImageStore
from trainmaster.domain.errors import NotPermitted, RequestRefused, Unavailable
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.observation import Status
from trainmaster.images.domain.endpoint import Limits
from trainmaster.images.domain.tiling import Window
from trainmaster.images.domain.work import MERGE, Claim, RegionState
from trainmaster.images.local.memory_runs import MemoryRuns
from trainmaster.images.service.launcher import ImageLauncher
from trainmaster.ports.sagemaker import CreateResult, StopResult
from trainmaster.service.context import ManagerContext, commit
from trainmaster.service.kinds import KindLauncher
from trainmaster.service.reconcile import poll_due_jobs

NAME = "image:scene"


class Clock:
    seconds = 0.0

    def now(self):
        return b.at(self.seconds)

    def sleep(self, seconds):
        raise AssertionError("nothing waits")


class Scene:
    """One started job of three regions, and its launcher."""

    def __init__(self, units=None, regions=3):
        self.clock, self.runs, self.regions, self.aside = Clock(), MemoryRuns(), Regions(), Aside()
        self.store = MemoryImageStore(default_pools=b.pools_of(), now=self.clock.now)
        load, part = 4 * regions, Window(0, 0, 100 * regions, 100)
        work = replace(an_image_work(load), part=part, cut=CUT, regions=regions, tiles=load)
        self.job = a_started_image("scene", load, work=work, units=units)
        self.store.submit(self.job, {"jobId": "scene", "note": "grüße"})
        self.images = ImageLauncher(self.store, self.runs, self.regions, self.aside, self.clock, Limits(attempts=2))

    def create(self, job=None):
        job = job or self.job
        return self.images.create(job, job.attempt)

    def claim(self, number, worker="one"):
        return Claim(job="scene", attempt=1, number=number, worker=worker)

    def begin(self, number, worker="one"):
        now = self.clock.now()
        return self.runs.begin(self.claim(number, worker), now, dead_before=b.at(self.clock.seconds - 120))

    def beat(self, number):
        assert self.runs.beat(self.claim(number), self.clock.now(), tiles_done=1)

    def finish(self, number):
        assert self.begin(number) is not None
        return self.runs.finish(self.claim(number), self.clock.now(), features=1)

    def reconcile(self, after):
        """Return the regions that a tick dispatches so many seconds later."""
        self.clock.seconds += after
        self.regions.messages.clear()
        self.images.reconcile(self.job)
        return [number for _, _, number in self.regions.messages]


@pytest.fixture
def scene():
    return Scene()


def test_creating_lays_all_regions_out_and_dispatches_them(scene):
    assert scene.create() is CreateResult.NEW
    assert scene.regions.messages == [("scene", 1, 0), ("scene", 1, 1), ("scene", 1, 2)]
    assert len(scene.runs.run("scene").records) == 4


def test_of_an_image_that_is_larger_than_its_endpoint_only_as_many_regions_are_dispatched_as_it_holds_requests_for():
    scene = Scene(units=8)
    scene.create()
    assert [number for _, _, number in scene.regions.messages] == [0, 1]
    scene.regions.messages.clear()
    scene.create()
    assert [number for _, _, number in scene.regions.messages] == [0, 1], "a manager that died before it sent them"
    assert scene.finish(1).next == (2,)
    scene.regions.messages.clear()
    scene.create()
    assert [number for _, _, number in scene.regions.messages] == [0, 2]


def test_the_tick_keeps_to_the_window_and_sends_what_was_never_sent():
    scene = Scene(units=4)
    scene.create()
    assert scene.reconcile(after=60) == []
    assert scene.reconcile(after=60) == [0]
    scene.finish(0)  # Its worker died before it dispatched the next.
    assert scene.reconcile(after=60) == []
    assert scene.reconcile(after=60) == [1]
    for worker in ("one", "another"):
        scene.begin(1, worker)
        dispatched = scene.reconcile(after=120)
    assert dispatched == [2], "what fails for its workers' deaths makes room, too"


class Workers:
    """Begin with what is dispatched at once, and end with it one by one."""

    def __init__(self, scene):
        self.scene, self.busy, self.ended = scene, [], 0

    def take(self):
        """Begin every dispatched region; return the number of regions at work."""
        for _, _, number in self.scene.regions.messages:
            if self.scene.begin(number) is not None:
                self.busy.append(number)
        self.scene.regions.messages.clear()
        return len(self.busy)

    def end(self):
        """The first ends, and what that calls is begun; how many are at work then."""
        number = self.busy.pop(0)
        rest = self.scene.runs.finish(self.scene.claim(number), self.scene.clock.now(), features=1)
        self.ended += 1
        self.scene.regions.dispatch("scene", 1, [each for each in rest.next if each != MERGE])
        return self.take()


def tick(scene, cap, seconds=60):
    """Run a pass's tick for a job whose endpoint takes so much; return the regions that it dispatches."""
    scene.clock.seconds += seconds
    scene.regions.messages.clear()
    pool = a_pool_of(scene.job, cap)
    manager_context = ManagerContext(
        scene.store, KindLauncher(None, {"image": scene.images}), scene.clock, pools={pool.name: pool}
    )
    job = scene.store.find("scene")
    if not job.attempt.launched:
        before, job = job, lifecycle.mark_launched(job)
        assert scene.store.transition([(before, job)])
    poll_due_jobs(replace(manager_context, kinds={"image": scene.images}), (scene.store.find("scene"),))
    return [number for _, _, number in scene.regions.messages]


def a_pool_of(job, cap):
    work = job.work
    return an_endpoint_pool(cap, endpoint=work.endpoint, variant=work.variant)


def test_while_the_endpoint_takes_less_the_regions_that_end_are_followed_by_fewer_and_by_all_when_it_takes_more_again():
    scene = Scene(units=20, regions=40)
    scene.create()
    workers = Workers(scene)
    assert workers.take() == 5
    assert [workers.end() for _ in range(5)] == [5] * 5
    assert tick(scene, cap=10) == []
    assert len(workers.busy) == 5, "no worker is stopped"
    assert [workers.end() for _ in range(8)] == [4, 3, 2, 2, 2, 2, 2, 2]
    assert tick(scene, cap=14) == [15]
    assert workers.take() == 3
    assert [workers.end() for _ in range(4)] == [3] * 4
    assert len(tick(scene, cap=20)) == 2
    assert workers.take() == 5
    assert [workers.end() for _ in range(40 - workers.ended)] == [5] * 18 + [4, 3, 2, 1, 0]
    assert all(record.state is RegionState.DONE for record in scene.runs.run("scene").records[:-1])


def test_an_unchanged_or_ineffective_cap_writes_nothing():
    class Counting(MemoryRuns):
        def narrow(self, job, attempt, narrowed):
            written.append(narrowed)
            super().narrow(job, attempt, narrowed)

    written = []
    for units, caps in ((20, [20, 20, 1_000]), (12, [12, 3, 3, 3])):
        scene = Scene(units=units, regions=6)
        scene.runs = Counting()
        scene.images = replace(scene.images, runs=scene.runs)
        scene.create()
        for cap in caps:
            tick(scene, cap=cap)
    assert written == [1]


def test_a_narrowed_run_has_at_least_one_region_at_work_and_comes_to_its_end():
    scene = Scene(units=20, regions=12)
    scene.create()
    workers = Workers(scene)
    workers.take()
    tick(scene, cap=1)
    assert [workers.end() for _ in range(12)] == [4, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0]


def test_a_job_that_gets_more_requests_has_more_regions_at_work_with_the_next_tick():
    scene = Scene(units=4, regions=12)
    scene.create()
    workers = Workers(scene)
    assert workers.take() == 1
    assert tick(scene, cap=20) == [], "the endpoint takes more, and the job does not hold it"
    job = scene.store.find("scene")
    assert scene.store.transition([(job, lifecycle.widen(job, dict.fromkeys(job.units, 16), b.NOW))])
    assert tick(scene, cap=20) == [1, 2, 3]
    assert workers.take() == 4
    assert [workers.end() for _ in range(4)] == [4] * 4
    assert tick(scene, cap=8) == []
    assert [workers.end() for _ in range(8)] == [3, 2, 2, 2, 2, 2, 1, 0]


def test_regions_that_a_tick_could_not_send_are_sent_by_a_later_one():
    scene = Scene(units=20, regions=12)
    scene.create()
    workers = Workers(scene)
    workers.take()
    tick(scene, cap=4)
    assert [workers.end() for _ in range(5)] == [4, 3, 2, 1, 1]
    assert tick(scene, cap=20) == [6, 7, 8, 9]
    scene.beat(5)  # No worker has received the messages.
    assert tick(scene, cap=20) == [6, 7, 8, 9]


def test_creating_again_dispatches_the_regions_that_no_worker_has_begun(scene):
    """A manager may have died between laying out and dispatching."""
    scene.create()
    scene.regions.messages.clear()
    assert scene.create() is CreateResult.NEW
    scene.begin(1)
    scene.regions.messages.clear()
    assert scene.create() is CreateResult.ALREADY_THERE
    assert [number for _, _, number in scene.regions.messages] == [0, 2]


def test_a_late_creation_of_an_attempt_that_was_followed_by_another_does_nothing(scene):
    scene.runs.create("scene", 2, [record.region for record in _records(scene)])
    scene.regions.messages.clear()
    assert scene.create() is CreateResult.ALREADY_THERE
    assert scene.regions.messages == []


def _records(scene):
    scene.create()
    return scene.runs.run("scene").records[:-1]


def test_a_later_attempt_works_on_what_is_left(scene):
    scene.create()
    scene.finish(1)
    scene.regions.messages.clear()
    second = replace(scene.job, attempt=replace(scene.job.attempt, number=2))
    scene.create(second)
    assert scene.regions.messages == [("scene", 2, 0), ("scene", 2, 2)]
    assert scene.runs.run("scene").records[1].state is RegionState.DONE


def test_nothing_is_known_of_a_run_that_was_never_created_or_is_another_attempts(scene):
    assert scene.images.describe(NAME) is None
    scene.create()
    assert scene.images.describe(NAME).status is Status.IN_PROGRESS
    assert scene.images.describe("image:scene-qstamp-2") is None


def test_stopping_waits_for_the_workers_and_no_other_begins(scene):
    scene.create()
    scene.begin(0)
    assert scene.images.stop(NAME)
    assert scene.images.describe(NAME).status is Status.STOPPING
    assert scene.begin(1) is None
    scene.runs.leave(scene.claim(0), b.NOW, reason="", final=False)
    assert scene.images.describe(NAME).status is Status.STOPPED


def test_a_run_without_workers_stops_at_once(scene):
    scene.create()
    assert not scene.images.stop(NAME)
    assert not scene.images.stop("image:missing")


def test_the_tick_dispatches_what_a_dead_worker_has_left(scene):
    scene.create()
    for number in (0, 1, 2):
        scene.begin(number)
    scene.clock.seconds = 60
    scene.runs.beat(scene.claim(1), b.at(60), tiles_done=1)
    assert scene.reconcile(after=0) == []
    assert scene.reconcile(after=60) == [0, 2]


def test_the_tick_dispatches_an_undispatched_merging(scene):
    scene.create()
    for number in (0, 1, 2):
        scene.finish(number)
    assert scene.reconcile(after=60) == []
    assert scene.reconcile(after=60) == [MERGE]


def test_a_region_that_its_workers_die_of_fails_and_the_rest_is_merged(scene):
    scene.create()
    scene.finish(0)
    scene.finish(2)
    scene.begin(1)
    assert scene.reconcile(after=120) == [1]
    scene.begin(1, "another")
    assert scene.reconcile(after=120) == [MERGE]
    failed = scene.runs.run("scene").records[1]
    assert (failed.state, failed.reason) == (RegionState.FAILED, "2 workers died at it")


def test_merging_that_its_workers_die_of_fails_the_job(scene):
    scene.create()
    for number in (0, 1, 2):
        scene.finish(number)
    for worker in ("one", "another"):
        scene.begin(MERGE, worker)
        scene.reconcile(after=120)
    seen = scene.images.describe(NAME)
    assert seen.status is Status.FAILED
    assert seen.failure_reason == "the regions' results could not be merged: 2 workers died at it"


def test_nothing_is_tended_of_what_is_stopped_or_never_created(scene):
    assert scene.reconcile(after=300) == []
    scene.create()
    scene.begin(0)
    scene.images.stop(NAME)
    assert scene.reconcile(after=300) == []


def test_a_failed_jobs_request_is_set_aside_as_it_came(scene):
    """W10."""
    scene.create()
    failed = lifecycle.fail(scene.job, b.NOW, "1 of 3 regions failed: no")
    scene.images.ending(failed)
    ((body, reason),) = scene.aside.letters
    assert json.loads(body) == {"jobId": "scene", "note": "grüße"}
    assert reason == "1 of 3 regions failed: no"
    scene.images.ended(failed)
    assert scene.runs.run("scene") is None
    assert len(scene.aside.letters) == 1


def test_of_a_job_that_ends_well_nothing_is_set_aside(scene):
    completed = lifecycle.observe(scene.job, b.an_observation(scene.job, status=Status.COMPLETED), b.NOW)
    scene.images.ending(completed)
    assert scene.aside.letters == []


class Down(Aside):
    """A queue for dead letters that takes none."""

    def __init__(self, trouble):
        super().__init__()
        self.trouble = trouble

    def set_aside(self, body, reason, *, attributes=None):
        if self.trouble is not None:
            raise self.trouble
        super().set_aside(body, reason, attributes=attributes)


def a_failing(scene, trouble):
    """Return the context that ends the job, its dead-letter queue, which has trouble, and the failed job."""
    scene.create()
    aside = Down(trouble)
    images = ImageLauncher(scene.store, scene.runs, scene.regions, aside, scene.clock, Limits())
    manager_context = ManagerContext(
        store=scene.store,
        launcher=KindLauncher(Training(), {"image": images}),
        clock=scene.clock,
        kinds={"image": images},
    )
    return manager_context, aside, lifecycle.fail(scene.job, b.NOW, "no")


def test_a_job_has_not_failed_before_its_request_is_set_aside(scene):
    manager_context, aside, failed = a_failing(scene, Unavailable("down"))
    with pytest.raises(Unavailable):
        commit(manager_context, scene.job, failed)
    assert scene.store.find("scene").state is JobState.STARTING
    assert scene.runs.run("scene") is not None
    aside.trouble = None
    assert commit(manager_context, scene.job, failed).state is JobState.FAILED
    assert len(aside.letters) == 1


@pytest.mark.parametrize("trouble", [NotPermitted("no"), RequestRefused("InvalidMessageContents")])
def test_a_failing_dead_letter_queue_delays_no_jobs_end(scene, trouble):
    manager_context, _, failed = a_failing(scene, trouble)
    assert commit(manager_context, scene.job, failed).state is JobState.FAILED
    assert scene.store.find("scene").state is JobState.FAILED


def test_trouble_in_clearing_up_does_not_keep_the_job_from_having_ended(scene):
    class Forgetful(MemoryRuns):
        def forget(self, job):
            raise Unavailable("down")

    images = ImageLauncher(scene.store, Forgetful(), scene.regions, scene.aside, scene.clock, Limits())
    images.ended(lifecycle.fail(scene.job, b.NOW, "no"))


class Training:
    """SageMaker's training jobs: remembers who was asked for."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        return lambda *args, **kwargs: self.asked.append((name, *args))


def test_runs_go_to_their_regions_and_training_jobs_to_sagemaker(scene):
    training = Training()
    launcher = KindLauncher(training, {"image": scene.images})
    assert launcher.create(scene.job, scene.job.attempt, {}) is CreateResult.NEW
    assert launcher.describe(NAME).job_name == "scene"
    assert launcher.stop(NAME, end_warm_pool=False) is StopResult.ENDED
    launcher.end_warm_pool(NAME)
    assert training.asked == []
    job = lifecycle.start(b.a_job("bert"), {b.P5: 1}, (), b.NOW)
    launcher.create(job, job.attempt, {})
    launcher.describe("bert")
    launcher.stop("bert", end_warm_pool=True)
    launcher.end_warm_pool("bert")
    launcher.list_open_jobs(b.NOW)
    launcher.describe_training_plan("arn")
    launcher.units_of("bert")
    called = [name for name, *_ in training.asked]
    assert called == [
        "create",
        "describe",
        "stop",
        "end_warm_pool",
        "list_open_jobs",
        "describe_training_plan",
        "units_of",
    ]
