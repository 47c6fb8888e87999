"""The prose check finds what it says, in pages, docstrings and comments, and leaves code alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "prose.py"
PAGE = "# Title\n\nA job that nobody wants.\n\n```sh\nnobody here\n```\n\n`whoever` is a name.\n"
MODULE = '"""Ask nobody."""\n\nNAME = "nobody"\n# computed anew\n\n\ndef f():\n    """What is free."""\n'


@pytest.fixture
def prose(tmp_path):
    spec = importlib.util.spec_from_file_location("prose", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ROOT = tmp_path
    module.register()
    return module


def lines(prose, name, text):
    (prose.ROOT / name).write_text(text)
    return sorted(finding.line for finding in prose.findings(name))


def test_a_page_is_checked_outside_of_code(prose):
    assert lines(prose, "page.md", PAGE) == [3]


def test_docstrings_and_comments_are_checked_and_strings_are_not(prose):
    assert lines(prose, "module.py", MODULE) == [1, 4, 8]


@pytest.mark.parametrize("opening", ["What", "Who", "Which", "Where", "Whether", "How", "Why", "When", "That"])
def test_no_docstring_opens_with_a_clause(prose, opening):
    assert lines(prose, "module.py", f'LIMIT = 1\n"""{opening} a job ends."""\n') == [2]


def test_every_python_file_is_checked(prose):
    prose.ROOT = SCRIPT.parents[1]
    folders = {path.split("/")[0] for path in prose.tracked() if path.endswith(".py")}
    assert folders >= {"src", "tests", "benchmarks", "scripts", "examples"}


def test_descriptions_of_a_template_are_checked(prose):
    assert lines(prose, "template.yaml", "Parameters:\n  A:\n    Description: For whoever deploys.\n") == [3]


def test_comments_and_help_texts_of_a_makefile_are_checked(prose):
    makefile = "# for whoever builds\nall: ## Ask nobody\n\t@# anew\n\techo nobody # again\n"
    assert lines(prose, "Makefile", makefile) == [1, 2, 3]
    prose.ROOT = SCRIPT.parents[1]
    assert "Makefile" in prose.tracked()


def test_plain_words_pass(prose):
    assert lines(prose, "page.md", "# Queue\n\nThe queue starts the job again.\n") == []
