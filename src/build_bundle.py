"""Assemble the code of a Lambda function: the modules that its handler imports and the packages they need, compiled.

`sam build` runs it through `build.mk`. It needs the standard library and pip, of Python 3.10 or newer on any machine.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from locked_packages import Artifact, Pin, install, lock_of, needed, normalize, read_lock, wheel_options, write_sbom

PACKAGE = "trainmaster"
_HERE = Path(__file__).resolve().parent
SOURCE = _HERE if (_HERE / PACKAGE).is_dir() else _HERE.parents[2]
"""The folder of the package: this one in a checkout; site-packages for the copy in the wheel's `deployment/shipped`."""
HANDLERS = {
    "ApiFunction": "trainmaster.handlers.api.app",
    "ManagerFunction": "trainmaster.handlers.manager",
    "PipelineFunction": "trainmaster.handlers.pipelines",
    "TaskFunction": "trainmaster.handlers.tasks",
    "IntakeFunction": "trainmaster.images.handlers.intake",
    "RegionFunction": "trainmaster.images.handlers.regions",
}
"""The module of each function's handler, as in template.yaml."""
KINDS = ("trainmaster.images",)
"""Packages of kinds of jobs. The core imports them late, so that it is built without those that are not there."""
READS_IMAGES = "trainmaster.images.pixels.wiring"
"""Imported late, and only by functions with the layer ImagingLayer; the bundles of the others end before it."""
WITHOUT = dict.fromkeys(("ApiFunction", "ManagerFunction", "PipelineFunction", "TaskFunction"), (READS_IMAGES,))
LAMBDA_FOLDER = "/var/task"
"""Folder in which Lambda unpacks a bundle; compiled files name it as their source, whatever folder built them."""


def main(arguments: list[str] | None = None) -> None:
    """Build one bundle, as the command line asks."""
    if tuple(sys.version_info) < (3, 10):  # not read by mypy, which checks all code as 3.10
        sys.exit(f"Trainmaster builds with Python 3.10 or newer; {sys.executable} is older.")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("function", choices=HANDLERS, help="logical id in template.yaml")
    parser.add_argument("--python", required=True, help="Python version of the runtime, such as 3.13")
    parser.add_argument("--machine", required=True, help="aarch64 or x86_64")
    parser.add_argument("--into", required=True, type=Path, help="folder of the bundle")
    options = parser.parse_args(arguments)
    build(options.function, options.python, options.machine, options.into)


def build(function: str, python: str, machine: str, into: Path) -> None:
    """Write the bundle of a function into a folder, for a platform; say so if it cannot be compiled here."""
    modules, packages = reached(HANDLERS[function], WITHOUT.get(function, ()))
    lock = lock_of(_HERE / "locks", python, machine)
    pins = requirements(packages, read_lock(lock))
    copy_modules(modules, into)
    install(pins, wheel_options(python, machine), into)
    compiled_or_told(function, python, into)
    write_sbom(Artifact(function, lock.stem, version()), pins, into, into)
    normalize(into)


def reached(module: str, without: Collection[str] = ()) -> tuple[dict[str, Path], set[str]]:
    """Return the modules of ours that a module imports, at once or late, and the names of the packages beside them.

    Imports for type checkers alone do not count. Raises LookupError for a module of ours that does not exist.
    """
    modules: dict[str, Path] = {}
    packages: set[str] = set()
    for left_out in without:
        if not _is_of_absent_kind(left_out):
            _file_of(left_out)
    to_do = [module]
    while to_do:
        name = to_do.pop()
        if name in modules or name in without or _is_of_absent_kind(name):
            continue
        if name.partition(".")[0] != PACKAGE:
            packages.add(name.partition(".")[0])
            continue
        modules[name] = _file_of(name)
        to_do += [*_parents(name), *_imports(modules[name])]
    return modules, packages - sys.stdlib_module_names


def _is_of_absent_kind(module: str) -> bool:
    return any(f"{module}.".startswith(f"{kind}.") and not SOURCE.joinpath(*kind.split(".")).is_dir() for kind in KINDS)


def requirements(packages: Collection[str], pins: Collection[Pin]) -> list[Pin]:
    """Return the locked packages that modules import, with all that they need.

    A distribution in requirements.txt is called as what it imports.
    """
    listed = {pin.name for pin in pins if "requirements.txt" in pin.via}
    return needed(pins, {name for name in listed if name.replace("-", "_") in packages})


def version() -> str:
    """Return the version of Trainmaster."""
    (found,) = re.findall(
        '^VERSION = "(.+)"', (SOURCE / PACKAGE / "domain" / "release.py").read_text("utf-8"), re.MULTILINE
    )
    return str(found)


def copy_modules(modules: dict[str, Path], into: Path) -> None:
    """Copy modules, and the data files of the packages they are in."""
    packages = {path.parent for path in modules.values() if path.name != "__init__.py"}
    data = (file for package in packages for file in _data_of(package))
    for path in sorted({*modules.values(), *data}):
        target = into / path.relative_to(SOURCE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def compiled_or_told(function: str, python: str, into: Path) -> bool:
    """Compile a bundle and return True, or say in a line why not and return False: its sources run, too."""
    interpreter = interpreter_of(python)
    if interpreter is None:
        print(f"{function}: no python{python} on PATH, so it is not compiled and starts about twice as slowly.")
        return False
    compile_all(interpreter, into)
    return True


def interpreter_of(python: str) -> str | None:
    """Return the interpreter of a Python version; only that version's own can compile for it."""
    for name in (sys.executable, f"python{python}", "python3", "python"):
        if (found := shutil.which(name)) and _version_of(found) == python:
            return found
    return None


def compile_all(interpreter: str, into: Path) -> None:
    """Compile every file, one after the other, so that the same sources give the same bytes.

    Lambda's files are read-only and their times are those of unpacking: compiled files are never checked against them.
    """
    command = [interpreter, "-I", "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash"]
    subprocess.run([*command, "-s", str(into), "-p", LAMBDA_FOLDER, str(into)], check=True)


def _file_of(module: str) -> Path:
    path = SOURCE.joinpath(*module.split("."))
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    raise LookupError(f"there is no module {module}")


def _parents(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


@cache
def _imports(path: Path) -> list[str]:
    """Return what a file imports; of `from a import b` also a.b, where that is a module of ours."""
    found: list[str] = []
    for node in _run_time_statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *_submodules(node.module, (name.name for name in node.names))]
    return found


def _run_time_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements, with clauses that have statements of their own, but not those of `if TYPE_CHECKING:`."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        for node in getattr(tree, part, ()):
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                continue
            yield node
            yield from _run_time_statements(node)


def _submodules(package: str, names: Iterable[str]) -> Iterator[str]:
    folder = SOURCE.joinpath(*package.split("."))
    for name in names:
        if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file():
            yield f"{package}.{name}"


def _data_of(package: Path) -> Iterator[Path]:
    """Yield the files of a package that are no modules, those in folders that are no packages included."""
    for path in package.iterdir():
        if path.is_dir() and not (path / "__init__.py").exists():
            yield from _data_of(path)
        elif path.is_file() and path.suffix not in {".py", ".pyc"} and path.name != "py.typed":
            yield path


def _version_of(interpreter: str) -> str | None:
    """Return such as 3.13; None for a program that does not answer, as pyenv's for versions that are not chosen."""
    command = [interpreter, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    main()
