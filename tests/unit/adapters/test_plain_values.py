"""Requests and rows of DynamoDB, taken as they are: the same as botocore's, of every type and operation."""

from __future__ import annotations

import json

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws

from trainmaster.adapters.dynamodb.encoding.plain_values import take_values_as_they_are

NAME = "table"
ROW = {
    "pk": {"S": "a"},
    "sk": {"S": "ö"},
    "text": {"S": ""},
    "number": {"N": "12.50"},
    "bytes": {"B": b"\x00\xff"},
    "set": {"BS": [b"\x01", b"\x02"]},
    "names": {"SS": ["x"]},
    "flag": {"BOOL": False},
    "nothing": {"NULL": True},
    "list": {"L": [{"B": b"\x03"}, {"M": {"inner": {"B": b"\x04"}}}]},
}
KEY = {"pk": ROW["pk"], "sk": ROW["sk"]}


def client():
    return boto3.session.Session().client(
        "dynamodb",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(parameter_validation=False),
    )


@pytest.fixture
def clients():
    """A client as botocore makes it, and one that takes rows as they are."""
    with mock_aws():
        plain, quick = client(), take_values_as_they_are(client())
        plain.create_table(
            TableName=NAME,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )
        plain.put_item(TableName=NAME, Item=ROW)
        plain.put_item(TableName=NAME, Item={**KEY, "sk": {"S": "z"}})
        yield plain, quick
        plain.close()
        quick.close()


READS = {
    "get": lambda client: client.get_item(TableName=NAME, Key=KEY, ReturnConsumedCapacity="TOTAL"),
    "get nothing": lambda client: client.get_item(TableName=NAME, Key={**KEY, "pk": {"S": "b"}}),
    "batch": lambda client: client.batch_get_item(RequestItems={NAME: {"Keys": [KEY]}}),
    "query": lambda client: client.query(
        TableName=NAME, KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": ROW["pk"]}, Limit=1
    ),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_answers_are_those_of_botocore(clients, read):
    plain, quick = (read(each) for each in clients)
    for answer in (plain, quick):
        del answer["ResponseMetadata"]
    assert quick == plain


def test_rows_have_the_bytes_that_were_written(clients):
    _, quick = clients
    assert READS["get"](quick)["Item"] == ROW


ROW_OF = {"TableName": NAME, "Key": KEY}
VALUES = {"ExpressionAttributeNames": {"#text": "text"}, "ExpressionAttributeValues": {":text": {"B": b"\x00"}}}
CALLS = {
    "batch_get_item": {"RequestItems": {NAME: {"Keys": [KEY], "ConsistentRead": True}}},
    "delete_item": {**ROW_OF, "ConditionExpression": "attribute_exists(pk)"},
    "get_item": {**ROW_OF, "ConsistentRead": False},
    "put_item": {"TableName": NAME, "Item": {**ROW, "other": {"S": "\ud800"}}},
    "query": {"TableName": NAME, "Limit": 3, "ScanIndexForward": False, **VALUES},
    "transact_write_items": {
        "TransactItems": [
            {"Put": {"TableName": NAME, "Item": ROW}},
            {"Update": {**ROW_OF, "UpdateExpression": "SET #text = :text", **VALUES}},
            {"Delete": ROW_OF},
        ],
        "ClientRequestToken": "token",
    },
    "update_item": {**ROW_OF, "UpdateExpression": "SET #text = :text", **VALUES, "ReturnValues": "UPDATED_NEW"},
}


@pytest.mark.parametrize("operation", CALLS)
def test_requests_are_those_of_botocore(operation):
    sent = []

    def keep(request, **_):
        sent.append((request.url, request.headers["X-Amz-Target"], json.loads(request.body)))
        answer = AWSResponse(request.url, 200, {}, None)
        answer._content = b"{}"
        return answer

    for each in (client(), take_values_as_they_are(client())):
        each.meta.events.register("before-send.dynamodb", keep)
        getattr(each, operation)(**CALLS[operation])
    assert sent[0] == sent[1]


def test_errors_are_raised_as_before(clients):
    _, quick = clients
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        quick.get_item(TableName="other", Key=KEY)


def test_an_answer_that_is_no_json_is_left_to_botocore():
    def garbage(request, **_):
        answer = AWSResponse(request.url, 200, {}, None)
        answer._content = b"<html>"
        return answer

    answers = []
    for each in (client(), take_values_as_they_are(client())):
        each.meta.events.register("before-send.dynamodb.GetItem", garbage)
        answers.append(each.get_item(TableName=NAME, Key=KEY))
    assert answers[0] == answers[1]
