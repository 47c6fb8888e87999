"""When a job last saved its work: the newest object under its `CheckpointConfig.S3Uri`, as `ports.Checkpoints`.

The URI is its submitter's and is not trusted: only what has the form of a bucket and a prefix is asked about, and only
the time of the newest object is told. It must not read objects, wait, or let a bucket that it may not list stop
anything.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainmaster.adapters.aws_errors import AWS_ERRORS, code_of, passing
from trainmaster.domain.errors import Throttled

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

log = logging.getLogger(__name__)

MAX_PAGES = 5
"""Pages of a thousand objects that are looked at: S3 lists by name, so the newest may be beyond them."""
_MAX_WARNED = 1_000
# S3 user guide, "General purpose bucket naming rules".
_BUCKET = re.compile(r"(?=[a-z0-9.-]{3,63}\Z)[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*[a-z0-9]", re.ASCII)
_MAX_KEY_LENGTH = 1024


class S3Checkpoints:
    """Looks into the buckets that the manager may list (`s3:ListBucket`).

    Args:
        new_client: makes a boto3 S3 client; called when there is something to look for.
    """

    def __init__(self, new_client: Callable[[], S3Client]) -> None:
        self._new_client = new_client
        self._made: S3Client | None = None
        self._warned: set[tuple[str, str]] = set()

    def newest(self, uri: str) -> datetime | None:
        """When the newest object under this URI was written, UTC; see `ports.Checkpoints.newest`.

        Of more than `MAX_PAGES` pages of objects, the newest of those that come first by name. Raises `Throttled`,
        `Unavailable`.
        """
        place = place_of(uri)
        if place is None:
            return None
        try:
            return max(self._times(*place), default=None)
        except AWS_ERRORS as error:
            found = passing(error)
            if not code_of(error) or isinstance(found, Throttled):
                raise found from error
            self._warn(place[0], code_of(error))
            return None

    def _times(self, bucket: str, prefix: str) -> Iterator[datetime]:
        client = self._client()
        asked: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
        for _ in range(MAX_PAGES):
            answer = client.list_objects_v2(**asked)
            # A key that ends with a slash is what consoles make of a folder.
            found = (each for each in answer.get("Contents", []) if not each["Key"].endswith("/"))
            yield from (each["LastModified"].astimezone(UTC).replace(microsecond=0) for each in found)
            if not answer.get("NextContinuationToken"):
                return
            asked["ContinuationToken"] = answer["NextContinuationToken"]

    def _client(self) -> S3Client:
        if self._made is None:
            self._made = self._new_client()
        return self._made

    def _warn(self, bucket: str, code: str) -> None:
        """Once for each bucket and reason: it is asked about every few minutes, for every job."""
        if (bucket, code) not in self._warned and len(self._warned) < _MAX_WARNED:
            self._warned.add((bucket, code))
            cause = {"bucket": bucket, "cause": code}
            log.warning("cannot look for checkpoints; see CheckpointBucketArns", extra=cause)


def place_of(uri: str) -> tuple[str, str] | None:
    """Bucket and prefix of an S3 URI; None for anything else, such as the `https` form that SageMaker also takes.

    The prefix ends with a slash, so that the checkpoints of `job1` are not those of `job10`.
    """
    scheme, separator, rest = uri.partition("://")
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.strip("/")
    if scheme != "s3" or not separator or not _BUCKET.fullmatch(bucket) or len(prefix.encode()) > _MAX_KEY_LENGTH:
        return None
    return bucket, f"{prefix}/" if prefix else ""
