"""Submission of image jobs under every role and ceiling, on the route that takes them and on plans."""

from __future__ import annotations

import pytest

from builders import ROLE
from image_api_world import ImageApiWorld
from image_world import an_image_request
from trainmaster.domain.access.ceilings import Ceilings
from trainmaster.domain.policy.settings import Policy, Share

ACCOUNT = "111122223333"
ACTORS = ("stranger", "viewer", "submitter", "resizer", "lead", "other-lead", "admin", "unknown")
ALLOWED = {"submitter", "lead", "admin"}


def a_world() -> ImageApiWorld:
    """A deployment whose share vision is for some, with a ceiling on priorities."""
    role = f"arn:aws:iam::{ACCOUNT}:role/"
    world = ImageApiWorld(
        settings={"allowed_roles": (ROLE,), "admins": (f"{role}admin",), "ceilings": Ceilings(priority=100)}
    )
    shares = {
        "vision": Share(
            name="vision",
            max_priority=10,
            admins=(f"{role}lead",),
            submitters=(f"{role}submitter",),
            resizers=(f"{role}resizer",),
        ),
        "speech": Share(name="speech", admins=(f"{role}other-lead",)),
    }
    world.memory.set_settings(policy=Policy(shares=shares), version=world.memory.settings().version)
    return world


def caller(actor: str) -> str | None:
    return None if actor == "unknown" else f"arn:aws:sts::{ACCOUNT}:assumed-role/{actor}/ann"


def of_share(share: str, priority: int = 0) -> dict[str, object]:
    return an_image_request(trainmaster={"share": share, "priority": priority})


@pytest.mark.parametrize("actor", ACTORS)
def test_only_those_of_a_share_submit_and_plan_its_image_jobs(actor):
    world = a_world()
    submitted = world.post("/image-jobs", of_share("vision"), caller=caller(actor))
    planned = world.post("/plan", of_share("vision") | {"imageSize": [2048, 2048]}, caller=caller(actor))
    if actor in ALLOWED:
        assert submitted.status == 202
        assert planned.status != 403
    else:
        assert submitted.kind == planned.kind == (403, "ShareNotAllowed", "trainmaster.share")
        assert world.image_queue.sent == []


@pytest.mark.parametrize("actor", ACTORS)
def test_a_share_without_submitters_is_for_all(actor):
    assert a_world().post("/image-jobs", of_share("default"), caller=caller(actor)).status == 202


@pytest.mark.parametrize(
    ("share", "priority", "status"), [("vision", 10, 202), ("vision", 11, 400), ("default", 101, 400)]
)
def test_priorities_have_the_ceilings_of_training_jobs(share, priority, status):
    reply = a_world().post("/image-jobs", of_share(share, priority), caller=caller("admin"))
    assert reply.status == status
    if status == 400:
        assert reply.kind == (400, "InvalidRequest", "trainmaster.priority")
