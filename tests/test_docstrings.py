"""Docstrings name what the code has: arguments of the signature, attributes of the class, modules of the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "trainmaster"
MODULES = sorted(PACKAGE.rglob("*.py"))
SECTION = re.compile(r"^(Args|Attributes):\n((?:    .*\n?|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*):", re.MULTILINE)
"""The names before the colon of an entry, such as `attempt, round_: the writer.`"""
LISTED = re.compile(r"^ *((?:[\w/]+(?:\.py)?, )*[\w/]+(?:\.py)?) {2,}\w", re.MULTILINE)
"""The modules and folders before the text of a line in a package's list, such as `context, faults  dependencies of…`"""

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def unknown_names(module: ast.Module) -> list[str]:
    """Names in the sections of docstrings that the code lacks, each after its function or class."""
    return [
        f"{node.name}: {name}"
        for node in ast.walk(module)
        if isinstance(node, Documented)
        for section, name in documented_names(ast.get_docstring(node) or "")
        if name not in names_of(node, section)
    ]


def documented_names(docstring: str) -> Iterator[tuple[str, str]]:
    """Each name of the sections, after the section's title."""
    for section, text in SECTION.findall(docstring):
        for names in ENTRY.findall(text):
            yield from ((section, name.lstrip("*")) for name in names.split(", "))


def names_of(node: Documented, section: str) -> set[str]:
    if not isinstance(node, ast.ClassDef):
        return {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    functions = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    constructors = [each for each in functions if each.name == "__init__"]
    if section == "Args" and constructors:
        return names_of(constructors[0], section)
    fields = {target for statement in node.body for target in assigned(statement)}
    return fields if section == "Args" else fields | assigned_to_self(node) | {each.name for each in functions}


def assigned(statement: ast.stmt) -> set[str]:
    """The names that a statement of a class's body assigns or declares."""
    declared = [statement.target] if isinstance(statement, ast.AnnAssign) else []
    targets = statement.targets if isinstance(statement, ast.Assign) else declared
    return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}


def assigned_to_self(node: ast.ClassDef) -> set[str]:
    stored = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    return {each.attr for each in stored if ast.unparse(each.value) == "self"}


def test_docstrings_name_arguments_and_attributes_that_exist():
    found = {str(path.relative_to(PACKAGE)): unknown_names(ast.parse(path.read_text())) for path in MODULES}
    assert {path: names for path, names in found.items() if names} == {}


EXAMPLE = '''
class Pool:
    """A pool.

    Attributes:
        name: its name.
        units, least: counts.
        free: a property.
        taken: set by the constructor.
    """

    name: str
    units: int = 0

    def __init__(self, name, *, taken):
        """Make a pool.

        Args:
            name: its name.
            given: by instances.
        """
        self.taken = taken

    @property
    def free(self):
        return self.name - least


def take(pool, *names, **options):
    """Take instances.

    Args:
        pool: the pool;
            several: lines.
        *names, **options: of the instances.
        size: a number.

    Returns:
        more: than names.
    """
'''


def test_names_that_the_code_lacks_are_found():
    assert unknown_names(ast.parse(EXAMPLE)) == ["Pool: least", "take: size", "__init__: given"]


def test_many_docstrings_are_compared():
    nodes = (node for path in MODULES for node in ast.walk(ast.parse(path.read_text())))
    docstrings = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, Documented)]
    assert sum(bool([*documented_names(docstring)]) for docstring in docstrings) > 400


def listed_modules(package: Path) -> list[str]:
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    return [name for names in LISTED.findall(docstring) for name in names.split(", ")]


def is_in(package: Path, name: str) -> bool:
    return (package / name).exists() or (package / f"{name}.py").exists()


def test_modules_that_a_package_lists_exist():
    listed = {path.parent: listed_modules(path.parent) for path in PACKAGE.rglob("__init__.py")}
    missing = {
        str(package.relative_to(PACKAGE)): [name for name in names if not is_in(package, name)]
        for package, names in listed.items()
    }
    assert {package: names for package, names in missing.items() if names} == {}
    assert len([package for package, names in listed.items() if names]) >= 7


def test_modules_that_a_package_lacks_are_found(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "main.py").touch()
    lines = ["main, other  the start", "jobs/        the jobs", "gone.py      no more", "Not in the list: this."]
    (tmp_path / "__init__.py").write_text('"""A package.\n\n    ' + "\n    ".join(lines) + '\n"""\n')
    names = listed_modules(tmp_path)
    assert names == ["main", "other", "jobs/", "gone.py"]
    assert [name for name in names if not is_in(tmp_path, name)] == ["other", "gone.py"]
