"""Opens images through GDAL by byte ranges, without looking for other files beside them.

GDAL must open nothing but the one image: five drivers, none of which follows references into other files. Nor may it
send HTTP requests itself, except to S3: it follows redirects to any address.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
import rasterio
from botocore.exceptions import BotoCoreError, ClientError
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.io import DatasetReader
from rasterio.session import AWSSession, DummySession, Session

from trainmaster.adapters.aws_errors import to_domain_error
from trainmaster.adapters.sts import Roles
from trainmaster.domain.errors import InvalidRequest, NotPermitted, ServiceError, Throttled, Unavailable
from trainmaster.domain.text import one_line
from trainmaster.images.domain.urls import without_secrets_of
from trainmaster.images.pixels.http.range_file import Ranges
from trainmaster.images.pixels.http.url_policy import ImageLocation, is_loopback
from trainmaster.images.pixels.reading.registered_file import RegisteredFile

# Once per process: many images have no georeference, and restoring warning filters is not safe for threads.
warnings.simplefilter("ignore", NotGeoreferencedWarning)

DRIVERS = ["GTiff", "NITF", "JPEG", "PNG", "JP2OpenJPEG"]
"""The supported formats; naming them keeps GDAL from drivers that open other files, such as VRT."""
OPTIONS = {
    # No listing of the folder, and no file beside the image: neither statistics nor world files nor overviews.
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
    # No caching across roles, so that a role reads only what it may, and that a replaced image is read again.
    "CPL_VSIL_CURL_NON_CACHED": "/vsis3/",
    "GDAL_HTTP_CONNECTTIMEOUT": "5",
    "GDAL_HTTP_TIMEOUT": "60",
    "GDAL_HTTP_MAX_RETRY": "3",
    "GDAL_HTTP_RETRY_DELAY": "0.2",
    "GDAL_INGESTED_BYTES_AT_OPEN": "32768",
    "VSI_CACHE": "TRUE",
    "GDAL_CACHEMAX": 128,
    "GDAL_NUM_THREADS": "1",
}
"""Options of GDAL while it reads an image."""
_FIELD = "imageUrls"


class Source:
    """An image that any threads may open any number of times; made by `Access.source`.

    Args:
        place: of the image.
        path: its name for GDAL.
        options: of GDAL.
    """

    def __init__(self, place: ImageLocation, path: str, options: dict[str, Any]) -> None:
        self._place = place
        self._path = path
        # GDAL's own HTTP client may read this path, and no other that an image may name.
        self._options = options | {"CPL_VSIL_CURL_ALLOWED_FILENAME": path}

    def open(self) -> DatasetReader:
        """Return the open image; call it within `reading`, and close the result."""
        return DatasetReader(self._path, driver=DRIVERS, sharing=False)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Set GDAL's environment for this thread; open and read images inside it only.

        Raises `InvalidRequest` for a file that is not an image or cannot be read, `Throttled` or `Unavailable` if a
        retry may help, `NotPermitted` if the role cannot be assumed; also if GDAL succeeded without the missing bytes.
        """
        self._met()
        with rasterio.Env(session=self._session(), **self._options):
            try:
                yield
            except Exception as error:
                met = self._met()
                if met is None and isinstance(error, RasterioError):
                    met = self._reason(str(error.__cause__ or error))
                if met is None:
                    raise
                raise met from error
        met = self._met()
        if met is not None:
            raise met

    def close(self) -> None:
        """Let nothing more be opened; open handles stay open."""

    def _session(self) -> Session:
        return DummySession()

    def _met(self) -> Exception | None:
        """Return the last error of GDAL's reads on this thread since the last call."""
        return None

    def _reason(self, message: str) -> InvalidRequest | ServiceError:
        """Return the reason for GDAL's error."""
        plain = without_secrets_of(self._place.url, message.replace(self._path, self._place.shown))
        return InvalidRequest(
            f"{self._place.shown} is not an image that can be read: {one_line(plain)[:500]}", field=_FIELD
        )


class _InS3(Source):
    def __init__(
        self, place: ImageLocation, options: dict[str, Any], session: Callable[[], boto3.Session], endpoint: str
    ) -> None:
        super().__init__(place, f"/vsis3/{place.bucket}/{place.key}", options)
        self._boto3 = session
        self._endpoint = endpoint

    def _session(self) -> Session:
        return AWSSession(self._boto3())

    def _reason(self, message: str) -> InvalidRequest | ServiceError:
        """Ask S3 for the reason: GDAL's message does not tell a wrong key from a network error."""
        client = self._boto3().client("s3", endpoint_url=self._endpoint)
        try:
            client.head_object(Bucket=self._place.bucket, Key=self._place.key)
        except (ClientError, BotoCoreError) as error:
            found = to_domain_error(error)
            if isinstance(found, Throttled | Unavailable):
                return found
            hint = "The role needs s3:GetObject on it." if isinstance(found, NotPermitted) else None
            return InvalidRequest(f"{self._place.shown} cannot be read: {found}", field=_FIELD, hint=hint)
        finally:
            client.close()
        return super()._reason(message)


class _BehindHttp(Source):
    def __init__(self, place: ImageLocation, options: dict[str, Any], client: httpx.Client) -> None:
        self._ranges = Ranges(client, place)
        self._file = RegisteredFile(self._ranges.open())
        super().__init__(place, self._file.name, options)

    def close(self) -> None:
        if not self._file.closed:
            self._file.close()

    def _met(self) -> Exception | None:
        return self._ranges.met()


class Access:
    """Opens images under roles.

    Args:
        roles: sessions that read from S3.
        s3_endpoint: of boto3 (`client.meta.endpoint_url`), so that GDAL uses the same: another partition, a private
            endpoint, or a simulator.
        http: reads images behind HTTP; see `Ranges`.
        options: of GDAL, overriding those of this module.
    """

    def __init__(
        self, roles: Roles, *, s3_endpoint: str, http: httpx.Client, options: dict[str, str] | None = None
    ) -> None:
        self._roles = roles
        self._s3_endpoint = s3_endpoint
        self._http = http
        self._options = OPTIONS | _s3_options(s3_endpoint) | (options or {})

    def source(self, place: ImageLocation, role: str | None, submitter: str = "") -> Source:
        """Return the image at a place, under a role or the queue's own; sends no request. Close the result.

        The role is assumed for the job of the submitter, a principal; "" if it is unknown.
        """
        if place.bucket:
            return _InS3(place, self._options, lambda: self._roles.session(role, submitter), self._s3_endpoint)
        return _BehindHttp(place, self._options, self._http)


def _s3_options(endpoint: str) -> dict[str, str]:
    """Return GDAL's options for S3: simulators on this machine use plain HTTP, without buckets in host names."""
    parts = urlsplit(endpoint)
    return {
        "AWS_S3_ENDPOINT": parts.netloc,
        "AWS_HTTPS": "NO" if parts.scheme == "http" else "YES",
        "AWS_VIRTUAL_HOSTING": "FALSE" if is_loopback(parts.hostname) else "TRUE",
    }
