"""The bucket of bundles and templates: made on first use, private, encrypted, and of this account alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from trainmaster.client.api.credentials import error_code
from trainmaster.client.api.errors import Refused
from trainmaster.deployment.bundle import Archive

PREFIX: Final = "trainmaster"
_ABSENT: Final = frozenset({"404", "NoSuchKey", "NoSuchBucket", "NotFound"})


def default_name(account: str, region: str) -> str:
    """Return the name of an account's bucket in a Region."""
    return f"trainmaster-bundles-{account}-{region}"


def ensure(s3: Any, name: str, *, account: str, region: str, partition: str) -> bool:
    """Create the bucket if the account does not have it; return whether it was created. Raises Refused.

    Its name can be guessed, so each call demands this account as its owner.
    """
    from botocore.exceptions import ClientError

    try:
        s3.head_bucket(Bucket=name, ExpectedBucketOwner=account)
    except ClientError as error:
        code = error_code(error)
        if code not in _ABSENT:
            message = f"The bucket {name} belongs to another account, or you may not use it ({code})."
            raise Refused(message, type="BucketRefused", hint="Name a bucket of yours with --bucket.") from error
    else:
        return False
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=name, **place)
    _protect(s3, name, account, partition)
    return True


def _protect(s3: Any, name: str, account: str, partition: str) -> None:
    """Block public access, encrypt by default, and refuse requests without TLS."""
    rules = {
        "BlockPublicAcls": True,
        "IgnorePublicAcls": True,
        "BlockPublicPolicy": True,
        "RestrictPublicBuckets": True,
    }
    s3.put_public_access_block(Bucket=name, PublicAccessBlockConfiguration=rules, ExpectedBucketOwner=account)
    encryption = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
    s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration=encryption, ExpectedBucketOwner=account)
    arn = f"arn:{partition}:s3:::{name}"
    statement = {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    s3.put_bucket_policy(Bucket=name, Policy=policy, ExpectedBucketOwner=account)


def upload(s3: Any, bucket: str, archives: Iterable[Archive], *, account: str) -> list[str]:
    """Upload what is not there yet, and return the keys of all."""
    keys = []
    for archive in archives:
        key = f"{PREFIX}/{archive.key}"
        if not _is_there(s3, bucket, key, account):
            s3.put_object(Bucket=bucket, Key=key, Body=archive.body, ExpectedBucketOwner=account)
        keys.append(key)
    return keys


def _is_there(s3: Any, bucket: str, key: str, account: str) -> bool:
    from botocore.exceptions import ClientError

    try:
        s3.head_object(Bucket=bucket, Key=key, ExpectedBucketOwner=account)
    except ClientError as error:
        # Without s3:ListBucket, S3 answers 403 for what is not there; to upload it again does no harm.
        if error_code(error) in {*_ABSENT, "403"}:
            return False
        raise
    return True


def url_of(bucket: str, key: str, region: str, partition: str) -> str:
    """Return the address of an object, as CloudFormation takes it for a template."""
    suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    return f"https://s3.{region}.{suffix}/{bucket}/{key}"
