"""Reads parts of an image in S3, with boto3: under roles, in any Region, and behind access points."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainmaster.adapters.aws_errors import AWS_ERRORS, AwsError, code_of, to_domain_error
from trainmaster.domain.errors import InvalidRequest, NotPermitted, ServiceError, Throttled, Unavailable
from trainmaster.images.pixels.http.url_policy import ImageLocation
from trainmaster.images.pixels.http.versions import Version

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_SIZE = re.compile(r"/(\d+)$", re.ASCII)
_EMPTY = "InvalidRange"
"""S3's code for a range that begins after the end of an object, as every range of an empty object does."""


class S3Parts:
    """Requests parts of an object; see `range_file.Parts`.

    Args:
        client: returns the client to use; its credentials may change.
        place: of the image.
    """

    def __init__(self, client: Callable[[], S3Client], place: ImageLocation) -> None:
        self._client = client
        self._place = place

    def __call__(self, start: int, stop: int) -> tuple[bytes, Version]:
        """Return bytes of the image; see `range_file.Parts`. Also raises as `Roles.session` does."""
        place = self._place
        try:
            answer = self._client().get_object(Bucket=place.bucket, Key=place.key, Range=f"bytes={start}-{stop - 1}")
            data = answer["Body"].read()
        except AWS_ERRORS as error:
            if code_of(error) == _EMPTY:
                return b"", Version(0, "", "")
            raise self._error(error) from error
        found = _SIZE.search(answer.get("ContentRange", ""))
        if found is None:
            raise InvalidRequest(f"{place.shown} cannot be read in parts", field="imageUrls")
        return data, Version(int(found[1]), answer.get("ETag", ""), "")

    def _error(self, error: AwsError) -> ServiceError | InvalidRequest:
        found = to_domain_error(error)
        if isinstance(found, Throttled | Unavailable):
            return found
        hint = "The role needs s3:GetObject on it." if isinstance(found, NotPermitted) else None
        return InvalidRequest(f"{self._place.shown} cannot be read: {found}", field="imageUrls", hint=hint)
