"""Changed size bounds of elastic jobs, through the API: every answer, and what is stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders as b
from api_world import ALICE, ApiWorld
from trainmaster.domain.access.ceilings import Ceilings
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.policy.settings import Policy, Share
from trainmaster.service.resizing.contract import resize_request

BY_TWO = {"min_instances": 2, "max_instances": 6, "step": 2}
ABOVE = "The minimum number of instances, {}, is more than the maximum, {}."
NOT_LISTED = "is not one of the sizes that the job's request lists."
LISTED = {"min_instances": 2, "max_instances": 8, "values": (2, 4, 8)}


def elastic(**sizes):
    return Elastic(**({"min_instances": 2, "max_instances": 6} | sizes))


def a_waiting_job(name="job1", **sizes):
    bounds = elastic(**sizes)
    return b.a_job(name, elastic=bounds, units={b.P5: bounds.min_instances})


def a_world(*jobs, cap=8, **settings):
    world = ApiWorld(pools=b.pools_of(b.a_pool(cap=cap)), **settings)
    world.seed(*jobs)
    return world


def changed(world, **bounds):
    return world.patch("/jobs/job1", bounds)


def bounds_of(world, name="job1"):
    stored = world.memory.find(name)
    return stored.elastic.min_instances, stored.elastic.max_instances


@pytest.mark.parametrize(
    ("asked", "bounds", "demand"),
    [
        ({"maxInstances": 8}, (2, 8), 2),
        ({"minInstances": 4}, (4, 6), 4),
        ({"minInstances": 1, "maxInstances": 1}, (1, 1), 1),
        ({"minInstances": 8, "maxInstances": 8}, (8, 8), 8),
    ],
)
def test_a_waiting_job_has_its_new_bounds_and_demands_its_new_minimum(asked, bounds, demand):
    world = a_world(a_waiting_job())
    answer = changed(world, **asked)
    assert (answer.status, bounds_of(world)) == (200, bounds)
    assert (answer.body["elastic"]["minInstances"], answer.body["elastic"]["maxInstances"]) == bounds
    job = world.memory.find("job1")
    assert job.demand == b.a_demand({b.P5: demand})
    assert job.history[-1].reason == f"size bounds 2 to 6 -> {bounds[0]} to {bounds[1]} instances by {ALICE}"
    assert world.memory.read_snapshot().waiting == (job,)
    assert len(world.publisher.wakes) == 1


def test_every_alternative_demands_the_new_minimum():
    named = Demand(({b.P5: 2}, {b.G5: 2}), queue_selects_pool=True)
    world = ApiWorld(pools=b.pools_of(b.a_pool(cap=3), b.a_pool(b.G5, 9)))
    world.seed(b.a_job("job1", elastic=elastic(), demand=named))
    assert changed(world, minInstances=5).status == 200
    assert world.memory.find("job1").demand == replace(named, alternatives=({b.P5: 5}, {b.G5: 5}))


def test_a_demand_by_resources_is_for_the_new_minimum():
    world = a_world()
    options = {"resources": "accelerators=8", "max-instances": "6", "instances": "2"}
    world.submit("job1", options=options, count=2)
    before = world.memory.find("job1").demand
    assert changed(world, minInstances=3).status == 200
    after = world.memory.find("job1").demand
    assert (before.instances, after.instances) == (2, 3)
    assert after.alternatives == tuple(dict.fromkeys(units, 3) for units in before.alternatives)
    assert after.alternatives


@pytest.mark.parametrize(
    ("sizes", "asked", "field", "message", "hint"),
    [
        (BY_TWO, {"maxInstances": 7}, "maxInstances", "No number of steps of 2 leads from 2 instances to 7.", "6 or 8"),
        (BY_TWO, {"minInstances": 1}, "minInstances", "No number of steps of 2 leads from 2 instances to 1.", "2"),
        (LISTED, {"minInstances": 3}, "minInstances", f"3 {NOT_LISTED}", "2 or 4"),
        (LISTED, {"maxInstances": 9}, "maxInstances", f"9 {NOT_LISTED}", "8"),
        ({}, {"minInstances": 7}, "minInstances", ABOVE.format(7, 6), None),
        ({}, {"maxInstances": 1}, "maxInstances", ABOVE.format(2, 1), None),
        ({}, {"maxInstances": 1002}, "maxInstances", "The job has 1001 sizes; at most 1000 are allowed.", None),
        (BY_TWO, {"maxInstances": 400}, "maxInstances", "The job has 200 sizes, too many to pass to its nodes.", None),
    ],
)  # fmt: skip
def test_bounds_that_are_no_sizes_are_refused_by_their_names(sizes, asked, field, message, hint):
    world = a_world(a_waiting_job(**sizes))
    answer = changed(world, **asked)
    assert answer.kind == (400, "InvalidRequest", field)
    assert answer.error["message"] == message
    assert answer.error["hint"].startswith(f"Specify {hint}." if hint else ("Change", "Specify"))
    assert world.memory.find("job1") == a_waiting_job(**sizes)


@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True, 100_001])
def test_what_is_no_number_of_instances_is_refused(value):
    assert changed(a_world(a_waiting_job()), maxInstances=value).kind[:2] == (400, "InvalidRequest")


def test_listed_sizes_can_be_narrowed_and_widened_again():
    world = a_world(a_waiting_job(**LISTED))
    for asked, sizes in (
        ({"maxInstances": 4}, (2, 4)),
        ({"minInstances": 4}, (4,)),
        ({"minInstances": 2, "maxInstances": 8}, (2, 4, 8)),
    ):
        assert changed(world, **asked).body["elastic"]["instanceValues"] == [2, 4, 8]
        assert world.memory.find("job1").elastic.sizes == sizes


def test_a_job_of_a_fixed_size_and_an_ended_one_are_refused():
    world = a_world(b.a_job("job1"), b.an_ended_job("job2", elastic=elastic(), units={b.P5: 2}))
    fixed, ended = changed(world, maxInstances=3), world.patch("/jobs/job2", {"minInstances": 3})
    assert fixed.kind == (409, "IllegalTransition", "maxInstances")
    assert "trainmaster:max-instances" in fixed.error["hint"]
    assert ended.kind == (409, "IllegalTransition", "jobState")
    assert world.patch("/jobs/none", {"minInstances": 3}).status == 404


def test_the_same_bounds_again_change_nothing():
    world = a_world(a_waiting_job())
    assert changed(world, minInstances=2, maxInstances=6).status == 200
    assert (world.memory.find("job1"), world.publisher.wakes) == (a_waiting_job(), [])


def test_all_parts_of_a_change_are_one():
    world = a_world(a_waiting_job())
    assert changed(world, priority=5, hold=True, maxInstances=8).status == 200
    job = world.memory.find("job1")
    assert (job.priority, job.state, job.elastic.max_instances) == (5, "held", 8)
    refused = changed(world, priority=7, maxInstances=1)
    assert (refused.status, world.memory.find("job1")) == (400, job)


def test_a_change_leaves_an_audit_entry_with_both_bounds():
    world = a_world(a_waiting_job())
    changed(world, priority=5, maxInstances=8)
    entries = world.get("/audit", action="size-bounds").body["entries"]
    assert [(each["job"], each["before"], each["after"]) for each in entries] == [
        ("job1", {"maxInstances": 6}, {"maxInstances": 8})
    ]
    assert [each["action"] for each in world.get("/audit", job="job1").body["entries"]] in (
        ["size-bounds", "priority"],
        ["priority", "size-bounds"],
    )


# -- what the pools and the ceilings allow


def test_a_minimum_that_no_pool_can_hold_is_refused_and_one_that_fits_an_empty_pool_is_not():
    world = a_world(a_waiting_job(max_instances=20), b.a_running_job("other", units={b.P5: 8}))
    refused = changed(world, minInstances=9)
    assert refused.kind == (422, "NeverFits", "minInstances")
    assert refused.error["message"] == f"The job needs 9 x {b.P5}, and the pool's cap is 8."
    assert changed(world, minInstances=8).status == 200


def test_a_running_job_needs_its_minimum_in_its_own_pool():
    running = b.a_running_job(
        elastic=elastic(max_instances=20), demand=Demand(({b.P5: 2}, {b.G5: 2}), queue_selects_pool=True)
    )
    world = ApiWorld(pools=b.pools_of(b.a_pool(cap=4), b.a_pool(b.G5, 9)))
    world.seed(running)
    refused = changed(world, minInstances=5)
    assert refused.kind == (422, "NeverFits", "minInstances")
    assert refused.error["hint"] == "Specify at most 4, or raise the cap (PUT /pools)."
    assert changed(world, minInstances=4, maxInstances=9).status == 200
    assert world.memory.find("job1").units == {b.P5: 2}


def test_a_minimum_can_be_lowered_though_its_pool_was_cut():
    world = a_world(a_waiting_job(min_instances=4), cap=1)
    assert changed(world, minInstances=2).status == 200


def test_a_maximum_above_the_ceiling_of_its_share_can_only_be_lowered():
    world = a_world(a_waiting_job(max_instances=6), settings={"ceilings": Ceilings()})
    share = Share(name="default", max_job_instances=4)
    world.memory.set_settings(policy=Policy(shares={"default": share}), version=world.memory.settings().version)
    refused = changed(world, maxInstances=7)
    assert refused.kind == (400, "InvalidRequest", "maxInstances")
    assert "(shares.default.maxJobInstances)" in refused.error["message"]
    assert [changed(world, maxInstances=most).status for most in (5, 3, 4, 5)] == [200, 200, 200, 400]


def test_the_cost_of_the_largest_size_counts_for_the_ceiling_of_dollars():
    pool = replace(b.a_pool(cap=8), price=100.0)
    world = ApiWorld(pools=b.pools_of(pool))
    world.seed(a_waiting_job(max_instances=3))
    share = Share(name="default", max_job_dollars_per_hour=500)
    world.memory.set_settings(policy=Policy(shares={"default": share}), version=world.memory.settings().version)
    assert [changed(world, maxInstances=most).status for most in (5, 6)] == [200, 400]


# -- jobs that hold capacity


@pytest.mark.parametrize("hook", list(Hook))
def test_a_running_job_keeps_its_size_for_the_moment(hook):
    world = a_world(b.a_running_job(elastic=elastic(hook=hook, target="event"), units={b.P5: 2}))
    assert changed(world, minInstances=4, maxInstances=8).status == 200
    job = world.memory.find("job1")
    assert (job.units, job.state, job.demand) == ({b.P5: 2}, "running", b.a_demand({b.P5: 4}))


def test_a_base_that_other_training_jobs_join_cannot_become_smaller_while_it_runs():
    running = b.a_running_job(elastic=elastic(hook=Hook.MEMBERS, min_instances=3), units={b.P5: 3})
    world = a_world(running)
    refused = changed(world, minInstances=1, maxInstances=2)
    assert refused.kind == (409, "IllegalTransition", "maxInstances")
    assert refused.error["hint"] == "Specify at least 3, or change it while the job waits."
    assert changed(world, minInstances=1, maxInstances=3).status == 200
    assert world.memory.find("job1").sizes == (3,)


@pytest.mark.parametrize("size", [4, 6])
def test_a_custom_resize_is_answered_with_its_size_though_the_bounds_have_changed(size):
    running = b.a_running_job(elastic=elastic(hook=Hook.CUSTOM, target="event"), units={b.P5: 2})
    growing = lifecycle.resize(running, 6, Cause.GROW, b.at(60), until=b.at(600))
    world = a_world(growing)
    assert changed(world, maxInstances=4).status == 200
    answer = {"token": resize_request(growing)["token"], "outcome": "done", "instances": size}
    assert world.post("/jobs/job1/resize", answer).status == 200
    assert world.memory.find("job1").units == {b.P5: size}


def test_a_job_above_its_new_maximum_still_reports_its_speed():
    running = b.a_running_job(elastic=elastic(), units={b.P5: 6})
    world = a_world(running)
    changed(world, maxInstances=4)
    speed = {"instances": 6, "perSecond": 60.0}
    assert world.post("/jobs/job1/speed", speed).status == 200
    assert world.post("/jobs/job1/speed", speed | {"instances": 7}).status == 400


def test_a_waiting_job_keeps_no_reservation_for_another_minimum():
    reserved = lifecycle.reserve(a_waiting_job(), b.a_reservation(units={b.P5: 2}))
    world = a_world(reserved)
    changed(world, maxInstances=7)
    assert world.memory.find("job1").reservation is not None
    changed(world, minInstances=3)
    assert world.memory.find("job1").reservation is None


@pytest.mark.parametrize(("minimum", "waits"), [(1, False), (3, True)])
def test_a_smaller_minimum_ends_the_back_off(minimum, waits):
    world = a_world(replace(a_waiting_job(), retry_at=b.at(900), capacity_failures=3))
    changed(world, minInstances=minimum)
    assert (world.memory.find("job1").retry_at is not None) is waits


def test_changed_bounds_are_exported_and_imported():
    world = a_world()
    world.submit("job1", options={"max-instances": "6", "instance-step": "1"})
    changed(world, minInstances=3, maxInstances=5)
    document = world.get("/export").body
    other = a_world()
    part = {"trainmasterExport": 1, "jobs": document["jobs"]}
    assert other.post("/import", part).body["done"]
    job = other.memory.find("job1")
    assert (bounds_of(other), job.demand, len(job.history), job.version) == ((3, 5), b.a_demand({b.P5: 3}), 1, 1)
    wrong = {**document["jobs"][0], "maxInstances": 2}
    refused = a_world().post("/import", part | {"jobs": [wrong]}).body
    assert refused["jobs"][0]["outcome"] == "refused"
