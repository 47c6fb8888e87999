"""The Lambda bundle: built, zipped and weighed, for this machine to import and for the deployment's default platform.

It must not deploy anything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import ROOT, SCRATCH
from trainmaster.local.stack.address import plain_environment
from trainmaster.local.stack.build import built_template, local_parameters
from trainmaster.local.stack.checkout import Checkout

DEFAULT_RUNTIME, DEFAULT_PLATFORM = "3.13", "aarch64-manylinux2014"
FUNCTIONS = ("ApiFunction", "ManagerFunction")


def built() -> tuple[Path, str]:
    """A folder with the bundle for this machine, and how it was made: by `sam build` where there is SAM, else by uv."""
    checkout = Checkout.here()
    if (ROOT / ".venv-sam" / "bin" / "sam").exists():
        template = built_template(checkout, local_parameters(checkout, {}), _environment())
        return template.parent / FUNCTIONS[0], "sam build"
    return _installed("here", []), "uv pip install --target"


def weights(folder: Path) -> dict[str, Any]:
    """Sizes of the bundle for this machine and of the one that `template.yaml` deploys unless told otherwise."""
    platform = ["--python-version", DEFAULT_RUNTIME, "--python-platform", DEFAULT_PLATFORM, "--only-binary", ":all:"]
    default = _installed(DEFAULT_PLATFORM, platform)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {
        f"this machine, Python {version}": weight(folder),
        f"arm64, Python {DEFAULT_RUNTIME} (the default)": weight(default),
    }


def weight(folder: Path) -> dict[str, Any]:
    """Zipped and unzipped megabytes, and what is heaviest in it."""
    with tempfile.TemporaryDirectory() as text:
        archive = Path(text) / "bundle.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
            for path in _files(folder):
                zipped.write(path, path.relative_to(folder))
        parts: dict[str, int] = {}
        for path in _files(folder):
            part = path.relative_to(folder).parts[0]
            parts[part] = parts.get(part, 0) + path.stat().st_size
        heaviest = sorted(parts.items(), key=lambda item: -item[1])[:5]
        return {
            "zipped_mb": round(archive.stat().st_size / 1e6, 2),
            "unzipped_mb": round(sum(parts.values()) / 1e6, 2),
            "heaviest_mb": {name: round(size / 1e6, 2) for name, size in heaviest},
        }


def copied(folder: Path, to: Path, *, compiled: bool) -> Path:
    """A copy to import from: without compiled files, as Lambda gets it, or with them."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("__pycache__"))
    if compiled:
        subprocess.run([sys.executable, "-m", "compileall", "-q", "-j", "0", str(to)], check=True)
    return to


def _installed(name: str, options: list[str]) -> Path:
    target = SCRATCH / "bundles" / name
    shutil.rmtree(target, ignore_errors=True)
    command = [str(ROOT / ".venv" / "bin" / "uv"), "pip", "install", "--quiet", "--target", str(target), *options]
    subprocess.run([*command, "-r", str(ROOT / "src" / "requirements.txt")], check=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "trainmaster", target / "trainmaster", ignore=ignored)
    return target


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]


def _environment() -> Mapping[str, str]:
    return {**plain_environment(os.environ), "SAM_CLI_TELEMETRY": "0"}
