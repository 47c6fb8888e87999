"""Opens images where they are, through GDAL: by ranges of bytes, with no other file looked for beside them.

It must not let GDAL open anything but the one URL: five drivers, none of which follows references into other files.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import rasterio
from botocore.exceptions import BotoCoreError, ClientError
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.io import DatasetReader
from rasterio.session import AWSSession, DummySession

from trainmaster.adapters.aws_errors import trouble
from trainmaster.domain.errors import InvalidRequest, NotPermitted, ServiceTrouble, Throttled, Unavailable
from trainmaster.domain.image.urls import without_secrets_of
from trainmaster.domain.one_line import one_line
from trainmaster.imaging.places import Place, is_loopback
from trainmaster.imaging.roles import Roles

# Once for the process: many images say nothing of where they are, and putting filters back is nothing for threads.
warnings.simplefilter("ignore", NotGeoreferencedWarning)

DRIVERS = ["GTiff", "NITF", "JPEG", "PNG", "JP2OpenJPEG"]
"""The formats that are read; naming them keeps GDAL from trying those that lead elsewhere, such as VRT."""
_OPTIONS = {
    # No listing of the folder, and no file beside the image: neither statistics nor world files nor overviews.
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
    # What one job's role may read is not kept for another's, and an image that is replaced is seen.
    "CPL_VSIL_CURL_NON_CACHED": "/vsis3/:/vsicurl/",
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


class Access:
    """Opens images under roles.

    Args:
        roles: whose sessions read from S3.
        s3_endpoint: where S3 answers, as boto3 has it (`client.meta.endpoint_url`), so that GDAL asks the same place:
            another partition, a private endpoint, or a stand-in for tests.
        http: asks why an image behind HTTP could not be opened.
        options: of GDAL, beside and before those here.
    """

    def __init__(
        self, roles: Roles, *, s3_endpoint: str, http: httpx.Client, options: dict[str, str] | None = None
    ) -> None:
        self._roles = roles
        self._s3_endpoint = s3_endpoint
        self._http = http
        self._options = _OPTIONS | _s3_options(s3_endpoint) | (options or {})

    @contextmanager
    def under(self, place: Place, role: str | None) -> Iterator[None]:
        """GDAL's surroundings for a place, of this thread; whoever reads has to be inside.

        Raises `NotPermitted`, `Throttled`, `Unavailable` where the role cannot be assumed.
        """
        session = AWSSession(self._roles.session(role)) if place.bucket else DummySession()
        options = self._options | {"CPL_VSIL_CURL_ALLOWED_FILENAME": place.path}
        with rasterio.Env(session=session, **options):
            yield

    def open(self, place: Place, role: str | None) -> DatasetReader:
        """The image, to be closed by the caller; to be called within `under`.

        Raises `InvalidRequest` for what is no image or is not to be had, `Throttled` or `Unavailable` where trying
        again may help.
        """
        if not place.bucket:
            self._refuse_redirect(place)
        try:
            return DatasetReader(place.path, driver=DRIVERS, sharing=False)
        except RasterioError as error:
            raise self.why(place, role, str(error)) from error

    def why(self, place: Place, role: str | None, said: str) -> InvalidRequest | ServiceTrouble:
        """Why GDAL could not read it: its own words do not tell a wrong key from a network that is down."""
        asked = self._ask_s3(place, role) if place.bucket else self._ask_http(place)
        told = f"{place.shown} is no image that can be read: {_clean(place, said)}"
        return asked or InvalidRequest(told, field=_FIELD)

    def _ask_s3(self, place: Place, role: str | None) -> InvalidRequest | ServiceTrouble | None:
        client = self._roles.session(role).client("s3", endpoint_url=self._s3_endpoint)
        try:
            client.head_object(Bucket=place.bucket, Key=place.key)
        except (ClientError, BotoCoreError) as error:
            found = trouble(error)
            if isinstance(found, Throttled | Unavailable):
                return found
            hint = "The role needs s3:GetObject on it." if isinstance(found, NotPermitted) else None
            return InvalidRequest(f"{place.shown} cannot be read: {found}", field=_FIELD, hint=hint)
        finally:
            client.close()
        return None

    def _refuse_redirect(self, place: Place) -> None:
        """GDAL goes wherever it is sent, also to addresses that `places` refuses, and has no option against that."""
        try:
            with self._http.stream("GET", place.url, headers={"Range": "bytes=0-0"}) as answer:
                leads = answer.is_redirect
        except httpx.HTTPError:
            return  # GDAL will meet the same trouble.
        if leads:
            hint = "Give the address that it leads to."
            raise InvalidRequest(f"{place.shown} leads to another address", field=_FIELD, hint=hint)

    def _ask_http(self, place: Place) -> InvalidRequest | ServiceTrouble | None:
        try:
            status = self._http.head(place.url).status_code
        except httpx.HTTPError as error:
            return Unavailable(f"{place.shown}: {type(error).__name__}: {_clean(place, str(error))}")
        if status == httpx.codes.TOO_MANY_REQUESTS:
            return Throttled(f"{place.shown}: HTTP status {status}")
        if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.REQUEST_TIMEOUT:
            return Unavailable(f"{place.shown}: HTTP status {status}")
        if status >= httpx.codes.BAD_REQUEST:
            return InvalidRequest(f"{place.shown} cannot be read: HTTP status {status}", field=_FIELD)
        return None


def _s3_options(endpoint: str) -> dict[str, str]:
    """Stand-ins on this machine answer to no host names with buckets in them, and speak plain HTTP."""
    parts = urlsplit(endpoint)
    return {
        "AWS_S3_ENDPOINT": parts.netloc,
        "AWS_HTTPS": "NO" if parts.scheme == "http" else "YES",
        "AWS_VIRTUAL_HOSTING": "FALSE" if is_loopback(parts.hostname) else "TRUE",
    }


def _clean(place: Place, said: str) -> str:
    """GDAL's message without its own name of the file, and without the secrets of an image's URL."""
    plain = said.replace("/vsis3/", "s3://").replace("/vsicurl/", "")
    return one_line(without_secrets_of(place.url, plain))[:500]
