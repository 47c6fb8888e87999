"""Opens images through GDAL by byte ranges, without looking for other files beside them.

GDAL must open nothing but the one image: five drivers, none of which follows references into other files. Nor may it
send HTTP requests itself: it follows redirects to any address, and rasterio holds Python's lock during some of its
reads, such as that of a JPEG's mask, so that no other thread of a worker could send a heartbeat meanwhile.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import rasterio
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.io import DatasetReader
from rasterio.session import DummySession

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.text import one_line
from trainmaster.images.domain.urls import without_secrets_of
from trainmaster.images.pixels.http.http_parts import HttpParts
from trainmaster.images.pixels.http.range_file import Ranges
from trainmaster.images.pixels.http.url_policy import ImageLocation
from trainmaster.images.pixels.reading.registered_file import RegisteredFile
from trainmaster.images.pixels.reading.s3_parts import S3Parts
from trainmaster.images.pixels.reading.sensors import NO_SENSORS, Sensors
from trainmaster.images.pixels.role_clients import RoleClients

# Once per process: many images have no georeference, and restoring warning filters is not safe for threads.
warnings.simplefilter("ignore", NotGeoreferencedWarning)

DRIVERS = ["GTiff", "NITF", "JPEG", "PNG", "JP2OpenJPEG"]
"""The supported formats; naming them keeps GDAL from drivers that open other files, such as VRT."""
OPTIONS = {
    # No listing of the folder, and no file beside the image: neither statistics nor world files nor overviews.
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
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
    """

    def __init__(self, place: ImageLocation, path: str) -> None:
        self._place = place
        self._path = path
        # GDAL's own HTTP client may read nothing: this path is none of its own.
        self._options = OPTIONS | {"CPL_VSIL_CURL_ALLOWED_FILENAME": path}

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
        with rasterio.Env(session=DummySession(), **self._options):
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

    def _met(self) -> Exception | None:
        """Return the last error of GDAL's reads on this thread since the last call."""
        return None

    def _reason(self, message: str) -> InvalidRequest:
        """Return the reason for GDAL's error."""
        plain = without_secrets_of(self._place.url, message.replace(self._path, self._place.shown))
        return InvalidRequest(
            f"{self._place.shown} is not an image that can be read: {one_line(plain)[:500]}", field=_FIELD
        )


class _Ranged(Source):
    def __init__(self, place: ImageLocation, ranges: Ranges) -> None:
        self._ranges = ranges
        self._file = RegisteredFile(ranges.open())
        super().__init__(place, self._file.name)

    def close(self) -> None:
        if not self._file.closed:
            self._file.close()

    def _met(self) -> Exception | None:
        return self._ranges.met()


class Access:
    """Opens images under roles.

    Args:
        s3: clients of S3 under roles, which retry by themselves.
        http: reads images behind HTTP; see `HttpParts`.
        sensors: the deployment's sensor models, and the elevation.
    """

    def __init__(
        self,
        s3: RoleClients,
        *,
        http: httpx.Client,
        sensors: Sensors = NO_SENSORS,
    ) -> None:
        self.sensors = sensors
        self._s3 = s3
        self._http = http

    def source(self, place: ImageLocation, role: str | None, submitter: str = "") -> Source:
        """Return the image at a place, under a role or the queue's own; sends no request. Close the result.

        The role is assumed for the job of the submitter, a principal; "" if it is unknown.
        """
        if place.bucket:
            ranges = Ranges(S3Parts(lambda: self._s3.client(role, submitter), place), place, pauses=())
        else:
            ranges = Ranges(HttpParts(self._http, place), place)
        return _Ranged(place, ranges)
