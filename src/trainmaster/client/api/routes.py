"""Paths and queries as they are sent: encoded as Signature Version 4 wants them, so that what is signed is sent.

It must not send anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode


def path_of(name: str, kind: str = "jobs") -> str:
    """The path of one thing of a kind."""
    return f"/{kind}/{quote(name, safe='')}"


def query_of(query: Mapping[str, object]) -> str:
    """The query with its `?`, without what is None; a space is %20."""
    given = {key: str(value) for key, value in query.items() if value is not None}
    return "?" + urlencode(given, quote_via=quote, safe="-_.~") if given else ""
