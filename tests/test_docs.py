"""The docs say what the code does: links lead somewhere, and every name that users meet is explained."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from benchmarks.common.results import saved_text
from benchmarks.queue.summary import OPTIONAL_SECTIONS, summary
from click import Context
from typer.main import get_command

from trainmaster.bootstrap.settings import _READERS, PREFIX
from trainmaster.cli.program import build
from trainmaster.domain.jobs.job import TRANSITIONS, JobState
from trainmaster.domain.requests.options import OPTIONS
from trainmaster.domain.requests.tag_names import OPTION_PREFIX

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "trainmaster"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")])
README = ROOT / "benchmarks" / "README.md"
MEASURED = {
    "figures": "benchmarks.__main__",
    "kueue": "benchmarks.__main__",
    "days": "benchmarks.__main__",
    "replay": "benchmarks.replay.__main__",
    "elastic": "benchmarks.elastic.__main__",
    "rendezvous": "benchmarks.rendezvous.__main__",
    "images": "benchmarks.images.__main__",
    "tiles": "benchmarks.images.tiles",
    "console": "benchmarks.console.__main__",
    "placement": "benchmarks.placement.__main__",
}
"""Benchmarks of which figures are kept, and what writes their pages."""
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
FILE = re.compile(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|md))`")
SECTION = re.compile(r"\[[^\]]*\]\(([^)#\s]*)#([^)\s]+)\)")


QUOTED = re.compile(r'\*"([^"*]+)"\*')
"""A message of the program on a page; an ellipsis stands for the names and numbers in it."""
FIELD = re.compile(r"\{\w*\}|%[sd]")


def text_of(*names: str) -> str:
    return "\n".join((ROOT / name).read_text() for name in names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page):
    for target in LINK.findall(page.read_text()):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_pages_and_docstrings_name_exist():
    """A path may begin at any folder, as `domain/access/rules.py` does."""
    folders = ("src", "tests", "benchmarks", "scripts", "examples", "docs", "images")
    sources = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    there = {f"/{path.relative_to(ROOT)}" for path in [*PAGES, *sources]}
    named = {(path, name) for path in [*PAGES, *sources] for name in FILE.findall(path.read_text())}
    missing = {(str(path.relative_to(ROOT)), name) for path, name in named if not _stands(name, there)}
    assert missing == set()
    assert len(named) > 100


def _stands(name: str, there: set[str]) -> bool:
    return any(each.endswith(f"/{name}") for each in there)


def test_every_message_that_a_page_quotes_is_one_of_the_program():
    program = "\n".join(text for path in SOURCE.rglob("*.py") for text in messages_of(ast.parse(path.read_text())))
    quoted = {" ".join(text.split()) for page in PAGES for text in QUOTED.findall(page.read_text())}
    assert {text for text in quoted if text.strip("… ") not in program} == set()
    assert min(map(len, quoted)) > 12, "so short a text could be anything"
    assert len(quoted) > 50
    assert "waits for the weather" not in program


def messages_of(module: ast.Module) -> Iterator[str]:
    """Yield each string of a module in one line, with an ellipsis for each value that it includes; not docstrings."""
    docstrings = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        texts = [part.value if isinstance(part, ast.Constant) else "…" for part in parts]
        if (isinstance(node, ast.JoinedStr) or isinstance(texts[0], str)) and id(node) not in docstrings:
            yield " ".join(FIELD.sub("…", "".join(map(str, texts))).split())


def anchors_of(page: Path) -> set[str]:
    """Anchors that GitHub makes of a page's headings; of equal headings, that of the first."""
    outside_code = "".join(page.read_text().split("```")[::2])
    titles = re.findall(r"^#+ (.*)$", outside_code, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_section_finds_it(page):
    for target, anchor in SECTION.findall(page.read_text()):
        there = page.parent / target if target else page
        if "://" not in target and there.suffix == ".md":
            assert anchor in anchors_of(there), f"{page.name} links to {target}#{anchor}"


def test_every_page_is_in_the_index_under_the_heading_of_its_folder():
    docs = ROOT / "docs"
    parts = {part.partition("\n")[0]: part for part in text_of("docs/README.md").split("\n## ")}
    headings = {"how-to": "How to", "explanation": "Explanation", "reference": "Reference", "adr": "Decisions"}
    for page in docs.rglob("*.md"):
        if page != docs / "README.md":
            name = page.relative_to(docs)
            where = parts[headings[name.parts[0]]] if len(name.parts) > 1 else text_of("docs/README.md")
            lines = [line for line in where.splitlines() if line.startswith("- ") and f"]({name})" in line]
            assert len(lines) == 1, f"docs/README.md has {len(lines)} lines for {name}"


def test_every_layer_and_every_folder_of_tests_has_its_place_in_contributing():
    page = text_of("CONTRIBUTING.md")
    layers = {f"`src/trainmaster/{file.parent.name}/`" for file in SOURCE.glob("*/__init__.py")}
    tests = {f"`tests/{file.parent.name}`" for file in (ROOT / "tests").glob("*/test_*.py")}
    assert layers
    assert tests
    for place in layers | tests:
        assert place in page, f"CONTRIBUTING.md does not name {place}"


def test_every_job_state_is_in_the_glossary_with_what_comes_next():
    glossary = text_of("docs/glossary.md")
    for state in JobState:
        assert f"`{state}`" in glossary
    for state, following in TRANSITIONS.items():
        row = next(line for line in glossary.splitlines() if line.startswith("|") and f"`{state}`" in line)
        for after in following:
            assert after in row, f"{state} -> {after} is not in the glossary"


def test_the_constants_that_the_rules_page_names_are_what_it_says():
    row = re.compile(r"^\|[^|]*\| ([\d.]+)[^|]*\| `(\w+)\.([A-Z_]+)` \|$", re.MULTILINE)
    rows = row.findall(text_of("docs/explanation/how-it-decides.md"))
    assert len(rows) >= 8
    for said, module, name in rows:
        (path,) = [path for layer in ("domain", "planner") for path in (SOURCE / layer).rglob(f"{module}.py")]
        dotted = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        value = getattr(import_module(dotted), name)
        assert value in {float(said), timedelta(minutes=float(said)), timedelta(hours=float(said))}, name


def test_every_option_is_in_its_reference():
    for option in OPTIONS:
        assert f"`{OPTION_PREFIX}{option}`" in text_of("docs/reference/tags.md")


def test_every_setting_is_given_by_a_template():
    templates = text_of("template.yaml") + text_of("images/template.yaml")
    for name in _READERS:
        assert PREFIX + name in templates, f"{PREFIX}{name} is in no template"


@pytest.mark.parametrize(("template", "page"), [("template.yaml", "deploy"), ("images/template.yaml", "image-jobs")])
def test_every_template_parameter_is_in_the_page_about_its_deployment(template, page):
    block = text_of(template).split("\nParameters:\n")[1].split("\nConditions:")[0].split("\nGlobals:")[0]
    names = re.findall(r"^  ([A-Z]\w+):$", block, re.MULTILINE)
    assert names
    text = text_of(f"docs/how-to/{page}.md")
    for name in names:
        assert f"`{name}`" in text, f"{name} is not in docs/how-to/{page}.md"


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", text_of("Makefile"), re.MULTILINE))
    for page in PAGES:
        for target in re.findall(r"`?make ([a-z][a-z-]+)`", page.read_text()):
            assert target in targets, f"{page.name} names make {target}"


def test_every_event_file_is_json_and_says_which_handler_it_is_for():
    files = sorted((ROOT / "events").glob("*.json"))
    assert files
    for file in files:
        assert file.name.startswith(("api-", "sqs-", "intake-", "task-", "pipelines-"))
        json.loads(file.read_text())


def part_of(readme: Path, name: str) -> str:
    """Text between the marks of a benchmark on the benchmarks' page."""
    begun = readme.read_text().partition(f"<!-- {name}: written")[2].partition("-->")[2]
    return begun.partition(f"<!-- end of {name} -->")[0]


def figures_of(name: str) -> Path:
    """The file of figures that a benchmark's part of the page names."""
    return ROOT / "benchmarks" / next(link for link in LINK.findall(part_of(README, name)) if link.endswith(".json"))


@pytest.mark.parametrize("name", MEASURED)
def test_the_benchmarks_pages_are_what_again_makes_of_the_kept_figures(tmp_path, name):
    """`python -m benchmarks --again FILE`, and every other benchmark with it, measures nothing."""
    file = figures_of(name)
    readme, again = tmp_path / "README.md", tmp_path / "results" / file.name
    again.parent.mkdir()
    shutil.copy(file, again)
    readme.write_text(text_of("benchmarks/README.md").replace(part_of(README, name), "\nGone.\n"))

    assert import_module(MEASURED[name]).main(["--again", str(again)]) == 0

    assert readme.read_text().split("\n") == text_of("benchmarks/README.md").split("\n")
    made, kept = (folder / f"{name}.md" for folder in (again.parent, file.parent))
    assert made.read_text().split("\n") == kept.read_text().split("\n")
    assert sorted(path.name for path in again.parent.iterdir()) == sorted((file.name, made.name))


def test_every_kept_file_of_figures_is_shown():
    assert {figures_of(name) for name in MEASURED} == set((ROOT / "benchmarks" / "results").glob("*.json"))


@pytest.mark.parametrize("name", MEASURED)
def test_kept_figures_hold_what_pages_show_and_no_raw_series(name):
    file = figures_of(name)
    assert file.read_text() == saved_text(json.loads(file.read_text()))


def test_every_kept_picture_is_shown():
    results = ROOT / "benchmarks" / "results"
    shown = {ROOT / "benchmarks" / link for link in LINK.findall(README.read_text())}
    assert {path for path in results.rglob("*") if path.suffix not in (".json", ".md") and path.is_file()} <= shown


def test_again_refuses_figures_that_no_page_could_link_to(tmp_path):
    astray = tmp_path / "figures.json"
    shutil.copy(figures_of("kueue"), astray)
    with pytest.raises(SystemExit, match="is not in benchmarks/results"):
        import_module(MEASURED["kueue"]).main(["--again", str(astray)])


def test_every_kept_section_has_its_figures():
    kept = json.loads(figures_of("figures").read_text())
    said = summary(kept)
    assert any("**Met: at most 25 write and 30 read units with many running jobs.**" in each for each in said)
    kept["start"] = {
        "bundle": {"here": {"zipped_mb": 4.0}},
        "functions": [
            {"function": "api", "compiled": compiled, "import_processor_ms": took}
            for compiled, took in ((False, 500), (True, 200))
        ],
    }
    kept["depth"][-1]["turn"]["read_units"] = 10.0
    said = "\n".join(summary(kept))
    assert "**Met: at most 25 write and 30 read units with many running jobs.**" in said
    assert (
        "**Met: 200 ms to import the API handler.** It takes 200 ms of CPU time, 40% of what it takes without" in said
    )
    assert "**Met: 20 MB for the zipped bundle.** The heaviest takes 20% of that." in said
    assert "start-up" not in said
    assert summary({}) == [
        f"These figures do not include: {'; '.join(OPTIONAL_SECTIONS.values())}. `make bench` measures them too."
    ]


def test_every_decision_record_says_what_it_found_and_decided():
    for page in (ROOT / "docs" / "adr").glob("*.md"):
        text = page.read_text()
        assert re.search(r"^Status: ", text, re.MULTILINE), page.name
        for heading in ("## Context", "## Decision"):
            assert heading in text, f"{page.name} lacks {heading}"


def test_the_changelog_has_something_unreleased():
    assert "## Unreleased" in text_of("CHANGELOG.md")


TOUR = re.findall(r"`([\w/]+\.py)`(?::\s+`(\w+)`)?", text_of("docs/explanation/tour.md"))


@pytest.mark.parametrize(("path", "name"), TOUR, ids=lambda value: value or "-")
def test_the_tour_names_files_and_definitions_that_exist(path, name):
    tree = ast.parse((SOURCE / path).read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    assert not name or name in defined | assigned, f"{path} does not define {name}"


def test_the_tour_has_ten_steps():
    steps = re.findall(r"^(\d+)\. \*\*", text_of("docs/explanation/tour.md"), re.MULTILINE)
    assert steps == [str(number) for number in range(1, 11)]
    assert len(TOUR) >= 20


@pytest.mark.parametrize("sdk", ["sdk2", "sdk3"])
def test_the_table_of_public_examples_lists_each_test_once_with_a_source(sdk):
    page = text_of("docs/reference/examples.md")
    suite = f"tests/e2e/{sdk}/test_{sdk}_examples.py"
    table = page.split(f"`{suite}` |\n", 1)[1].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[1:]]
    tests = [node.name for node in ast.parse(text_of(suite)).body if isinstance(node, ast.FunctionDef)]
    assert sorted(row[3].strip("`") for row in rows) == sorted(name for name in tests if name.startswith("test_"))
    assert {row[1] for row in rows} <= set(re.findall(r"^\| ([ASHD]\d+) \| .+ \|$", page, re.MULTILINE))
    assert {row[2].split(" ")[0].strip(",:;") for row in rows} <= {"ran", "passed", "bypasses", "the"}
    bypassing = {row[3].strip("`") for row in rows if row[2].startswith("bypasses")}
    assert bypassing == {name for name in tests if name.endswith("_bypasses_the_queue")}


def test_the_sources_of_public_examples_are_all_used():
    page = text_of("docs/reference/examples.md")
    tables, _, sources = page.partition("## Sources")
    used = set(re.findall(r"\| ([ASHD]\d+) \|", tables))
    assert used == set(re.findall(r"^\| ([ASHD]\d+) \|", sources, re.MULTILINE))


INLINE = re.compile(r"`((?:trainmaster|make) [^`]+)`")
"""A command in the text of a page; names in capitals and ellipses stand for values."""


def test_commands_in_the_text_of_pages_exist_with_their_options():
    text = "\n".join("".join(page.read_text().split("```")[::2]) for page in PAGES)
    named = {" ".join(found.split()) for found in INLINE.findall(text)}
    assert {each: wrong for each in sorted(named) if (wrong := unknown_in(each.split()))} == {}
    assert len(named) > 50
    assert unknown_in(["trainmaster", "pools", "fill"]) == unknown_in(["trainmaster", "ls", "--fill"]) != ""


def unknown_in(words: list[str]) -> str:
    """Return what is unknown in a command of ours: a target of make, a subcommand or an option; "" if nothing is."""
    if words[0] == "make":
        return "" if re.search(rf"^{words[1]}:", text_of("Makefile"), re.MULTILINE) else "target"
    command: Any = get_command(build())
    root = command
    for word in words[1:]:
        if word == "--":
            return ""
        if word.startswith("-"):
            options = {option for each in (root, command) for param in each.params for option in param.opts}
            if word.partition("=")[0] not in {*options, "--help"}:
                return "unknown"
        elif hasattr(command, "get_command"):
            following = command.get_command(Context(command), word)
            if following is None:
                return "unknown"
            command = following
    return ""
