"""Runs `sam build` for the real templates, and keeps its output: a second start of the same code builds nothing.

It builds in the scratch folder, never in the checkout's own .aws-sam.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from trainmaster.local.stack.checkout import SamProject
from trainmaster.local.stack.layer import key_of, makefile_variables
from trainmaster.local.stack.processes import run

_KEPT_BUILDS = 4
"""Two versions of two projects."""
_OBSOLETE = ".forgotten"


def build_template(project: SamProject, overrides: Mapping[str, str], environment: Mapping[str, str]) -> Path:
    """Return the template with built functions, from an earlier run if nothing changed. Raises StartFailed."""
    builds = project.checkout.scratch / "builds"
    build = builds / _key(project, overrides)
    if not (build / "template.yaml").is_file():
        builds.mkdir(parents=True, exist_ok=True)
        with _build_lock(builds):
            if not build.exists():
                _build(project, build, overrides, environment)
                _delete_old(builds)
    os.utime(build)
    return build / "template.yaml"


@contextlib.contextmanager
def _build_lock(builds: Path) -> Iterator[None]:
    """Wait for other builds, one of which may be of the same sources."""
    with (builds / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def local_parameters(project: SamProject, changes: Mapping[str, str]) -> dict[str, str]:
    """Return the template parameters of samconfig's environment `local` for this machine, with changes."""
    local = tomllib.loads(project.samconfig.read_text())["local"]["deploy"]["parameters"]["parameter_overrides"]
    return {
        **dict(pair.split("=", 1) for pair in local),
        "Runtime": project.checkout.runtime,
        "Architecture": project.checkout.architecture,
        **changes,
    }


def as_arguments(overrides: Mapping[str, str]) -> list[str]:
    """Return template parameters as arguments of SAM's command line."""
    return ["--parameter-overrides", *(f"{name}={_quoted(value)}" for name, value in sorted(overrides.items()))]


def _quoted(value: str) -> str:
    """Quote a JSON object: SAM ends an unquoted value at the first quotation mark."""
    return f"'{value}'" if '"' in value else value


def _build(project: SamProject, build: Path, overrides: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Build in a temporary folder and rename it, so that no interrupted build counts as a complete one."""
    with tempfile.TemporaryDirectory(dir=build.parent) as made:
        command: list[str | Path] = [
            project.checkout.sam, "build", "--template-file", project.template, "--config-file", project.samconfig,
            "--config-env", "local", "--build-dir", f"{made}/build", *as_arguments(overrides),
        ]  # fmt: skip
        variables = {"PYTHON": sys.executable, **makefile_variables(project)}
        run("sam build", command, {**environment, **variables}, Path(made) / "log")
        if not build.exists():
            (Path(made) / "build").rename(build)


def _key(project: SamProject, overrides: Mapping[str, str]) -> str:
    """Return a name for the inputs of a build: all its files and the platform."""
    sources = [file for folder in project.built_from for file in _sources(folder)]
    platform = f"{overrides['Runtime']} {overrides['Architecture']}"
    return key_of(project.checkout, [*sources, project.template, project.samconfig], platform)


def _sources(source: Path) -> Iterator[Path]:
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _delete_old(builds: Path) -> None:
    """Rename old builds, and delete them in the background: they are thousands of files.

    The leftovers of interrupted runs go with them.
    """
    by_age = sorted(
        (path for path in builds.iterdir() if (path / "template.yaml").is_file() and not path.suffix),
        key=_age,
        reverse=True,
    )
    for old in by_age[_KEPT_BUILDS:]:
        with contextlib.suppress(OSError):
            old.rename(old.with_suffix(_OBSOLETE))
    forgotten = list(builds.glob(f"*{_OBSOLETE}"))
    threading.Thread(target=_delete, args=(forgotten,), daemon=True).start()


def _delete(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _age(path: Path) -> float:
    return path.stat().st_mtime
