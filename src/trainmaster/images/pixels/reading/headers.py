"""Reads images' headers by byte ranges; implements `images.ports.Headers`."""

from __future__ import annotations

from contextlib import closing

from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.http.url_policy import Resolver, addresses, image_location
from trainmaster.images.pixels.reading.access import Access
from trainmaster.images.pixels.reading.georeference import georeference_of, interest_window
from trainmaster.images.pixels.reading.windows import check_blocks
from trainmaster.images.ports import Header


class RasterHeaders:
    """Reads headers with rasterio.

    Args:
        access: opens images.
        loopback: whether images may be on this machine: local stacks only.
        resolve: returns the addresses of a host.
    """

    def __init__(self, access: Access, *, loopback: bool = False, resolve: Resolver = addresses) -> None:
        self._access = access
        self._loopback = loopback
        self._resolve = resolve

    def read(self, url: str, *, role: str | None = None, interest: str | None = None, submitter: str = "") -> Header:
        """Return the header of an image; see `images.ports.Headers.read`."""
        place = image_location(url, loopback=self._loopback, resolve=self._resolve)
        source = self._access.source(place, role, submitter)
        with closing(source), source.reading(), source.open() as image:
            if not image.count:
                raise InvalidRequest(f"{place.shown} has no bands", field="imageUrls")
            check_blocks(image)
            where = georeference_of(image, self._access.sensors)
            part = Window(0, 0, image.width, image.height)
            if where is not None and interest is not None:
                part = interest_window(interest, where, image.width, image.height)
            return Header(width=image.width, height=image.height, part=part)
