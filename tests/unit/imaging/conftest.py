"""Servers that the tests of images share: moto for S3 and STS, and one for images and models over HTTP."""

from __future__ import annotations

import boto3
import pytest
from imaging_stage import BUCKET, RESULTS, SECOND, Play, served
from moto.server import ThreadedMotoServer


@pytest.fixture(scope="session")
def aws_url():
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def session(aws_url, monkeypatch):
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_url)
    return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")


@pytest.fixture
def s3(session):
    client = session.client("s3")
    for bucket in (BUCKET, RESULTS, SECOND):
        client.create_bucket(Bucket=bucket)
    yield client
    for bucket in (BUCKET, RESULTS, SECOND):
        for each in client.list_objects_v2(Bucket=bucket).get("Contents", []):
            client.delete_object(Bucket=bucket, Key=each["Key"])
    client.close()


@pytest.fixture
def play_of(session, s3, web):
    made = []

    def play_of(url, size, cut, **request):
        model = request.pop("model", f"{web.url}/model")
        made.append(Play(session, s3, url, model=model, size=size, cut=cut, **request))
        return made[-1]

    yield play_of
    for each in made:
        each.imaging.close()


@pytest.fixture
def web():
    with served() as stage:
        yield stage
