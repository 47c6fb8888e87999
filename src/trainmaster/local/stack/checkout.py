"""Paths of the checkout: its SAM templates, and the environments that `make` installs."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path


class SetupMissing(Exception):
    """A file that `make install-all` creates is missing."""


@dataclass(frozen=True, slots=True)
class SamProject:
    """A SAM template that is deployed as a stack of its own.

    Attributes:
        checkout: the checkout that it is part of.
        name: its folder, relative to the checkout's root; "" for the root, which has the queue's own template.
    """

    checkout: Checkout
    name: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the template."""
        return self.checkout.root / self.name

    @property
    def template(self) -> Path:
        """The SAM template, the same that is deployed to AWS."""
        return self.folder / "template.yaml"

    @property
    def samconfig(self) -> Path:
        """SAM's settings, with the environment `local`."""
        return self.folder / "samconfig.toml"

    @property
    def layer(self) -> Path | None:
        """SAM's ContentUri of the project's Lambda layer; None if it has none."""
        layer = self.folder / "layer"
        return layer if layer.is_dir() else None

    @property
    def built_from(self) -> tuple[Path, ...]:
        """The folders that `sam build` reads."""
        shared = (self.checkout.source, self.checkout.platforms)
        return (*shared, self.layer) if self.layer else shared


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout of the project, by its root folder."""

    root: Path

    @classmethod
    def here(cls) -> Checkout:
        """Return the checkout that this module belongs to. Raises SetupMissing for an installed package."""
        for folder in Path(__file__).resolve().parents:
            if (folder / "template.yaml").is_file() and (folder / "Makefile").is_file():
                return cls(folder)
        raise SetupMissing(
            "The local stack needs a checkout of the project, not only the installed package: "
            "clone the repository, and run `make demo` or `make stack` there."
        )

    def project(self, name: str = "") -> SamProject:
        """Return the SAM project in a folder of the checkout, by default the queue's own."""
        return SamProject(self, name)

    @property
    def source(self) -> Path:
        """SAM's CodeUri."""
        return self.root / "src"

    @property
    def platforms(self) -> Path:
        """SAM's ContextPath: a Makefile for each platform of Lambda's."""
        return self.root / "platforms"

    @property
    def scratch(self) -> Path:
        """Builds and logs of the local stack; git ignores it."""
        return self.root / ".local" / "stack"

    @property
    def environment_file(self) -> Path:
        """The file to source in another shell, for the stack that `make stack` runs."""
        return self.scratch / "env"

    @property
    def python(self) -> Path:
        """The interpreter of the development environment, from any environment."""
        return self._program(".venv", "python")

    @property
    def ministack(self) -> Path:
        """The stand-in for AWS."""
        return self._program(".venv-ministack", "ministack")

    @property
    def sam(self) -> Path:
        """The SAM command line."""
        return self._program(".venv-sam", "sam")

    @property
    def sdk2_python(self) -> Path:
        """The interpreter with SageMaker SDK v2 beside Trainmaster."""
        return self._program(".venv-sdk2", "python")

    @property
    def pythons(self) -> list[Path]:
        """The interpreters of the installed environments with a SageMaker SDK or torch, the newest SDK first."""
        found = [self.root / name / "bin" / "python" for name in (".venv-sdk3", ".venv-torch", ".venv-sdk2")]
        return [python for python in found if python.exists()]

    @property
    def torch_run(self) -> Path:
        """The entry point of elastic containers, in an environment with torch."""
        return self._program(".venv-torch", "trainmaster-run")

    @property
    def examples(self) -> Path:
        """The example training scripts."""
        return self.root / "examples"

    @property
    def runtime(self) -> str:
        """The Lambda runtime that ministack supports: it runs handlers with its own interpreter."""
        return f"python{sys.version_info.major}.{sys.version_info.minor}"

    @property
    def architecture(self) -> str:
        """The Lambda architecture of this machine's processor."""
        return "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"

    def _program(self, environment: str, name: str) -> Path:
        program = self.root / environment / "bin" / name
        if not program.exists():
            raise SetupMissing(f"{program.relative_to(self.root)} is missing: run `make install-all`")
        return program
