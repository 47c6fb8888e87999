"""Bundles of the functions of image jobs; those of `READ_IMAGES` have GDAL from their layer."""

import pytest

import build_bundle
from bundle_contract import LAYER, PLATFORMS, BundleContract, functions_of, trees_of_two_builds
from permissions import images_template, template

READ_IMAGES = ["IntakeFunction", "RegionFunction"]


class TestBundlesOfImageJobs(BundleContract):
    resources = images_template()["Resources"]
    layer = LAYER

    @pytest.fixture(scope="class", params=READ_IMAGES)
    @classmethod
    def function(cls, request):
        return request.param


def test_every_function_of_both_templates_has_a_bundle():
    assert functions_of(images_template()) == READ_IMAGES
    assert sorted(build_bundle.HANDLERS) == sorted(functions_of(template()) + READ_IMAGES)


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS, ids="-".join)
def test_two_builds_of_the_layer_in_two_folders_are_equal_as_archives(platform, tmp_path):
    program = ["images/layer/locked_packages.py", "ImagingLayer", "--locks", "images/layer/locks"]
    first, second = trees_of_two_builds(tmp_path, program, platform)
    assert {each.parts[1] for each in first if len(each.parts) > 1} >= {"numpy", "rasterio", "shapely"}
    assert first == second
