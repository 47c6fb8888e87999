"""Warm pools in a plan: eligibility, the jobs that start on them, and the ones that are ended for a job."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from builders import G5, NOW, P5, a_job, a_pool, a_request, a_running_job, a_snapshot, at
from trainmaster.domain.capacity.units import Demand, Kind, Pool
from trainmaster.domain.capacity.warm_pools import WarmPool, counting, warm_pool_key_of
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.reasons.capacity import NextPass, WaitsForCapacity
from trainmaster.planner.placement.warm_pools import WarmPools
from trainmaster.planner.schedule import schedule


def a_warm(name="old", *, units=None, warm_pool_key="same", until=600.0, **fields):
    return WarmPool(name, units or {P5: 1}, warm_pool_key, at(until), **fields)


def among(*warm, active=(), pools=()):
    return WarmPools.of(
        replace(a_snapshot(pools=pools or [a_pool(P5, 4), a_pool(G5, 4)], active=active), warm=warm), NOW
    )


def names(found):
    return [pool.training_job_name for pool in found]


# ---------------------------------------------------------------- what SageMaker compares


def test_equal_requests_fit_whatever_their_type_count_name_and_script():
    one = a_request("a", instance_type=P5, count=1)
    other = a_request("b", instance_type=G5, count=4, HyperParameters={"x": "1"})
    assert warm_pool_key_of(one) == warm_pool_key_of(other) != ""


@pytest.mark.parametrize(
    "change",
    [
        {"RoleArn": "arn:aws:iam::111122223333:role/other"},
        {"ResourceConfig": {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 31}},
        {"ResourceConfig": {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 30, "VolumeKmsKeyId": "k"}},
        {"VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["s-1"]}},
        {"EnableNetworkIsolation": True},
        {"EnableInterContainerTrafficEncryption": True},
        {"SessionChainingConfig": {"EnableSessionTagChaining": True}},
    ],
)
def test_each_field_that_sagemaker_compares_tells_requests_apart(change):
    assert warm_pool_key_of(a_request(**change)) not in ("", warm_pool_key_of(a_request()))


def test_what_is_off_and_what_is_left_out_is_the_same():
    assert warm_pool_key_of(a_request(EnableNetworkIsolation=False, VpcConfig={})) == warm_pool_key_of(a_request())
    one = {"SecurityGroupIds": ["a", "b"], "Subnets": ["s"]}
    assert warm_pool_key_of(a_request(VpcConfig=one)) == warm_pool_key_of(
        a_request(VpcConfig={**one, "SecurityGroupIds": ["b", "a"]})
    )


@pytest.mark.parametrize(
    "change",
    [
        {"EnableManagedSpotTraining": True},
        {"ResourceConfig": {"InstanceGroups": [{"InstanceType": P5, "InstanceCount": 1, "InstanceGroupName": "a"}]}},
        {"ResourceConfig": {"InstancePreferences": [{"InstanceType": P5}], "InstanceCount": 1}},
        {"ResourceConfig": None},
    ],
)
def test_requests_that_no_warm_pool_can_serve_have_no_digest(change):
    assert warm_pool_key_of(a_request(**change)) == ""


def test_a_job_for_which_the_queue_chooses_is_spot_only_on_spot_pools():
    request = a_request(EnableManagedSpotTraining=True)
    assert warm_pool_key_of(request, queue_selects_pool=True) == warm_pool_key_of(a_request())


# ---------------------------------------------------------------- what counts


def test_a_warm_pool_counts_unless_an_active_attempt_runs_on_it():
    runner = a_running_job("runner")
    used, idle = a_warm("used", used_by="runner"), a_warm("idle")
    assert names(counting([used, idle], [runner])) == ["idle"]
    assert names(counting([used, idle], [])) == ["used", "idle"], "its job has ended, or never came to be"
    stage = among(used, idle, a_warm("going", units={G5: 2}, ending_since=NOW), active=[runner])
    assert stage.held_units == {P5: 1, G5: 2}
    assert names(stage.ending) == ["going"]


# ---------------------------------------------------------------- who starts on them


def test_a_job_matches_a_pool_of_its_fit_and_units():
    stage = among(a_warm())
    assert stage.match(a_job(warm_pool_key="same"), {P5: 1}).training_job_name == "old"
    assert stage.match(a_job(warm_pool_key="other"), {P5: 1}) is None
    assert stage.match(a_job(warm_pool_key=""), {P5: 1}) is None
    assert stage.match(a_job(warm_pool_key="same"), {P5: 2}) is None
    assert stage.match(a_job(warm_pool_key="same"), {G5: 1}) is None


@pytest.mark.parametrize("change", [{"used_by": "x"}, {"ending_since": NOW}, {"until": at(60)}])
def test_a_pool_that_is_used_ends_or_is_about_to_matches_no_job(change):
    assert among(replace(a_warm(), **change)).match(a_job(warm_pool_key="same"), {P5: 1}) is None


def test_spot_jobs_use_no_warm_pool():
    pools = [Pool("spot", 2, type_=P5, kind=Kind.SPOT)]
    assert among(a_warm(units={"spot": 1}), pools=pools).match(a_job(warm_pool_key="same"), {"spot": 1}) is None


def test_each_pool_is_used_once_the_one_that_ends_first_first():
    stage = among(a_warm("late", until=900), a_warm("soon", until=300))
    job = a_job(warm_pool_key="same")
    found = stage.match(job, {P5: 1})
    assert found.training_job_name == "soon"
    stage.use(found)
    stage.use(stage.match(job, {P5: 1}))
    assert stage.match(job, {P5: 1}) is None


def test_among_equals_those_that_match_go_first_one_for_each_pool():
    plain, *fitting = (
        a_job("a"),
        a_job("b", warm_pool_key="same"),
        a_job("c", warm_pool_key="same"),
        a_job("d", warm_pool_key="same"),
    )
    assert [job.name for job in among(a_warm("x"), a_warm("y")).matching_first([plain, *fitting])] == [
        "b",
        "c",
        "a",
        "d",
    ]
    assert [job.name for job in among().matching_first([plain, *fitting])] == ["a", "b", "c", "d"]


def test_a_job_that_has_waited_for_an_hour_is_not_passed():
    old, young, fitting = (
        a_job("a", entry_time=at(-3600)),
        a_job("b", entry_time=at(-3599)),
        a_job("c", warm_pool_key="same"),
    )
    assert [job.name for job in among(a_warm()).matching_first([old, young, fitting])] == ["a", "c", "b"]


def test_going_first_uses_nothing_up():
    stage = among(a_warm())
    job = a_job(warm_pool_key="same")
    stage.matching_first([job])
    assert stage.match(job, {P5: 1}) is not None


def test_an_alternative_may_match():
    job = a_job("b", warm_pool_key="same", demand=Demand(({G5: 1}, {P5: 1}), queue_selects_pool=True))
    assert [each.name for each in among(a_warm()).matching_first([a_job("a"), job])] == ["b", "a"]


# ---------------------------------------------------------------- which are ended


def test_no_more_are_ended_than_needed():
    stage = among(a_warm("one", until=300), a_warm("two", units={P5: 2}, until=400), a_warm("else", units={G5: 2}))
    found = stage.pools_to_end(a_job(), {P5: 2})
    assert (names(found.pools), found.missing) == (["two"], {})
    assert names(stage.pools_to_end(a_job(), {P5: 3}).pools) == ["one", "two"]
    assert names(stage.pools_to_end(a_job(), {G5: 1}).pools) == ["else"]


def test_what_they_do_not_bring_stays_missing():
    found = among(a_warm()).pools_to_end(a_job(), {P5: 3, G5: 1})
    assert (names(found.pools), found.missing) == (["old"], {P5: 2, G5: 1})
    nothing = among().pools_to_end(a_job(), {P5: 3})
    assert (nothing.pools, nothing.missing) == ((), {P5: 3})


def test_a_pool_of_a_higher_job_stays():
    stage = among(a_warm("high", priority=5), a_warm("equal", priority=1), a_warm("low", priority=0, until=900))
    assert names(stage.pools_to_end(a_job(priority=1), {P5: 1}).pools) == ["low"]
    assert names(stage.pools_to_end(a_job(priority=1), {P5: 3}).pools) == ["low", "equal"]


def test_one_that_is_ended_is_neither_ended_again_nor_used():
    stage = among(a_warm())
    stage.end(stage.pools_to_end(a_job(), {P5: 1}).pools)
    assert stage.pools_to_end(a_job(), {P5: 1}).pools == ()
    assert stage.match(a_job(warm_pool_key="same"), {P5: 1}) is None


def test_beyond_the_limit_of_a_pass_the_next_one_starts_a_job_on_a_warm_pool():
    """Until then, neither another job that matches it nor one that lacks units has it."""
    waiting = [a_job(name, warm_pool_key=key) for name, key in (("a", "b"), ("b", "same"), ("c", "same"), ("d", ""))]
    waiting = [replace(job, priority=-place) for place, job in enumerate(waiting)]
    snapshot = a_snapshot(pools=[a_pool(P5, 2)], waiting=waiting, policy=Policy(max_actions=1))
    made = schedule(replace(snapshot, warm=(a_warm(),)), NOW, random.Random(1))
    assert [start.job.name for start in made.starts] == ["a"]
    assert {wait.job.name: type(wait.reason) for wait in made.waits} == {
        "b": NextPass,
        "c": WaitsForCapacity,
        "d": WaitsForCapacity,
    }
    assert made.warm_ends == ()


@pytest.mark.parametrize(("free", "taken"), [(1, {G5: 1}), (0, {P5: 1})], ids=["free", "full"])
def test_a_warm_pool_does_not_go_before_what_the_job_names_first_and_is_free(free, taken):
    job = a_job("b", warm_pool_key="same", demand=Demand(({G5: 1}, {P5: 1}), queue_selects_pool=True))
    snapshot = replace(a_snapshot(pools=[a_pool(G5, 1), a_pool(P5, 1)], waiting=[job]), warm=(a_warm(),))
    (start,) = schedule(replace(snapshot, external={G5: 1 - free}), NOW, random.Random(1)).starts
    assert start.units == taken
