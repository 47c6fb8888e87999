"""Jobs that entered while their endpoint could not be described get their variants once it can."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import NOW
from image_runs_world import ImageRunsWorld
from image_world import ImageWorld, an_endpoint, an_image_request
from trainmaster.domain.errors import Unavailable
from trainmaster.domain.jobs.job import JobState
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
