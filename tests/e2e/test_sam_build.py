"""SAM itself: what `sam build` makes of the functions, and of the layer for image jobs, told of them or not."""

import json
import os
import sys

import pytest
from cfnlint.decode import decode

from trainmaster.local.stack.processes import run


@pytest.fixture
def template(checkout, tmp_path):
    """The real template, of all resources the layer alone."""
    for folder in ("layers", "platforms"):
        (tmp_path / folder).symlink_to(checkout.root / folder)
    whole, _ = decode(str(checkout.template))
    parts = {name: whole[name] for name in ("Transform", "Parameters", "Conditions")}
    path = tmp_path / "template.json"
    path.write_text(json.dumps({**parts, "Resources": {"ImagingLayer": whole["Resources"]["ImagingLayer"]}}))
    return path


@pytest.mark.slow
def test_sam_makes_an_empty_layer_until_it_is_told_of_image_jobs_and_its_cache_mixes_nothing_up(checkout, template):
    made = template.parent / "made" / "build"
    command = [checkout.sam, "build", "--template-file", template, "--build-dir", made, "--cached"]
    cache = ["--cache-dir", template.parent / "cache"]
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "BUILT": "/built"}

    def built(*parameters):
        given = ["--parameter-overrides", *parameters] if parameters else []
        run("sam build", [*command, *cache, *given], environment, template.parent / "log")
        layer = made / "ImagingLayer"
        return {str(path.relative_to(layer)) for path in layer.rglob("*") if path.is_file()}

    assert built() == set()
    site = "python/lib/{}/site-packages/imaging.pth"
    assert built("ImageJobs=true") == {site.format("python3.13")}
    assert built("ImageJobs=true", "Runtime=python3.12") == {site.format("python3.12")}
    assert built() == set()


@pytest.mark.slow
def test_plain_sam_build_makes_a_compiled_bundle_for_each_function_and_its_platform(checkout, tmp_path):
    runtime = f"python{sys.version_info.major}.{sys.version_info.minor}"
    command = [checkout.sam, "build", "--template-file", checkout.template, "--build-dir", tmp_path / "build"]
    parameters = ["--config-env", "local", "--parameter-overrides", f"Runtime={runtime}", "Architecture=arm64"]
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "PYTHON": sys.executable}
    run("sam build", [*command, *parameters], environment, tmp_path / "log")

    for function, folders in (("ApiFunction", {"pydantic", "pydantic_core"}), ("ManagerFunction", set())):
        bundle = tmp_path / "build" / function
        assert {"aws_lambda_powertools", "trainmaster", *folders} <= {path.name for path in bundle.iterdir()}
        assert not {"boto3", "botocore"} & {path.name for path in bundle.iterdir()}
        assert not {"client", "cli", "local", "worker"} & {path.name for path in (bundle / "trainmaster").iterdir()}
        assert len([*bundle.rglob("*.py")]) == len([*bundle.rglob("*.pyc")])
        assert all("aarch64" in path.name for path in bundle.rglob("*.so"))
    assert [*(tmp_path / "build" / "RegionFunction").iterdir()] == [], "it was not told of image jobs"
