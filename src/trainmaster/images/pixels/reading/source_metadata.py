"""Source of an image by its own header, as ModelRunner adds it to features (`get_source_property`): NITF only."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from rasterio.io import DatasetReader

from trainmaster.domain.compat import UTC

# MIL-STD-2500C, IDATIM: CCYYMMDDhhmmss; MIL-STD-2500A (NITF 2.0): DDHHMMSSZMONYY. Unknown parts are hyphens.
_TIMES = (
    (re.compile(r"[0-9]{14}", re.ASCII), "%Y%m%d%H%M%S"),
    (re.compile(r"[0-9]{8}Z[A-Z]{3}[0-9]{2}", re.ASCII), "%d%H%M%SZ%b%y"),
)


def source_metadata(image: DatasetReader) -> dict[str, Any]:
    """Return the category (ICAT), title (FTITLE) and time (IDATIM) of a NITF; empty for an image of another format.

    A value is None if the header has none, and the time also if a part of it is unknown or invalid.
    """
    if image.driver != "NITF":
        return {}
    tags = image.tags()
    return {
        "category": tags.get("NITF_ICAT"),
        "sourceId": tags.get("NITF_FTITLE"),
        "sourceDT": _time(tags.get("NITF_IDATIM", "")),
    }


def _time(text: str) -> str | None:
    """Return a header's time as RFC 3339, UTC."""
    for form, directives in _TIMES:
        if form.fullmatch(text):
            try:
                return datetime.strptime(text, directives).replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")
            except ValueError:
                return None
    return None
