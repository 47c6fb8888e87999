"""Dry runs of image jobs: forecast like a training job's, without reading the image."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from api_world import ApiWorld
from builders import NOW, a_pool, an_observation, at, pools_of
from image_api_world import ImageApiWorld
from image_builders import an_endpoint, an_image_job
from image_poison import POISON
from image_world import an_image_request
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.policy.settings import Share
from trainmaster.images.domain.endpoint import pool_name
from trainmaster.service.admission.build_job import digest_of

SHIPS = pool_name("ships", "blue")
LARGE = [20_480, 20_480]


@pytest.fixture
def world():
    world = ImageApiWorld(pools=pools_of(a_pool()))
    world.memory.remember(an_endpoint(takes=20), None)
    return world


def plan(world, name="harbour-7", size=LARGE, **members):
    return world.post("/plan", an_image_request(name, imageSize=size, **members))


def running(world, name="before", load=8, **fields):
    waiting = an_image_job(name, load, **fields)
    world.memory.submit(waiting, an_image_request(name))
    job = lifecycle.start(waiting, {SHIPS: load}, (), NOW)
    at_work = lifecycle.observe(job, an_observation(job, secondary="Training", started_at=NOW), NOW)
    assert world.memory.transition([(waiting, job)])
    assert world.memory.transition([(job, at_work)])


def test_it_would_start_on_what_its_endpoint_takes(world):
    told = plan(world, size=[1_024, 1_024]).body
    assert (told["decision"], told["wouldTake"], told["wouldStart"]) == ("start", {SHIPS: 1}, ["harbour-7"])
    # Nine regions, as ModelRunner makes them, want 33; the endpoint takes 20.
    told = plan(world).body
    assert (told["decision"], told["wouldTake"], told["position"]) == ("start", {SHIPS: 20}, 1)
    assert (told["warnings"], datetime.fromisoformat(told["estimatedStart"])) == ([], NOW)


def test_it_would_wait_for_the_others_at_its_endpoint_and_is_told_until_when(world):
    running(world)
    told = plan(world).body
    assert (told["decision"], told["reason"]["type"]) == ("wait", "WaitsForCapacity")
    assert "8 of 20 requests" in told["reason"]["message"]
    low, usual, high = (datetime.fromisoformat(told[f"estimatedStart{each}"]) for each in ("Low", "", "High"))
    assert NOW < low < usual < high < at(600)


def test_it_would_preempt_and_delay_by_its_priority(world):
    running(world, load=20)
    world.memory.submit(an_image_job("behind", 20), an_image_request("behind"))
    world.clock.sleep(7_200)
    told = plan(world, trainmaster={"priority": 5}).body
    assert (told["decision"], told["wouldPreempt"]) == ("preempt", ["before"])
    assert [each["jobName"] for each in told["wouldDelay"]] == ["behind"]


def test_nothing_is_stored_and_nothing_is_sent(world):
    plan(world)
    assert (world.memory.find("harbour-7"), world.image_queue.sent) == (None, [])


def test_the_size_has_to_be_said_and_to_be_one(world):
    assert plan(world, size=None).kind == (400, "InvalidRequest", "imageSize")
    for wrong in ([1_024], [0, 5], ["9", "9"], [True, 5], 1_024, [2**31, 1], [1.5, 2]):
        assert plan(world, size=wrong).kind == (400, "InvalidRequest", "imageSize")


@pytest.mark.parametrize("case", ["no processor", "several images", "a share that breaks keys"])
def test_a_plan_rejects_what_a_submission_rejects(world, case):
    members, field = POISON[case]
    if "imageProcessor" in members:
        members = members | {"imageUrls": ["s3://images/small.tif"]}
    assert plan(world, **members).kind == (400, "InvalidRequest", field)


def test_shares_variants_and_names_are_checked(world):
    assert plan(world, imageProcessorParameters={"TargetVariant": "green"}).kind[2] == (
        "imageProcessorParameters.TargetVariant"
    )
    world.submit("train")
    assert plan(world, "train").kind == (409, "NameTaken", "jobId")
    shares = {"team": Share(name="team")}
    world.memory.set_settings(policy=replace(world.memory.settings().policy, shares=shares))
    assert plan(world, trainmaster={"share": "teams"}).kind == (400, "InvalidRequest", "trainmaster.share")


def test_a_plan_uses_defaults_for_an_undescribed_endpoint_and_warns(world):
    told = plan(world, imageProcessor={"name": "new"}).body
    assert (told["decision"], told["wouldTake"]) == ("start", {"endpoint/new/AllTraffic": 2})
    (warning,) = told["warnings"]
    assert "The endpoint new is not known yet" in warning
    url = {"name": "https://models.example/invoke", "type": "HTTP_ENDPOINT"}
    told = plan(world, imageProcessor=url).body
    assert (told["wouldTake"], told["warnings"]) == ({"endpoint/https://models.example/invoke": 10}, [])


def test_of_a_job_that_is_there_no_size_is_needed(world):
    request = an_image_request()
    world.memory.submit(an_image_job("harbour-7", 8, digest=digest_of(request)), request)
    told = plan(world, size=None).body
    assert (told["decision"], told["position"], told["wouldTake"]) == ("start", 1, {SHIPS: 8})


def test_where_image_jobs_are_off_a_plan_is_refused_too():
    assert plan(ApiWorld()).kind == (409, "NotOffered", None)
