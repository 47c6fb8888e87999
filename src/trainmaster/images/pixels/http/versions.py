"""Comparison of versions of an image behind HTTP (RFC 9110, 8.8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """The version of an image according to the answers so far.

    Attributes:
        size: in bytes.
        tag: strong entity tag, "" without one; weak ones say nothing about bytes.
        modified: `Last-Modified` as given; "" without it.
    """

    size: int
    tag: str
    modified: str

    @classmethod
    def from_headers(cls, size: int, headers: Mapping[str, str]) -> Version:
        """Return the version of one answer."""
        tag = headers.get("ETag", "")
        return cls(size, "" if tag.startswith("W/") else tag, headers.get("Last-Modified", ""))

    def with_(self, later: Version) -> Version | None:
        """Return the version with both answers' values; None if they belong to different versions.

        Only values of both are compared, and times only without two tags: servers behind one name may send different
        headers.
        """
        pairs = ((self.tag, later.tag), (self.modified, later.modified))
        one, other = next((pair for pair in pairs if all(pair)), ("", ""))
        if self.size != later.size or one != other:
            return None
        return Version(self.size, self.tag or later.tag, self.modified or later.modified)
