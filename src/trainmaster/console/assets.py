"""The files of the page, read once: a request can name one of them, and no other file."""

from __future__ import annotations

import hashlib
import posixpath
import re
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
_MARK: Final = b"<!-- modules -->"
_IMPORT: Final = re.compile(r"""\bfrom\s*["'](\.[^"']+)["']""")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page, its media type, and its tag, by which a browser asks whether it has changed."""

    content: bytes
    content_type: str
    tag: str


def load_assets() -> dict[tuple[str, ...], Asset]:
    """Return the files of the page by the segments of their paths; those of other types stay out."""
    files = sorted(path for path in _FOLDER.rglob("*") if path.suffix in _TYPES and path.is_file())
    found = {path.relative_to(_FOLDER).parts: path.read_bytes() for path in files}
    return {parts: _asset(parts, _preloading(content, found)) for parts, content in found.items()}


def _preloading(content: bytes, files: Mapping[tuple[str, ...], bytes]) -> bytes:
    """Return a page with links to its modules in place of the mark, so that a browser does not find them one by one."""
    if _MARK not in content:
        return content
    links = "\n    ".join(f'<link rel="modulepreload" href="{path}" />' for path in _modules("app.js", files))
    return content.replace(_MARK, links.encode())


def _modules(first: str, files: Mapping[tuple[str, ...], bytes]) -> list[str]:
    """Return the paths of a module and of all that it imports."""
    found = [first]
    for path in found:  # it grows meanwhile
        imported = _IMPORT.findall(files[tuple(path.split("/"))].decode())
        paths = (posixpath.normpath(posixpath.join(posixpath.dirname(path), each)) for each in imported)
        found += [each for each in dict.fromkeys(paths) if each not in found]
    return found


def _asset(parts: tuple[str, ...], content: bytes) -> Asset:
    return Asset(content, _TYPES[Path(parts[-1]).suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
