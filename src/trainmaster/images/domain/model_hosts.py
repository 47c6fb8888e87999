"""The hosts whose models a deployment lets image jobs call, as `host` or `host:port`."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.urls import without_secrets

SETTING = "MODEL_HOSTS"
HTTPS_PORT = 443
_ENTRY = re.compile(r"([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?", re.ASCII)
_FIELD = "imageProcessor.name"
_HINT = "Ask for the host to be added to the parameter ModelHosts of the deployment of image jobs."


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
        raise InvalidRequest(f"{item!r} is not a host", field=SETTING, hint=hint)
    return _with_port(found[1].strip("[]").rstrip("."), int(found[2] or HTTPS_PORT))


def _with_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
