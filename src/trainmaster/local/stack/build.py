"""`sam build` of the real template, kept by what went into it: a second start of the same code builds nothing.

It must build in the scratch folder only, never in the checkout's own .aws-sam.
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

from trainmaster.local.stack.checkout import Checkout
from trainmaster.local.stack.layer import key_of, layer_variables
from trainmaster.local.stack.processes import run

_KEPT_BUILDS = 4
"""Of two versions, with and without image jobs."""
_FORGOTTEN = ".forgotten"


def built_template(checkout: Checkout, overrides: Mapping[str, str], environment: Mapping[str, str]) -> Path:
    """The template whose functions are built, from an earlier run if nothing changed. Raises DidNotStart."""
    builds = checkout.scratch / "builds"
    build = builds / _key(checkout, overrides)
    if not (build / "template.yaml").is_file():
        builds.mkdir(parents=True, exist_ok=True)
        with _alone(builds):
            if not build.exists():
                _build(checkout, build, overrides, environment)
                _forget_old(builds)
    os.utime(build)
    return build / "template.yaml"


@contextlib.contextmanager
def _alone(builds: Path) -> Iterator[None]:
    """Wait for other builds: one of the same sources then makes this one needless."""
    with (builds / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def local_parameters(checkout: Checkout, changes: Mapping[str, str]) -> dict[str, str]:
    """The template parameters of samconfig's environment `local`, for this machine, with the changes over them."""
    local = tomllib.loads(checkout.samconfig.read_text())["local"]["deploy"]["parameters"]["parameter_overrides"]
    return {
        **dict(pair.split("=", 1) for pair in local),
        "Runtime": checkout.runtime,
        "Architecture": checkout.architecture,
        **changes,
    }


def as_arguments(overrides: Mapping[str, str]) -> list[str]:
    """Template parameters as SAM's command line takes them."""
    return ["--parameter-overrides", *(f"{name}={value}" for name, value in sorted(overrides.items()))]


def _build(checkout: Checkout, build: Path, overrides: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Build beside the place and move there, so that a build broken off is never taken for a whole one."""
    with tempfile.TemporaryDirectory(dir=build.parent) as made:
        command: list[str | Path] = [
            checkout.sam, "build", "--template-file", checkout.template, "--config-file", checkout.samconfig,
            "--config-env", "local", "--build-dir", f"{made}/build", *as_arguments(overrides),
        ]  # fmt: skip
        variables = {"PYTHON": sys.executable, **layer_variables(checkout)}
        run("sam build", command, {**environment, **variables}, Path(made) / "log")
        if not build.exists():
            (Path(made) / "build").rename(build)


def _key(checkout: Checkout, overrides: Mapping[str, str]) -> str:
    """Return a name for what goes into a build: all its files, the platform, and whether image jobs are in."""
    sources = [file for folder in checkout.built_from for file in _sources(folder)]
    platform = f"{overrides['Runtime']} {overrides['Architecture']} {overrides.get('ImageJobs')}"
    return key_of(checkout, [*sources, checkout.template, checkout.samconfig], platform)


def _sources(source: Path) -> Iterator[Path]:
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _forget_old(builds: Path) -> None:
    """Set old builds aside, and delete them meanwhile: thousands of files, for which no start has to wait.

    What an interrupted run has left behind goes with them.
    """
    by_age = sorted(
        (path for path in builds.iterdir() if (path / "template.yaml").is_file() and not path.suffix),
        key=_age,
        reverse=True,
    )
    for old in by_age[_KEPT_BUILDS:]:
        with contextlib.suppress(OSError):
            old.rename(old.with_suffix(_FORGOTTEN))
    forgotten = list(builds.glob(f"*{_FORGOTTEN}"))
    threading.Thread(target=_delete, args=(forgotten,), daemon=True).start()


def _delete(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _age(path: Path) -> float:
    return path.stat().st_mtime
