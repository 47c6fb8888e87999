"""Where an image or a model is: a URL that strangers gave, checked before anything is opened.

Only S3 and HTTP: never a file of this machine, never one of GDAL's own virtual file systems, and only addresses of the
public internet: not this machine, where Lambda's runtime interface listens, nor what answers to its neighbours alone.
It must not open anything.
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
        loopback: whether all addresses are allowed, this machine's own among them: local stacks only.
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
    """Raise `InvalidRequest`, naming the field, where a URL leads to no address of the public internet.

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
    if not all(_is_public(each) for each in found):
        raise InvalidRequest(f"{url} leads to no public address", field=field)


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Also of those IPv6 addresses that stand for one of IPv4: mapped, of 6to4, of NAT64 (RFC 6052), of Teredo."""
    if isinstance(address, ipaddress.IPv6Address):
        teredo = address.teredo[1] if address.teredo else None
        nat64 = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        inner = address.ipv4_mapped or address.sixtofour or teredo or nat64
        if inner is not None:
            return _is_public(inner)
    return address.is_global and not address.is_multicast


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def _parts(url: str, field: str = "imageUrls") -> SplitResult:
    if len(url) > LONGEST_URL or _CONTROL.search(url):
        raise InvalidRequest("the URL is too long, or has blanks or control characters", field=field)
    try:
        return urlsplit(url)
    except ValueError as error:
        raise InvalidRequest(f"{url} is no URL: {error}", field=field) from error
