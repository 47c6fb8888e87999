"""Expands `$(NAME)` in commands and environment variables as Kubernetes does.

Source: kubernetes, `third_party/forked/golang/expansion` and the API reference of Container (`command`, `args`, `env`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

MARK = "\0"
"""Encloses the names of variables that only the container knows; no text of a manifest contains it."""
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace references to known variables; unknown ones stay, and `$$(NAME)` becomes `$(NAME)`."""

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(replace, text)


def unresolved(text: str, variables: Iterable[str]) -> list[str]:
    """Return the names of references in a text that no variable resolves."""
    known = set(variables)
    return [match[1] for match in _REFERENCE.finditer(text) if match[1] is not None and match[1] not in known]


def runtime(name: str) -> str:
    """Return the text that stands for the value of a variable of the container."""
    return f"{MARK}{name}{MARK}"


def shell_word(text: str) -> str:
    """Quote a text for a POSIX shell, with the values of the container's variables."""
    parts = text.split(MARK)
    quoted = [f'"${{{part}}}"' if index % 2 else shlex.quote(part) for index, part in enumerate(parts) if part]
    return "".join(quoted) or "''"
