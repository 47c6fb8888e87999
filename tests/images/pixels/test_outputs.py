"""Destinations of results: keys, roles and owners."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from imaging_stage import BUCKET, JOB, RESULTS, SECOND

from spots import geotiff, picture, scattered
from trainmaster.adapters.clock import SystemClock
from trainmaster.domain.errors import InvalidRequest, NotPermitted, Throttled
from trainmaster.images.domain.request import Output, ResultKey
from trainmaster.images.domain.tiling import Cut, Window
from trainmaster.images.domain.work import MERGE
from trainmaster.images.pixels.features.results import Found, ResultNames, Results
from trainmaster.images.pixels.wiring import Imaging

CUT = Cut(region=(260, 260), tile=(120, 120), overlap=(24, 24))
SIZE = (300, 200)
NAMES = ResultNames(JOB, "a.tif")
WINDOW = Window(0, 0, 10, 10)
WRITER = "arn:aws:iam::222222222222:role/writer"
FOUND = Found([{"type": "Feature"}], [False], [0], {0})


@pytest.fixture
def play(s3, play_of):
    s3.put_object(Bucket=BUCKET, Key="a/harbour.tif", Body=geotiff(picture(*SIZE, scattered(*SIZE, 5))))
    return play_of(f"s3://{BUCKET}/a/harbour.tif", SIZE, CUT)


@pytest.fixture
def asked(session):
    """An S3 client, and the parameters of its calls."""
    client, calls = session.client("s3"), []
    client.meta.events.register("provide-client-params.s3", lambda params, **_: calls.append(params))
    yield client, calls
    client.close()


def keys(s3, bucket):
    return {each["Key"] for each in s3.list_objects_v2(Bucket=bucket).get("Contents", [])}


def test_a_result_may_lie_beside_the_folder_of_its_job_and_those_of_regions_never_do(play, s3):
    outputs = (Output(bucket=RESULTS, prefix="/ships/"), Output(bucket=SECOND))
    play.task = replace(play.task, request=replace(play.request, outputs=outputs, result_key=ResultKey.IMAGE))
    numbers = play.create()
    for number in [*numbers, MERGE]:
        play.turn(number)
    folder = {f"{JOB}/regions/{number:05}.geojson" for number in numbers}
    assert keys(s3, RESULTS) == {"ships/harbour.tif.geojson", *(f"ships/{each}" for each in folder)}
    assert keys(s3, SECOND) == {"harbour.tif.geojson", *folder}
    assert len(play.read("ships/harbour.tif.geojson")["features"]) == 5


def test_every_result_is_its_buckets_owners_and_each_output_has_its_role(asked, s3):
    client, calls = asked
    roles = []

    def s3_of(role):
        roles.append(role)
        return client

    outputs = (Output(bucket=RESULTS, role=WRITER), Output(bucket=SECOND))
    results = Results(s3_of, NAMES, outputs)
    results.save(0, WINDOW, 1, FOUND)
    results.publish(FOUND.features, regions=1, failed=())
    assert roles == [WRITER, None] * 2
    assert {(each["Bucket"], each["ACL"]) for each in calls} == {
        (RESULTS, "bucket-owner-full-control"),
        (SECOND, "bucket-owner-full-control"),
    }
    assert results.load(0, WINDOW, 1).features == FOUND.features
    assert roles[4:] == [WRITER]


def test_an_outputs_role_is_assumed_for_the_submitter(session, play, s3):
    assumed = []
    session.events.register("provide-client-params.sts.AssumeRole", lambda params, **_: assumed.append(params))
    imaging = Imaging(session, SystemClock(), "sagemaker-queue", random.Random(1))
    request = replace(play.request, outputs=(Output(bucket=RESULTS, role=WRITER),))
    task = replace(play.task, request=request, submitter="arn:aws:iam::111122223333:user/ann")
    imaging.results(task).publish(FOUND.features, regions=1, failed=())
    imaging.close()
    assert [(each["RoleArn"], each["SourceIdentity"]) for each in assumed] == [(WRITER, "111122223333-user-ann")]
    written = json.loads(s3.get_object(Bucket=RESULTS, Key=f"{JOB}/harbour.tif.geojson")["Body"].read())
    assert written["features"] == FOUND.features


@pytest.mark.parametrize("use", ["save", "load", "publish"])
def test_a_role_that_may_not_be_assumed_fails_the_job_and_is_named(use):
    def s3_of(role):
        raise NotPermitted("AccessDenied: not yours")

    results = Results(s3_of, NAMES, (Output(bucket=RESULTS, role=WRITER),))
    with pytest.raises(InvalidRequest) as caught:
        call(results, use)
    assert caught.value.field == "outputs"
    assert WRITER in caught.value.message


@pytest.mark.parametrize("use", ["save", "load", "publish"])
def test_throttling_while_a_role_is_assumed_is_tried_again(use):
    def s3_of(role):
        raise Throttled("slow down")

    with pytest.raises(Throttled):
        call(Results(s3_of, NAMES, (Output(bucket=RESULTS, role=WRITER),)), use)


def call(results, use):
    if use == "save":
        results.save(0, WINDOW, 1, FOUND)
    elif use == "load":
        results.load(0, WINDOW, 1)
    else:
        results.publish(FOUND.features, regions=1, failed=())
