"""POST /plan says which pools would be made for a request, and what they cost, whether or not that is on."""

from __future__ import annotations

import pytest

from api_world import ApiWorld
from builders import NOW, P5, a_pool, a_request, pools_of
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.units import Pool

G5, G6 = "ml.g5.2xlarge", "ml.g6.2xlarge"
ON = {"expansion": {"enabled": True, "types": [G5], "maxInstances": 4, "maxPerType": 4}}
OFF = {"expansion": ON["expansion"] | {"enabled": False}}


@pytest.fixture
def world():
    return ApiWorld(pools=pools_of(a_pool(P5, 0)))


def asking(name: str = "new", instances: int = 2, asked: str = "accelerators=1") -> dict[str, object]:
    options = {"resources": asked, "instances": str(instances)}
    return a_request(name, options=options) | {"ResourceConfig": {"VolumeSizeInGB": 30}}


def created(instances: int, added: int) -> list[dict[str, object]]:
    price = round(added * SHIPPED[G5].price, 4)
    return [{"pool": G5, "instanceType": G5, "instances": instances, "dollarsPerHour": price}]


def test_with_expansion_on_the_job_would_start_in_the_pool_that_is_made_for_it(world):
    world.put("/settings", ON)
    plan = world.post("/plan", asking()).body
    assert (plan["decision"], plan["expansionEnabled"]) == ("start", True)
    assert plan["wouldCreate"] == created(2, added=2)
    assert (plan["wouldStart"], plan["wouldTake"]) == (["new"], {G5: 2})
    assert plan["estimatedStart"] == "2026-11-21T12:00:00Z"
    assert world.memory.settings().pools.keys() == {P5}, "nothing is stored"


def test_with_expansion_off_it_would_wait_and_is_told_what_would_be_made(world):
    world.put("/settings", OFF)
    plan = world.post("/plan", asking()).body
    assert (plan["decision"], plan["expansionEnabled"], plan["reason"]["type"]) == ("wait", False, "Infeasible")
    assert (plan["wouldCreate"], plan["wouldTake"]) == (created(2, added=2), {})


def test_demands_beyond_the_guardrails_create_no_pool_and_report_the_guardrail(world):
    world.put("/settings", ON)
    plan = world.post("/plan", asking(instances=5)).body
    assert plan["wouldCreate"] == []
    assert f"5 x {G5} would exceed the maximum instances of a type, 4" in plan["reason"]["message"]


def test_guardrails_are_reported_even_while_expansion_is_off(world):
    world.put("/settings", OFF)
    plan = world.post("/plan", asking(instances=5)).body
    assert f"5 x {G5} would exceed" in plan["wouldCreateNone"]
    assert "no pool is made" not in plan["reason"]["message"]
    assert world.post("/plan", asking()).body["wouldCreateNone"] is None


def test_a_job_that_fits_creates_nothing(world):
    world.put("/settings", ON)
    world.put("/pools", {"pools": [{"instanceType": G5, "cap": 2}]})
    plan = world.post("/plan", asking()).body
    assert (plan["decision"], plan["wouldCreate"]) == ("start", [])


def test_a_job_that_its_share_could_not_start_there_creates_nothing_and_is_told_why(world):
    shares = {"shares": {"default": {"budget": {"dollars": 0}}}}
    world.put("/settings", ON | shares)
    plan = world.post("/plan", asking()).body
    assert (plan["decision"], plan["wouldCreate"]) == ("wait", [])
    assert (
        "the queue creates no pool for it: share default has spent 0.0 of its 0.0 dollars" in plan["reason"]["message"]
    )
    world.put("/settings", OFF | shares)
    assert "share default has spent" in world.post("/plan", asking()).body["wouldCreateNone"]


def test_changes_of_managed_pools_count_in_the_cost_estimate(world):
    made = Pool(G6, 4, type_=G6, made_for="1 x (vcpus=4)", made_at=NOW, price=0.5)
    world.memory.set_settings(pools=[a_pool(P5, 4), made])
    world.put("/settings", ON)
    typed = a_request("new") | {"ResourceConfig": {"InstanceType": G5, "InstanceCount": 2, "VolumeSizeInGB": 30}}
    plan = world.post("/plan", typed).body
    changes = {each["change"]: each for each in plan["wouldChange"]}
    assert changes["expand"]["after"] == 2
    assert (changes["shrink"]["pool"], changes["shrink"]["after"], changes["shrink"]["jobs"]) == (G6, 0, ["new"])
    assert changes["shrink"]["dollarsPerHour"] == -2.0
    assert plan["madeDollarsPerHour"] == {"now": 2.0, "then": round(2 * SHIPPED[G5].price, 4)}
    world.clock.sleep(3600)
    retired = world.post("/plan", a_request("other")).body
    assert [(each["change"], each["after"]) for each in retired["wouldChange"]] == [("retire", 0)]
    assert retired["madeDollarsPerHour"] == {"now": 2.0, "then": 0.0}


def test_of_a_job_that_is_in_the_queue_already_no_cost_is_foreseen(world):
    world.put("/settings", ON)
    world.post("/add-job", asking())
    plan = world.post("/plan", asking()).body
    assert (plan["madeDollarsPerHour"], plan["wouldChange"]) == (None, [])
