"""What tells versions of an image behind HTTP apart (RFC 9110, 8.8). It must not ask for anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """What answers have told of an image so far.

    Attributes:
        size: in bytes.
        tag: strong entity tag, "" where none was told; weak ones tell nothing of bytes.
        modified: when it was last changed, as it was told; "" where it was not.
    """

    size: int
    tag: str
    modified: str

    @classmethod
    def told(cls, size: int, headers: Mapping[str, str]) -> Version:
        """What one answer tells."""
        tag = headers.get("ETag", "")
        return cls(size, "" if tag.startswith("W/") else tag, headers.get("Last-Modified", ""))

    def with_(self, later: Version) -> Version | None:
        """What both tell together; None where they are of two images.

        Only what both tell is compared, and times only where there are no two tags: the servers behind one name do not
        always tell the same.
        """
        pairs = ((self.tag, later.tag), (self.modified, later.modified))
        one, other = next((pair for pair in pairs if all(pair)), ("", ""))
        if self.size != later.size or one != other:
            return None
        return Version(self.size, self.tag or later.tag, self.modified or later.modified)
