"""Bundles of the Lambda functions: each holds what its handler imports and nothing else, compiled, and runs alone."""

import shutil
import subprocess
import sys

import pytest

import build_bundle
from bundle_contract import BundleContract, functions_of
from permissions import template
from samples import sample


class TestBundlesOfTheQueue(BundleContract):
    resources = template()["Resources"]

    @pytest.fixture(scope="class", params=functions_of(template()))
    @classmethod
    def function(cls, request):
        return request.param


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


@pytest.mark.parametrize("name", sample(["ApiFunction", "ManagerFunction", "TaskFunction"]))
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
