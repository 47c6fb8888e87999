"""URLs without credentials and signatures, for logs, messages and names of pools; the hosts that models may be on."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit, urlunsplit

from trainmaster.domain.errors import InvalidRequest

HOSTS_SETTING = "MODEL_HOSTS"
"""Setting that lists the hosts whose models image jobs may call, as `host` or `host:port`."""
HTTPS_PORT = 443
_ENTRY = re.compile(r"([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?", re.ASCII)
_FIELD = "imageProcessor.name"
_HINT = "Ask for the host to be added to the parameter ModelHosts of the deployment of image jobs."
_PORTS = {"http": 80, "https": 443}


def without_secrets(url: str) -> str:
    """Return an HTTP URL without user, password, query and fragment; other URLs, such as S3's, unchanged."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("?")[0]
    if parts.scheme not in _PORTS:
        return url
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def without_secrets_of(url: str, message: str) -> str:
    """Return a message about a URL without the URL's credentials and signatures, even if it quotes only part of it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return message
    if parts.scheme not in _PORTS:
        return message
    secrets = (f"{parts.netloc.rpartition('@')[0]}@", f"?{parts.query}", parts.query, f"#{parts.fragment}")
    for secret in secrets:
        message = message.replace(secret, "") if len(secret) > 1 else message
    return message


def normal(url: str) -> str:
    """Return one text for all URLs that are equal: no secrets, a lower-case host, no default port.

    See RFC 3986, 6.2.2.1 and 6.2.3.
    """
    parts = urlsplit(without_secrets(url))
    place = parts.netloc.lower().removesuffix(f":{_PORTS.get(parts.scheme)}").removesuffix(":")
    return urlunsplit((parts.scheme, place, parts.path if parts.path != "/" else "", "", ""))


def parse_hosts(text: str) -> frozenset[str]:
    """Return the hosts of a setting, each with its port; ports are 443 unless given. Raises `InvalidRequest`."""
    return frozenset(_entry(item) for item in text.split(",") if item)


def check_listed(url: str, hosts: Collection[str]) -> None:
    """Raise `InvalidRequest` unless a model's URL is of a listed host, over TLS."""
    shown = without_secrets(url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or HTTPS_PORT
    except ValueError as error:
        raise InvalidRequest(f"{shown} is not a URL: {error}", field=_FIELD) from error
    if parts.scheme != "https":
        raise InvalidRequest(f"{shown} is not encrypted; models are called over https:// only.", field=_FIELD)
    if _with_port(host.rstrip("."), port) not in hosts:
        raise InvalidRequest(f"This deployment does not call models at {host}:{port}.", field=_FIELD, hint=_HINT)


def listed_addresses(hosts: Collection[str]) -> frozenset[str]:
    """Return the hosts that are listed as numeric addresses, without their ports; these may be private."""
    return frozenset(filter(_is_address, (host.rpartition(":")[0].strip("[]") for host in hosts)))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _entry(item: str) -> str:
    found = _ENTRY.fullmatch(item.strip().lower())
    if found is None:
        hint = "Use hosts with optional ports, separated by commas: models.example.com,models.example.org:8443"
        raise InvalidRequest(f"{item!r} is not a host", field=HOSTS_SETTING, hint=hint)
    return _with_port(found[1].strip("[]").rstrip("."), int(found[2] or HTTPS_PORT))


def _with_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
