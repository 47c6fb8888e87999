"""Ceilings through the API: they bound admins too, and each refusal names the field and the ceiling."""

from __future__ import annotations

import pytest

from api_world import ApiWorld
from builders import P5, ROLE, a_request
from trainmaster.domain.access.ceilings import Ceilings
from trainmaster.domain.policy.settings import Policy, Share


@pytest.fixture
def world() -> ApiWorld:
    """A deployment with ceilings, whose share vision has lower ones. Every caller is an admin."""
    ceilings = Ceilings(priority=100, instances=4, dollars_per_hour=500.0)
    made = ApiWorld(settings={"allowed_roles": (ROLE,), "ceilings": ceilings})
    vision = Share(
        name="vision",
        max_priority=10,
        allow_non_preemptible=False,
        max_job_instances=1,
        max_job_dollars_per_hour=1_000,
    )
    made.memory.set_settings(policy=Policy(shares={"vision": vision}), version=made.memory.settings().version)
    return made


@pytest.mark.parametrize(
    ("options", "priority", "count", "field"),
    [
        ({}, 100, 1, None),
        ({}, 101, 1, "Tags[0].Value"),
        ({"preemptible": "false"}, 1, 1, None),
        ({"share": "vision"}, 10, 1, None),
        ({"share": "vision"}, 11, 1, "Tags[1].Value"),
        ({"share": "vision", "preemptible": "false"}, 1, 1, "Tags[1].Value"),
        ({"share": "vision"}, 1, 2, "ResourceConfig"),
    ],
)
def test_a_submission(world, options, priority, count, field):
    request = a_request("job1", options=options, priority=priority, count=count)
    planned, reply = world.post("/plan", request), world.post("/add-job", request)
    if field is None:
        assert (planned.status, reply.status) == (200, 202)
    else:
        assert planned.kind == reply.kind == (400, "InvalidRequest", field)
        assert world.memory.find("job1") is None


@pytest.mark.parametrize(("share", "most"), [("default", 100), ("vision", 10)])
def test_a_changed_priority(world, share, most):
    world.submit("job1", options={"share": share})
    assert world.patch("/jobs/job1", {"priority": most}).status == 200
    refused = world.patch("/jobs/job1", {"priority": most + 1})
    assert refused.kind == (400, "InvalidRequest", "priority")
    assert f", {most} (" in refused.error["message"]
    assert world.memory.find("job1").priority == most


def test_a_priority_above_a_ceiling_that_came_later_can_be_lowered(world):
    world.submit("job1", options={"share": "vision"}, priority=10)
    vision = Share(name="vision", max_priority=1)
    world.memory.set_settings(policy=Policy(shares={"vision": vision}), version=world.memory.settings().version)
    assert world.patch("/jobs/job1", {"priority": 5}).status == 200
    assert world.patch("/jobs/job1", {"priority": 6}).status == 400


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PUT", "/pools", {"pools": [{"instanceType": P5, "cap": 5}]}, "cap"),
        ("PUT", f"/pools/{P5}", {"cap": 5}, "cap"),
        ("PATCH", f"/pools/{P5}", {"cap": 5}, "cap"),
        ("PUT", "/pools/big", {"instanceType": P5, "cap": 3}, "cap"),
        (
            "PUT",
            "/settings",
            {"expansion": {"enabled": True, "maxInstances": 3, "maxPerType": 1}},
            "expansion.maxInstances",
        ),
        (
            "PUT",
            "/settings",
            {"expansion": {"enabled": True, "maxInstances": 1, "maxPerType": 1}},
            "expansion.dollarsPerHour",
        ),
    ],
)
def test_pools_and_expansion(world, method, path, body, field):
    before = world.memory.settings()
    assert world.event(method, path, body).kind == (400, "InvalidRequest", field)
    assert world.memory.settings() == before


def test_pools_and_expansion_within_the_ceilings(world):
    assert world.patch(f"/pools/{P5}", {"cap": 3}).status == 200
    bounded = {"enabled": True, "maxInstances": 1, "maxPerType": 1, "dollarsPerHour": 10}
    assert world.put("/settings", {"expansion": bounded}).status == 200
