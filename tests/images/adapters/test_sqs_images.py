"""Messages to the queues of image jobs: requests, refused requests, regions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cfnlint.decode import decode
from moto import mock_aws

from aws_clients import aws_client
from trainmaster.adapters.sqs import MAX_MESSAGE_SIZE
from trainmaster.domain.errors import Throttled, TooLarge, Unavailable
from trainmaster.images.adapters.sqs_regions import SqsRegions
from trainmaster.images.adapters.sqs_requests import MAX_REQUEST_SIZE, SqsImages
from trainmaster.images.domain.work import MERGE

ARN = "arn:aws:iam::111122223333:user/ada"


@pytest.fixture
def sqs():
    with mock_aws():
        yield aws_client("sqs")


@pytest.fixture
def queues(sqs):
    return [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("images", "dead")]


@pytest.fixture
def images(sqs, queues):
    return SqsImages(sqs, *queues)


def received(sqs, url):
    found = []
    while messages := sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0, MessageAttributeNames=["All"]
    ).get("Messages"):
        found += messages
    return found


def told(message):
    return {name: each["StringValue"] for name, each in message.get("MessageAttributes", {}).items()}


def test_a_request_is_sent_as_it_is_with_its_caller(sqs, queues, images):
    images.send('{"jobId": "a"}', caller=ARN)
    images.send('{"jobId": "b"}')
    first, second = received(sqs, queues[0])
    assert (first["Body"], told(first)) == ('{"jobId": "a"}', {"Caller": ARN})
    assert (second["Body"], told(second)) == ('{"jobId": "b"}', {})


def test_a_request_that_the_queue_cannot_take_is_too_large(sqs, queues, images):
    with pytest.raises(TooLarge, match=f"its queue accepts {MAX_REQUEST_SIZE}"):
        images.send("x" * (MAX_REQUEST_SIZE - 10), caller=ARN)
    assert received(sqs, queues[0]) == []


def test_the_templates_queues_take_as_much_as_is_sent_to_them():
    template, _ = decode(str(Path(__file__).parents[3] / "images" / "template.yaml"))
    queues = template["Resources"]["ImageQueue"], template["Resources"]["ImageDeadLetterQueue"]
    sizes = [queue["Properties"]["MaximumMessageSize"] for queue in queues]
    assert sizes == [MAX_REQUEST_SIZE, MAX_MESSAGE_SIZE]


def test_the_largest_request_is_set_aside_with_its_whole_reason(sqs, queues, images):
    """New queues of SQS take 1 MiB: what such a one had taken lost its reason here."""
    images.send("x" * MAX_REQUEST_SIZE)
    (sent,) = received(sqs, queues[0])
    images.set_aside(sent["Body"], "w" * 1024, attributes={"Field": "f" * 1024, "Attempts": "3"})
    (message,) = received(sqs, queues[1])
    assert {name: len(text) for name, text in told(message).items()} == {"Reason": 1024, "Field": 1024, "Attempts": 1}


def test_half_a_character_breaks_nothing_where_it_is_sent(images):
    with pytest.raises(TooLarge):
        images.send("\ud800" * MAX_REQUEST_SIZE * 2)


def test_dead_letters_are_unchanged_and_carry_their_reason(sqs, queues, images):
    """W10: what is in the dead-letter queue can be mended and sent again, and says why it is there."""
    body = '{"jobId":\t"a" }'
    images.set_aside(body, "no such image\x00", attributes={"Field": "imageUrls[0]"})
    (message,) = received(sqs, queues[1])
    assert message["Body"] == body
    assert told(message) == {"Reason": "no such image?", "Field": "imageUrls[0]"}


def test_characters_that_sqs_rejects_are_escaped_in_dead_letters(sqs, queues, images):
    request = {"jobId": "a", "note": "\uffff \ud800 gr\u00fc\u00dfe \U0001f6a2"}
    images.set_aside(json.dumps(request, ensure_ascii=False), "no")
    (message,) = received(sqs, queues[1])
    assert json.loads(message["Body"]) == request
    assert "gr\u00fc\u00dfe \U0001f6a2" in message["Body"]
    message["Body"].encode()


def test_a_large_request_is_set_aside_with_as_much_of_the_reason_as_there_is_room_for(sqs, queues, images):
    images.set_aside("x" * (MAX_MESSAGE_SIZE - 20), "a long reason")
    images.set_aside("x" * MAX_MESSAGE_SIZE, "a long reason")
    first, second = received(sqs, queues[1])
    assert told(first) == {"Reason": "a long r"}
    assert told(second) == {}


class Batches:
    """An SQS client whose answers are played: for each call, what it did not take, by id."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sent = []

    def send_message_batch(self, QueueUrl, Entries):  # noqa: N803 - boto3's names
        self.sent.append([entry["Id"] for entry in Entries])
        failed = self.answers.pop(0) if self.answers else {}
        return {"Successful": [], "Failed": [{"Id": key, "Code": code} for key, code in failed.items()]}


def test_regions_are_dispatched_ten_at_a_time(sqs, queues):
    SqsRegions(sqs, queues[0], lambda seconds: None).dispatch("scene", 2, [*range(23), MERGE])
    bodies = [json.loads(message["Body"]) for message in received(sqs, queues[0])]
    assert sorted(body["region"] for body in bodies) == [MERGE, *range(23)]
    assert {(body["job"], body["attempt"]) for body in bodies} == {("scene", 2)}


def test_dispatching_nothing_calls_no_service():
    client = Batches()
    SqsRegions(client, "url", lambda seconds: None).dispatch("scene", 1, [])
    assert client.sent == []


def test_a_delay_is_at_most_what_sqs_takes(sqs, queues):
    SqsRegions(sqs, queues[0], lambda seconds: None).dispatch("scene", 1, [0], after=5_000)
    assert received(sqs, queues[0]) == []
    waiting = sqs.get_queue_attributes(QueueUrl=queues[0], AttributeNames=["ApproximateNumberOfMessagesDelayed"])
    assert waiting["Attributes"]["ApproximateNumberOfMessagesDelayed"] == "1"


def test_only_what_was_not_taken_is_sent_again():
    client, pauses = Batches({"r1": "InternalError", "r11": "x"}, {"r1": "InternalError"}), []
    SqsRegions(client, "url", pauses.append).dispatch("scene", 1, range(3))
    assert client.sent == [["r0", "r1", "r2"], ["r1"], ["r1"]]
    assert pauses == [0.2, 0.4]


@pytest.mark.parametrize(("code", "error"), [("InternalError", Unavailable), ("RequestThrottled", Throttled)])
def test_messages_that_sqs_never_accepts_are_reported(code, error):
    client = Batches(*[{"r0": code}] * 3)
    with pytest.raises(error, match="1 regions"):
        SqsRegions(client, "url", lambda seconds: None).dispatch("scene", 1, [0, 1])
