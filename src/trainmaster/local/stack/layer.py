"""The packages of the layer for image jobs, installed once beside the builds; the layer that is deployed leads there.

ministack unpacks a function's layers for each of its processes: 170 MB would take longer than the tests of all image
jobs. The same Makefile installs the same packages as for AWS, by the same platform. It must not say what they are.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from trainmaster.local.stack.checkout import Checkout
from trainmaster.local.stack.processes import run

_TARGET = "build-ImagingLayer"


def layer_variables(checkout: Checkout) -> dict[str, str]:
    """What the layer's Makefile has to find in the environment of `sam build`."""
    return {"BUILT": str(_folder(checkout))}


def install_packages(checkout: Checkout, environment: Mapping[str, str]) -> None:
    """Install the packages, unless an earlier run did. Raises DidNotStart."""
    folder = _folder(checkout)
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        built = Path(made) / "built"
        command: list[str | Path] = [
            "make", "--directory", checkout.imaging_layer, "--makefile", _makefile(checkout), _TARGET,
            f"ARTIFACTS_DIR={built}",
        ]  # fmt: skip
        run("installing the layer's packages", command, environment, Path(made) / "log")
        if not folder.exists():
            built.rename(folder)


def key_of(checkout: Checkout, paths: Iterable[Path], platform: str) -> str:
    """A name for what is built of these files of the checkout, for a platform."""
    whole = hashlib.sha256(platform.encode())
    for path in sorted(paths):
        whole.update(f"{path.relative_to(checkout.root)}\n".encode())
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:16]


def _folder(checkout: Checkout) -> Path:
    """Where the packages are, by what the list of them says and by the platform."""
    lists = [path for path in checkout.imaging_layer.iterdir() if path.is_file()]
    key = key_of(checkout, [*lists, _makefile(checkout)], f"{checkout.runtime}-{checkout.architecture}")
    return checkout.scratch.resolve() / "layers" / key


def _makefile(checkout: Checkout) -> Path:
    """Return the Makefile of this machine's platform, as the template names it."""
    return checkout.platforms / f"{checkout.runtime}-{checkout.architecture}" / "Makefile"
