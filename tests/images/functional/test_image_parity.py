"""Behaviors that ModelRunner's own tests assert of its scheduler and that no other test here proves, in our own words.

Most of what its tests assert is proved beside the rule that it is about; this module has the rest.
"""

from __future__ import annotations

import json
import random
from itertools import permutations

import pytest
from botocore.exceptions import ParamValidationError

import builders as b
from image_builders import a_running_image, an_endpoint_pool, an_image_job
from image_stores import MemoryImageStore
from image_world import BUCKET, ImageWorld, an_endpoint, an_image_request
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.errors import Throttled, Unavailable
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.plan import Plan
from trainmaster.images.adapters.sagemaker_endpoints import SageMakerEndpoints
from trainmaster.images.domain.capacity import pools_of
from trainmaster.images.domain.endpoint import Endpoint, Limits, Variant, never_described, pool_name
from trainmaster.images.service.metrics import utilization
from trainmaster.planner.schedule import schedule

MODEL = "https://models.example/detect"


def plan_of(pools, *, active=(), waiting=()):
    """The plan with these endpoints' pools alone."""
    return schedule(b.a_snapshot(pools=pools, active=active, waiting=waiting), b.NOW, random.Random(1))


def started(pools, **jobs):
    return [start.job.name for start in plan_of(pools, **jobs).starts]


def pools_at(*endpoints, **limits):
    """The pools of these endpoints, by a deployment's settings."""
    caps = {}
    for endpoint in endpoints:
        caps |= pools_of(endpoint, Limits(**limits), b.NOW)
    return [Pool(name, cap.requests, kind=Kind.SERVICE) for name, cap in caps.items()]


def taking(takes, key="ships", *names):
    """An endpoint of which each variant takes so many requests."""
    variants = tuple(Variant(name=name, max_concurrency=takes) for name in names or ("blue",))
    return Endpoint(key=key, variants=variants, described_at=b.NOW)


# ---------------------------------------------------------------- which job


def test_where_nothing_waits_nothing_starts():
    assert plan_of(pools_at(taking(8)), active=[a_running_image("a", 4)]) == Plan()


def test_of_an_endpoints_jobs_the_oldest_starts_in_whatever_order_they_come():
    ages = {"second": -20, "first": -30, "third": -10}
    for names in permutations(ages):
        store = MemoryImageStore(default_pools=b.pools_of(), now=lambda: b.NOW)
        store.remember(taking(8), None)
        for name in names:
            store.submit(an_image_job(name, 8, entry_time=b.at(ages[name])), {"jobId": name})
        plan = schedule(store.begin_pass(), b.NOW, random.Random(1))
        assert [start.job.name for start in plan.starts] == ["first"]


def test_of_several_idle_endpoints_the_one_with_the_oldest_job_of_all_comes_first():
    ages = {"ships": -10, "cars": -30, "trees": -20}
    waiting = [an_image_job(name, 8, endpoint=name, entry_time=b.at(age)) for name, age in ages.items()]
    assert started(pools_at(*(taking(8, name) for name in ages)), waiting=waiting) == ["cars", "trees", "ships"]


# ---------------------------------------------------------------- what is free


@pytest.mark.parametrize(
    ("takes", "target", "held", "free"), [(100, 0.8, 48, 32), (50, 1.0, 28, 22), (200, 1.2, 100, 140)]
)
def test_free_is_the_target_less_what_running_jobs_hold_to_the_last_request(takes, target, held, free):
    pools, active = pools_at(taking(takes), target=target), [a_running_image("a", held)]
    assert started(pools, active=active, waiting=[an_image_job("b", free)]) == ["b"]
    assert started(pools, active=active, waiting=[an_image_job("b", free + 1)]) == []


@pytest.mark.parametrize(
    ("endpoint", "variant", "free"), [("ships", "blue", 48), ("ships", "green", 80), ("cars", "blue", 68)]
)
def test_only_jobs_of_the_same_variant_of_the_same_endpoint_take_from_what_is_free(endpoint, variant, free):
    pools = pools_at(taking(100, "ships", "blue", "green"), taking(100, "cars"))
    held = {
        "a": (40, "ships", "blue"),
        "b": (20, "ships", "green"),
        "c": (32, "cars", "blue"),
        "d": (12, "ships", "blue"),
    }
    active = [a_running_image(name, load, endpoint=key, variant=which) for name, (load, key, which) in held.items()]
    for load, found in ((free, ["x"]), (free + 1, [])):
        waiting = [an_image_job("x", load, endpoint=endpoint, variant=variant)]
        assert started(pools, active=active, waiting=waiting) == found


@pytest.mark.parametrize(("busy", "found"), [("green", ["large"]), ("blue", [])])
def test_a_larger_image_starts_beside_another_variants_jobs_and_not_beside_its_own(busy, found):
    pools = pools_at(taking(30, "ships", "blue", "green"))
    active = [a_running_image("a", 20, variant=busy)]
    assert started(pools, active=active, waiting=[an_image_job("large", 80)]) == found


def test_waiting_jobs_hold_nothing_and_keep_no_larger_image_from_starting_alone():
    waiting = [an_image_job("large", 80, entry_time=b.at(-9)), an_image_job("a", 20), an_image_job("b", 20)]
    plan = plan_of(pools_at(taking(30)), waiting=waiting)
    assert {start.job.name: start.units for start in plan.starts} == {"large": {pool_name("ships", "blue"): 30}}


def test_a_waiting_job_reports_needed_and_free_requests():
    plan = plan_of(pools_at(taking(20)), active=[a_running_image("a", 16)], waiting=[an_image_job("b", 40)])
    assert plan.starts == ()
    (wait,) = plan.waits
    assert wait.reason.message().startswith("waits for 16 of 20 requests at endpoint/ships/blue: 4 free for it now")


def test_a_started_job_records_its_requests_in_its_history():
    change = next(change for change in a_running_image("a", 12).history if change.after is JobState.STARTING)
    assert (change.attempt, change.reason) == (1, "takes 12 requests at endpoint/ships/blue")


def test_without_throttling_jobs_start_however_little_their_endpoint_takes():
    waiting = [an_image_job(f"job{number}", 8) for number in range(5)]
    endpoint = Endpoint(key="ships", variants=(Variant(name="blue", instances=0),), described_at=b.NOW)
    assert started(pools_at(endpoint, throttling=True), waiting=waiting) == ["job0"]
    assert started(pools_at(endpoint, throttling=False), waiting=waiting) == [job.name for job in waiting]


def test_a_model_behind_a_url_takes_ten_requests_of_all_its_jobs_together():
    waiting = [an_image_job(f"job{number}", 4, endpoint=MODEL, variant="") for number in range(3)]
    assert started(pools_at(never_described(MODEL)), waiting=waiting) == ["job0", "job1"]


# ---------------------------------------------------------------- intake and variants


def test_the_header_of_an_image_is_read_once_and_decides_its_regions():
    world = ImageWorld()
    world.deliver(an_image_request("a"), an_image_request("b"))
    assert world.images.reads == [(f"{BUCKET}small.tif", None, None)] * 2
    assert [world.store.find(name).work.regions for name in "ab"] == [1, 1]


@pytest.mark.parametrize("parameters", [None, {}, {"TargetVariant": None}, {"TargetVariant": ""}])
def test_a_request_without_parameters_has_a_variant_chosen_too(parameters):
    world = ImageWorld()
    body = {**an_image_request(), "imageProcessorParameters": parameters}
    assert world.deliver(body) == []
    assert world.store.find("harbour-7").work.variant == "AllTraffic"


def by_weight(blue, green):
    return an_endpoint("ships", Variant(name="blue", weight=blue), Variant(name="green", weight=green))


def chosen(world, *names):
    world.deliver(*(an_image_request(name) for name in names))
    return {world.store.find(name).work.variant for name in names}


def test_new_weights_count_once_the_description_is_too_old():
    world = ImageWorld()
    for seconds, weights, variant in ((0, (1, 0), "blue"), (299, (0, 1), "blue"), (1, (0, 1), "green")):
        world.clock.sleep(seconds)
        world.endpoints.known["ships"] = by_weight(*weights)
        assert chosen(world, *(f"job{variant}{seconds}-{number}" for number in range(5))) == {variant}
    assert len(world.endpoints.described) == 2


@pytest.mark.parametrize("trouble", [Throttled("slow"), Unavailable("away")])
def test_while_an_endpoint_cannot_be_described_variants_are_chosen_by_the_last_description(trouble):
    world = ImageWorld()
    world.endpoints.known["ships"] = by_weight(1, 3)
    chosen(world, "first")
    world.clock.sleep(400)
    world.endpoints.known["ships"] = trouble
    names = [f"job{number}" for number in range(20)]
    assert chosen(world, *names) == {"blue", "green"}
    calm = ImageWorld()
    calm.endpoints.known["ships"] = by_weight(1, 3)
    chosen(calm, *names)
    works = [{name: each.store.find(name).work for name in names} for each in (world, calm)]
    assert works[0] == works[1]


class Nameless:
    """SageMaker whose answer lacks the ARN; botocore sends no question with an empty one."""

    def describe_endpoint(self, **asked):
        assert asked == {"EndpointName": "ships"}
        return {"ProductionVariants": [{"VariantName": "blue", "CurrentInstanceCount": 3}]}

    def list_tags(self, **asked):
        raise ParamValidationError(report=f"Invalid length for parameter ResourceArn: {asked['ResourceArn']!r}")


def test_an_endpoint_without_an_arn_has_no_tags_that_could_be_read():
    found = SageMakerEndpoints(lambda role: Nameless()).describe("ships")
    assert found.tags_unread
    assert pools_of(found, Limits(), b.NOW)["endpoint/ships/blue"].requests == 6


# ---------------------------------------------------------------- figures


@pytest.mark.parametrize(("held", "percent"), [(0, 0.0), (10, 50.0), (20, 100.0)])
def test_utilization_is_what_running_jobs_hold_of_what_their_endpoint_takes(held, percent):
    active = [a_running_image("a", held)] if held else []
    snapshot = b.a_snapshot(pools=[an_endpoint_pool(20)], active=active, waiting=[an_image_job("b", 8)])
    assert utilization(snapshot, Plan()) == {"ships": percent}


def test_of_an_endpoint_that_takes_nothing_no_utilization_is_told():
    snapshot = b.a_snapshot(pools=[an_endpoint_pool(0), an_endpoint_pool(8, endpoint="cars")])
    assert utilization(snapshot, Plan()) == {"cars": 0.0}


def test_models_behind_urls_are_never_counted_as_endpoints_that_failed(capsys):
    world = ImageWorld()
    world.endpoints.known = dict.fromkeys(("ships", MODEL), Unavailable("away"))
    assert world.deliver(an_image_request(imageProcessor={"name": MODEL, "type": "HTTP_ENDPOINT"})) == []
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith('{"_aws"')]
    told = [line["Errors"] for line in lines if "Errors" in line and "ModelName" not in line]
    assert told in ([0.0], [[0.0]])
    assert [line for line in lines if "ModelName" in line] == []


# ---------------------------------------------------------------- the table of jobs


def test_of_two_that_start_an_attempt_one_does_and_what_the_header_told_stays():
    world = ImageWorld()
    world.deliver(an_image_request())
    job = world.store.find("harbour-7")
    (start,) = plan_of(world.store.read_snapshot().pools.values(), waiting=[job]).starts
    first, second = (lifecycle.start(job, start.units, (), b.at(seconds)) for seconds in (1, 2))
    assert world.store.transition([(job, first)])
    assert not world.store.transition([(job, second)])
    found = world.store.find("harbour-7")
    assert (found.attempt.number, found.attempt.created_at, found.work) == (1, b.at(1), job.work)
