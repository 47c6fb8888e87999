"""The time of a job's last checkpoint, as `ports.Checkpoints`.

Reads the newest object's time under the job's `CheckpointConfig.S3Uri`. The submitter wrote that URI, so the module
accepts only a well-formed bucket and prefix, returns only a time, and logs a bucket that it may not list.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import AWS_ERRORS, code_of, to_retryable_error
from trainmaster.domain.compat import UTC
from trainmaster.domain.errors import Throttled

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

log = logging.getLogger(__name__)

MAX_PAGES = 5
"""Pages of 1,000 objects that are read: S3 lists by name, so a newer object may lie beyond them."""
_MAX_WARNED = 1_000
# S3 user guide, "General purpose bucket naming rules".
_BUCKET = re.compile(r"(?=[a-z0-9.-]{3,63}\Z)[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*[a-z0-9]", re.ASCII)
_MAX_KEY_LENGTH = 1024


class S3Checkpoints:
    """Lists objects in the buckets that the manager may list (`s3:ListBucket`).

    Args:
        new_client: makes a boto3 S3 client; called at the first look-up.
    """

    def __init__(self, new_client: Callable[[], S3Client]) -> None:
        self._new_client = new_client
        self._client_made: S3Client | None = None
        self._warned: set[tuple[str, str]] = set()

    def newest(self, uri: str) -> datetime | None:
        """Return the time of the newest object under this URI, UTC; see `ports.Checkpoints.newest`.

        Reads the first `MAX_PAGES` pages by name. Raises `Throttled`, `Unavailable`.
        """
        place = bucket_and_prefix(uri)
        if place is None:
            return None
        try:
            return max(self._times(*place), default=None)
        except AWS_ERRORS as error:
            found = to_retryable_error(error)
            if not code_of(error) or isinstance(found, Throttled):
                raise found from error
            self._warn(place[0], code_of(error))
            return None

    def _times(self, bucket: str, prefix: str) -> Iterator[datetime]:
        client = self._client()
        arguments: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
        for _ in range(MAX_PAGES):
            answer = client.list_objects_v2(**arguments)
            # Consoles create a key that ends with a slash for each folder.
            objects = (listed for listed in answer.get("Contents", []) if not listed["Key"].endswith("/"))
            yield from (listed["LastModified"].astimezone(UTC).replace(microsecond=0) for listed in objects)
            if not answer.get("NextContinuationToken"):
                return
            arguments["ContinuationToken"] = answer["NextContinuationToken"]

    def _client(self) -> S3Client:
        if self._client_made is None:
            self._client_made = self._new_client()
        return self._client_made

    def _warn(self, bucket: str, code: str) -> None:
        """Log once for each bucket and error code, because every job's bucket is listed every few minutes."""
        if (bucket, code) not in self._warned and len(self._warned) < _MAX_WARNED:
            self._warned.add((bucket, code))
            cause = {"bucket": bucket, "cause": code}
            log.warning("cannot look for checkpoints; see CheckpointBucketArns", extra=cause)


def bucket_and_prefix(uri: str) -> tuple[str, str] | None:
    """Return bucket and prefix of an S3 URI, None for any other URI, such as SageMaker's `https` form.

    The prefix ends with a slash, so that the checkpoints of `job1` do not match those of `job10`.
    """
    scheme, separator, rest = uri.partition("://")
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.strip("/")
    if scheme != "s3" or not separator or not _BUCKET.fullmatch(bucket) or len(prefix.encode()) > _MAX_KEY_LENGTH:
        return None
    return bucket, f"{prefix}/" if prefix else ""
