"""Python environments of this machine for jobs: an image's packages come from one of them.

Each instance gets an environment of its own on top of it, so that a job's `pip install` changes nothing else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.local.simulator.service.job import TrainingJob

FRAMEWORKS = {"pytorch": "torch", "tensorflow": "tensorflow", "xgboost": "xgboost", "scikit-learn": "scikit-learn",
              "mxnet": "mxnet", "huggingface": "transformers"}  # fmt: skip
"""The package that an image brings, by a word in the name of its repository."""
_SDK_VERSION = "--client_sagemaker_pysdk_version"
"""Argument by which a remote function names the SDK that its container needs."""
_INSPECT = """
import importlib.metadata, json, os, sys, sysconfig
print(json.dumps({
    "base": os.path.realpath(sys._base_executable), "version": "%d.%d" % sys.version_info[:2],
    "packages_in": sysconfig.get_path("purelib"), "scripts_in": os.path.dirname(sys.executable),
    "nested": sys.prefix != sys.base_prefix,
    "packages": {each.name.lower(): each.version for each in importlib.metadata.distributions() if each.name},
}))
"""
_SECONDS = 60
_PYTHON = re.compile(rb"""\A(#!|#!/bin/sh\n'''exec' "?)(/[^\s"]*/python[\d.]*)""")
"""The interpreter of a script, in its first line, or in the second for long paths."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python environment.

    Attributes:
        python: its interpreter, as it was named.
        base: the interpreter that it was made from.
        version: major and minor version.
        packages_in, scripts_in: its folders.
        nested: whether it is a virtual environment.
        packages: versions of the packages by name.
    """

    python: Path
    base: Path
    version: str
    packages_in: Path
    scripts_in: Path
    nested: bool
    packages: Mapping[str, str]

    @classmethod
    def of(cls, python: Path) -> Interpreter:
        """Ask an interpreter. Raises OSError if it cannot be run."""
        asked = subprocess.run(
            [python, "-I", "-c", _INSPECT], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if asked.returncode:
            raise OSError(f"{python} cannot be used: {asked.stderr.strip()}")
        found: dict[str, Any] = json.loads(asked.stdout)
        folders = {name: Path(found[name]) for name in ("base", "packages_in", "scripts_in")}
        return cls(python, version=found["version"], nested=found["nested"], packages=found["packages"], **folders)

    def has(self, package: str, version: str = "") -> bool:
        """Return whether it has a package, with a version that begins so."""
        return f"{self.packages.get(package, '-')}.".startswith(f"{version}." if version else "") and (
            package in self.packages
        )

    def overlay(self, folder: Path) -> Path:
        """Create an environment that sees this one's packages, and return its folder of programs."""
        programs = folder / "bin"
        packages = folder / "lib" / f"python{self.version}" / "site-packages"
        for path in (programs, packages):
            path.mkdir(parents=True)
        system = "false" if self.nested else "true"
        (folder / "pyvenv.cfg").write_text(f"home = {self.base.parent}\ninclude-system-site-packages = {system}\n")
        if self.nested:
            (packages / "inherited.pth").write_text(f"import site; site.addsitedir({str(self.packages_in)!r})\n")
        for name in ("python", "python3", f"python{self.version}"):
            (programs / name).symlink_to(self.base)
        self._copy_scripts(programs)
        return programs

    def _copy_scripts(self, programs: Path) -> None:
        """Copy scripts such as `pip` and `torchrun`, to run in the overlay."""
        for path in self.scripts_in.iterdir():
            target = programs / path.name
            if target.exists() or not path.is_file() or not os.access(path, os.X_OK):
                continue
            with path.open("rb") as file:
                script = file.read(2) == b"#!"
            text = path.read_bytes() if script else b""
            new = _PYTHON.sub(lambda found: self._replacement(found, programs), text, count=1)
            if new != text:
                target.write_bytes(new)
                target.chmod(0o755)

    def _replacement(self, found: re.Match[bytes], programs: Path) -> bytes:
        """Return the overlay's interpreter in the place of this environment's, which links may lead to."""
        own = Path(os.fsdecode(found[2])).parent.resolve() == self.scripts_in.resolve()
        return found[1] + bytes(programs / "python") if own else found[0]


@dataclass(frozen=True, slots=True)
class Choice:
    """The environment for a job, and the packages of its image that it lacks."""

    interpreter: Interpreter
    missing: tuple[str, ...]


class Interpreters:
    """The environments that jobs may use, the preferred first."""

    def __init__(self, pythons: Sequence[Path] = ()) -> None:
        self._pythons = pythons
        self._asked: list[Interpreter] | None = None

    def choose(self, job: TrainingJob, more: Iterable[str] = ()) -> Choice | None:
        """Return the environment with most of the packages that a job needs; None without any environment.

        It needs those of its image, and `more`.
        """
        wanted = wanted_packages(job) | dict.fromkeys(more, "")
        choices = [
            Choice(each, tuple(name for name, version in wanted.items() if not each.has(name, version)))
            for each in self._all()
        ]
        return min(choices, key=lambda choice: len(choice.missing), default=None)

    def _all(self) -> list[Interpreter]:
        if self._asked is None:
            self._asked = [Interpreter.of(python) for python in self._pythons]
        return self._asked


def wanted_packages(job: TrainingJob) -> dict[str, str]:
    """Return the packages, with the beginning of their versions, that the script of a job needs from its image."""
    algorithm = job.request.get("AlgorithmSpecification", {})
    arguments = algorithm.get("ContainerArguments", [])
    if _SDK_VERSION in arguments[:-1]:
        return {"sagemaker": arguments[arguments.index(_SDK_VERSION) + 1].partition(".")[0]}
    repository = algorithm.get("TrainingImage", "").rpartition("/")[2].partition(":")[0]
    return {package: "" for word, package in FRAMEWORKS.items() if word in repository}
