"""Installs the packages of a Lambda layer once, beside the builds; the deployed layer only refers to them.

ministack unpacks the layers of a function for each of its processes, which takes too long for 170 MB. The same Makefile
installs the same packages as for AWS, for the same platform.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from trainmaster.local.stack.checkout import Checkout, SamProject
from trainmaster.local.stack.processes import run

_TARGET = "build-layer"


def makefile_variables(project: SamProject) -> dict[str, str]:
    """Return the variables of the layer's Makefile for `sam build`; none for a project without a layer."""
    return {"BUILT": str(_folder(project, project.layer))} if project.layer else {}


def install_packages(project: SamProject, environment: Mapping[str, str]) -> None:
    """Install the packages of a project's layer, if it has one and no earlier run did. Raises StartFailed."""
    if project.layer is None or (folder := _folder(project, project.layer)).is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        built = Path(made) / "built"
        command: list[str | Path] = [
            "make", "--directory", project.layer, "--makefile", _makefile(project.checkout), _TARGET,
            f"ARTIFACTS_DIR={built}",
        ]  # fmt: skip
        run("installing the layer's packages", command, environment, Path(made) / "log")
        if not folder.exists():
            built.rename(folder)


def key_of(checkout: Checkout, paths: Iterable[Path], platform: str) -> str:
    """Return a name for the build of these files of the checkout for a platform."""
    whole = hashlib.sha256(platform.encode())
    for path in sorted(paths):
        whole.update(f"{path.relative_to(checkout.root)}\n".encode())
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:16]


def _folder(project: SamProject, layer: Path) -> Path:
    """Return the folder of the packages, named after the files of the layer and the platform."""
    checkout = project.checkout
    lists = [path for path in layer.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    key = key_of(checkout, [*lists, _makefile(checkout)], f"{checkout.runtime}-{checkout.architecture}")
    return checkout.scratch.resolve() / "layers" / key


def _makefile(checkout: Checkout) -> Path:
    """Return the Makefile of this machine's platform, as the template names it."""
    return checkout.platforms / f"{checkout.runtime}-{checkout.architecture}" / "Makefile"
