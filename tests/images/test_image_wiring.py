"""The manager has image jobs if the deployment has this kind and its queues, and none elsewhere."""

from __future__ import annotations

import subprocess
import sys

import pytest

from aws_clients import aws_session
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
from trainmaster.bootstrap import Application, Settings
from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.endpoint import Limits
from trainmaster.images.kind import image_parts
from trainmaster.images.settings import ImageSettings, split_environment
from trainmaster.service.kinds import KindLauncher

SQS = "https://sqs.us-east-1.amazonaws.com/111122223333/"


@pytest.fixture
def session():
    return aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")


def an_application(session, **values):
    return Application(Settings(queue="q", table="t", job_kinds={"image": values}), session)


def test_without_the_kind_nothing_of_image_jobs_is_made(session):
    application = Application(Settings(queue="q", table="t"), session)
    assert isinstance(application.launcher, SageMakerLauncher)
    assert application.manager_context.kinds == application.kinds == {}


def test_without_image_queues_no_runs_are_made(session):
    application = an_application(session)
    parts = image_parts(application)
    assert isinstance(application.launcher, SageMakerLauncher)
    assert application.manager_context.kinds == {}
    assert parts.launcher is parts.refresher is parts.image_queue is None


def test_with_them_attempts_of_image_jobs_go_to_their_regions(session):
    urls = {"IMAGE_QUEUE_URL": f"{SQS}images", "IMAGE_DEAD_LETTER_QUEUE_URL": f"{SQS}dead"}
    application = an_application(session, REGION_QUEUE_URL=f"{SQS}regions", REGION_ATTEMPTS="5", **urls)
    parts = image_parts(application)
    assert isinstance(application.launcher, KindLauncher)
    assert application.launcher.kinds == application.manager_context.kinds == {"image": parts.launcher}
    assert parts.launcher.limits == Limits(attempts=5)
    assert parts.refresher.endpoints is parts.endpoints
    assert parts.launcher.intake is parts.image_queue


def test_a_kind_that_does_not_exist_is_refused(session):
    application = Application(Settings(queue="q", table="t", job_kinds={"video": {}}), session)
    with pytest.raises(InvalidRequest, match="no kind of jobs 'video'"):
        application.launcher  # noqa: B018 - it is made when it is first read


@pytest.mark.parametrize(
    ("limits", "watches"),
    [({}, True), ({"WATCH_OTHER_CALLERS": "False"}, False), ({"SCHEDULER_THROTTLING_ENABLED": "False"}, False)],
)
def test_w17_other_callers_are_looked_after_unless_that_is_switched_off_or_capacity_is_not_checked(
    session, limits, watches
):
    queues = {"IMAGE_QUEUE_URL": f"{SQS}images", "REGION_QUEUE_URL": f"{SQS}regions"}
    parts = image_parts(an_application(session, **queues, **limits))
    assert (parts.refresher.external_load is not None) is watches


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://169.254.169.254/latest", "resolve to a public address"),
        ("https://localhost/m", "resolve to a public address"),
        ("https://10.0.0.7:8443/m", "does not call models at 10.0.0.7:8443"),
        ("http://localhost/m", "not encrypted"),
    ],
)
def test_models_that_workers_would_not_call_are_refused_as_their_requests_come_in(session, url, told):
    hosts = "169.254.169.254,localhost"
    parts = image_parts(an_application(session, IMAGE_QUEUE_URL=f"{SQS}images", MODEL_HOSTS=hosts))
    with pytest.raises(InvalidRequest, match=told) as caught:
        parts.intake.reachable(url)
    assert caught.value.field == "imageProcessor.name"


@pytest.mark.parametrize("wrong", ["no JSON", "[]", '{"image": []}', '{"image": {"REGION_ATTEMPTS": 5}}'])
def test_kinds_of_jobs_that_are_no_object_of_objects_of_texts_are_refused(wrong):
    environ = {"TRAINMASTER_QUEUE": "q", "TRAINMASTER_TABLE": "t", "TRAINMASTER_JOB_KINDS": wrong}
    with pytest.raises(InvalidRequest, match="TRAINMASTER_JOB_KINDS is wrong"):
        Settings.from_env(environ)


@pytest.mark.parametrize(("name", "text"), [("REGION_ATTEMPTS", "none"), ("IMAGE_QUEUE", "https://images")])
def test_wrong_and_unknown_settings_of_image_jobs_are_refused_by_name(name, text):
    with pytest.raises(InvalidRequest) as refused:
        ImageSettings.of_values({name: text})
    assert refused.value.field == name


def test_a_function_of_image_jobs_reads_its_own_variables_and_leaves_the_others_to_the_queue():
    environ = {"TRAINMASTER_IMAGE_QUEUE_URL": "a", "REGION_QUEUE_URL": "b", "TILE_WORKERS_PER_INSTANCE": "2"}
    values, rest = split_environment({**environ, "TRAINMASTER_QUEUE": "q", "PATH": "/bin"})
    assert values == {"IMAGE_QUEUE_URL": "a", "REGION_QUEUE_URL": "b", "TILE_WORKERS_PER_INSTANCE": "2"}
    assert rest == {"TRAINMASTER_QUEUE": "q", "PATH": "/bin"}


def test_a_deployment_without_image_jobs_still_reads_those_that_are_stored():
    """They are imported with the first row of one."""
    program = (
        "from trainmaster import bootstrap; from trainmaster.domain.jobs.work import Work; "
        "assert not Work.kinds(); assert Work.of_kind('image').kind == 'image'; "
        "print('video' in Work.kinds()); Work.of_kind('video')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr.splitlines()[-1]) == ("False\n", "KeyError: 'video'")
