"""The manager has image jobs where its deployment has their queues, and none elsewhere."""

from __future__ import annotations

import pytest

from aws_clients import aws_session
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
from trainmaster.bootstrap import Application, Settings
from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.endpoint import Limits
from trainmaster.service.kinds import KindLauncher

SQS = "https://sqs.us-east-1.amazonaws.com/111122223333/"


@pytest.fixture
def session():
    return aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")


def test_without_image_queues_nothing_of_image_jobs_is_made(session):
    application = Application(Settings(queue="q", table="t"), session)
    assert isinstance(application.launcher, SageMakerLauncher)
    assert application.manager_context.kinds == {}
    assert application.images is application.refresher is application.image_queue is None


def test_with_them_attempts_of_image_jobs_go_to_their_regions(session):
    urls = {"image_queue_url": f"{SQS}images", "image_dead_letter_queue_url": f"{SQS}dead"}
    limits = Limits(attempts=5)
    settings = Settings(queue="q", table="t", region_queue_url=f"{SQS}regions", limits=limits, **urls)
    application = Application(settings, session)
    assert isinstance(application.launcher, KindLauncher)
    assert application.launcher.kinds == application.manager_context.kinds == {"image": application.images}
    assert application.images.limits is limits
    assert application.refresher.endpoints is application.endpoints
    assert application.images.intake is application.image_queue


@pytest.mark.parametrize(
    ("limits", "watches"),
    [(Limits(), True), (Limits(watch_others=False), False), (Limits(throttling=False), False)],
)
def test_w17_other_callers_are_looked_after_unless_that_is_switched_off_or_capacity_is_not_checked(
    session, limits, watches
):
    queues = {"image_queue_url": f"{SQS}images", "region_queue_url": f"{SQS}regions"}
    application = Application(Settings(queue="q", table="t", limits=limits, **queues), session)
    assert (application.refresher.neighbours is not None) is watches


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "https://10.0.0.7:8443/m", "http://localhost/m"])
def test_models_that_workers_would_not_call_are_refused_as_their_requests_come_in(session, url):
    application = Application(Settings(queue="q", table="t", image_queue_url=f"{SQS}images"), session)
    with pytest.raises(InvalidRequest, match="no public address") as caught:
        application.intake.reachable(url)
    assert caught.value.field == "imageProcessor.name"
