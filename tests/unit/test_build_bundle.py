"""Bundles of the Lambda functions: each holds what its handler imports and nothing else, compiled, and runs alone."""

import json
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest

import build_bundle
from permissions import images_template, template

RESOURCES = template()["Resources"] | images_template()["Resources"]
FUNCTIONS = sorted(name for name, one in RESOURCES.items() if one["Type"] == "AWS::Serverless::Function")
READ_IMAGES = {"IntakeFunction", "RegionFunction"}
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


@pytest.fixture(scope="module", params=FUNCTIONS)
def function(request):
    return request.param


@pytest.fixture(scope="module")
def reached(function):
    return build_bundle.reached(build_bundle.HANDLERS[function], build_bundle.WITHOUT.get(function, ()))


@pytest.fixture(scope="module")
def bundle(reached, tmp_path_factory):
    """A bundle as SAM makes it, but for the packages from outside."""
    folder = tmp_path_factory.mktemp("bundle")
    build_bundle.copy_modules(reached[0], folder)
    build_bundle.compile_all(sys.executable, folder)
    return folder


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_bundles_are_those_of_the_functions_and_hold_their_handlers(function, reached):
    assert sorted(build_bundle.HANDLERS) == FUNCTIONS
    assert RESOURCES[function]["Properties"]["Handler"] == f"{build_bundle.HANDLERS[function]}.handler"
    assert build_bundle.HANDLERS[function] in reached[0]


def test_a_bundle_runs_alone_from_compiled_files_and_holds_no_more_than_its_function_imports(function, bundle):
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
    assert function in READ_IMAGES or not LAYER & set(roots), "what reads images needs the layer"


def test_packages_are_those_that_are_built_in_or_that_the_runtime_or_the_layer_has(function, reached):
    _, packages = reached
    lines = [*build_bundle.requirements(packages)]
    built_in = {line.partition(">")[0].replace("-", "_") for line in lines}
    assert packages - built_in <= RUNTIME | (LAYER if function in READ_IMAGES else set())
    assert built_in == {"aws_lambda_powertools"} | ({"pydantic"} if function != "ManagerFunction" else set())


def test_the_data_of_a_package_is_in_its_bundle(bundle, function):
    assert len([*bundle.rglob("service-2.json")]) == 1, function
    assert not [*bundle.rglob("py.typed")]


def test_compiled_files_are_never_compared_to_their_sources_and_name_them_where_lambda_has_them(bundle):
    sources = {path.relative_to(bundle) for path in bundle.rglob("*.py")}
    for path in sources:
        (compiled,) = (bundle / path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")
        head = compiled.read_bytes()
        assert head[:8] == MAGIC_NUMBER + UNCHECKED_HASH.to_bytes(4, "little")
        assert f"/var/task/{path}".encode() in head
        assert str(bundle).encode() not in head


def test_the_same_sources_give_the_same_bytes(reached, bundle, tmp_path):
    other = tmp_path / "elsewhere" / "bundle"
    build_bundle.copy_modules(reached[0], other)
    build_bundle.compile_all(sys.executable, other)
    assert files(other) == files(bundle)


def test_only_the_runtimes_own_version_compiles_and_its_absence_is_told_in_a_line(capsys, tmp_path, monkeypatch):
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert build_bundle.interpreter_of(here) == sys.executable
    assert build_bundle.interpreter_of("3.99") is None
    wrong = tmp_path / "python3.99"
    wrong.write_text("#!/bin/sh\necho 'pyenv: python3.99: command not found' >&2\nexit 127\n")
    wrong.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build_bundle.interpreter_of("3.99") is None
    assert build_bundle.compiled_or_told("ApiFunction", "3.99", tmp_path) is False
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("ApiFunction: no python3.99 on PATH")


@pytest.mark.parametrize("name", ["ApiFunction", "ManagerFunction"])
def test_the_queues_own_functions_are_built_without_the_package_of_image_jobs(name, tmp_path):
    sources = shutil.copytree(
        build_bundle.SOURCE, tmp_path / "src", ignore=shutil.ignore_patterns("images", "__pycache__")
    )
    program = (
        "import build_bundle as build; "
        f"modules, _ = build.reached(build.HANDLERS[{name!r}], build.WITHOUT.get({name!r}, ())); print(*modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=sources, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = set(done.stdout.split())
    assert build_bundle.HANDLERS[name] in built
    assert not [module for module in built if module.startswith("trainmaster.images")]


def test_a_module_that_is_gone_stops_the_build():
    with pytest.raises(LookupError, match="there is no module"):
        build_bundle.reached("trainmaster.handlers.api.app", ["trainmaster.gone"])
    with pytest.raises(LookupError):
        build_bundle.reached("trainmaster.gone")


def test_packages_from_pip_come_for_the_platform_without_what_no_function_reads(tmp_path):
    """A pip that writes down what it is asked, and leaves what pip leaves."""
    left = ["a/__init__.py", "a/tests/test_a.py", "a/b/tests/x.py", "a/a.pyi", "bin/a", "a-1.dist-info/RECORD",
            "a-1.dist-info/METADATA", "a-1.dist-info/licenses/LICENSE"]  # fmt: skip

    def pip(command):
        asked.extend(command)
        for name in left:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("")

    asked = []
    build_bundle.install(["a>=1"], "3.11", "aarch64", tmp_path, run=pip)
    assert {"--python-version=3.11", "--platform=manylinux2014_aarch64", "--no-compile", "a>=1"} <= set(asked)
    assert "--platform=manylinux_2_28_aarch64" not in asked, "python3.11 is on Amazon Linux 2"
    kept = {str(path) for path in files(tmp_path)}
    assert kept == {"a/__init__.py", "a-1.dist-info/METADATA", "a-1.dist-info/licenses/LICENSE"}

    asked = []
    build_bundle.install(["a>=1"], "3.13", "x86_64", tmp_path, run=pip)
    assert {"--platform=manylinux_2_28_x86_64", "--platform=manylinux2014_x86_64"} <= set(asked)
    assert Path(asked[0]) == Path(sys.executable)
