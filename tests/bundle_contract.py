"""Tests of the bundles of one template's functions, for the queue's template and for those of other kinds of jobs."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from importlib.util import MAGIC_NUMBER
from typing import Any, ClassVar

import pytest

import build_bundle
from locked_packages import read_lock
from permissions import ROOT

RUNTIME = {"boto3", "botocore"}
"""Lambda's Python runtimes have them."""
LAYER = {"httpcore", "httpx", "numpy", "rasterio", "shapely"}
NEVER = {"cli", "client", "local", "worker"}
UNCHECKED_HASH = 1
"""The second word of a compiled file that is never compared to its source (PEP 552)."""
IMPORT_ALL = """
import importlib, json, sys
from pathlib import Path
bundle = Path(sys.argv[1])
sys.path[:0] = sys.argv[1:]
files = [path.relative_to(bundle).with_suffix("") for path in sorted(bundle.rglob("*.py"))]
for file in files:
    importlib.import_module(".".join(file.parts).removesuffix(".__init__"))
ours = {name: module.__cached__ for name, module in sys.modules.items() if name.partition(".")[0] == "trainmaster"}
print(json.dumps([ours, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def functions_of(template: Mapping[str, Any]) -> list[str]:
    """Return the names of the functions of a template."""
    resources = template["Resources"].items()
    return sorted(name for name, one in resources if one["Type"] == "AWS::Serverless::Function")


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tree(folder):
    """Return the time, the rights and the content of everything in a folder, itself included."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        about = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        found[path.relative_to(folder)] = (about.st_mtime, about.st_mode, hashlib.sha256(content).hexdigest())
    return found


HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PLATFORMS = [(HERE, "x86_64"), ("3.14", "aarch64")]
"""Python versions and machines to build for: one for which this Python compiles, and one for which it does not."""


def trees_of_two_builds(folder, program, platform):
    """Build twice, in folders of unlike depth, rights, time zones and hash seeds; return what both hold.

    Args:
        folder: for the builds, each with the sources of its own.
        program: the script and its arguments, relative to the checkout.
        platform: the Python version and the machine.
    """
    checkouts = [folder / "0", folder / "1" / "deep" / "deep"]
    for checkout in checkouts:
        for part in ("src", "images/layer"):
            shutil.copytree(ROOT / part, checkout / part, symlinks=True)
    made = []
    for number, (checkout, mask, zone) in enumerate(zip(checkouts, (0o022, 0o077), ("UTC", "Asia/Tokyo"), strict=True)):
        into = checkout / "bundle"
        environment = {**os.environ, "PYTHONHASHSEED": str(number), "TZ": zone}
        command = [sys.executable, *program, "--python", platform[0], "--machine", platform[1], "--into", into]
        subprocess.run(command, cwd=checkout, env=environment, umask=mask, check=True)
        made.append(tree(into))
    return made


WITHOUT_MODELS = {"ManagerFunction", "PipelineFunction", "TaskFunction"}
"""Functions that read no bodies of the API."""


class BundleContract:
    """Tests of the functions of the fixture `function`.

    Attributes:
        resources: the template's.
        layer: packages that the functions have from a layer.
    """

    resources: ClassVar[Mapping[str, Any]]
    layer: ClassVar[set[str]] = set()

    @pytest.fixture(scope="class")
    @classmethod
    def reached(cls, function):
        return build_bundle.reached(build_bundle.HANDLERS[function], build_bundle.WITHOUT.get(function, ()))

    @pytest.fixture(scope="class")
    @classmethod
    def bundle(cls, reached, tmp_path_factory):
        """A bundle as SAM makes it, but for the packages from outside."""
        folder = tmp_path_factory.mktemp("bundle")
        build_bundle.copy_modules(reached[0], folder)
        build_bundle.compile_all(sys.executable, folder)
        return folder

    def test_bundles_are_those_of_the_functions_and_hold_their_handlers(self, function, reached):
        assert self.resources[function]["Properties"]["Handler"] == f"{build_bundle.HANDLERS[function]}.handler"
        assert build_bundle.HANDLERS[function] in reached[0]

    def test_a_bundle_runs_alone_from_compiled_files_and_holds_no_more_than_its_function_imports(
        self, function, bundle
    ):
        packages = sysconfig.get_paths()["purelib"]
        command = [sys.executable, "-I", "-S", "-W", "ignore", "-c", IMPORT_ALL, bundle, packages]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        ours, roots = json.loads(done.stdout)
        compiled = {str(path) for path in bundle.rglob("*.pyc")}
        assert set(ours.values()) == compiled
        layers = {layer for name in ours for layer in name.split(".")[1:3]}
        assert not layers & NEVER
        assert {"domain", "service", "adapters", "handlers", "bootstrap"} <= layers
        assert not (LAYER - self.layer) & set(roots), "what reads images needs the layer"

    def test_packages_are_those_that_are_built_in_or_that_the_runtime_or_the_layer_has(self, function, reached):
        _, packages = reached
        pins = build_bundle.requirements(packages, read_lock(build_bundle.SOURCE / "locks" / "python3.13-aarch64.txt"))
        built_in = {pin.name.replace("-", "_") for pin in pins if "requirements.txt" in pin.via}
        assert packages - built_in <= RUNTIME | self.layer
        models = function not in WITHOUT_MODELS
        assert built_in == {"aws_lambda_powertools"} | ({"pydantic"} if models else set())
        assert ("pydantic-core" in {pin.name for pin in pins}) is models

    def test_the_data_of_a_package_is_in_its_bundle(self, bundle, function):
        assert len([*bundle.rglob("service-2.json")]) == 1, function
        assert not [*bundle.rglob("py.typed")]

    def test_compiled_files_are_never_compared_to_their_sources_and_name_them_where_lambda_has_them(self, bundle):
        sources = {path.relative_to(bundle) for path in bundle.rglob("*.py")}
        for path in sources:
            (compiled,) = (bundle / path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")
            head = compiled.read_bytes()
            assert head[:8] == MAGIC_NUMBER + UNCHECKED_HASH.to_bytes(4, "little")
            assert f"/var/task/{path}".encode() in head
            assert str(bundle).encode() not in head

    def test_the_same_sources_give_the_same_bytes(self, reached, bundle, tmp_path):
        other = tmp_path / "elsewhere" / "bundle"
        build_bundle.copy_modules(reached[0], other)
        build_bundle.compile_all(sys.executable, other)
        assert files(other) == files(bundle)

    @pytest.mark.slow
    @pytest.mark.parametrize("platform", PLATFORMS, ids="-".join)
    def test_two_builds_in_two_folders_are_equal_as_archives(self, function, platform, tmp_path):
        """Contents, times and rights of every file: what a zip archive holds."""
        first, second = trees_of_two_builds(tmp_path, ["src/build_bundle.py", function], platform)
        assert {"sbom.cdx.json", "trainmaster", "aws_lambda_powertools"} <= {
            path.parts[0] for path in first if path.parts
        }
        assert any(path.suffix == ".pyc" for path in first) == (platform[0] == HERE)
        assert first == second
