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

from trainmaster.domain.errors import InvalidRequest, Unavailable
from trainmaster.images.domain.urls import without_secrets

Resolver = Callable[[str], Iterable[str]]
"""The addresses of a host. Raises OSError where it has none."""

MAX_URL_LENGTH = 2048
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
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
    def shown(self) -> str:
        """The URL for people: without credentials and signatures."""
        return without_secrets(self.url)

    @property
    def name(self) -> str:
        """The last part of its path, such as `harbour.tif`; "image" where it has none."""
        path = self.key or unquote(urlsplit(self.url).path)
        return re.sub(r"[^A-Za-z0-9._-]", "_", path.rstrip("/").rpartition("/")[2]) or "image"


def addresses(host: str) -> list[str]:
    """The addresses of a host, as this machine's resolver gives them, those first that it takes to be reached best."""
    found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def written_out(host: str) -> set[str]:
    """The address that a host itself is, in any way of writing it. Asks nobody: raises OSError for all names."""
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP, flags=socket.AI_NUMERICHOST)
    except (OSError, ValueError) as error:
        raise OSError("nobody is asked for names here") from error
    return {str(each[4][0]) for each in found}


def is_loopback(host: str | None) -> bool:
    """Whether a host's name is one of this machine's own."""
    return host in _LOOPBACK


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
        told = f"images are read from S3 and HTTP only, not from {without_secrets(url)}"
        raise InvalidRequest(told, field="imageUrls", hint=_HINT)
    check_host(url, field="imageUrls", loopback=loopback, resolve=resolve)
    return Place(url)


def check_model(url: str, *, s3_endpoint: str, resolve: Resolver = addresses) -> None:
    """Raise `InvalidRequest` where a model's URL leads to no public address; see `check_host`.

    Args:
        url: the model's.
        s3_endpoint: where boto3 finds S3; on this machine only in a local stack, where all addresses are allowed.
        resolve: asked for the addresses of a host.
    """
    check_host(url, field="imageProcessor.name", loopback=is_loopback(urlsplit(s3_endpoint).hostname), resolve=resolve)


def check_host(url: str, *, field: str, loopback: bool = False, resolve: Resolver = addresses) -> None:
    """Raise `InvalidRequest`, naming the field, where a URL leads to no address of the public internet.

    Raises `Unavailable` where that cannot be told now. Names that mean this machine are refused without asking anybody:
    `localhost.` and all of `*.localhost` (RFC 6761, 6.3). Whoever connects later has to look again (`connecting.py`).
    """
    shown, host = without_secrets(url), _parts(url, field).hostname
    if not host:
        raise InvalidRequest(f"{shown} names no host", field=field)
    if loopback:
        return
    try:
        public_addresses(host, resolve=resolve)
    except InvalidRequest as error:
        raise InvalidRequest(f"{shown}: {error.message}", field=field) from error


def public_addresses(host: str, *, resolve: Resolver = addresses) -> list[str]:
    """The addresses of a host, all of the public internet.

    Raises `InvalidRequest` where there are none or others, `Unavailable` where that cannot be told now.
    """
    if not _HOST.fullmatch(host) or host.rstrip(".").rpartition(".")[2].lower() == "localhost":
        raise InvalidRequest(f"{host} leads to no public address")
    try:
        found = list(resolve(host))
        parsed = [ipaddress.ip_address(each.partition("%")[0]) for each in found]
    except socket.gaierror as error:
        if error.errno not in _NO_SUCH_HOST:
            raise Unavailable(f"the address of {host} cannot be found now: {error}") from error
        raise InvalidRequest(f"the host {host} is not known") from error
    except UnicodeError as error:  # IDNA: such as a label of more than 63 characters
        raise InvalidRequest(f"{host} is no name of a host: {error}") from error
    except (OSError, ValueError) as error:
        raise Unavailable(f"the address of {host} cannot be found now: {error}") from error
    if not found or not all(_is_public(each) for each in parsed):
        raise InvalidRequest(f"{host} leads to no public address")
    return found


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Also of those IPv6 addresses that stand for one of IPv4: mapped, of 6to4, of NAT64 (RFC 6052), of Teredo."""
    if isinstance(address, ipaddress.IPv6Address):
        teredo = address.teredo[1] if address.teredo else None
        nat64 = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        inner = address.ipv4_mapped or address.sixtofour or teredo or nat64
        if inner is not None:
            return _is_public(inner)
        if address not in _UNICAST:
            return False
    return address.is_global and not address.is_multicast


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All that has been given out for the public internet (IANA, "IPv6 Global Unicast Address Assignments")."""
_HOST = re.compile(r"[^\x00-\x20%\\/?#@<>|^`{}\"]+")
"""No host has any of these; parsers of URLs differ in what they make of them."""
_NO_SUCH_HOST = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


def _parts(url: str, field: str = "imageUrls") -> SplitResult:
    if len(url) > MAX_URL_LENGTH or _CONTROL.search(url):
        raise InvalidRequest("the URL is too long, or has control characters", field=field)
    try:
        return urlsplit(url)
    except ValueError as error:
        raise InvalidRequest(f"{without_secrets(url)} is no URL: {error}", field=field) from error
