"""Where an image or a model is: a URL that strangers gave, checked before anything is opened.

Only S3 and HTTP: never a file of this machine, never one of GDAL's own virtual file systems, and no address of this
machine's own network stack, where Lambda's runtime interface listens. It must not open anything.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from trainmaster.domain.errors import InvalidRequest

Resolver = Callable[[str], Iterable[str]]
"""The addresses of a host. Raises OSError where it has none."""

LONGEST_URL = 2048
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_HINT = "Give s3://bucket/key, https://... or http://..."


@dataclass(frozen=True, slots=True)
class Place:
    """Where an image is.

    Attributes:
        url: as it was given.
        bucket, key: of an object in S3; "" of what HTTP answers.
    """

    url: str
    bucket: str = ""
    key: str = ""

    @property
    def path(self) -> str:
        """The name by which GDAL opens it."""
        return f"/vsis3/{self.bucket}/{self.key}" if self.bucket else f"/vsicurl/{self.url}"

    @property
    def name(self) -> str:
        """The last part of its path, such as `harbour.tif`; "image" where it has none."""
        path = self.key or unquote(urlsplit(self.url).path)
        return re.sub(r"[^A-Za-z0-9._-]", "_", path.rstrip("/").rpartition("/")[2]) or "image"


def addresses(host: str) -> set[str]:
    """The addresses of a host, as this machine's resolver gives them."""
    return {str(found[4][0]) for found in socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)}


def place_of(url: str, *, loopback: bool = False, resolve: Resolver = addresses) -> Place:
    """The place that a URL names. Raises `InvalidRequest` for what is no place of an image.

    Args:
        url: `s3://bucket/key` or `http(s)://...`.
        loopback: whether this machine's own addresses are allowed: local stacks only.
        resolve: asked for the addresses of a host.
    """
    parts = _parts(url)
    if parts.scheme == "s3":
        bucket, key = parts.netloc, url.split("/", 3)[-1] if url.count("/") > 2 else ""
        if not _BUCKET.fullmatch(bucket) or not key:
            raise InvalidRequest(f"{url} names no bucket and key", field="imageUrls", hint=_HINT)
        return Place(url, bucket, key)
    if parts.scheme not in ("http", "https"):
        raise InvalidRequest(f"images are read from S3 and HTTP only, not from {url}", field="imageUrls", hint=_HINT)
    check_host(url, field="imageUrls", loopback=loopback, resolve=resolve)
    return Place(url)


def check_host(url: str, *, field: str, loopback: bool = False, resolve: Resolver = addresses) -> None:
    """Raise `InvalidRequest`, naming the field, where a URL leads to this machine itself or to no machine at all.

    A host that cannot be resolved now is let through: then calling it says so, and it may be tried again.
    """
    host = _parts(url, field).hostname
    if not host:
        raise InvalidRequest(f"{url} names no host", field=field)
    if loopback:
        return
    try:
        found = [ipaddress.ip_address(each.partition("%")[0]) for each in resolve(host)]
    except (OSError, ValueError):
        return
    if any(_own(each) for each in found):
        raise InvalidRequest(f"{url} leads to the machine that would read it", field=field)


def _own(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None)
    it = mapped or address
    return bool(it.is_loopback or it.is_link_local or it.is_unspecified or it.is_multicast)


def _parts(url: str, field: str = "imageUrls") -> SplitResult:
    if len(url) > LONGEST_URL or _CONTROL.search(url):
        raise InvalidRequest("the URL is too long, or has blanks or control characters", field=field)
    try:
        return urlsplit(url)
    except ValueError as error:
        raise InvalidRequest(f"{url} is no URL: {error}", field=field) from error
