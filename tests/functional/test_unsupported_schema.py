"""A table that a newer release wrote: the API says so, and the manager changes and starts nothing."""

from __future__ import annotations

import json

import pytest
from moto import mock_aws

from trainmaster.adapters.dynamodb.control.schema import SCHEMA
from trainmaster.bootstrap import Application, Settings
from trainmaster.handlers.api.app import answer, build_app
from world import TABLE, Context, World, make_table


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        import boto3

        client = boto3.client("dynamodb")
        make_table(client)
        yield World(client)
        client.close()


def make_newer(world):
    values = {":newer": {"N": str(SCHEMA.version + 1)}}
    key = {"pk": {"S": "STATE"}, "sk": {"S": "control"}}
    world.dynamodb.update_item(
        TableName=TABLE, Key=key, UpdateExpression="SET #s = :newer",
        ExpressionAttributeNames={"#s": "schema"}, ExpressionAttributeValues=values,
    )  # fmt: skip


def rows(world):
    found = world.dynamodb.scan(TableName=TABLE)["Items"]
    return sorted(found, key=lambda row: (row["pk"]["S"], row["sk"]["S"]))


def test_the_manager_of_an_older_release_stops_without_harm(world):
    world.submit("first", training_seconds=100)
    world.run(120)
    world.submit("second", training_seconds=100)
    make_newer(world)
    before = rows(world)
    for _ in range(5):
        world.simulator.advance(60)
        world.queue.send('{"kind": "tick"}')
        world.invoke()
    assert rows(world) == before
    assert world.opened == ["first"]


def test_the_api_of_an_older_release_answers_503_with_the_reason(world):
    make_newer(world)
    application = Application(Settings(queue=TABLE, table=TABLE))
    event = {
        "httpMethod": "GET", "path": "/jobs", "headers": {}, "body": None, "queryStringParameters": None,
        "multiValueQueryStringParameters": None, "requestContext": {"requestId": "r1", "path": "/jobs"},
    }  # fmt: skip
    made = answer(lambda: build_app(application), event, Context())
    assert made["statusCode"] == 503
    error = json.loads(made["body"])["error"]
    assert error["type"] == "UnsupportedSchema"
    assert f"has schema {SCHEMA.version + 1}" in error["message"]
