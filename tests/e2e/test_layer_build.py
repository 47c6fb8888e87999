"""SAM itself: what `sam build` makes of the layer for image jobs, told of them or not."""

import os

import pytest

from trainmaster.local.stack.processes import run


@pytest.mark.slow
def test_sam_makes_an_empty_layer_until_it_is_told_of_image_jobs_and_its_cache_mixes_nothing_up(checkout, tmp_path):
    command = [checkout.sam, "build", "ImagingLayer", "--template-file", checkout.template, "--cached"]
    places = ["--build-dir", tmp_path / "build", "--cache-dir", tmp_path / "cache"]
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "BUILT": "/built"}

    def built(*parameters):
        given = ["--parameter-overrides", *parameters] if parameters else []
        run("sam build", [*command, *places, *given], environment, tmp_path / "log")
        layer = tmp_path / "build" / "ImagingLayer"
        return {str(path.relative_to(layer)) for path in layer.rglob("*") if path.is_file()}

    assert built() == set()
    site = "python/lib/{}/site-packages/imaging.pth"
    assert built("ImageJobs=true") == {site.format("python3.13")}
    assert built("ImageJobs=true", "Runtime=python3.12") == {site.format("python3.12")}
    assert built() == set()
