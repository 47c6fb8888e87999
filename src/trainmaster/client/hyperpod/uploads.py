"""Uploads the files of a launch script to S3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.client.api.errors import Refused
from trainmaster.domain.requests.fields import part


def upload(s3: Any, uploads: Mapping[str, str], request: Mapping[str, Any]) -> None:
    """Put texts at their S3 URIs, encrypted with the key of the request's output if it names one.

    `s3` is boto3's S3 client.

    Raises Refused if S3 does not take one, with the permission that is needed.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # deferred: requests in JSON do not need it

    key = part(request, "OutputDataConfig").get("KmsKeyId")
    encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key} if key else {}
    for uri, text in uploads.items():
        bucket, _, name = uri.removeprefix("s3://").partition("/")
        try:
            s3.put_object(Bucket=bucket, Key=name, Body=text.encode(), **encryption)
        except (ClientError, BotoCoreError) as error:
            raise Refused(
                f"The command cannot be uploaded to {uri}: {error}",
                type="NotUploaded",
                field="OutputDataConfig.S3OutputPath",
                hint="You need s3:PutObject there, and RoleArn needs s3:GetObject and s3:ListBucket; or put the script "
                "into the image, so that `command` is short.",
            ) from error
