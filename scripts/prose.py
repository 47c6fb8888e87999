"""Check the prose of the repository: pages, docstrings and comments, the templates' descriptions, the Makefile's texts.

Runs proselint with its own checks and with the small style below. Code blocks, inline code and links' targets are left
out. `make lint` runs it; give it files to check only those.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from proselint.checks import __register__ as proselint_checks
from proselint.registry import CheckRegistry
from proselint.registry.checks import Check, types
from proselint.tools import LintFile

ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "*.py", "Makefile", "template.yaml", "images/template.yaml")
GENERATED = {"docs/reference/cli.md", "docs/reference/openapi.json"}
PROSELINT = dict.fromkeys(
    ("archaism", "cliches", "hedging", "malapropisms", "mixed_metaphors", "nonwords", "oxymorons"),
    True,
)
"""Groups of proselint's checks that fit technical text; its typography and terms do not."""

STYLE = (
    Check(
        check_type=types.Existence(
            items=("nobody", "somebody", "whoever", "whom", "anew", "hither", "thither", "whence")
        ),
        path="trainmaster.words",
        message="'{}': name the actor (a job, the queue, a caller), or say 'no job', 'again'.",
    ),
    Check(
        check_type=types.Existence(
            items=("colours?", "honour(ed|s)?", "behaviours?", "favours?", "licences?", "neighbours?", "utilisation")
        ),
        path="trainmaster.spelling",
        message="'{}': spell it as AWS does.",
    ),
    Check(
        check_type=types.Existence(
            items=("is to be had", "had better", "all that there is", "what is what", "in vain")
        ),
        path="trainmaster.phrases",
        message="'{}': say it in plain technical English.",
    ),
)
CLAUSE = re.compile(r"(What|Whom?|Which|Where|Whether|How|Why|When|That)\s")
"""A docstring that opens so names its subject by a clause instead of a noun."""
HIDDEN = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>|https?://\S+|\"[^\"]{0,80}\"")


class Finding(NamedTuple):
    """A place in a file, and what is wrong there."""

    path: str
    line: int
    message: str


def main(arguments: list[str]) -> int:
    """Print the findings; return 1 if there is any."""
    register()
    found = [finding for path in arguments or tracked() for finding in findings(path)]
    for finding in found:
        print(f"{finding.path}:{finding.line}: {finding.message}")
    return 1 if found else 0


def register() -> None:
    """Have proselint apply its own checks and the style, once in a process."""
    registry = CheckRegistry()
    if not registry.checks:
        registry.register_many((*proselint_checks, *STYLE))


def tracked() -> list[str]:
    """Return the files under git whose prose is ours and written by hand."""
    listed = subprocess.run(["git", "ls-files", *PAGES], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    return [path for path in listed.stdout.splitlines() if path not in GENERATED]


def findings(path: str) -> Iterator[Finding]:
    """Yield what is wrong in a file."""
    text = (ROOT / path).read_text()
    by_suffix = {".py": python_prose, ".md": page_prose, ".yaml": yaml_prose}
    prose = by_suffix.get(Path(path).suffix, makefile_prose)(text)
    if path.endswith(".py"):
        yield from (Finding(path, line, "The docstring opens with a clause.") for line in clauses(text))
    config = {"max_errors": 1000, "checks": {**PROSELINT, "trainmaster": True}}
    content = "\n".join(HIDDEN.sub(lambda hidden: "x" * len(hidden[0]), line) for line in prose)
    for result in LintFile(path, content).lint(config) if content.strip() else ():
        check = result.check_result
        yield Finding(path, content.count("\n", 0, check.span[1] - 2) + 1, check.message)


def page_prose(text: str) -> Iterator[str]:
    """Yield each line of a Markdown page, empty inside code blocks."""
    inside = False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        yield "" if inside or fence else line
        inside ^= fence


def python_prose(text: str) -> Iterator[str]:
    """Yield each line of a module, empty outside docstrings and comments."""
    lines = [""] * (text.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = token.string
        elif token.type == tokenize.STRING and token.string.startswith('"""'):
            for offset, line in enumerate(token.string.replace('"""', " ").splitlines()):
                lines[token.start[0] - 1 + offset] = line
    yield from lines


def yaml_prose(text: str) -> Iterator[str]:
    """Yield each line of a template that is a comment or part of a description."""
    for line in text.splitlines():
        yield line if "#" in line or re.match(r"\s+[A-Z]?[a-z]+ ", line) or "Description:" in line else ""


def makefile_prose(text: str) -> Iterator[str]:
    """Yield the comment of each line of a Makefile, empty where there is none; targets' help texts are comments too."""
    for line in text.splitlines():
        yield line.partition("#")[2]


def clauses(text: str) -> Iterator[int]:
    """Yield the lines of docstrings, of constants too, that open with a clause."""
    nodes = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr))
    strings = (node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    yield from (node.lineno for node in strings if CLAUSE.match(node.value))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
