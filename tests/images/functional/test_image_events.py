"""The files of `images/events/`, replayed through the API; they are also the docs' examples."""

from __future__ import annotations

import json
from pathlib import Path

from api_world import ALICE, CONTEXT, read
from image_api_world import ImageApiWorld
from trainmaster.handlers.api.app import answer
from trainmaster.handlers.api.operations import operations_of
from trainmaster.images.handlers.api import ImageApi

EVENTS = Path(__file__).parents[3] / "images" / "events"
ADD = json.loads((EVENTS / "api-add-image-job.json").read_text())


def test_the_event_that_adds_an_image_job_is_answered():
    world = ImageApiWorld()
    reply = read(answer(lambda: world.app, ADD, CONTEXT))
    assert reply.status == 202, reply.body
    assert "error" not in reply.body


def test_there_is_one_api_event_for_each_route_of_image_jobs():
    events = [json.loads(path.read_text()) for path in EVENTS.glob("api-*.json")]
    routes = [(event["httpMethod"], event["resource"]) for event in events]
    assert routes == [(each.method, each.rule) for _, each in operations_of(ImageApi).values()]


def test_the_event_is_one_of_an_iam_signed_request():
    identity = ADD["requestContext"]["identity"]
    assert identity["userArn"] == ALICE
    assert {"accessKey", "accountId", "caller", "sourceIp", "user", "userAgent", "vpceId"} <= identity.keys()
    assert ADD["requestContext"]["path"] == f"/prod{ADD['path']}"
