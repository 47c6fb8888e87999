"""The newest checkpoint of a job, from S3, whatever its URI is and whatever S3 says."""

from __future__ import annotations

from datetime import timedelta

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from aws_clients import aws_client
from builders import NOW, at
from trainmaster.adapters.s3 import MAX_PAGES, S3Checkpoints, bucket_and_prefix
from trainmaster.domain.errors import Throttled, Unavailable


class Bucket:
    """A client that answers with given pages and remembers what it was asked."""

    def __init__(self, *pages, error=None):
        self.pages, self.error, self.asked = list(pages), error, []

    def list_objects_v2(self, **asked):
        self.asked.append(asked)
        if self.error is not None:
            raise self.error
        index = len(self.asked) - 1
        more = {"NextContinuationToken": f"t{index}"} if index + 1 < len(self.pages) else {}
        contents = [{"Key": key, "LastModified": time} for key, time in self.pages[index]]
        return {"Contents": contents, **more} if contents else more


def newest(bucket, uri="s3://bucket/checkpoints/job1"):
    return S3Checkpoints(lambda: bucket).newest(uri)


def denied(code):
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "ListObjectsV2")


def test_the_newest_object_counts_whatever_its_name():
    bucket = Bucket([("a", at(300)), ("b", at(900)), ("c", at(600))])
    assert newest(bucket) == at(900)
    assert bucket.asked == [{"Bucket": "bucket", "Prefix": "checkpoints/job1/"}]


def test_nothing_there_yet():
    assert newest(Bucket([])) is None


def test_a_folder_is_no_checkpoint():
    assert newest(Bucket([("checkpoints/job1/", at(900)), ("checkpoints/job1/x", at(300))])) == at(300)


def test_all_pages_are_read_up_to_a_bound():
    bucket = Bucket(*[[("a", at(page))] for page in range(MAX_PAGES + 3)])
    assert newest(bucket) == at(MAX_PAGES - 1)
    assert [each.get("ContinuationToken") for each in bucket.asked] == [None, "t0", "t1", "t2", "t3"]


def test_times_are_utc_to_the_second():
    odd = (NOW + timedelta(microseconds=7)).astimezone(tz=None)
    assert newest(Bucket([("a", odd)])) == NOW


@pytest.mark.parametrize("code", ["NoSuchBucket", "AccessDenied", "PermanentRedirect", "InternalError", "Odd"])
def test_a_bucket_that_cannot_be_listed_is_warned_of_once(code, caplog):
    bucket = Bucket(error=denied(code))
    checkpoints = S3Checkpoints(lambda: bucket)
    assert [checkpoints.newest(f"s3://bucket/{name}") for name in "abc"] == [None] * 3
    assert [record.cause for record in caplog.records] == [code]
    assert checkpoints.newest("s3://other/a") is None
    assert len(caplog.records) == 2


def test_silence_and_throttling_are_told_since_asking_on_would_take_long():
    with pytest.raises(Unavailable):
        newest(Bucket(error=ConnectTimeoutError(endpoint_url="https://s3")))
    with pytest.raises(Throttled):
        newest(Bucket(error=denied("SlowDown")))


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("s3://bucket/checkpoints/job1", ("bucket", "checkpoints/job1/")),
        ("s3://bucket/checkpoints/job1/", ("bucket", "checkpoints/job1/")),
        ("s3://my.bucket-1/a b/ü", ("my.bucket-1", "a b/ü/")),
        ("s3://bucket", ("bucket", "")),
        ("s3://bucket/", ("bucket", "")),
        ("s3://bucket/../x", ("bucket", "../x/")),
        ("https://bucket.s3.amazonaws.com/x", None),
        ("s3:/bucket/x", None),
        ("s3://", None),
        ("s3:///x", None),
        ("s3://b/x", None),
        ("s3://Bucket/x", None),
        ("s3://bucket:443@evil/x", None),
        ("s3://arn:aws:s3:us-east-1:1:accesspoint/x", None),
        ("s3://bucket\n/x", None),
        ("s3://buck\u0435t/x", None),
        ("s3://a..b/x", None),
        ("s3://-bucket/x", None),
        ("s3://bucket-/x", None),
        ("s3://" + "b" * 64 + "/x", None),
        ("s3://bucket/" + "k" * 1025, None),
    ],
)
def test_only_buckets_and_prefixes_are_asked_about(uri, place):
    assert bucket_and_prefix(uri) == place
    if place is None:
        assert S3Checkpoints(lambda: pytest.fail("no client is needed")).newest(uri) is None


@given(st.text())
def test_nothing_that_anybody_writes_breaks_it(text):
    for uri in (text, f"s3://{text}", f"s3://bucket/{text}"):
        place = bucket_and_prefix(uri)
        assert place is None or (place[0] in uri and not place[0].startswith(("-", ".")))


def test_over_a_real_client():
    with mock_aws():
        client = aws_client("s3")
        client.create_bucket(Bucket="bucket")
        for name in ("job1/epoch-1", "job1/epoch-2", "job10/epoch-9"):
            client.put_object(Bucket="bucket", Key=f"checkpoints/{name}", Body=b"x")
        checkpoints = S3Checkpoints(lambda: client)
        stored = client.list_objects_v2(Bucket="bucket", Prefix="checkpoints/job1/")["Contents"]
        assert checkpoints.newest("s3://bucket/checkpoints/job1") == max(each["LastModified"] for each in stored)
        assert checkpoints.newest("s3://bucket/checkpoints/job") is None
        assert checkpoints.newest("s3://another-bucket/checkpoints/job1") is None


def test_the_call_is_one_that_botocore_knows():
    client = aws_client("s3")
    with Stubber(client) as stub:
        stub.add_response("list_objects_v2", {}, {"Bucket": "bucket", "Prefix": "a/"})
        assert S3Checkpoints(lambda: client).newest("s3://bucket/a") is None
