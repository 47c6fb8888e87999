"""Renew the browser libraries below src/trainmaster/console/static/vendor; with --check, only compare their hashes.

Each library comes from its npm package, of the version and integrity that vendored.json states. `npm pack` fetches it;
nothing of it is run. To take a newer version: change version and integrity there, and run this script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

VENDOR = Path(__file__).parents[1] / "src" / "trainmaster" / "console" / "static" / "vendor"
LIST = VENDOR / "vendored.json"


def main(arguments: list[str]) -> int:
    """Renew the files, or compare them; return 1 if one differs from the list."""
    packages = json.loads(LIST.read_text())
    if "--check" not in arguments:
        for package in packages:
            renew(package)
        LIST.write_text(json.dumps(packages, indent=2) + "\n")
    wrong = [name for package in packages for name in different(package)]
    for name in wrong:
        print(f"{name} is not what vendored.json says")
    return 1 if wrong else 0


def renew(package: dict[str, Any]) -> None:
    """Fetch a package, verify it, and copy its files. Raises SystemExit for another integrity."""
    with tempfile.TemporaryDirectory() as folder:
        npm = shutil.which("npm") or sys.exit("npm is missing: install Node.js")
        wanted = f"{package['name']}@{package['version']}"
        subprocess.run([npm, "pack", "--silent", wanted], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if found != package["integrity"]:
            sys.exit(f"{wanted} has integrity {found}, expected {package['integrity']}")
        with tarfile.open(archive) as files:
            for each in package["files"]:
                copy(files, each)


def copy(files: tarfile.TarFile, each: dict[str, str]) -> None:
    """Write one file of a package: modules import their neighbor by its path, and no source map is named."""
    member = files.extractfile(f"package/{each['from']}")
    if member is None:
        sys.exit(f"the package has no file {each['from']}")
    text = member.read().decode().replace('from"preact"', 'from"./preact.mjs"')
    lines = [line for line in text.splitlines() if not line.startswith("//# sourceMappingURL=")]
    (VENDOR / each["to"]).write_text("\n".join(lines) + "\n")
    each["sha256"] = hashlib.sha256((VENDOR / each["to"]).read_bytes()).hexdigest()


def different(package: dict[str, Any]) -> list[str]:
    """Return the files of a package that are missing or differ."""
    paths = {each["to"]: each["sha256"] for each in package["files"]}
    there = {name: VENDOR / name for name in paths if (VENDOR / name).is_file()}
    return [
        name
        for name, expected in paths.items()
        if name not in there or hashlib.sha256(there[name].read_bytes()).hexdigest() != expected
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
