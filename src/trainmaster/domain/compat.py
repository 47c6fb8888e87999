"""Names that the standard library has from Python 3.11 on, for 3.10 too: client, CLI and worker run on it."""

from __future__ import annotations

import sys
from datetime import timezone

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """Members that are text, also where they are formatted, as `enum.StrEnum` of Python 3.11."""

        __str__ = str.__str__
        __format__ = str.__format__  # type: ignore[assignment]

        @staticmethod
        def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:  # noqa: ARG004
            """Return the value of a member that is `auto()`."""
            return name.lower()


UTC = timezone.utc

__all__ = ["UTC", "StrEnum"]
