"""Sentences of the API in the words of the command line."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainmaster
from trainmaster.cli.output.own_words import in_own_words
from trainmaster.cli.output.render import print_warnings

SOURCE = Path(trainmaster.__file__).parent
ROUTE = re.compile(r"\b(GET|PUT|POST|PATCH|DELETE) /[\w-]+")
TOLD = ("domain", "planner", "service", "adapters", "images", "handlers/api/errors.py", "handlers/api/kinds.py")
"""Code whose sentences reach users as errors, hints, warnings and reasons."""
DOCUMENTED = ("description", "plan")
"""Keywords of sentences for the API's own reference."""


def sentences(path: Path) -> Iterator[str]:
    """The string literals of a module, without docstrings and descriptions for the API's reference."""
    tree = ast.parse(path.read_text())
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.keyword) and node.arg in DOCUMENTED:
            skipped |= {id(each) for each in ast.walk(node.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def told() -> list[str]:
    found = [SOURCE / name for name in TOLD]
    paths = [path for each in found for path in ([each] if each.is_file() else sorted(each.rglob("*.py")))]
    return [sentence for path in paths for sentence in sentences(path) if ROUTE.search(sentence)]


def test_no_sentence_of_the_service_leaves_a_route_to_the_user_of_the_command_line() -> None:
    assert len(told()) > 5
    left = {sentence: in_own_words(sentence) for sentence in told()}
    assert {sentence: text for sentence, text in left.items() if ROUTE.search(text)} == {}


def test_no_reason_names_a_route() -> None:
    reasons = sorted((SOURCE / "domain" / "reasons").rglob("*.py"))
    assert [sentence for path in reasons for sentence in sentences(path) if ROUTE.search(sentence)] == []


@pytest.mark.parametrize(
    ("told", "own"),
    [
        ("Request fewer, or raise the cap (PUT /pools).", "Request fewer, or raise the cap (`trainmaster pools set`)."),
        ("GET /jobs lists the names.", "`trainmaster ls` lists the names."),
        ("or tag it 'trainmaster:preemptible' = 'false'.", "or submit it with --option preemptible=false."),
        ("The option 'trainmaster:max-instances' is '0'.", "--max-instances is '0'."),
        ("trainmaster:pools is empty", "pools is empty"),
        ("No such route. GET /openapi.json lists all.", "No such route. The reference of the API lists all."),
        ("`since` is not before `until`.", "--since is not before --until."),
        ("`from` is not before `to`.", "--from is not before --to."),
        ("omit the tag, or use '2+4'", "omit the option, or use '2,4'"),
        ("job1 waits in /prod", "job1 waits in /prod"),
    ],
)
def test_routes_become_commands_and_tags_options(told: str, own: str) -> None:
    assert in_own_words(told) == own


def test_warnings_are_in_the_words_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_warnings(["add a pool (PUT /pools)", "set it, or tag it 'trainmaster:preemptible' = 'false'."])
    assert capsys.readouterr().err.splitlines() == [
        "Warning: add a pool (`trainmaster pools set`)",
        "Warning: set it, or submit it with --option preemptible=false.",
    ]
