"""Formats paths of fields in request bodies, as errors name them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainmaster.domain.requests.fields import shown

_MAX_NAME_LENGTH = 64
# Of a pool or share: such as `shares.vision.nominal.ml.p5.48xlarge`.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


def path_of(where: Sequence[str | int]) -> str | None:
    """Return a place in a body such as `pools[0].cap`; None for the body itself."""
    path = ""
    for part in where:
        if isinstance(part, int):
            path += f"[{part}]"
        elif len(part) <= _MAX_NAME_LENGTH and (_is_member(part) or (path and _NAME.fullmatch(part))):
            path += f".{part}" if path else part
        else:
            path += f"[{shown(part)}]"
    return path or None


def _is_member(name: str) -> bool:
    return name.isidentifier() and name.isascii()
