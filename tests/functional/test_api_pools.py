"""One pool at a time over HTTP: made, changed, drained, removed; and who is concerned by that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api_world import ApiWorld
from builders import G5, NOW, P5, a_job, a_pool, a_running_job, pools_of
from trainmaster.domain.capacity.pool_history import PoolAction, PoolEvent
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.errors import VersionConflict
from trainmaster.domain.policy.settings import Policy, Share

EITHER = Demand(({P5: 1}, {G5: 1}), queue_selects_pool=True)
BY_RESOURCE = Demand((), queue_selects_pool=True, resources=Resources(accelerators=1), instances=1)


@pytest.fixture
def world():
    return ApiWorld(pools=pools_of(a_pool(P5, 2), a_pool(G5, 4)))


def caps(world):
    return {name: pool.cap for name, pool in world.memory.settings().pools.items()}


def shown(world, name):
    return next(pool for pool in world.get("/pools").body["pools"] if pool["name"] == name)


def test_the_history_of_pools_is_returned_on_request_newest_first(world):
    made = PoolEvent(
        NOW, PoolAction.EXPAND, "g6", "ml.g6.2xlarge", 0, 2, 1.95, "2 x (vcpus=4)", ("job1",), 3, "jobs wait"
    )
    world.memory.set_settings(
        events=[made, replace(made, action=PoolAction.RETIRE, before=2, after=0, dollars_per_hour=0.0)]
    )
    assert world.get("/pools").body["history"] is None
    body = world.get("/pools", history="true").body
    assert [each["change"] for each in body["history"]] == ["retire", "expand"]
    assert body["history"][1] == {
        "at": "2026-11-21T12:00:00Z",
        "change": "expand",
        "pool": "g6",
        "instanceType": "ml.g6.2xlarge",
        "before": 0,
        "after": 2,
        "dollarsPerHour": 1.95,
        "madeFor": "2 x (vcpus=4)",
        "jobs": ["job1"],
        "jobCount": 3,
        "why": "jobs wait",
    }
    assert body["history"][0]["dollarsPerHour"] is None


# ---------------------------------------------------------------- setting one pool


def test_a_pool_is_made_beside_the_others(world):
    reply = world.put("/pools/p5-spot", {"instanceType": P5, "kind": "spot", "cap": 8, "price": 31.5})
    assert (reply.status, reply.body["name"], reply.body["cap"]) == (200, "p5-spot", 8)
    assert reply.body["setting"] == {
        "name": "p5-spot",
        "instanceType": P5,
        "kind": "spot",
        "cap": 8,
        "price": 31.5,
        "countExternal": True,
    }
    assert caps(world) == {P5: 2, G5: 4, "p5-spot": 8}
    assert len(world.publisher.wakes) == 1


def test_a_pool_takes_the_place_of_the_one_of_its_name(world):
    world.put(f"/pools/{P5}", {"cap": 3, "price": 98.0, "draining": True})
    assert world.put(f"/pools/{P5}", {"cap": 5}).body["setting"] == {
        "instanceType": P5,
        "cap": 5,
        "countExternal": True,
    }
    assert caps(world) == {P5: 5, G5: 4}


def test_resources_of_instances_round_trip_through_the_api(world):
    said = {
        "vcpus": 7,
        "memoryGib": 12.5,
        "accelerators": 3,
        "accelerator": "acme",
        "acceleratorMemoryGib": 9.0,
        "draining": True,
    }
    made = world.put("/pools/odd", {"instanceType": "ml.x9.large", "cap": 1, **said}).body
    del said["draining"]
    assert {name: made[name] for name in said} == said
    assert (made["state"], made["weight"], made["onDemandPrice"]) == ("drained", 0.0, 0.0)
    assert world.put("/pools", {"pools": [made["setting"]]}).body["pools"] == [made]


def test_a_pool_of_an_unknown_type_says_so(world):
    made = world.put("/pools/ml.x9.large", {"cap": 1}).body
    told = ("vcpus", "memoryGib", "accelerators", "accelerator", "acceleratorMemoryGib", "onDemandPrice", "price")
    assert [made[member] for member in told] == [0, 0.0, 0, None, 0.0, 0.0, 0.0]


PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (P5, {}, "cap"),
        (P5, {"cap": -1}, "cap"),
        (P5, {"cap": 1, "vcpus": -1}, "vcpus"),
        (P5, {"cap": 1, "memoryGib": 1e9}, "memoryGib"),
        (P5, {"cap": 1, "accelerator": "NVIDIA"}, "accelerator"),
        (P5, {"cap": 1, "acceleratorMemoryGib": -0.5}, "acceleratorMemoryGib"),
        (P5, {"cap": 1, "kind": "spot"}, "name"),
        (P5, {"cap": 1, "madeFor": "accelerators=1"}, "madeFor"),
        (P5, {"cap": 1, "instanceType": "p5"}, "instanceType"),
        ("spring", {"cap": 1}, "instanceType"),
        ("a%20b", {"cap": 1, "instanceType": P5}, "name"),
        ("autumn", {"cap": 1, "instanceType": P5, "kind": "training-plan", "trainingPlanArn": PLAN}, "trainingPlanArn"),
    ],
)
def test_a_wrong_pool_is_refused_with_its_field(world, path, body, field):
    spring = {"cap": 1, "instanceType": P5, "kind": "training-plan", "trainingPlanArn": PLAN}
    assert world.put("/pools/first", spring).status == 200
    assert world.put(f"/pools/{path}", body).kind == (400, "InvalidRequest", field)
    assert "first" in caps(world)
    assert caps(world)[P5] == 2


# ---------------------------------------------------------------- changing one pool


def test_a_change_leaves_the_rest_of_the_pool_as_it_is(world):
    world.put("/pools/small", {"instanceType": G5, "cap": 2, "price": 1.5, "accelerators": 4})
    changed = world.patch("/pools/small", {"cap": 3, "countExternal": False, "accelerators": 2})
    assert (changed.status, changed.body["setting"]) == (
        200,
        {"name": "small", "instanceType": G5, "cap": 3, "countExternal": False, "price": 1.5, "accelerators": 2},
    )


def test_a_pool_drains_until_nothing_holds_it_and_can_be_resumed(world):
    world.seed(a_running_job("job1"), a_job("job2", priority=-1))
    drained = world.patch(f"/pools/{P5}", {"draining": True}).body
    assert (drained["state"], drained["used"], drained["free"], drained["waiting"]) == ("draining", 1, 0, 1)
    assert world.get("/jobs/job2").body["reason"]["type"] == "Draining"
    assert world.patch(f"/pools/{G5}", {"draining": True}).body["state"] == "drained"
    assert world.patch(f"/pools/{P5}", {"draining": False}).body["state"] == "in use"
    assert world.get("/jobs/job2").body["reason"] is None


def test_a_pool_with_a_warm_pool_is_not_drained_yet(world):
    world.memory.transition([], warm=[WarmPool("old", {P5: 1}, "f", NOW.replace(year=2027))])
    assert world.patch(f"/pools/{P5}", {"draining": True}).body["state"] == "draining"
    world.memory.transition([], ended_warm=["old"])
    assert shown(world, P5)["state"] == "drained"


def test_changes_of_pools_that_are_not_there_or_not_right_are_refused(world):
    assert world.patch("/pools/none", {"cap": 1}).kind == (404, "PoolNotFound", "name")
    assert world.patch(f"/pools/{P5}", {"kind": "spot"}).kind == (400, "InvalidRequest", "kind")
    assert world.patch(f"/pools/{P5}", {"cap": -1}).kind == (400, "InvalidRequest", "cap")
    assert world.patch(f"/pools/{P5}", {"cap": 3, "version": 7}).kind == (409, "VersionConflict", "version")
    assert world.delete("/pools/none").kind == (404, "PoolNotFound", "name")
    assert caps(world) == {P5: 2, G5: 4}


def test_a_change_is_retried_after_a_conflict(world):
    taken = iter([3, 4])
    change, commit = world.memory.set_settings, world.store

    class Slow:
        """Another administrator writes in between, twice."""

        def __getattr__(self, verb):
            return getattr(commit, verb)

        def set_settings(self, **settings):
            if (cap := next(taken, None)) is not None:
                change(pools=[*world.memory.settings().pools.values(), Pool(f"ml.m5.{cap}xlarge", cap)])
            return change(**settings)

    world.application.store = Slow()
    assert world.patch(f"/pools/{P5}", {"cap": 9}).status == 200
    assert caps(world) == {P5: 9, G5: 4, "ml.m5.3xlarge": 3, "ml.m5.4xlarge": 4}


def test_a_change_gives_up_after_repeated_conflicts(world):
    world.store.failing["set_settings"] = VersionConflict("changed")
    assert world.patch(f"/pools/{P5}", {"cap": 9}).kind == (429, "Throttled", None)
    assert world.patch(f"/pools/{P5}", {"cap": 9, "version": 0}).status == 409


# ---------------------------------------------------------------- removing one pool


def test_an_unused_pool_is_removed(world):
    reply = world.delete(f"/pools/{G5}")
    assert (reply.status, [pool["name"] for pool in reply.body["pools"]]) == (200, [P5])
    assert [reply.body[name] for name in ("moved", "stranded", "more", "running")] == [0, 0, False, []]
    assert len(world.publisher.wakes) == 1


def test_jobs_that_can_run_elsewhere_move(world):
    world.seed(a_job("job1", demand=EITHER), a_job("job2", units={P5: 1}), a_job("job4", units={P5: 1}))
    world.memory.submit(a_job("job3", demand=BY_RESOURCE), {})
    reply = world.delete(f"/pools/{G5}")
    assert (reply.status, reply.body["moved"], reply.body["stranded"]) == (200, 2, 0)
    assert caps(world) == {P5: 2}


def test_a_pool_without_which_jobs_could_never_run_stays(world):
    world.seed(*(a_job(f"job{number}", units={G5: 1}) for number in range(1, 6)), a_job("free", demand=EITHER))
    reply = world.delete(f"/pools/{G5}")
    assert reply.kind == (409, "PoolInUse", "name")
    assert reply.error["message"] == (f"5 waiting jobs could run only in {G5}: job1, job2, job3 and 2 more.")
    assert "Cancel them, or force it" in reply.error["hint"]
    forced = world.event("DELETE", f"/pools/{G5}", query={"force": "true"})
    assert (forced.status, forced.body["moved"], forced.body["stranded"]) == (200, 1, 5)
    assert world.get("/jobs/job1").body["reason"]["type"] == "CanNeverFit"


def test_another_pool_that_drains_is_no_way_out(world):
    world.seed(a_job("job1", demand=EITHER))
    world.patch(f"/pools/{P5}", {"draining": True})
    assert world.delete(f"/pools/{G5}").kind == (409, "PoolInUse", "name")
    world.patch(f"/pools/{P5}", {"draining": False})
    assert world.delete(f"/pools/{G5}").body["moved"] == 1


def test_jobs_that_could_not_run_in_the_pool_are_not_counted(world):
    world.seed(a_job("large", units={G5: 5}))
    assert world.delete(f"/pools/{G5}").body["stranded"] == 0


def test_a_pool_that_jobs_hold_stays_until_it_is_drained(world):
    world.seed(a_running_job("job1"), a_running_job("job2"))
    reply = world.delete(f"/pools/{P5}")
    assert reply.kind == (409, "PoolInUse", "name")
    assert reply.error["message"] == f"The pool is in use: job1, job2 hold 2 x {P5}."
    assert "Drain it first" in reply.error["hint"]
    world.patch(f"/pools/{P5}", {"draining": True})
    assert "Wait until it is drained" in world.delete(f"/pools/{P5}").error["hint"]
    forced = world.event("DELETE", f"/pools/{P5}", query={"force": "true"})
    assert (forced.status, forced.body["running"]) == (200, ["job1", "job2"])
    assert world.get("/jobs/job1").body["jobState"] == "running"


def test_a_pool_that_a_warm_pool_is_of_stays(world):
    world.memory.transition([], warm=[WarmPool("old", {P5: 1}, "f", NOW.replace(year=2027))])
    assert world.delete(f"/pools/{P5}").error["message"] == "The pool is in use: warm pools of old hold some."


@pytest.mark.parametrize("whole", [False, True])
def test_a_pool_that_a_share_names_stays_even_when_forced(world, whole):
    vision = Share(name="vision", nominal={P5: 1}, max={G5: 2})
    world.memory.set_settings(policy=Policy(shares={"vision": vision}))
    if whole:
        reply = world.put("/pools", {"pools": [{"instanceType": P5, "cap": 2}]})
    else:
        reply = world.event("DELETE", f"/pools/{G5}", query={"force": "true"})
    assert reply.kind == (409, "PoolInUse", f"shares.vision.max.{G5}")
    assert caps(world) == {P5: 2, G5: 4}


def test_a_cap_below_what_shares_own_does_not_hide_that_they_name_the_pool(world):
    world.memory.set_settings(policy=Policy(shares={"vision": Share(name="vision", nominal={P5: 2})}))
    assert world.patch(f"/pools/{P5}", {"cap": 1}).status == 200
    assert world.delete(f"/pools/{P5}").kind == (409, "PoolInUse", f"shares.vision.nominal.{P5}")


def test_a_removal_can_name_the_version_that_was_seen(world):
    assert world.event("DELETE", f"/pools/{G5}", query={"version": "3"}).kind == (409, "VersionConflict", "version")
    assert world.event("DELETE", f"/pools/{G5}", query={"version": "0"}).status == 200


# ---------------------------------------------------------------- who waits


def test_each_pool_counts_the_waiting_jobs_that_can_run_there(world):
    world.seed(a_job("job1", units={P5: 2}), a_job("job2", units={P5: 3}), a_job("job3", demand=EITHER))
    world.memory.submit(a_job("job4", demand=BY_RESOURCE), {})
    told = ("waiting", "waitingUnits", "waitingMore")
    assert [shown(world, P5)[member] for member in told] == [3, 4, False]
    assert [shown(world, G5)[member] for member in told] == [2, 2, False]


def test_a_deep_queue_is_not_read_to_its_end(world):
    world.seed(*(a_job(f"job{number:03}", units={G5: 1}) for number in range(60)))
    world.store.calls.clear()
    g5 = shown(world, G5)
    assert (g5["waiting"], g5["waitingMore"], shown(world, P5)["waitingMore"]) == (32, True, False)
    reply = world.delete(f"/pools/{G5}")
    assert reply.error["message"].startswith("At least 32 waiting jobs could run only in")
    assert world.store.calls["list_jobs"] == 0


# ---------------------------------------------------------------- pools that the manager made


def test_a_made_pool_stays_the_managers_until_people_set_it(world):
    made = Pool("ml.g6.xlarge", 2, made_for="accelerators=1", made_at=NOW)
    world.memory.set_settings(pools=[*world.memory.settings().pools.values(), made])
    told = shown(world, made.name)
    assert (told["madeFor"], told["madeAt"]) == ("accelerators=1", "2026-11-21T12:00:00Z")
    assert "madeFor" not in told["setting"]
    all_as_they_are = [pool["setting"] for pool in world.get("/pools").body["pools"]]
    world.put("/pools", {"pools": all_as_they_are})
    world.patch(f"/pools/{made.name}", {"draining": True})
    assert world.memory.settings().pools[made.name] == replace(made, draining=True)
    world.patch(f"/pools/{made.name}", {"cap": 3})
    assert world.memory.settings().pools[made.name] == Pool(made.name, 3, draining=True)


def test_only_pools_that_the_queue_chooses_by_itself_have_a_weight(world):
    world.put("/pools/p5-spot", {"instanceType": P5, "kind": "spot", "cap": 8})
    weights = {pool["name"]: pool["weight"] for pool in world.get("/pools").body["pools"]}
    assert (weights[P5], weights["p5-spot"], 0 < weights[G5] < 1) == (1.0, 0.0, True)
