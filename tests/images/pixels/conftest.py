"""Servers that the tests of images share: moto for S3 and STS, and one for images and models over HTTP.

Clients are made once for a module: making them costs more than most of what is proved with them.
"""

from __future__ import annotations

import random

import pytest
from imaging_stage import BUCKET, RESULTS, SECOND, Play, served
from moto.server import ThreadedMotoServer

from aws_clients import aws_session
from trainmaster.adapters.clock import SystemClock
from trainmaster.images.pixels.wiring import Imaging

BUCKETS = (BUCKET, RESULTS, SECOND)


@pytest.fixture(scope="session")
def aws_url():
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def session(aws_url):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ENDPOINT_URL", aws_url)
        yield aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")


@pytest.fixture(scope="module")
def s3_client(session):
    client = session.client("s3")
    for bucket in BUCKETS:
        client.create_bucket(Bucket=bucket)
    yield client
    client.close()


@pytest.fixture
def s3(s3_client):
    yield s3_client
    for bucket in BUCKETS:
        for each in s3_client.list_objects_v2(Bucket=bucket).get("Contents", []):
            s3_client.delete_object(Bucket=bucket, Key=each["Key"])


@pytest.fixture(scope="module")
def imaging(session):
    made = Imaging(session, SystemClock(), "sagemaker-queue", random.Random(1))
    yield made
    made.close()


@pytest.fixture
def web():
    with served() as stage:
        yield stage


@pytest.fixture
def play_of(imaging, s3, web):
    def play_of(url, size, cut, **request):
        return Play(imaging, s3, url, model=f"{web.url}/model", size=size, cut=cut, **request)

    return play_of
