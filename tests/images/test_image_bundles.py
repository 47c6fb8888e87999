"""Bundles of the functions of image jobs; those of `READ_IMAGES` have GDAL from their layer."""

import pytest

import build_bundle
from bundle_contract import LAYER, BundleContract, functions_of
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
