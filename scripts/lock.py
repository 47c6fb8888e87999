"""Write the locks of the Lambda bundles and layers: for each platform the versions and hashes of all wheels.

Run by `make lock`; arguments: the folders, all without. It needs the package index, and takes the newest versions that
the lists of requirements allow. A lock names one wheel per package: the one that pip chooses for the platform.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from locked_packages import Pin, lock_of, platforms_of, wheel_options

ROOT = Path(__file__).parents[1]
LISTS = ("src", "images/layer")
"""Folders with a `requirements.txt`; their locks are in `locks`."""
HEADER = """\
# Packages of {list} for {platform}, with the hashes of their wheels. Written by scripts/lock.py (make lock).
"""


def platforms() -> list[tuple[str, str]]:
    """Return the Python version and machine of each platform of Lambda's."""
    found = []
    for makefile in sorted((ROOT / "platforms").glob("*/Makefile")):
        values = dict(re.findall(r"^(\w+) := (\S+)$", makefile.read_text(), re.MULTILINE))
        found.append((values["PYTHON_VERSION"], values["MACHINE"]))
    return found


def resolved(requirements: Path, python: str, machine: str, *, layer: bool) -> dict[str, tuple[str, ...]]:
    """Return the pinned requirements of a platform, each with the packages that need it.

    uv resolves, because pip takes the markers of the interpreter that runs it.
    """
    glibc = platforms_of(python, machine, layer=layer)[0].removesuffix(f"_{machine}")
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--annotation-style=line",
        "--only-binary=:all:", f"--python-version={python}", f"--python-platform={machine}-{glibc}",
        requirements.name,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=requirements.parent, check=True, stdout=subprocess.PIPE, text=True)
    pins = {}
    for line in done.stdout.splitlines():
        pin, _, via = line.partition("# via ")
        pins[pin.strip()] = tuple(each.removeprefix("-r ") for each in via.split(", "))
    return pins


def hashes(pins: list[str], options: list[str]) -> dict[str, str]:
    """Return the SHA-256 of the wheel that pip chooses for each pinned requirement."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run",
            "--ignore-installed", "--no-deps", f"--target={folder}", f"--report={report}",
            *options, *pins,
        ]  # fmt: skip
        subprocess.run(command, check=True)
        installs = json.loads(report.read_text())["install"]
    return {
        _canonical(each["metadata"]["name"]): each["download_info"]["archive_info"]["hashes"]["sha256"]
        for each in installs
    }


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(requirements: Path, python: str, machine: str) -> list[Pin]:
    """Return the locked packages of a list of requirements."""
    layer = requirements.parent.name == "layer"
    pins = resolved(requirements, python, machine, layer=layer)
    found = hashes([*pins], wheel_options(python, machine, layer=layer))
    return [
        Pin(name, version, found[name], via)
        for (name, _, version), via in ((pin.partition("=="), via) for pin, via in sorted(pins.items()))
    ]


def main() -> None:
    """Write every lock."""
    for folder in sys.argv[1:] or LISTS:
        requirements = ROOT / folder / "requirements.txt"
        for python, machine in platforms():
            path = lock_of(requirements.parent / "locks", python, machine)
            path.parent.mkdir(exist_ok=True)
            header = HEADER.format(list=f"{folder}/requirements.txt", platform=path.stem)
            path.write_text(header + "".join(f"{pin.line}\n" for pin in locked(requirements, python, machine)))
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
