"""Status messages on SNS as clients of ModelRunner read them: statuses, text, attributes, and what may fail."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import pytest
from botocore.exceptions import ClientError

from builders import ADA
from image_runs_world import ImageRunsWorld
from trainmaster.domain.events.publication import Publication
from trainmaster.domain.events.types import EventType
from trainmaster.images.adapters.sns_status import status_topic
from trainmaster.images.service.status import STATUS, STATUSES
from trainmaster.service.change import cancel

ARN = "arn:aws:sns:us-east-1:111122223333:image-status"
URL = "https://user:secret@images.example.com/a.tif?X-Amz-Signature=abc"

pytestmark = pytest.mark.usefixtures("quiet")


class Sns:
    """SNS: it keeps what is published, and first raises what it is given."""

    def __init__(self):
        self.sent, self.errors = [], []

    def publish(self, **message):
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        self.sent.append(message)


class StatusWorld(ImageRunsWorld):
    """The world with a status topic, by the shipped parts of image jobs."""

    job_kinds: ClassVar = {"image": {**ImageRunsWorld.job_kinds["image"], "STATUS_TOPIC": ARN}}

    @cached_property
    def sns(self):
        return Sns()

    def _store(self):
        store = super()._store()
        kinds = {"image": {STATUS: STATUSES}}
        store._publication = Publication(self.published, notifies=self.notifies, kinds=kinds)
        return store

    def outbox_of(self, application):
        usual = super().outbox_of(application)
        topic = status_topic(lambda: self.sns, ARN, lambda: application.store)
        return replace(usual, deliverers={**usual.deliverers, STATUS: topic})

    def told(self, name):
        return [each for each in self.sns.sent if attributes(each)["job_id"] == name]


def attributes(message):
    assert all(
        value["DataType"] == "String" and value["StringValue"] for value in message["MessageAttributes"].values()
    )
    return {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}


def statuses(messages):
    return [attributes(each)["status"] for each in messages]


def ended(*names, **options):
    world = StatusWorld(takes=8, **options)
    for name in names:
        world.enter(name, request={"jobId": name, "imageUrls": [URL]})
    world.run_until_ended(*names, limit=2_000)
    world.run(120, step=60)
    return world


def test_a_job_tells_that_it_has_started_is_in_progress_and_has_succeeded():
    world = ended("harbour")
    messages = world.told("harbour")
    assert statuses(messages) == ["STARTED", "IN_PROGRESS", "SUCCESS"]
    assert {each["TopicArn"] for each in messages} == {ARN}
    assert messages[-1]["Message"] == "StatusMonitor update: SUCCESS harbour: Completed image processing"
    last = attributes(messages[-1])
    assert last["image_status"] == "SUCCESS"
    assert last["image_id"] == "harbour:https://images.example.com/a.tif"
    job = world.job("harbour")
    assert int(last["processing_duration"]) == int((job.history[-1].at - job.attempts[0].created_at).total_seconds())
    assert "processing_duration" not in attributes(messages[0]), "ModelRunner omits a duration of 0"


@pytest.mark.parametrize(
    ("fails", "status"), [(lambda claim: claim.number == 0, "PARTIAL"), (lambda claim: claim.number >= 0, "FAILED")]
)
def test_an_end_with_failed_regions_is_partial_or_failed_with_the_reason(fails, status):
    message = ended("harbour", fails=fails).told("harbour")[-1]
    assert attributes(message)["status"] == status
    assert "regions failed: a broken tile" in message["Message"]


def test_a_job_that_a_user_cancels_has_failed():
    world = StatusWorld(takes=4)
    for name in ("one", "two"):
        world.enter(name, request={"jobId": name, "imageUrls": [URL]})
    world.run(5)
    cancel(world.api_context, ADA, "two")
    world.run(120, step=60)
    (message,) = world.told("two")
    assert message["Message"].startswith("StatusMonitor update: FAILED two: cancelled")


def test_a_message_that_sns_does_not_take_is_sent_again():
    refused = [ClientError({"Error": {"Code": code, "Message": "no"}}, "Publish") for code in ("Throttled", "NotFound")]
    world = StatusWorld(takes=8)
    world.sns.errors = [*refused, None, refused[1]]
    world.enter("harbour", request={"jobId": "harbour", "imageUrls": [URL]})
    world.run_until_ended("harbour", limit=2_000)
    world.run(240, step=60)
    assert sorted(statuses(world.told("harbour"))) == ["IN_PROGRESS", "STARTED", "SUCCESS"]
    assert not world.api_context.store.outbox(limit=1)


def test_the_parts_of_image_jobs_name_their_topic_and_its_events():
    application = StatusWorld().application()
    assert application.publication.kinds == {"image": {STATUS: STATUSES}}
    assert application.publication.enabled
    assert STATUS in type(application).outbox.func(application).deliverers
    plain = ImageRunsWorld().application()
    assert not plain.publication.enabled


def test_a_deployment_that_has_no_topic_any_more_drops_what_is_left():
    application = ImageRunsWorld().application()
    outbox = type(application).outbox.func(application)
    assert outbox.deliverers[STATUS].deliver([{"type": "ended", "jobName": "gone", "to": "failed"}]) == [True]


def test_training_jobs_have_no_status():
    told = Publication(kinds={"image": {STATUS: frozenset(EventType)}})
    after = ended("harbour").job("harbour")
    before = replace(after, history=after.history[:-1])
    assert [entry.to for entry in told.of_jobs([(before, after)])] == [(STATUS,)]
    assert not told.of_jobs([(before, replace(after, work=None))])
