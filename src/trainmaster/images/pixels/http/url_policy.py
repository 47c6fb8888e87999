"""Checks URLs of images and models, which callers control, before anything is opened.

Allowed are S3, and HTTP at addresses of the public internet: no local files, no virtual file systems of GDAL, no
loopback addresses, where Lambda's runtime interface listens, and no private or link-local ones.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from trainmaster.domain.errors import InvalidRequest, Unavailable
from trainmaster.images.domain.urls import check_listed, listed_addresses, without_secrets

Resolver = Callable[[str], Iterable[str]]
"""Returns the addresses of a host. Raises OSError if it has none."""

MAX_URL_LENGTH = 2048
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HINT = "Specify s3://bucket/key, https://... or http://..."


@dataclass(frozen=True, slots=True)
class ImageLocation:
    """Location of an image.

    Attributes:
        url: as given.
        bucket, key: of an object in S3; "" for HTTP.
    """

    url: str
    bucket: str = ""
    key: str = ""

    @property
    def shown(self) -> str:
        """The URL without credentials and signatures, for messages."""
        return without_secrets(self.url)

    @property
    def name(self) -> str:
        """The last part of its path, such as `harbour.tif`; "image" without one."""
        path = self.key or unquote(urlsplit(self.url).path)
        return re.sub(r"[^A-Za-z0-9._-]", "_", path.rstrip("/").rpartition("/")[2]) or "image"


def addresses(host: str) -> list[str]:
    """Return the addresses of a host from this machine's resolver, in its order of preference."""
    found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def literal_addresses(host: str) -> set[str]:
    """Return the address if the host is a literal one, in any notation; raise OSError for names, without a lookup."""
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP, flags=socket.AI_NUMERICHOST)
    except (OSError, ValueError) as error:
        raise OSError("names are not resolved here") from error
    return {str(each[4][0]) for each in found}


def is_loopback(host: str | None) -> bool:
    """Return whether a host's name is a loopback name."""
    return host in _LOOPBACK


def image_location(url: str, *, loopback: bool = False, resolve: Resolver = addresses) -> ImageLocation:
    """Return the location that a URL names. Raises `InvalidRequest` for a URL that is not allowed.

    Args:
        url: `s3://bucket/key` or `http(s)://...`.
        loopback: whether all addresses are allowed, including loopback: local stacks only.
        resolve: returns the addresses of a host.
    """
    parts = _parts(url)
    if parts.scheme == "s3":
        bucket, key = parts.netloc, url.split("/", 3)[-1] if url.count("/") > 2 else ""
        if not _BUCKET.fullmatch(bucket) or not key:
            raise InvalidRequest(f"{url} has no bucket and key", field="imageUrls", hint=_HINT)
        return ImageLocation(url, bucket, key)
    if parts.scheme not in ("http", "https"):
        message = f"images are read from S3 and HTTP only, not from {without_secrets(url)}"
        raise InvalidRequest(message, field="imageUrls", hint=_HINT)
    check_host(url, field="imageUrls", loopback=loopback, resolve=resolve)
    return ImageLocation(url)


def check_model(url: str, *, s3_endpoint: str, hosts: Collection[str], resolve: Resolver = addresses) -> None:
    """Raise `InvalidRequest` if a model's URL is not of a listed host over TLS, or leads to no public address.

    A host that is listed by a private numeric address may have it; see `check_host`.

    Args:
        url: the model's.
        s3_endpoint: of boto3; a loopback address means a local stack, where all URLs are allowed.
        hosts: the listed hosts with their ports (`images/domain/urls.py`).
        resolve: returns the addresses of a host.
    """
    loopback, field = is_loopback(urlsplit(s3_endpoint).hostname), "imageProcessor.name"
    if not loopback:
        check_listed(url, hosts)
    check_host(url, field=field, loopback=loopback, resolve=resolve, listed=listed_addresses(hosts))


def check_host(
    url: str, *, field: str, loopback: bool = False, resolve: Resolver = addresses, listed: Collection[str] = ()
) -> None:
    """Raise `InvalidRequest`, naming the field, if a URL leads to no address of the public internet.

    Raises `Unavailable` if that cannot be decided now. Names of this machine are rejected without a lookup:
    `localhost.` and all of `*.localhost` (RFC 6761, 6.3). The connection has to be checked again (`connection.py`).
    """
    shown, host = without_secrets(url), _parts(url, field).hostname
    if not host:
        raise InvalidRequest(f"{shown} has no host", field=field)
    if loopback:
        return
    try:
        public_addresses(host, resolve=resolve, listed=listed)
    except InvalidRequest as error:
        raise InvalidRequest(f"{shown}: {error.message}", field=field) from error


def public_addresses(host: str, *, resolve: Resolver = addresses, listed: Collection[str] = ()) -> list[str]:
    """Return the addresses of a host, if all are of the public internet, or the host is a listed private address.

    Raises `InvalidRequest` if there are none or others, `Unavailable` if that cannot be decided now.
    """
    if not _HOST.fullmatch(host) or host.rstrip(".").rpartition(".")[2].lower() == "localhost":
        raise InvalidRequest(f"{host} does not resolve to a public address")
    try:
        found = list(resolve(host))
        parsed = [ipaddress.ip_address(each.partition("%")[0]) for each in found]
    except socket.gaierror as error:
        if error.errno not in _NO_SUCH_HOST:
            raise Unavailable(f"the address of {host} cannot be found now: {error}") from error
        raise InvalidRequest(f"the host {host} is not known") from error
    except UnicodeError as error:  # IDNA: such as a label of more than 63 characters
        raise InvalidRequest(f"{host} is not a host name: {error}") from error
    except (OSError, ValueError) as error:
        raise Unavailable(f"the address of {host} cannot be found now: {error}") from error
    if host in listed and not any(map(_is_of_this_machine, parsed)):
        return found
    if not found or not all(_is_public(each) for each in parsed):
        raise InvalidRequest(f"{host} does not resolve to a public address")
    return found


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether an address is public, including IPv4 in IPv6: mapped, 6to4, NAT64 (RFC 6052), Teredo."""
    if isinstance(address, ipaddress.IPv6Address):
        teredo = address.teredo[1] if address.teredo else None
        nat64 = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        inner = address.ipv4_mapped or address.sixtofour or teredo or nat64
        if inner is not None:
            return _is_public(inner)
        if address not in _UNICAST:
            return False
    return address.is_global and not address.is_multicast


def _is_of_this_machine(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether an address serves this machine only: loopback, link-local, and that of the metadata service."""
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if inner is not None:
        return _is_of_this_machine(inner)
    special = address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast
    return special or address in _METADATA


_METADATA = ipaddress.IPv6Network("fd00:ec2::/32")
"""Network of EC2's local instance services over IPv6 (EC2 user guide, "Instance metadata")."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""The range assigned to the public internet (IANA, "IPv6 Global Unicast Address Assignments")."""
_HOST = re.compile(r"[^\x00-\x20%\\/?#@<>|^`{}\"]+")
"""Characters outside this set are legal in no host, and URL parsers disagree about them."""
_NO_SUCH_HOST = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


def _parts(url: str, field: str = "imageUrls") -> SplitResult:
    if len(url) > MAX_URL_LENGTH or _CONTROL.search(url):
        raise InvalidRequest("the URL is too long, or has control characters", field=field)
    try:
        return urlsplit(url)
    except ValueError as error:
        raise InvalidRequest(f"{without_secrets(url)} is not a URL: {error}", field=field) from error
