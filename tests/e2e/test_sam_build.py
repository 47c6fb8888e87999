"""SAM itself: the functions and the layer that `sam build` makes."""

import json
import os
import sys

import pytest
from cfnlint.decode import decode

from trainmaster.local.stack.processes import run


@pytest.fixture
def template(checkout, tmp_path):
    """The real template of image jobs, with the layer as its only resource."""
    images = checkout.project("images")
    (tmp_path / "platforms").symlink_to(checkout.platforms)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "layer").symlink_to(images.layer)
    whole, _ = decode(str(images.template))
    parts = {name: whole[name] for name in ("Transform", "Parameters")}
    path = tmp_path / "images" / "template.json"
    path.write_text(json.dumps({**parts, "Resources": {"ImagingLayer": whole["Resources"]["ImagingLayer"]}}))
    return path


@pytest.mark.slow
def test_sam_makes_the_layer_for_its_runtime_and_its_cache_mixes_nothing_up(checkout, template):
    made = template.parent / "made" / "build"
    command = [checkout.sam, "build", "--template-file", template, "--build-dir", made, "--cached"]
    cache = ["--cache-dir", template.parent / "cache"]
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "BUILT": "/built"}

    def built(*parameters):
        given = ["--parameter-overrides", *parameters] if parameters else []
        run("sam build", [*command, *cache, *given], environment, template.parent / "log")
        layer = made / "ImagingLayer"
        return {str(path.relative_to(layer)) for path in layer.rglob("*") if path.is_file()}

    site = "python/lib/{}/site-packages/imaging.pth"
    assert built() == {site.format("python3.13")}
    assert built("Runtime=python3.12") == {site.format("python3.12")}
    assert built() == {site.format("python3.13")}


PYDANTIC = {"pydantic", "pydantic_core"}
FUNCTIONS = {
    "": {"ApiFunction": PYDANTIC, "ManagerFunction": set()},
    "images": {"IntakeFunction": PYDANTIC, "RegionFunction": PYDANTIC},
}
"""The functions of each template, with packages that they need beside Powertools."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_plain_sam_build_makes_a_compiled_bundle_for_each_function_and_its_platform(checkout, tmp_path, name):
    runtime = f"python{sys.version_info.major}.{sys.version_info.minor}"
    project = checkout.project(name)
    command = [checkout.sam, "build", "--template-file", project.template, "--build-dir", tmp_path / "build"]
    parameters = ["--config-env", "local", "--parameter-overrides", f"Runtime={runtime}", "Architecture=arm64"]
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "PYTHON": sys.executable, "BUILT": "/built"}
    run("sam build", [*command, *parameters], environment, tmp_path / "log")

    built = {path.name for path in (tmp_path / "build").iterdir() if path.is_dir()}
    assert built == FUNCTIONS[name].keys() | ({"ImagingLayer"} if project.layer else set())
    for function, folders in FUNCTIONS[name].items():
        bundle = tmp_path / "build" / function
        assert {"aws_lambda_powertools", "trainmaster", *folders} <= {path.name for path in bundle.iterdir()}
        assert not {"boto3", "botocore"} & {path.name for path in bundle.iterdir()}
        assert not {"client", "cli", "local", "worker"} & {path.name for path in (bundle / "trainmaster").iterdir()}
        assert len([*bundle.rglob("*.py")]) == len([*bundle.rglob("*.pyc")])
        assert all("aarch64" in path.name for path in bundle.rglob("*.so"))
