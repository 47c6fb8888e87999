"""Secrets of requests over HTTP: what owners and others see, and that no redacted request is submitted."""

from __future__ import annotations

import json

import pytest

from api_world import ALICE, ApiWorld
from builders import NOW, ROLE, a_request, a_running_job
from trainmaster.domain.access.redaction import REDACTED
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.policy.settings import Policy, Share

HUSH = "h7Vq0zSECRETx9"
ADMIN = "arn:aws:sts::111122223333:assumed-role/platform/eve"
LEAD = "arn:aws:sts::111122223333:assumed-role/lead/joe"
BOB = "arn:aws:sts::111122223333:assumed-role/web/bob"
REQUEST = a_request(
    "job1",
    Environment={"MODE": HUSH, "WANDB_API_KEY": "k9" + HUSH},
    HyperParameters={"epochs": "3", "dataset": f"https://b.s3.amazonaws.com/k?X-Amz-Signature={HUSH}"},
)


@pytest.fixture
def world():
    world = ApiWorld(settings={"allowed_roles": (ROLE,), "admins": (ADMIN.rpartition("/")[0],)})
    shares = {"default": Share(name="default", admins=(LEAD.rpartition("/")[0],))}
    world.memory.set_settings(policy=Policy(shares=shares))
    assert world.post("/add-job", REQUEST).status == 202
    return world


def shown(world, **kwargs):
    reply = world.event("GET", "/jobs/job1", query={"why": "true"}, **kwargs)
    assert reply.status == 200
    return reply.body


@pytest.mark.parametrize("caller", [ALICE, ADMIN, LEAD])
def test_the_owner_and_admins_see_the_request_without_what_is_named_a_secret(world, caller):
    body = shown(world, caller=caller)
    assert body["redacted"] == ["Environment.WANDB_API_KEY"]
    assert body["jobDetails"] == REQUEST | {"Environment": {"MODE": HUSH, "WANDB_API_KEY": REDACTED}}


@pytest.mark.parametrize("caller", [BOB, None])
def test_others_see_no_environment_hyperparameters_or_signatures(world, caller):
    body = shown(world, caller=caller)
    assert HUSH not in json.dumps(body)
    assert body["jobDetails"]["Environment"] == {"MODE": REDACTED, "WANDB_API_KEY": REDACTED}
    assert body["jobDetails"]["ResourceConfig"] == REQUEST["ResourceConfig"]
    paths = ["Environment.MODE", "Environment.WANDB_API_KEY", "HyperParameters.dataset", "HyperParameters.epochs"]
    assert sorted(body["redacted"]) == paths


@pytest.mark.parametrize("route", ["/jobs", "/queue", "/audit", "/jobs?state=pending"])
def test_no_listing_has_a_secret(world, route):
    assert HUSH not in json.dumps(world.event("GET", route.partition("?")[0], caller=BOB).body)


def test_reasons_of_failures_have_no_secrets(world):
    reason = f"ClientError: password={HUSH}, https://h/p?sig={HUSH} denied"
    world.seed(lifecycle.fail(a_running_job("job2"), NOW, reason))
    text = json.dumps(world.get("/jobs/job2").body) + json.dumps(world.get("/jobs").body)
    assert HUSH not in text
    assert f"ClientError: password={REDACTED}" in text


@pytest.mark.parametrize("route", ["/add-job", "/plan"])
def test_a_redacted_request_is_not_submitted(world, route):
    body = shown(world)["jobDetails"] | {"TrainingJobName": "job2"}
    reply = world.post(route, body)
    assert reply.kind == (400, "InvalidRequest", "Environment.WANDB_API_KEY")
    assert "which stands for one that the API does not show" in reply.error["message"]
