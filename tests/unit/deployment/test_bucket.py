"""The bucket is made once, private and encrypted, and what is there is not uploaded again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from aws_clients import aws_client
from trainmaster.client.api.errors import Refused
from trainmaster.deployment.bucket import ensure, upload, url_of
from trainmaster.deployment.bundle import Archive

ACCOUNT = "123456789012"
NAME = "trainmaster-bundles-123456789012-eu-west-1"
WHERE = {"account": ACCOUNT, "region": "eu-west-1", "partition": "aws"}


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        yield aws_client("s3", region_name="eu-west-1")


def test_it_is_made_once_private_and_for_tls_only(s3: Any) -> None:
    assert ensure(s3, NAME, **WHERE) is True
    assert ensure(s3, NAME, **WHERE) is False
    blocked = s3.get_public_access_block(Bucket=NAME)["PublicAccessBlockConfiguration"]
    assert blocked == dict.fromkeys(
        ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True
    )
    (statement,) = json.loads(s3.get_bucket_policy(Bucket=NAME)["Policy"])["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    (rule,) = s3.get_bucket_encryption(Bucket=NAME)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"


def test_the_same_content_is_uploaded_once(s3: Any) -> None:
    # Without the policy: moto does not read its condition.
    s3.create_bucket(Bucket=NAME, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    first, second = Archive("a.zip", b"a"), Archive("b.zip", b"b")
    assert upload(s3, NAME, [first], account=ACCOUNT) == ["trainmaster/a.zip"]
    before = s3.head_object(Bucket=NAME, Key="trainmaster/a.zip")["LastModified"]
    assert upload(s3, NAME, [first, second], account=ACCOUNT) == ["trainmaster/a.zip", "trainmaster/b.zip"]
    assert s3.head_object(Bucket=NAME, Key="trainmaster/a.zip")["LastModified"] == before
    assert s3.get_object(Bucket=NAME, Key="trainmaster/b.zip")["Body"].read() == b"b"


class OfAnother:
    """S3 as it answers for a bucket of another account."""

    def head_bucket(self, **arguments: Any) -> None:
        assert arguments == {"Bucket": NAME, "ExpectedBucketOwner": ACCOUNT}
        raise ClientError({"Error": {"Code": "403", "Message": "Forbidden"}}, "HeadBucket")


def test_a_bucket_of_another_account_is_never_used() -> None:
    with pytest.raises(Refused, match="belongs to another account"):
        ensure(OfAnother(), NAME, **WHERE)


def test_the_address_is_of_the_partition() -> None:
    assert url_of("b", "k/t.json", "eu-west-1", "aws") == "https://s3.eu-west-1.amazonaws.com/b/k/t.json"
    assert url_of("b", "k", "cn-north-1", "aws-cn").startswith("https://s3.cn-north-1.amazonaws.com.cn/")
