"""Versions of client and service, and which of them work together (docs/reference/compatibility.md)."""

from __future__ import annotations

import re

VERSION = "0.2.0"
"""This release. Both distributions, `trainmaster.__version__` and the SBOM of each bundle take it from here."""
VERSION_HEADER = "x-trainmaster-version"
"""Header of requests and responses with the version of their sender."""
MIN_CLIENT = "0.1.0"
"""The oldest client that the service serves."""
MIN_SERVICE = "0.1.0"
"""The oldest service that the client supports."""
EXPORT_VERSION = 1
"""Version of the document that an export makes, and the newest that an import reads."""
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?")
_Release = tuple[int, int, int]


def client_problem(client: str, service: str) -> str | None:
    """Return why the service does not serve a client of this version; None if it does, or if the text is no version."""
    found = _release(client)
    if found is None or found >= _known(MIN_CLIENT):
        return None
    return f"The client has version {client}; the service, of version {service}, serves clients from {MIN_CLIENT} on."


def service_problem(service: str, client: str) -> str | None:
    """Return a warning for users of a client about the version of the service; None if they work together."""
    found, own = _release(service), _release(client)
    if found is None or own is None:
        return None
    if found < _known(MIN_SERVICE):
        return (
            f"The service has version {service}; this client, of version {client}, supports services from "
            f"{MIN_SERVICE} on. Ask the queue's administrator to update the stack."
        )
    if found[:2] > own[:2]:
        return f"The service has version {service}, this client {client}. Update it: pip install --upgrade trainmaster"
    return None


def is_older(version: str, other: str) -> bool:
    """Return whether a version comes before another; False if either is no version."""
    found, present = _release(version), _release(other)
    return found is not None and present is not None and found < present


def _known(version: str) -> _Release:
    return _release(version) or (0, 0, 0)


def _release(text: str) -> _Release | None:
    """Return the parts of a version; None for any other text. A suffix such as `rc1` is ignored."""
    found = _VERSION.match(text.strip())
    return None if found is None else (int(found[1]), int(found[2]), int(found[3] or 0))
