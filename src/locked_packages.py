"""Install the locked wheels of a Lambda bundle or layer for its platform, and write their SBOM (CycloneDX 1.6, JSON).

It needs the standard library and pip, of Python 3.11 or newer on any machine. `scripts/lock.py` writes the locks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path
from typing import Any

SBOM = "sbom.cdx.json"
TIME = 315_619_200
"""The time of every file, 2 January 1980 UTC: the earliest that a zip archive can hold in every time zone."""
UNUSED = ("bin", "**/tests", "**/*.pyi", "*.dist-info/RECORD", "*.dist-info/INSTALLER", "*.dist-info/REQUESTED")
"""Files that pip installs and no function reads. METADATA stays, for importlib.metadata, and so do the licenses."""
_PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})  # via (?P<via>.+)")


@dataclass(frozen=True, slots=True)
class Pin:
    """A locked package.

    Attributes:
        name: of the distribution, lowercase, with hyphens.
        sha256: of its wheel for the platform.
        via: the locked packages that need it; `requirements.txt` for one that is listed there.
    """

    name: str
    version: str
    sha256: str
    via: tuple[str, ...]

    @property
    def line(self) -> str:
        """Return the line of the lock, which is a requirement as pip reads it."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}  # via {', '.join(self.via)}"

    @property
    def purl(self) -> str:
        """Return the package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def lock_of(folder: Path, python: str, machine: str) -> Path:
    """Return the path of the lock for a platform."""
    return folder / f"python{python}-{machine}.txt"


def read_lock(path: Path) -> list[Pin]:
    """Return the packages of a lock. Raises `ValueError` for a line that is not one package with one hash."""
    pins = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        found = _PIN.fullmatch(line)
        if found is None:
            raise ValueError(f"{path}: not a locked package: {line}")
        pins.append(Pin(found["name"], found["version"], found["sha256"], tuple(found["via"].split(", "))))
    return pins


def needed(pins: Iterable[Pin], roots: Collection[str]) -> list[Pin]:
    """Return the pins of some listed packages and of everything that they need."""
    pins, names = list(pins), set(roots)
    while more := {pin.name for pin in pins if names & set(pin.via)} - names:
        names |= more
    return [pin for pin in pins if pin.name in names]


def platforms_of(python: str, machine: str, *, layer: bool = False) -> list[str]:
    """Return pip's names of a Lambda platform, the newest first.

    The runtime python3.11 is Amazon Linux 2, with glibc 2.26; the later ones have 2.34. The layer's packages have no
    wheels for it, so those of the later ones are taken: they run on this machine, and in AWS from python3.12 on.
    """
    old = python == "3.11" and not layer
    return [*([] if old else [f"manylinux_2_28_{machine}"]), f"manylinux2014_{machine}"]


def wheel_options(python: str, machine: str, *, layer: bool = False) -> list[str]:
    """Return the options with which pip finds wheels for a platform of Lambda's, whatever machine this is.

    pip compares a package's Requires-Python with the interpreter that runs it; the lock is resolved for the platform's.
    """
    platforms = [f"--platform={platform}" for platform in platforms_of(python, machine, layer=layer)]
    general = ["--only-binary=:all:", "--ignore-requires-python", "--implementation=cp"]
    return [*general, f"--python-version={python}", *platforms]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True)


def install(pins: Iterable[Pin], options: list[str], into: Path, run: Callable[[list[str]], object] = _run) -> None:
    """Install wheels with exactly the locked hashes, without what no function reads.

    Args:
        pins: the packages.
        options: of pip, those of `wheel_options`.
        into: the folder for them.
        run: starts a command.
    """
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text("".join(f"{pin.line}\n" for pin in pins), encoding="utf-8")
        run([
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile",
            "--no-deps", "--require-hashes", *options, f"--target={into}", f"--requirement={requirements}",
        ])  # fmt: skip
    for pattern in UNUSED:
        for path in [*into.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@dataclass(frozen=True, slots=True)
class Artifact:
    """A bundle or a layer to build.

    Attributes:
        name: logical id in the template.
        platform: such as `python3.13-aarch64`.
        version: of Trainmaster, whose code is in a bundle; None for a layer.
    """

    name: str
    platform: str
    version: str | None = None


def write_sbom(artifact: Artifact, pins: Collection[Pin], site: Path, into: Path) -> None:
    """Write which packages are in a bundle or layer.

    Args:
        artifact: the bundle or layer.
        pins: the installed packages.
        site: the folder in which they are installed, for their licenses.
        into: the folder of the SBOM.
    """
    licenses = _licenses(site)
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": artifact.name,
                "name": f"trainmaster-{artifact.name}",
                **({"version": artifact.version} if artifact.version else {}),
                "properties": [{"name": "trainmaster:platform", "value": artifact.platform}],
            }
        },
        "components": [_component(pin, licenses.get(pin.name)) for pin in pins],
        "dependencies": _dependencies(artifact.name, pins),
    }
    # The same content has the same serial number, so that equal builds are equal.
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True)).urn
    (into / SBOM).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _component(pin: Pin, license_of: Mapping[str, Any] | None) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": pin.purl,
        "name": pin.name,
        "version": pin.version,
        "purl": pin.purl,
        "hashes": [{"alg": "SHA-256", "content": pin.sha256}],
    }
    return component | ({"licenses": [license_of]} if license_of else {})


def _dependencies(name: str, pins: Collection[Pin]) -> list[dict[str, Any]]:
    listed = [pin.purl for pin in pins if "requirements.txt" in pin.via]
    own = [(pin.purl, [other.purl for other in pins if pin.name in other.via]) for pin in pins]
    return [{"ref": ref, "dependsOn": sorted(needs)} for ref, needs in [(name, listed), *own]]


def _licenses(site: Path) -> dict[str, dict[str, Any]]:
    """Return the license of each installed distribution that names one, by its name."""
    found = {}
    for path in sorted(site.glob("*.dist-info/METADATA")):
        metadata = message_from_string(path.read_text(encoding="utf-8"))
        name = re.sub(r"[-_.]+", "-", metadata["Name"]).lower()
        classified = [each for each in metadata.get_all("Classifier", []) if each.startswith("License ::")]
        if expression := metadata["License-Expression"]:
            found[name] = {"expression": expression}
        elif classified:
            found[name] = {"license": {"name": classified[0].rpartition(" :: ")[2]}}
        elif text := metadata["License"]:
            found[name] = {"license": {"name": text.splitlines()[0]}}
    return found


def normalize(into: Path) -> None:
    """Give every file the same time and rights: builds of the same code in any folder are then equal as archives."""
    for path in [into, *into.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (TIME, TIME))


def main(arguments: list[str] | None = None) -> None:
    """Build a layer, as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="logical id in the template")
    parser.add_argument("--python", required=True, help="Python version of the runtime, such as 3.13")
    parser.add_argument("--machine", required=True, help="aarch64 or x86_64")
    parser.add_argument("--locks", required=True, type=Path, help="folder of the locks")
    parser.add_argument("--into", required=True, type=Path, help="folder of the layer")
    options = parser.parse_args(arguments)
    lock = lock_of(options.locks, options.python, options.machine)
    pins, site = read_lock(lock), options.into / "python"
    install(pins, wheel_options(options.python, options.machine, layer=True), site)
    write_sbom(Artifact(options.name, lock.stem), pins, site, options.into)
    normalize(options.into)


if __name__ == "__main__":
    main()
