"""Where things lie in the checkout: the template, and the environments that `make` made.

It must only look; `make` alone installs.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path


class SetUpMissing(Exception):
    """Something that `make install-all` makes is not there."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout of the project, by its root folder."""

    root: Path

    @classmethod
    def here(cls) -> Checkout:
        """The checkout that this module was imported from. Raises SetUpMissing for a package without its template."""
        for folder in Path(__file__).resolve().parents:
            if (folder / "template.yaml").is_file() and (folder / "Makefile").is_file():
                return cls(folder)
        raise SetUpMissing("the local stack needs a checkout of the project, not only the installed package")

    @property
    def template(self) -> Path:
        """The SAM template, the same that is deployed to AWS."""
        return self.root / "template.yaml"

    @property
    def samconfig(self) -> Path:
        """SAM's settings, with the environment `local`."""
        return self.root / "samconfig.toml"

    @property
    def source(self) -> Path:
        """SAM's CodeUri."""
        return self.root / "src"

    @property
    def imaging_layer(self) -> Path:
        """SAM's ContentUri of the layer with GDAL, for image jobs."""
        return self.root / "layers" / "imaging"

    @property
    def platforms(self) -> Path:
        """SAM's ContextPath: a Makefile for each platform of Lambda's."""
        return self.root / "platforms"

    @property
    def built_from(self) -> tuple[Path, ...]:
        """The folders that `sam build` reads."""
        return (self.source, self.imaging_layer, self.platforms)

    @property
    def scratch(self) -> Path:
        """Builds and logs of the local stack; git ignores it."""
        return self.root / ".local" / "stack"

    @property
    def python(self) -> Path:
        """The interpreter of the development environment, whichever environment asks."""
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
    def torch_run(self) -> Path:
        """The entry point of elastic containers, in an environment with torch."""
        return self._program(".venv-torch", "trainmaster-run")

    @property
    def examples(self) -> Path:
        """Training scripts that anybody may run."""
        return self.root / "examples"

    @property
    def runtime(self) -> str:
        """The Lambda runtime that ministack can offer: it runs handlers with the interpreter of its environment."""
        return f"python{sys.version_info.major}.{sys.version_info.minor}"

    @property
    def architecture(self) -> str:
        """The Lambda architecture of this machine's processor."""
        return "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"

    def _program(self, environment: str, name: str) -> Path:
        program = self.root / environment / "bin" / name
        if not program.exists():
            raise SetUpMissing(f"{program.relative_to(self.root)} is missing: run `make install-all`")
        return program
