"""Messages to the wake queue and to the dead-letter queue."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws

from aws_clients import impatient_client, scripted
from trainmaster.adapters.sqs import MAX_MESSAGE_SIZE, SqsPublisher
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable

WAKE = "https://sqs.us-east-1.amazonaws.com/111122223333/wake.fifo"
DEAD = "https://sqs.us-east-1.amazonaws.com/111122223333/dead.fifo"
SENT = {"MessageId": "1", "MD5OfMessageBody": "x"}


class Recorder:
    """An SQS client that remembers what it was asked to send."""

    def __init__(self):
        self.sent = []

    def send_message(self, **message):
        self.sent.append(message)


@pytest.fixture
def script():
    with scripted("sqs") as script:
        yield script


@pytest.fixture
def fifo():
    """Two FIFO queues that deduplicate."""
    with mock_aws():
        client = impatient_client("sqs")
        attributes = {"FifoQueue": "true"}
        urls = [
            client.create_queue(QueueName=f"{name}.fifo", Attributes=attributes)["QueueUrl"]
            for name in ("wake", "dead")
        ]
        yield client, *urls


def received(client, url):
    answer = client.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
    )
    return answer.get("Messages", [])


def test_a_wake_names_the_pass_that_it_follows(script):
    script.add_response(
        "send_message",
        SENT,
        {
            "QueueUrl": WAKE,
            "MessageBody": '{"kind":"wake","follows":7}',
            "MessageGroupId": "manager",
            "MessageDeduplicationId": "wake-7",
        },
    )
    SqsPublisher(script.client, WAKE, DEAD).wake(7)
    script.assert_no_pending_responses()


def test_a_burst_of_wakes_is_one_message_and_a_later_pass_is_another(fifo):
    client, wake, dead = fifo
    publisher = SqsPublisher(client, wake, dead)
    for follows in (7, 7, 8, 7, 8):
        publisher.wake(follows)
    bodies = [json.loads(message["Body"]) for message in received(client, wake)]
    assert bodies == [{"kind": "wake", "follows": 7}, {"kind": "wake", "follows": 8}]


def test_a_message_is_set_aside_as_it_came_with_the_reason(fifo):
    client, wake, dead = fifo
    text = '{"odd" : "größe\\n"}\t'
    SqsPublisher(client, wake, dead).set_aside(text, "detail is missing")
    (message,) = received(client, dead)
    assert message["Body"] == text
    assert message["MessageAttributes"]["reason"]["StringValue"] == "detail is missing"
    assert message["Attributes"]["MessageGroupId"] == "manager"
    assert message["Attributes"]["MessageDeduplicationId"] == hashlib.sha256(text.encode()).hexdigest()


def test_the_same_message_is_set_aside_once_and_another_on_its_own(fifo):
    client, wake, dead = fifo
    publisher = SqsPublisher(client, wake, dead)
    for text in ("a", "b", "a"):
        publisher.set_aside(text, "odd")
    assert [message["Body"] for message in received(client, dead)] == ["a", "b"]


TAKEN = re.compile("[\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


@settings(deadline=None)
@given(
    st.text(st.characters()) | st.text(max_size=3).map(lambda text: text * 2000),
    st.sampled_from([1, 1000, MAX_MESSAGE_SIZE - 300, MAX_MESSAGE_SIZE - 12, MAX_MESSAGE_SIZE]),
)
def test_any_reason_is_cut_to_what_sqs_takes(reason, size):
    recorder = Recorder()
    SqsPublisher(recorder, WAKE, DEAD).set_aside("x" * size, reason)
    (message,) = recorder.sent
    assert message["MessageBody"] == "x" * size
    attributes = message["MessageAttributes"]
    total = size
    for name, attribute in attributes.items():
        assert attribute["StringValue"]
        assert len(attribute["StringValue"].encode()) <= 1024
        assert TAKEN.fullmatch(attribute["StringValue"])
        total += len(name) + len(attribute["DataType"]) + len(attribute["StringValue"].encode())
    assert total <= MAX_MESSAGE_SIZE
    assert attributes or size > MAX_MESSAGE_SIZE - 20


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("RequestThrottled", 403, Throttled),
        ("ThrottlingException", 400, Throttled),
        ("AccessDenied", 403, NotPermitted),
        ("AccessDeniedException", 400, NotPermitted),
        ("InternalFailure", 500, Unavailable),
        ("AWS.SimpleQueueService.NonExistentQueue", 400, Unavailable),
        ("InvalidMessageContents", 400, Unavailable),
    ],
)
@pytest.mark.parametrize("verb", ["wake", "set_aside"])
def test_trouble_is_one_of_three(script, verb, code, status, kind):
    script.add_client_error("send_message", code, "no", status)
    publisher = SqsPublisher(script.client, WAKE, DEAD)
    with pytest.raises(kind) as caught:
        publisher.wake(1) if verb == "wake" else publisher.set_aside("a", "b")
    assert type(caught.value) is kind
    assert caught.value.__cause__.response["Error"]["Code"] == code
