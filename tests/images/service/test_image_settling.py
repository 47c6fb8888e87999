"""Jobs whose endpoint does not have their variant get another: it was not described yet, or a rollout removed it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders as b
from builders import NOW
from image_runs_world import ImageRunsWorld
from image_world import ImageWorld, an_endpoint, an_image_request
from trainmaster.domain.errors import Unavailable
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.observation import Status
from trainmaster.images.domain.endpoint import Variant
from trainmaster.images.service.endpoints import described
from trainmaster.images.service.variants import settle_variants


@pytest.fixture
def world():
    """Jobs whose endpoint, `ships`, has never been described."""
    world = ImageWorld()
    world.endpoints.known["ships"] = Unavailable("away")
    world.deliver(an_image_request("one"), an_image_request("two"))
    return world


def settle(world):
    return settle_variants(world.store, world.store, world.clock, world.store.read_snapshot().waiting)


def describe(world, *variants):
    before = world.store.known(["ships"])["ships"]
    assert world.store.remember(described("ships", an_endpoint("ships", *variants), before, NOW), before)


def test_a_job_gets_the_variant_that_it_would_have_had(world):
    assert settle(world) == ()
    describe(world, Variant(name="blue", weight=0.0, instances=1), Variant(name="green", instances=3))
    assert settle(world) == ("one", "two")
    job = world.store.find("one")
    assert (job.work.variant, job.container_image) == ("green", "endpoint/ships/green")
    assert job.demand.alternatives == ({"endpoint/ships/green": 4},)
    assert "the variant green was chosen" in job.history[-1].reason
    assert settle(world) == ()
    assert {name for name in world.store.read_snapshot().pools if "ships" in name} >= {"endpoint/ships/green"}
    assert "endpoint/ships" not in world.store.read_snapshot().pools


def test_where_none_can_be_chosen_a_job_stays_as_it_is(world):
    describe(world, Variant(name="blue", weight=0.0), Variant(name="green", weight=0.0))
    assert settle(world) == ()
    assert world.store.find("one").work.variant == ""


def test_a_job_at_a_url_has_no_variant_to_be_chosen():
    world = ImageWorld()
    world.deliver(an_image_request(imageProcessor={"name": "https://models.example/m"}))
    assert settle(world) == ()


def in_rollout(*jobs):
    """These jobs wait for `blue`, which was the only variant."""
    world = ImageWorld()
    world.endpoints.known["ships"] = an_endpoint("ships", Variant(name="blue", instances=1))
    world.deliver(*jobs)
    return world


GREEN = Variant(name="green", instances=3)


def test_a_rollout_that_removes_a_variant_costs_no_job_that_waits_for_it():
    world = in_rollout(an_image_request("one"))
    describe(world, Variant(name="blue", weight=0.0, instances=1), GREEN)
    assert settle(world) == (), "the choice stands while the variant exists"
    describe(world, GREEN)
    assert settle(world) == ("one",)
    job = world.store.find("one")
    assert (job.work.variant, job.demand.alternatives) == ("green", ({"endpoint/ships/green": 4},))
    assert job.history[-1].reason == "its endpoint no longer has the variant blue, and the variant green was chosen"
    assert settle(world) == ()


def test_a_variant_that_the_request_names_is_not_replaced():
    world = in_rollout(an_image_request("one", imageProcessorParameters={"TargetVariant": "blue"}))
    describe(world, GREEN)
    assert settle(world) == ()
    assert world.store.find("one").work.variant == "blue"


def test_all_tiles_of_a_job_that_has_started_are_for_its_first_variant():
    world = in_rollout(an_image_request("one"))
    job = world.store.find("one")
    started = lifecycle.start(job, {"endpoint/ships/blue": 2}, (), NOW)
    assert world.store.transition([(job, started)])
    stopping = lifecycle.preempt(started, "other", NOW)
    assert world.store.transition([(started, stopping)])
    preempted = lifecycle.observe(stopping, b.an_observation(stopping, status=Status.STOPPED), NOW)
    assert world.store.transition([(stopping, preempted)])
    assert [job.name for job in world.store.read_snapshot().waiting] == ["one"]
    describe(world, GREEN)
    assert settle(world) == ()


@pytest.mark.parametrize("status", ["Creating", "Failed", "Deleted"])
def test_no_variant_is_chosen_at_an_endpoint_that_is_being_replaced(status):
    world = in_rollout(an_image_request("one"))
    before = world.store.known(["ships"])["ships"]
    assert world.store.remember(replace(before, variants=(GREEN,), status=status), before)
    assert settle(world) == ()


def test_the_managers_tick_describes_the_endpoint_and_gives_those_that_wait_their_variant():
    world = ImageRunsWorld(takes=8, seconds=300)
    store = world.api_context.store
    before = store.known(["ships"])["ships"]
    unknown = replace(before, variants=(), described_at=None)
    assert store.remember(unknown, before)
    world.endpoints.trouble = Unavailable("SageMaker is away")
    for name in ("one", "two"):
        job = world.enter(name)
        work = replace(job.work, variant="")
        assert store.transition([(job, replace(job, version=2, work=work, demand=work.demand()))])
    world.run(70)
    # By default one instance takes two requests: as many as the first one makes.
    assert [world.job(name).state for name in ("one", "two")] == [JobState.RUNNING, JobState.PENDING]
    world.endpoints.trouble = None
    world.run(150)
    assert [world.job(name).work.variant for name in ("one", "two")] == ["", "blue"]
    assert world.job("two").state is JobState.RUNNING
