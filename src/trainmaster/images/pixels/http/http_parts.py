"""Reads parts of an image behind HTTP, without redirects."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import httpx

from trainmaster.domain.errors import InvalidRequest, Throttled, Unavailable
from trainmaster.domain.text import one_line
from trainmaster.images.domain.urls import without_secrets_of
from trainmaster.images.pixels.http.connection import PATIENCE
from trainmaster.images.pixels.http.url_policy import ImageLocation
from trainmaster.images.pixels.http.versions import Version

_MAX_SIZE = 2**60
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})", re.ASCII)
_FIELD = "imageUrls"


class HttpParts:
    """Requests parts of an image from a server that supports byte ranges; see `range_file.Parts`.

    Args:
        client: sends requests; it must not follow redirects, nor connect to forbidden addresses.
        place: of the image.
        now: seconds of a monotonic clock.
    """

    def __init__(
        self, client: httpx.Client, place: ImageLocation, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._place = place
        self._now = now

    def __call__(self, start: int, stop: int) -> tuple[bytes, Version]:
        """Return bytes of the image; see `range_file.Parts`."""
        headers = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        until = self._now() + PATIENCE
        data = bytearray()
        try:
            with self._client.stream("GET", self._place.url, headers=headers) as answer:
                length, version = self._length(answer, start, stop)
                # Reading to the end lets the connection be reused; without a Content-Length the end is not awaited.
                limit = length if answer.headers.get("Content-Length") == str(length) else length - 1
                for piece in answer.iter_raw():
                    data += piece
                    if len(data) > limit:
                        break
                    if self._now() > until:
                        raise Unavailable(f"{self._place.shown}: no answer within {PATIENCE:.0f} seconds")
        except httpx.InvalidURL as error:
            raise InvalidRequest(f"{self._place.shown} is not a URL: {self._clean(error)}", field=_FIELD) from error
        except httpx.HTTPError as error:
            raise Unavailable(f"{self._place.shown}: {type(error).__name__}: {self._clean(error)}") from error
        except InvalidRequest as error:
            error.field = _FIELD
            raise
        if len(data) < length:
            raise Unavailable(f"{self._place.shown}: the answer ends too early")
        return bytes(data[:length]), version

    def _length(self, answer: httpx.Response, start: int, stop: int) -> tuple[int, Version]:
        """Return the number of bytes in the answer's range, which has to be the requested one, and the version."""
        _check_status(self._place, answer)
        shown, found = self._place.shown, _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        packed = answer.headers.get("Content-Encoding", "identity").strip().lower() != "identity"
        if answer.status_code != httpx.codes.PARTIAL_CONTENT or found is None or packed:
            hint = "Store it on a server that supports byte ranges, such as S3."
            raise InvalidRequest(
                f"{shown} cannot be read in parts: its server does not support byte ranges", field=_FIELD, hint=hint
            )
        begins, ends, size = (int(each) for each in found.groups())
        if begins != start or ends + 1 != min(stop, size) or size > _MAX_SIZE:
            raise InvalidRequest(
                f"{shown} cannot be read: its server returns other ranges than requested", field=_FIELD
            )
        return ends + 1 - begins, Version.from_headers(size, answer.headers)

    def _clean(self, error: Exception) -> str:
        return one_line(without_secrets_of(self._place.url, str(error)))[:500]


def _check_status(place: ImageLocation, answer: httpx.Response) -> None:
    status = answer.status_code
    told = f"{place.shown}: HTTP status {status}"
    if status == httpx.codes.TOO_MANY_REQUESTS:
        raise Throttled(told)
    if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.REQUEST_TIMEOUT:
        raise Unavailable(told)
    if status >= httpx.codes.BAD_REQUEST:
        raise InvalidRequest(f"{place.shown} cannot be read: HTTP status {status}", field=_FIELD)
    if status >= httpx.codes.MULTIPLE_CHOICES:
        hint = "Specify the address to which it redirects."
        raise InvalidRequest(f"{place.shown} redirects to another address", field=_FIELD, hint=hint)
