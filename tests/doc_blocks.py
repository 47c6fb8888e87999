"""The fenced blocks of the documentation's pages, and the marks that say how each is tested.

A mark is a comment on the line before its block: `<!-- not run: REASON -->`, or `<!-- run by: tests/... -->` for a
block that a test of its own runs.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[1]
PICTURES = {"mermaid"}
"""Languages of blocks that are pictures."""
OUTPUTS = {"text"}
"""Languages of blocks that show an output."""

_BLOCK = re.compile(
    r"^(?: *<!-- (?P<mark>not run|run by): (?P<reason>[^>]+?) -->\n+)?(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)"
    r"^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)

_FENCE = re.compile(r"^[ >]*(?:```|~~~)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: relative to the repository.
        line: of its first line.
        mark: "not run", "run by" or "".
        reason: the reason of a block that is not run, or the test that runs it.
    """

    page: str
    line: int
    language: str
    text: str
    mark: str
    reason: str

    @property
    def is_output(self) -> bool:
        """True if the block is a picture or shows an output."""
        return self.language in PICTURES | OUTPUTS

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Return the pages that users read, relative to the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return sorted(path for path in found if (ROOT / path).exists() and not path.startswith(("docs/adr/", "tests/")))


def blocks() -> Iterator[Block]:
    """Yield the blocks of all pages."""
    for page in pages():
        text = (ROOT / page).read_text()
        for found in _BLOCK.finditer(text):
            line = text.count("\n", 0, found.start("text")) + 1
            mark, reason = found["mark"] or "", " ".join((found["reason"] or "").split())
            yield Block(page, line, found["language"], dedent(found["text"]), mark, reason)


def fences() -> int:
    """Count the lines of all pages that begin or end a block."""
    return sum(len(_FENCE.findall((ROOT / page).read_text())) for page in pages())


def commands(block: Block) -> list[list[str]]:
    """Return the words of each command of a block that has no other syntax of a shell."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]
