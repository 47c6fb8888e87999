"""Notifications as SNS gets them: a text for each protocol, attributes for filters, and what is not accepted."""

from __future__ import annotations

import json

import pytest
from botocore.stub import Stubber

from aws_clients import aws_client
from trainmaster.adapters.sns import Topic, notification_message
from trainmaster.domain.errors import NotPermitted, Throttled

TOPIC = "arn:aws:sns:us-east-1:111122223333:training-jobs"
DETAIL = {
    "version": 1,
    "type": "preempted",
    "jobName": "job1",
    "from": "preempting",
    "to": "preempted",
    "at": "2026-11-22T08:00:00.000Z",
    "sequence": 7,
    "reason": {"message": "was preempted for <@everyone>"},
    "share": "vision",
    "priority": 0,
    "submittedBy": "arn:aws:iam::111122223333:role/ada",
    "attempt": 1,
    "trainingJobName": "job1",
    "units": {"ml.p5.48xlarge": 2},
    "preemptedBy": "urgent",
    "lostSeconds": 4_380,
    "queue": "sagemaker-queue",
}


class Sns:
    def __init__(self, *errors):
        self.sent, self.errors = [], list(errors)

    def publish(self, **message):
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        self.sent.append(message)


def texts(message):
    return json.loads(message["Message"])


def test_people_get_a_text_and_chat_programs_their_format():
    sns = Sns()
    assert Topic(lambda: sns, TOPIC, notification_message).deliver([DETAIL]) == [True]
    (message,) = sns.sent
    assert message["Subject"] == "job1 was preempted (queue sagemaker-queue)"
    assert "Work lost:    1 h 13 min" in texts(message)["email"]
    assert "Instances:    2 x ml.p5.48xlarge" in texts(message)["email"]
    chat = json.loads(texts(message)["default"])
    assert (chat["version"], chat["source"], chat["content"]["textType"]) == ("1.0", "custom", "client-markdown")
    assert chat["content"]["title"] == message["Subject"]
    assert "(everyone" not in chat["content"]["description"] or "@" not in chat["content"]["description"]
    assert {name: each["StringValue"] for name, each in message["MessageAttributes"].items()} == {
        "type": "preempted",
        "state": "preempted",
        "share": "vision",
        "user": "arn:aws:iam::111122223333:role/ada",
        "job": "job1",
    }


def test_botocore_accepts_the_message():
    client = aws_client("sns")
    with Stubber(client) as script:
        sns = Sns()
        Topic(lambda: sns, TOPIC, notification_message).deliver([DETAIL])
        script.add_response("publish", {"MessageId": "1"}, sns.sent[0])
        assert Topic(lambda: client, TOPIC, notification_message).deliver([DETAIL]) == [True]


@pytest.mark.parametrize(
    ("errors", "accepted"),
    [
        ([None, NotPermitted("no"), None], [True, False, True]),
        ([None, Throttled("slow down"), None], [True, False, False]),
    ],
)
def test_what_is_not_accepted_is_told(errors, accepted):
    assert Topic(lambda: Sns(*errors), TOPIC, notification_message).deliver([DETAIL] * 3) == accepted


def test_a_deployment_without_a_topic_drops_what_is_left_of_an_earlier_one():
    assert Topic(lambda: Sns(NotPermitted("no")), "", notification_message).deliver([DETAIL]) == [True]


def test_a_subject_is_ascii_and_short():
    sns = Sns()
    Topic(lambda: sns, TOPIC, notification_message).deliver([{**DETAIL, "jobName": "j" * 200, "queue": "größe"}])
    subject = sns.sent[0]["Subject"]
    assert subject.isascii()
    assert len(subject) <= 100
