"""The layers of docs/explanation/architecture.md, sizes and habits, held against the code."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from doc_pages import DOCS, plain, table
from trainmaster.domain.requests.tag_names import ATTEMPT_TAGS, OPTION_PREFIX, PRIORITY_TAG, RESOURCES_TAG
from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.worker.container import run

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "trainmaster"
MODULES = sorted(PACKAGE.rglob("*.py"))

PAGE = DOCS / "explanation" / "architecture.md"


def layers_of_the_page(column: int) -> dict[str, set[str]]:
    """Layers that the page's table names in a column, for each layer; its own row may call it "itself"."""
    rows = ((plain(row[0]), row[column]) for row in table(PAGE.read_text(), "layer"))
    return {
        name: set(re.findall(r"`(\w+)`", cell)) | ({name} if cell.startswith("itself") else set())
        for name, cell in rows
    }


MAY_IMPORT = layers_of_the_page(2)
FROM_OUTSIDE = layers_of_the_page(3)
STANDARD_ONLY = {"domain", "planner", "ports", "service"}
NEVER = {
    "domain": {"time", "random", "os", "boto3", "botocore"},
    "planner": {"time", "os", "socket", "boto3", "botocore", "random"},
    "service": {"os", "boto3", "botocore"},
}
MAX_MODULES = 14
MAX_FUNCTION_LINES = 50


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@dataclass(frozen=True)
class Module:
    """The parts of a module that tests ask for; its whole tree would be too much to keep.

    `top_imports` are imported as soon as it is imported itself; `functions` are lines with names, and sizes.
    """

    documented: bool
    imports: list[str]
    typing_imports: list[str]
    top_imports: list[str]
    functions: list[tuple[str, int]]
    assignments: list[ast.Assign]


@cache
def module(path: Path) -> Module:
    text = path.read_text()
    tree = ast.parse(text)
    typing_only = {
        id(child)
        for node in statements(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in statements(node)
    }
    return Module(
        documented=not text.strip() or ast.get_docstring(tree) is not None,
        imports=list(imported(node for node in statements(tree) if id(node) not in typing_only)),
        typing_imports=list(imported(node for node in statements(tree) if id(node) in typing_only)),
        top_imports=list(imported(tree.body)),
        functions=[
            (f"{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1)
            for node in statements(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ],
        assignments=[node for node in tree.body if isinstance(node, ast.Assign)],
    )


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a node, at any depth."""
    for member in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, member, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from statements(child)


def imported(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"relative import: {ast.unparse(node)}"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def imports(path: Path, *, at_run_time: bool = True) -> list[str]:
    found = module(path)
    return found.imports if at_run_time else found.imports + found.typing_imports


def own(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if parts[0] == "trainmaster" and len(parts) > 1 else None


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_inward(path):
    here = layer(path)
    layers = {p.name.removesuffix(".py") for p in PACKAGE.iterdir()}
    for name in imports(path):
        target = own(name)
        if target in layers:
            assert target in MAY_IMPORT[here], f"{here} imports {name}"
        elif name.split(".")[0] == "trainmaster":
            assert here in {"__main__", "client", "cli", "local"}, f"{here} imports the package's front door: {name}"


def test_every_layer_is_in_the_table_and_what_the_table_allows_is_used():
    """Otherwise the table would allow more than the code needs, and prove less than it seems to."""
    used: dict[str, set[str]] = {name: set() for name in MAY_IMPORT}
    outside: dict[str, set[str]] = {name: set() for name in MAY_IMPORT}
    for path in MODULES:
        for name in imports(path, at_run_time=False):
            root, target = name.split(".")[0], own(name)
            if target in MAY_IMPORT:
                used[layer(path)].add(target)
            elif root != "trainmaster" and root not in sys.stdlib_module_names:
                outside[layer(path)].add(root)
    for name in MAY_IMPORT:
        assert MAY_IMPORT[name] - used[name] == set(), f"{name} imports none of these"
        assert FROM_OUTSIDE[name] - outside[name] == set(), f"{name} imports none of these"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_packages_from_outside_are_those_of_the_table(path):
    for name in imports(path):
        root = name.split(".")[0]
        if root != "trainmaster" and root not in sys.stdlib_module_names:
            assert root in FROM_OUTSIDE[layer(path)], f"{path.name} imports {name}"


@pytest.mark.parametrize(
    "path", [p for p in MODULES if layer(p) in STANDARD_ONLY], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_the_core_needs_the_standard_library_only(path):
    for name in imports(path):
        root = name.split(".")[0]
        assert root == "trainmaster" or root in sys.stdlib_module_names, f"{path.name} imports {name}"
        assert root not in NEVER.get(layer(path), set()), f"{path.name} imports {name}"


def test_folders_are_small():
    folders = Counter(path.parent for path in MODULES if path.stem != "__init__")
    crowded = {str(folder.relative_to(PACKAGE)): count for folder, count in folders.items() if count > MAX_MODULES}
    assert crowded == {}


def test_no_modules_import_each_other_in_a_circle():
    """Not even for types alone: a reader of one would have to read them all. Packages' `__init__` does not count."""
    paths = [path for path in MODULES if path.stem != "__init__"]
    modules = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in paths}
    graph = {
        module: {each for name in imports(path, at_run_time=False) for each in (name, name.rpartition(".")[0])}
        for module, path in modules.items()
    }
    TopologicalSorter({module: targets & modules.keys() for module, targets in graph.items()}).prepare()


def test_adapters_talk_to_one_service_each():
    """An adapter may import its service's folder, and what adapters share: no client of a service."""
    for path in (PACKAGE / "adapters").rglob("*.py"):
        own_folder = ".".join(("trainmaster", *path.parent.relative_to(PACKAGE).parts[:2]))
        for name in imports(path):
            if name.startswith("trainmaster.adapters."):
                shared = name.startswith(("trainmaster.adapters.aws_errors.", "trainmaster.adapters.executions."))
                shared |= path.parent.name != "adapters" and name.startswith(f"{own_folder}.")
                assert shared, f"{path}: {name}"


def test_the_worker_shares_errors_and_compatibility_with_the_queue_and_needs_boto3_torch_or_jax_at_most():
    """It runs in other people's containers, with whatever versions they have."""
    allowed = {"trainmaster", "boto3", "botocore", "torch", "jax"} | sys.stdlib_module_names
    shared = ("trainmaster.domain.compat.", "trainmaster.domain.errors.")
    for path in (p for p in MODULES if layer(p) == "worker"):
        for name in imports(path):
            assert name.split(".")[0] in allowed, f"{path.name}: {name}"
            assert own(name) != "domain" or name.startswith(shared), f"{path.name}: {name}"


REGISTRIES = {f"{name}/kinds.py" for name in ("bootstrap", "handlers/api", "client", "cli", "local/example_queue")}
"""The modules of the core that import kinds of jobs, late, one for each layer."""


OF_IMAGES = re.compile(
    r"image[ _-]?(jobs?|queue|kind|request|work|launcher)|images[ _-](jobs?|queue|dead)|(?-i:endpoint/)"
    r"|image(Urls|Processor|Size|ReadRole)|model ?runner|oversight|osml|trainmaster[./]images|\btiles?\b|\bgdal\b",
    re.IGNORECASE,
)


def test_the_core_has_no_word_of_image_jobs():
    paths = [path for path in PACKAGE.rglob("*.py") if layer(path) != "images"]
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in paths
        if str(path.relative_to(PACKAGE)) not in REGISTRIES
        for line in path.read_text().splitlines()
        if OF_IMAGES.search(line)
    ]
    assert found == []


def test_kinds_of_jobs_are_imported_in_one_place_of_each_layer():
    for path in (path for path in MODULES if layer(path) != "images"):
        of_images = [name for name in imports(path, at_run_time=False) if own(name) == "images"]
        registry = str(path.relative_to(PACKAGE)) in REGISTRIES
        assert bool(of_images) == registry, f"{path}: {of_images}"
        at_top = [name for name in module(path).top_imports if own(name) == "images"]
        assert not at_top, f"{path} imports a kind at once"


def test_only_tests_of_image_jobs_import_them():
    """Tests of the core pass without the folders `images`; tests/other_kind.py is their example of another kind."""
    own_folder = ROOT / "tests" / "images"
    helpers = {path.stem for path in own_folder.rglob("*.py")} - {"conftest"}
    for path in (ROOT / "tests").rglob("*.py"):
        if own_folder not in path.parents:
            names = imports(path, at_run_time=False)
            assert not [name for name in names if own(name) == "images"], path
            assert not {name.split(".")[0] for name in names} & helpers, path


NEEDS_GDAL = {"rasterio", "numpy", "shapely"}


def test_only_pixels_need_gdal_and_are_imported_late():
    """Modules that run without the layer of GDAL (ADR 17) must not import it, not even indirectly."""
    pixels = PACKAGE / "images" / "pixels"
    for path in MODULES:
        if pixels in path.parents:
            taken = {name for name in imports(path) if own(name) == "adapters"}
            allowed = ("trainmaster.adapters.aws_errors.", "trainmaster.adapters.sts.")
            assert all(name.startswith(allowed) for name in taken), f"{path.name}: {taken}"
        else:
            assert not {name.split(".")[0] for name in imports(path)} & NEEDS_GDAL, path
            at_top = [name for name in module(path).top_imports if name.startswith("trainmaster.images.pixels")]
            assert not at_top or path.name == "regions.py", f"{path.name}: {at_top}"


def reads_environment(path: Path) -> bool:
    text = path.read_text()
    return re.search("environ|getenv", text) is not None and any(
        isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"} for node in ast.walk(ast.parse(text))
    )


def test_the_environment_is_read_by_bootstrap_and_by_what_users_run():
    """Functions of a kind of jobs read it where the kind is defined."""
    allowed = {"bootstrap", "client", "cli", "local", "worker"}
    reading = [path for path in MODULES if reads_environment(path) and path != PACKAGE / "images" / "kind.py"]
    assert {layer(path) for path in reading} <= allowed


def test_no_clock_is_read_in_the_core():
    for path in (p for p in MODULES if layer(p) in {"domain", "planner", "service"}):
        text = path.read_text()
        assert "datetime.now(" not in text, path
        assert "time.time(" not in text, path


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_are_small_and_say_what_they_are_for(path):
    assert module(path).documented, f"{path.name} does not say what it does"
    for name, size in module(path).functions:
        assert size <= MAX_FUNCTION_LINES, f"{path.name}: {name}: {size} lines"


def test_nine_functions_in_ten_are_under_twenty_five_lines():
    sizes = [size for path in MODULES for _, size in module(path).functions]
    assert sum(size < 25 for size in sizes) >= 0.9 * len(sizes)


def test_no_test_patches():
    """Clocks, randomness and clients are handed in (rule 6)."""
    for path in (ROOT / "tests").rglob("*.py"):
        if path != Path(__file__):
            text = path.read_text()
            for word in ("mock.patch", "@patch", "monkeypatch.setattr", "MagicMock"):
                assert word not in text, f"{path}: {word}"


def test_a_limit_of_length_has_one_home():
    """The worker has its own of what it may not import; that one is the same."""
    found = Counter(
        target.id
        for path in MODULES
        if layer(path) != "worker"
        for node in module(path).assignments
        for target in node.targets
        if isinstance(target, ast.Name) and re.fullmatch(r"MAX_\w+_LENGTH", target.id)
    )
    assert "MAX_REASON_LENGTH" in found
    assert [name for name, times in found.items() if times > 1] == []
    assert run.MAX_REASON_LENGTH == MAX_REASON_LENGTH


def test_the_names_of_tags_are_spelled_in_one_module():
    spelled = {
        path.stem
        for path in MODULES
        for node in module(path).assignments
        if isinstance(node.value, ast.Constant)
        if node.value.value in {OPTION_PREFIX, PRIORITY_TAG, RESOURCES_TAG, *ATTEMPT_TAGS}
    }
    assert spelled == {"tag_names"}


def test_no_two_test_modules_have_one_name():
    """They are no packages, so pytest imports only the first of two, and fails."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []
