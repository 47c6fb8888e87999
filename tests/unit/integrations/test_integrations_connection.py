"""Connections of orchestrators: the queue that they name, and the options that their jobs get."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from aws_clients import aws_session
from trainmaster import ElasticOptions
from trainmaster.client.api.config import environment_address
from trainmaster.client.sdk.elastic import TAGS
from trainmaster.client.sdk.request_defaults import with_session_defaults
from trainmaster.domain.requests.options import OPTIONS
from trainmaster.integrations.connection import QueueConnection

URL = "https://a1b2c3.execute-api.eu-west-1.amazonaws.com/prod"
REQUEST = {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2}}


@pytest.fixture
def moto() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def tags_of(members: dict[str, Any], request: dict[str, Any] = REQUEST) -> dict[str, str]:
    connection = QueueConnection.parse(members)
    given = with_session_defaults(request, connection.resources, connection.elastic, connection.tags)
    return {tag["Key"]: tag["Value"] for tag in given.get("Tags", [])}


def test_options_become_the_tags_that_a_job_does_not_have() -> None:
    members = {"api_url": URL, "priority": 5, "share": "research", "max-preemptions": "3", "preemptible": False}
    own = REQUEST | {"Tags": [{"Key": "priority", "Value": "9"}, {"Key": "team", "Value": "nlp"}]}
    assert tags_of(members, own) == {
        "priority": "9",
        "team": "nlp",
        "trainmaster:share": "research",
        "trainmaster:max-preemptions": "3",
        "trainmaster:preemptible": "false",
    }


@pytest.mark.parametrize("separator", ["-", "_"])
def test_every_option_of_the_queue_can_be_given(separator: str) -> None:
    given = tags_of({name.replace("-", separator): "1" for name in ("priority", *OPTIONS)})
    assert given.keys() == {"priority", *(f"trainmaster:{name}" for name in OPTIONS)}


def test_elastic_options_of_a_job_replace_all_of_the_connection() -> None:
    members = {"max_instances": 8, "min_instances": 2}
    assert QueueConnection.parse(members).elastic == ElasticOptions(max_instances="8", min_instances="2")  # type: ignore[arg-type]
    own = REQUEST | {"Tags": [{"Key": "trainmaster:instance-values", "Value": "2+4"}]}
    assert tags_of(members, own).keys() & TAGS == {"trainmaster:instance-values"}


def test_resources_replace_the_type() -> None:
    connection = QueueConnection.parse({"resources": "accelerators=8"})
    given = with_session_defaults(REQUEST, connection.resources, connection.elastic, connection.tags)
    assert given["ResourceConfig"] == {"InstanceCount": 2}


def test_a_list_of_types_stays_and_gets_the_other_options() -> None:
    request = {"ResourceConfig": {"InstancePreferences": [{"InstanceType": "ml.p5.48xlarge"}]}}
    members = {"resources": "accelerators=8", "max-instances": 4, "share": "research"}
    assert tags_of(members, request) == {"trainmaster:share": "research"}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"share": ["a", "b"]}, "share must be a text, a number or a Boolean"),
        ({"share": None}, "share must be a text"),
        ({"elastic": {"max": 2}}, "elastic must be a text"),
        (None, "must be an object, true or false"),
        (URL, "must be an object, true or false"),
        ([], "must be an object, true or false"),
    ],
)
def test_what_cannot_be_an_option_is_refused(members: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QueueConnection.parse(members)


def test_the_address_is_that_of_the_connection() -> None:
    session = aws_session(region_name="eu-west-1")
    client = QueueConnection.parse({"api_url": URL, "api-id": "a1b2c3"}).client(session)
    assert (client.address.url, client.address.api_id, client.session) == (URL, "a1b2c3", session)


@pytest.mark.parametrize(
    ("members", "environ", "address"),
    [
        ({"stack": "mine"}, {"TRAINMASTER_API_URL": URL}, (None, None, "mine")),
        ({"api_url": URL}, {"TRAINMASTER_STACK": "theirs"}, (URL, None, None)),
        ({"api_url": URL}, {"TRAINMASTER_API_URL": "https://b/prod", "TRAINMASTER_API_ID": "b"}, (URL, None, None)),
        ({}, {"TRAINMASTER_API_URL": URL, "TRAINMASTER_API_ID": "a1b2c3"}, (URL, "a1b2c3", None)),
        ({}, {"TRAINMASTER_STACK": "theirs"}, (None, None, "theirs")),
        ({}, {"TRAINMASTER_API_URL": "", "TRAINMASTER_API_ID": "a1b2c3"}, (None, None, None)),
    ],
)
def test_an_address_of_the_connection_precedes_the_environments(
    members: dict[str, Any], environ: dict[str, str], address: tuple[str | None, ...]
) -> None:
    connection = QueueConnection.parse(members, environment_address(environ))
    assert (connection.api_url, connection.api_id, connection.stack) == address


def test_a_stack_is_read_with_the_connections_session(monkeypatch: pytest.MonkeyPatch, moto: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto)
    session = aws_session(region_name="eu-west-1", aws_access_key_id="AKID", aws_secret_access_key="secret")
    output = {"ApiUrl": {"Value": URL}}
    template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}, "Outputs": output}
    session.client("cloudformation").create_stack(StackName="mine", TemplateBody=json.dumps(template))
    assert QueueConnection.parse({"stack": "mine"}).client(session).address.url == URL
