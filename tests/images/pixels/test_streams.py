"""Features sent to Kinesis data streams: all of them, whole, and again only where one may have been lost."""

from __future__ import annotations

import json

import pytest
from imaging_stage import BUCKET, JOB, RESULTS

from aws_clients import scripted
from spots import geotiff, picture, scattered
from trainmaster.domain.errors import InvalidRequest, NotPermitted, Throttled, Unavailable
from trainmaster.images.domain.request import Output, StreamOutput
from trainmaster.images.domain.tiling import Cut
from trainmaster.images.domain.work import MERGE, RegionState
from trainmaster.images.pixels.features.streams import MAX_RECORD, MAX_REQUEST, FeatureStream, records_of
from trainmaster.images.pixels.work.region_outcome import Outcome, Stopped

CUT = Cut(region=(260, 260), tile=(120, 120), overlap=(24, 24))
SIZE = (300, 200)
STREAM = "detections"
WRITER = "arn:aws:iam::222222222222:role/writer"
BUSY = {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "Rate exceeded for shard 0"}
FAILED = {"ErrorCode": "InternalFailure", "ErrorMessage": "Internal Service Failure"}
STORED = {"SequenceNumber": "1", "ShardId": "shardId-000000000000"}


class Kinesis:
    """Stores all records, and the requests for it."""

    def __init__(self):
        self.requests = []

    def put_records(self, **asked):
        self.requests.append(asked)
        return {"Records": [STORED for _ in asked["Records"]]}

    @property
    def sizes(self):
        return [len(each["Records"]) for each in self.requests]


@pytest.fixture
def kinesis():
    return Kinesis()


@pytest.fixture
def stream(session):
    """A stream of moto; returns its records."""
    client = session.client("kinesis")
    client.create_stream(StreamName=STREAM, ShardCount=1)

    def records():
        (shard,) = client.describe_stream(StreamName=STREAM)["StreamDescription"]["Shards"]
        start = client.get_shard_iterator(
            StreamName=STREAM, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        return client.get_records(ShardIterator=start)["Records"]

    yield records
    client.delete_stream(StreamName=STREAM)
    client.close()


@pytest.fixture
def play_to(s3, play_of):
    s3.put_object(Bucket=BUCKET, Key="a/harbour.tif", Body=geotiff(picture(*SIZE, scattered(*SIZE, 6))))

    def play_to(**stream):
        outputs = (Output(bucket=RESULTS, prefix="ships"), StreamOutput(**stream))
        return play_of(f"s3://{BUCKET}/a/harbour.tif", SIZE, CUT, outputs=outputs)

    return play_to


def sender(client, slept=None, **output):
    slept = [] if slept is None else slept
    return FeatureStream(lambda role: client, JOB, StreamOutput(stream=STREAM, **output), slept.append)


def nothing():
    return


def entries(*records):
    return [{"Data": each, "PartitionKey": JOB} for each in records]


def test_a_stream_has_each_feature_of_the_result_in_a_record_of_its_own(play_to, stream):
    result = play_to(stream=STREAM).run_all()
    records = stream()
    assert {each["PartitionKey"] for each in records} == {JOB}
    documents = [json.loads(each["Data"]) for each in records]
    assert {each["type"] for each in documents} == {"FeatureCollection"}
    assert [feature for each in documents for feature in each["features"]] == result["features"]
    assert [each["trainmaster"] for each in documents] == [
        result["trainmaster"] | {"features": 6, "feature": number} for number in range(6)
    ]


def test_an_interrupted_merge_repeats_records_that_are_told_by_their_number_and_equal(play_to, stream):
    play = play_to(stream=STREAM, batch_size=1)
    numbers = play.create()
    for number in numbers:
        play.turn(number)
    # One look at the time for each region that is read, one before the result, and one before each record.
    looks = iter([900.0] * (len(numbers) + 1 + 3) + [0.0])
    assert play.turn(MERGE, left=lambda: next(looks)) is Outcome.AGAIN
    assert len(stream()) == 3
    assert play.turn(MERGE) is Outcome.DONE
    records = [each["Data"] for each in stream()]
    assert len(records) == 9
    assert records[:3] == records[3:6]
    told = {(json.loads(each)["trainmaster"]["job"], json.loads(each)["trainmaster"]["feature"]) for each in records}
    assert told == {(JOB, number) for number in range(6)}


def test_a_stream_that_does_not_exist_fails_the_job_and_the_result_is_in_s3(play_to):
    play = play_to(stream="nowhere")
    for number in play.create():
        play.turn(number)
    assert play.turn(MERGE) is Outcome.FAILED
    assert play.run.records[-1].state is RegionState.FAILED
    assert "features cannot be sent to nowhere: ResourceNotFoundException" in play.run.records[-1].reason
    assert len(play.result()["features"]) == 6


@pytest.mark.parametrize(("batch_size", "sizes"), [(2, [2, 2, 1]), (5, [5]), (1000, [5])])
def test_a_request_has_no_more_records_than_the_request_wants(kinesis, batch_size, sizes):
    sender(kinesis, batch_size=batch_size).send([b"{}"] * 5, nothing)
    assert kinesis.sizes == sizes


def test_a_request_has_no_more_records_and_bytes_than_kinesis_takes(kinesis):
    sender(kinesis, batch_size=1000).send([b"{}"] * 501, nothing)
    assert kinesis.sizes == [500, 1]
    kinesis.requests.clear()
    largest = b"x" * (MAX_RECORD - len(JOB))
    sender(kinesis).send([largest] * 6, nothing)
    assert kinesis.sizes == [MAX_REQUEST // MAX_RECORD, 1]


def test_a_feature_that_is_too_large_fails_the_job_before_anything_is_sent(kinesis):
    with pytest.raises(InvalidRequest) as caught:
        sender(kinesis).send([b"{}", b"x" * (MAX_RECORD - len(JOB) + 1)], nothing)
    assert (caught.value.field, kinesis.requests) == ("outputs", [])


@pytest.mark.parametrize(
    ("stream", "target"),
    [
        ("detections", {"StreamName": "detections"}),
        ("arn:aws:kinesis:us-east-1:2:stream/a", {"StreamARN": "arn:aws:kinesis:us-east-1:2:stream/a"}),
    ],
)
def test_a_stream_is_called_by_name_or_arn_under_its_role(kinesis, stream, target):
    roles = []

    def client(role):
        roles.append(role)
        return kinesis

    FeatureStream(client, JOB, StreamOutput(stream=stream, role=WRITER), [].append).send([b"{}"], nothing)
    assert roles == [WRITER]
    assert kinesis.requests == [{"Records": entries(b"{}"), **target}]


def test_only_records_that_were_not_stored_are_sent_again():
    slept = []
    with scripted("kinesis") as script:
        for records, answers in (((b"0", b"1", b"2"), (BUSY, STORED, FAILED)), ((b"0", b"2"), (STORED, BUSY))):
            asked = {"StreamName": STREAM, "Records": entries(*records)}
            script.add_response("put_records", {"Records": [*answers]}, asked)
        last = {"StreamName": STREAM, "Records": entries(b"2")}
        script.add_response("put_records", {"Records": [STORED]}, last)
        sender(script.client, slept).send([b"0", b"1", b"2"], nothing)
        script.assert_no_pending_responses()
    assert slept == [0.5, 0.5]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"Records": [BUSY]}, Throttled),
        ({"Records": [FAILED]}, Unavailable),
        ("ProvisionedThroughputExceededException", Throttled),
        ("KMSThrottlingException", Throttled),
        ("InternalFailure", Unavailable),
    ],
)
def test_a_stream_that_stores_nothing_for_too_long_is_tried_again_later(answer, error):
    slept = []
    with scripted("kinesis") as script:
        for _ in range(6):
            if isinstance(answer, str):
                script.add_client_error("put_records", answer, "busy")
            else:
                script.add_response("put_records", answer)
        with pytest.raises(error):
            sender(script.client, slept).send([b"0"], nothing)
        script.assert_no_pending_responses()
    assert slept == [1.0, 2.0, 4.0, 8.0, 8.0]


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "KMSAccessDeniedException"])
def test_a_stream_that_may_not_be_used_fails_the_job(code):
    with scripted("kinesis") as script:
        script.add_client_error("put_records", code, "not yours", http_status_code=400)
        with pytest.raises(InvalidRequest, match=f"cannot be sent to {STREAM} under {WRITER}: {code}") as caught:
            sender(script.client, role=WRITER).send([b"0"], nothing)
    assert caught.value.field == "outputs"


def test_a_role_that_may_not_be_assumed_fails_the_job_and_is_named():
    def client(role):
        raise NotPermitted("AccessDenied: not yours")

    output = StreamOutput(stream=STREAM, role=WRITER)
    with pytest.raises(InvalidRequest, match=WRITER):
        FeatureStream(client, JOB, output, [].append).send([b"0"], nothing)


def test_a_worker_that_has_to_stop_sends_no_more(kinesis):
    def keep_alive():
        if len(kinesis.requests) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        sender(kinesis, batch_size=1).send([b"{}"] * 5, keep_alive)
    assert len(kinesis.requests) == 2


def test_records_are_whole_and_numbered():
    features = [{"type": "Feature", "id": each, "properties": {"text": "\u00e9"}} for each in ("a", "b")]
    records = records_of(features, {"job": JOB})
    assert [json.loads(each) for each in records] == [
        {
            "type": "FeatureCollection",
            "features": [each],
            "trainmaster": {"job": JOB, "features": 2, "feature": number},
        }
        for number, each in enumerate(features)
    ]
    assert records_of([], {"job": JOB}) == []
