"""Names that the standard library has from Python 3.11 on, for 3.10 too: client, CLI and worker run on it."""

from __future__ import annotations

import sys
from datetime import datetime, timezone

if sys.version_info >= (3, 11):
    from enum import StrEnum

    parse_iso = datetime.fromisoformat
else:
    import re
    from enum import Enum

    _FRACTION = re.compile(r"[.,](\d{1,6})\d*")

    class StrEnum(str, Enum):
        """Members that are text, also where they are formatted, as `enum.StrEnum` of Python 3.11."""

        __str__ = str.__str__
        __format__ = str.__format__  # type: ignore[assignment]

        @staticmethod
        def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:  # noqa: ARG004
            """Return the value of a member that is `auto()`."""
            return name.lower()

    def parse_iso(text: str) -> datetime:
        """Return the time of an ISO 8601 text, as `datetime.fromisoformat` of Python 3.11 for the forms of AWS.

        Python 3.10 knows neither "Z" nor fractions of other than 3 or 6 digits. Raises ValueError.
        """
        padded = _FRACTION.sub(lambda found: f".{found[1]:0<6}", text)
        return datetime.fromisoformat(f"{padded[:-1]}+00:00" if padded[-1:] in ("Z", "z") else padded)


UTC = timezone.utc

__all__ = ["UTC", "StrEnum", "parse_iso"]
