"""Opens images where they are, through GDAL: by ranges of bytes, with no other file looked for beside them.

It must not let GDAL open anything but the one image: five drivers, none of which follows references into other files.
Nor may GDAL ask HTTP by itself, but S3 only: it follows redirects wherever they lead.
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
from rasterio.io import DatasetReader, FilePathBase
from rasterio.session import AWSSession, DummySession, Session

from trainmaster.adapters.aws_errors import to_domain_error
from trainmaster.adapters.sts import Roles
from trainmaster.domain.errors import InvalidRequest, NotPermitted, ServiceError, Throttled, Unavailable
from trainmaster.domain.text import one_line
from trainmaster.images.domain.urls import without_secrets_of
from trainmaster.images.pixels.http.range_file import Ranges
from trainmaster.images.pixels.http.url_policy import Place, is_loopback

# Once for the process: many images say nothing of where they are, and putting filters back is nothing for threads.
warnings.simplefilter("ignore", NotGeoreferencedWarning)

DRIVERS = ["GTiff", "NITF", "JPEG", "PNG", "JP2OpenJPEG"]
"""The formats that are read; naming them keeps GDAL from trying those that lead elsewhere, such as VRT."""
_OPTIONS = {
    # No listing of the folder, and no file beside the image: neither statistics nor world files nor overviews.
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
    # What one job's role may read is not kept for another's, and an image that is replaced is seen.
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
_FIELD = "imageUrls"


class Source:
    """An image where it is, to be opened any number of times, by any threads. `Access.source` makes it.

    Args:
        place: of the image.
        path: the name by which GDAL opens it.
        options: of GDAL.
    """

    def __init__(self, place: Place, path: str, options: dict[str, Any]) -> None:
        self._place = place
        self._path = path
        # GDAL's own HTTP is for this path, and for nothing else that an image may name.
        self._options = options | {"CPL_VSIL_CURL_ALLOWED_FILENAME": path}

    def open(self) -> DatasetReader:
        """The image, to be closed by the caller; to be called within `reading`."""
        return DatasetReader(self._path, driver=DRIVERS, sharing=False)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """GDAL's surroundings, of this thread; whoever opens or reads has to be inside.

        Raises `InvalidRequest` for what is no image or is not to be had, `Throttled` or `Unavailable` where trying
        again may help, `NotPermitted` where its role cannot be assumed: also where GDAL got along without the bytes.
        """
        self._met()
        with rasterio.Env(session=self._session(), **self._options):
            try:
                yield
            except Exception as error:
                met = self._met()
                if met is None and isinstance(error, RasterioError):
                    met = self._why(str(error.__cause__ or error))
                if met is None:
                    raise
                raise met from error
        met = self._met()
        if met is not None:
            raise met

    def close(self) -> None:
        """Have nothing opened any more; what is open stays so."""

    def _session(self) -> Session:
        return DummySession()

    def _met(self) -> Exception | None:
        """What went wrong with bytes that GDAL wanted on this thread, since this was asked before."""
        return None

    def _why(self, said: str) -> InvalidRequest | ServiceError:
        """Why GDAL could not read it."""
        plain = without_secrets_of(self._place.url, said.replace(self._path, self._place.shown))
        return InvalidRequest(
            f"{self._place.shown} is no image that can be read: {one_line(plain)[:500]}", field=_FIELD
        )


class _InS3(Source):
    def __init__(
        self, place: Place, options: dict[str, Any], session: Callable[[], boto3.Session], endpoint: str
    ) -> None:
        super().__init__(place, f"/vsis3/{place.bucket}/{place.key}", options)
        self._boto3 = session
        self._endpoint = endpoint

    def _session(self) -> Session:
        return AWSSession(self._boto3())

    def _why(self, said: str) -> InvalidRequest | ServiceError:
        """S3 itself is asked: GDAL's words do not tell a wrong key from a network that is down."""
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
        return super()._why(said)


class _Registered(FilePathBase):  # type: ignore[misc]
    """A file of Python's under a name that GDAL opens, anew for each handle.

    rasterio has another way, `opener=`, whose register is of one thread alone: a handle that another thread closes is
    not found in it. It also has GDAL's table of file systems written to for each handle, while other threads read it.
    """


class _BehindHttp(Source):
    def __init__(self, place: Place, options: dict[str, Any], client: httpx.Client) -> None:
        self._ranges = Ranges(client, place)
        self._file = _Registered(self._ranges.open())
        super().__init__(place, self._file.name, options)

    def close(self) -> None:
        if not self._file.closed:
            self._file.close()

    def _met(self) -> Exception | None:
        return self._ranges.met()


class Access:
    """Where images are opened, under roles.

    Args:
        roles: whose sessions read from S3.
        s3_endpoint: where S3 answers, as boto3 has it (`client.meta.endpoint_url`), so that GDAL asks the same place:
            another partition, a private endpoint, or a stand-in for tests.
        http: reads images behind HTTP; see `Ranges`.
        options: of GDAL, beside and before those here.
    """

    def __init__(
        self, roles: Roles, *, s3_endpoint: str, http: httpx.Client, options: dict[str, str] | None = None
    ) -> None:
        self._roles = roles
        self._s3_endpoint = s3_endpoint
        self._http = http
        self._options = _OPTIONS | _s3_options(s3_endpoint) | (options or {})

    def source(self, place: Place, role: str | None) -> Source:
        """The image at a place, read under a role or our own; to be closed by the caller. Asks nobody yet."""
        if place.bucket:
            return _InS3(place, self._options, lambda: self._roles.session(role), self._s3_endpoint)
        return _BehindHttp(place, self._options, self._http)


def _s3_options(endpoint: str) -> dict[str, str]:
    """Stand-ins on this machine answer to no host names with buckets in them, and speak plain HTTP."""
    parts = urlsplit(endpoint)
    return {
        "AWS_S3_ENDPOINT": parts.netloc,
        "AWS_HTTPS": "NO" if parts.scheme == "http" else "YES",
        "AWS_VIRTUAL_HOSTING": "FALSE" if is_loopback(parts.hostname) else "TRUE",
    }
