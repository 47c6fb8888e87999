"""The bundles of the functions: built for this machine to import, and for the default platform to weigh."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import build_bundle
from benchmarks import SCRATCH

DEFAULT_RUNTIME, DEFAULT_MACHINE = "3.13", "aarch64"
FUNCTIONS = {"api": "ApiFunction", "manager": "ManagerFunction"}


def built(function: str) -> Path:
    """Build the bundle of a function for this machine's Python and platform, compiled as for Lambda."""
    folder = _empty(f"{function}-here")
    build_bundle.build(FUNCTIONS[function], "{}.{}".format(*sys.version_info), platform.machine(), folder)
    build_bundle.compile_all(sys.executable, folder)
    return folder


def without_compiled_files(folder: Path, to: Path) -> Path:
    """Copy a bundle's sources alone, as SAM's own Python workflow would leave them."""
    return Path(shutil.copytree(folder, to, ignore=shutil.ignore_patterns("__pycache__")))


def weights() -> dict[str, Any]:
    """Weigh the bundle of each function as `sam build` makes it by default, compiled if that Python is here."""
    compiled = build_bundle.interpreter_of(DEFAULT_RUNTIME) is not None
    state = "compiled" if compiled else "not compiled"
    return {
        f"{function}, arm64, Python {DEFAULT_RUNTIME}, {state}": weight(_default(function)) for function in FUNCTIONS
    }


def weight(folder: Path) -> dict[str, Any]:
    """Return zipped and unzipped megabytes, and the heaviest packages."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    with tempfile.TemporaryDirectory() as text:
        archive = Path(text) / "bundle.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
            for path in files:
                zipped.write(path, path.relative_to(folder))
        size = archive.stat().st_size
    parts: dict[str, int] = {}
    for path in files:
        part = path.relative_to(folder).parts[0]
        parts[part] = parts.get(part, 0) + path.stat().st_size
    heaviest = sorted(parts.items(), key=lambda item: -item[1])[:5]
    return {
        "zipped_mb": round(size / 1e6, 2),
        "unzipped_mb": round(sum(parts.values()) / 1e6, 2),
        "heaviest_mb": {name: round(size / 1e6, 2) for name, size in heaviest},
    }


def _default(function: str) -> Path:
    folder = _empty(f"{function}-default")
    build_bundle.build(FUNCTIONS[function], DEFAULT_RUNTIME, DEFAULT_MACHINE, folder)
    return folder


def _empty(name: str) -> Path:
    folder = SCRATCH / "bundles" / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder
