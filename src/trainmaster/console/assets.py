"""The files of the page, read once: a request can name one of them, and no other file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page, its media type, and its tag, by which a browser asks whether it has changed."""

    content: bytes
    content_type: str
    tag: str


def load_assets(folder: Path = _FOLDER) -> dict[tuple[str, ...], Asset]:
    """Return the files of a folder by the segments of their paths; those of other types stay out."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in _TYPES and path.is_file())
    return {path.relative_to(folder).parts: _asset(path) for path in files}


def _asset(path: Path) -> Asset:
    content = path.read_bytes()
    return Asset(content, _TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
