"""Pools of endpoints over HTTP: shown while image jobs need them, and never to be set, drained or removed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import G5, NOW, P5, a_pool, at, pools_of
from image_api_world import ImageApiWorld
from image_builders import a_running_image, an_endpoint, an_image_job
from image_stores import MemoryImageStore
from trainmaster.cli.queue.pools_table import load_notes, pools_table
from trainmaster.images.domain.capacity import cap_of
from trainmaster.images.domain.endpoint import Endpoint, Limits, Others, Pressure, Variant, pool_name
from trainmaster.images.domain.endpoint_set import caps_of

SHIPS = pool_name("ships", "blue")


@pytest.fixture
def world():
    world = ImageApiWorld(pools=pools_of(a_pool(P5, 2), a_pool(G5, 4)))
    world.memory.remember(an_endpoint(takes=20), None)
    return world


def names(world):
    return [pool["name"] for pool in world.get("/pools").body["pools"]]


def test_a_pool_of_an_endpoint_is_shown_as_long_as_image_jobs_need_it(world):
    assert names(world) == [G5, P5]
    world.memory.submit(an_image_job("image1", 8), {"jobId": "image1"})
    running = a_running_image("image2", 12)
    waiting = an_image_job("image2", 12)
    world.memory.submit(waiting, {"jobId": "image2"})
    assert world.memory.transition([(waiting, running)])
    shown = next(pool for pool in world.get("/pools").body["pools"] if pool["name"] == SHIPS)
    told = ("kind", "instanceType", "cap", "used", "free", "waiting", "waitingUnits", "weight", "setting")
    assert {each: shown[each] for each in told} == {
        "kind": "service",
        "instanceType": "",
        "cap": 20,
        "used": 12,
        "free": 8,
        "waiting": 1,
        "waitingUnits": 8,
        "weight": 0.0,
        "setting": {},
    }
    assert SHIPS in pools_table(world.get("/pools").body["pools"], NOW)


class StoreOfNow(MemoryImageStore):
    def __init__(self, **settings):
        super().__init__(caps=caps_of(Limits(), lambda: NOW), **settings)


class WorldOfNow(ImageApiWorld):
    stores = StoreOfNow


def described(*variants, **fields):
    return Endpoint(key="ships", variants=variants, described_at=NOW, **fields)


def loaded(**fields):
    """A world with an endpoint of four instances that take five requests each, and one waiting job."""
    world = WorldOfNow(pools=pools_of(a_pool(P5, 2)))
    blue = Variant(name="blue", instances=4)
    world.memory.remember(described(blue, instance_concurrency=5, **fields), None)
    world.memory.submit(an_image_job("image1", 8), {"jobId": "image1"})
    return world


def of_ships(world):
    return next(pool for pool in world.get("/pools").body["pools"] if pool["name"] == SHIPS)


def test_the_load_of_an_endpoint_is_shown_with_its_cap():
    pressure, others = Pressure(factor=0.4, since=at(-60)), Others(requests=3, seen_at=at(-30))
    world = loaded(target=0.8, pressure={"blue": pressure}, others={"blue": others})
    shown = of_ships(world)
    assert shown["load"] == {
        "capacity": 20,
        "target": 0.8,
        "pressure": 0.5,
        "throttledAt": "2026-11-21T11:59:00Z",
        "external": 3,
        "externalAt": "2026-11-21T11:59:30Z",
        "windowSeconds": 180,
    }
    assert shown["cap"] == 20 * 0.8 * 0.5 - 3
    (note,) = load_notes([shown], NOW)
    assert note.startswith(f"{SHIPS}: takes 20 requests at once; jobs may make 5: the target is 80%, throttling at ")
    assert note.endswith(" lowered it to 50%, other callers make 3.")
    table = pools_table([shown, *world.get("/pools").body["pools"]], NOW, wide=True)
    assert all(heading in table for heading in ("Capacity", "Target", "Pressure", "Other Callers"))


def test_an_endpoint_that_jobs_may_use_whole_has_no_note():
    old = Others(requests=3, seen_at=at(-3_600))
    world = loaded(pressure={"blue": Pressure(factor=0.5, since=at(-3_600))}, others={"blue": old})
    shown = of_ships(world)
    assert (shown["load"]["pressure"], shown["load"]["throttledAt"]) == (1.0, None)
    assert (shown["load"]["external"], shown["load"]["externalAt"]) == (0, None)
    assert load_notes([shown], NOW) == []


def test_instances_and_endpoints_whose_capacity_is_not_checked_have_no_load():
    pools = loaded().get("/pools").body["pools"]
    assert [pool["load"] is None for pool in pools if pool["name"] == P5] == [True]
    assert "Pressure" not in pools_table([pool for pool in pools if pool["name"] == P5], NOW, wide=True)
    endpoint = described(Variant(name="blue", instances=4))
    assert cap_of(endpoint, "blue", Limits(throttling=False), NOW).load is None


@pytest.mark.parametrize(
    ("variant", "watch", "window"),
    [
        (Variant(name="blue", instances=4), True, timedelta(minutes=3)),
        (Variant(name="blue", instances=4), False, None),
        (Variant(name="blue", max_concurrency=9), True, None),
    ],
    ids=["instances", "not watched", "serverless"],
)
def test_other_callers_are_measured_at_instances_only(variant, watch, window):
    load = cap_of(described(variant), "blue", Limits(watch_others=watch), NOW).load
    assert load is not None
    assert load.window == window


def test_a_larger_image_waits_for_its_whole_endpoint(world):
    world.memory.submit(an_image_job("image1", 400), {"jobId": "image1"})
    shown = next(pool for pool in world.get("/pools").body["pools"] if pool["name"] == SHIPS)
    assert (shown["waiting"], shown["waitingUnits"]) == (1, 20)


@pytest.mark.parametrize(
    ("pool", "field"),
    [
        ({"name": SHIPS, "instanceType": P5, "cap": 9}, "pools[0].name"),
        ({"name": "ships", "instanceType": P5, "kind": "service", "cap": 9}, "pools[0].kind"),
    ],
)
def test_pools_of_endpoints_cannot_be_set(world, pool, field):
    reply = world.put("/pools", {"pools": [pool]})
    assert (reply.status, reply.body["error"]["field"]) == (400, field)
    assert "cannot be set" in reply.body["error"]["message"]
    assert names(world) == [G5, P5]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_pools_of_endpoints_cannot_be_created_changed_drained_or_removed(world, method):
    world.memory.submit(an_image_job("image1"), {"jobId": "image1"})
    body = {"PUT": {"cap": 9, "instanceType": P5}, "PATCH": {"draining": True}, "DELETE": None}[method]
    path = f"/pools/{SHIPS.replace('/', '%2F')}"
    reply = world.event(method, path, body)
    assert (reply.status, reply.body["error"]["field"]) == (400, "name")
    assert "cannot be set" in reply.body["error"]["message"]
    assert names(world) == [SHIPS, G5, P5]


def test_setting_the_others_leaves_it_alone(world):
    world.memory.submit(an_image_job("image1"), {"jobId": "image1"})
    settings = [pool["setting"] for pool in world.get("/pools").body["pools"] if pool["setting"]]
    assert world.put("/pools", {"pools": settings}).status == 200
    assert names(world) == [SHIPS, G5, P5]
    assert world.memory.settings().pools.keys() == {G5, P5}


def test_a_share_may_name_an_endpoint_that_no_job_needs_yet(world):
    team = {"nominal": {SHIPS: 8}, "max": {SHIPS: 12, "endpoint/https://models.example/invoke": 2}}
    reply = world.put("/settings", {"shares": {"team": team}})
    assert reply.status == 200
    assert {name: reply.body["shares"]["team"][name] for name in team} == team
    # Pools that people set may still come and go.
    assert world.delete(f"/pools/{G5}").status == 200


@pytest.mark.parametrize("name", ["endpoint/", "endpoint/ships", "endpoint//blue", f"endpoint/{'s' * 700}/blue"])
def test_a_share_names_a_variant_of_an_endpoint_or_a_url(world, name):
    reply = world.put("/settings", {"shares": {"team": {"nominal": {name: 8}}}})
    assert reply.kind == (400, "InvalidRequest", f"shares.team.nominal.{name}")


def test_an_endpoint_is_nothing_to_prefer(world):
    assert world.put("/settings", {"shares": {"team": {"prefers": [SHIPS]}}}).kind[2] == "shares.team.prefers[0]"
