"""Prices of training from AWS's price list; scripted, since moto knows no such list. Nothing here was met at AWS.

The documents have the form of the user guide's and the AWS CLI's example of GetProducts, and the attributes and usage
types that public programs read of SageMaker's products (ec2instances.info, aws-doctor: `productFamily`, `component`,
`platoinstancetype`, `instanceType` with its use behind it). Ireland's prices are those of the bill in AWS's
`sagemaker-ssh-helper` ("Sample costs", December 2023), which counts them by `Hrs`.
"""

from __future__ import annotations

import json

import boto3
import pytest

from aws_clients import scripted
from builders import G5, P5
from trainmaster.adapters.catalogue.pricing import PriceList, endpoint_region, training_price
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable

ASKED = {
    "ServiceCode": "AmazonSageMaker",
    "FormatVersion": "aws_v1",
    "Filters": [
        {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "eu-west-1"},
        {"Type": "TERM_MATCH", "Field": "productFamily", "Value": "ML Instance"},
        {"Type": "TERM_MATCH", "Field": "platoinstancetype", "Value": "Training"},
    ],
    "MaxResults": 100,
}
SKU = "JMCWJEAPVJNFJ5P4"


@pytest.fixture
def script():
    with scripted("pricing", region_name=endpoint_region("eu-west-1")) as script:
        yield script


def dimension(dollars, unit="Hrs"):
    return {
        "unit": unit,
        "endRange": "Inf",
        "beginRange": "0",
        "description": f"${dollars} per hour in EU (Ireland)",
        "appliesTo": [],
        "rateCode": f"{SKU}.JRTCKXETXF.6YS6EN2CT7",
        "pricePerUnit": {"USD": dollars},
    }


def terms(*dimensions):
    priced = {f"{SKU}.JRTCKXETXF.{number}": each for number, each in enumerate(dimensions)}
    term = {"priceDimensions": priced, "sku": SKU, "effectiveDate": "2026-08-01T00:00:00Z", "termAttributes": {}}
    return {"OnDemand": {f"{SKU}.JRTCKXETXF": {**term, "offerTermCode": "JRTCKXETXF"}}}


def product(name, *dollars, usage="Train", **others):
    """The product of an ML type that costs so much; others replace attributes, and None leaves one out."""
    attributes = {
        "instanceType": f"{name}-Training",
        "instanceName": name,
        "component": "Training",
        "platoinstancetype": "Training",
        "computeType": "GPU Instances",
        "location": "EU (Ireland)",
        "locationType": "AWS Region",
        "regionCode": "eu-west-1",
        "operation": "RunInstance",
        "servicecode": "AmazonSageMaker",
        "usagetype": f"EUW1-{usage}:{name}",
        **others,
    }
    return {
        "product": {
            "productFamily": "ML Instance",
            "attributes": {name: value for name, value in attributes.items() if value is not None},
            "sku": SKU,
        },
        "serviceCode": "AmazonSageMaker",
        "terms": terms(*map(dimension, dollars)),
        "version": "20260801000000",
        "publicationDate": "2026-08-01T00:00:00Z",
    }


def page(*products, token=None):
    told = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(each) for each in products]}
    return told if token is None else {**told, "NextToken": token}


def prices(script):
    return PriceList(lambda: script.client, "eu-west-1").prices()


class TestTheList:
    def test_every_page_of_the_regions_training_products_is_read(self, script):
        first = page(product("ml.m5.xlarge", "0.2570000000"), product("ml.g4dn.xlarge", "0.8220000000"), token="t")
        script.add_response("get_products", first, ASKED)
        script.add_response("get_products", page(product("ml.g5.xlarge", "1.5700000000")), {**ASKED, "NextToken": "t"})
        assert prices(script) == {"ml.m5.xlarge": 0.257, "ml.g4dn.xlarge": 0.822, "ml.g5.xlarge": 1.57}
        script.assert_no_pending_responses()

    def test_of_several_products_of_a_type_the_lowest_above_0_counts(self, script):
        same = [product(P5, dollars) for dollars in ("98.32", "0.0000000000", "55.04", "63.3")]
        script.add_response("get_products", page(*same[:2], token="t"))
        script.add_response("get_products", page(*same[2:]))
        assert prices(script) == {P5: 55.04}

    def test_an_odd_product_costs_no_other_its_price(self, script):
        script.add_response("get_products", page({"product": []}, product(G5, "1.515"), {}))
        assert prices(script) == {G5: 1.515}

    @pytest.mark.parametrize("told", [(), [product(P5, "0")]])
    def test_a_list_without_any_price_is_trouble_not_an_answer(self, script, told):
        script.add_response("get_products", page(*told))
        with pytest.raises(Unavailable, match="no price in dollars for training in eu-west-1"):
            prices(script)

    @pytest.mark.parametrize(
        ("code", "error"),
        [
            ("AccessDeniedException", NotPermitted),
            ("ThrottlingException", Throttled),
            ("InternalErrorException", Unavailable),
            ("InvalidParameterException", Unavailable),
            ("ExpiredNextTokenException", Unavailable),
        ],
    )
    def test_errors_on_any_page_become_domain_errors(self, script, code, error):
        script.add_response("get_products", page(product(P5, "98.32"), token="t"))
        script.add_client_error("get_products", code, "no", 400)
        with pytest.raises(error, match=code):
            prices(script)


class TestAProduct:
    @pytest.mark.parametrize("usage", ["Train:ml.p6e-gb200.36xlarge", "USE1-Train:ml.p6e-gb200.36xlarge"])
    def test_is_of_the_type_that_its_usage_names(self, usage):
        told = product("ml.p6e-gb200.36xlarge", "1.5", usagetype=usage, instanceType=None, instanceName=None)
        assert training_price(json.dumps(told)) == ("ml.p6e-gb200.36xlarge", 1.5)

    @pytest.mark.parametrize(
        "told",
        [
            product(P5, "98.32", usage="Host", platoinstancetype="Hosting"),
            product(P5, "98.32", platoinstancetype="SpotTraining"),
            product(P5, "9.5", usage="TrainSpot"),
            product(P5, "9.5", usage="Train-Reserved"),
            product(P5, "98.32", usage="Studio:JupyterLab-Train"),
            product(P5, "98.32", usagetype=None),
            product(P5, "98.32", usagetype="EUW1-Train:VolumeUsage.gp2"),
        ],
    )
    def test_of_another_use_has_no_price_for_us(self, told):
        assert training_price(json.dumps(told)) is None

    def test_may_leave_out_what_only_some_have(self):
        told = product(P5, "98.32", component=None, platoinstancetype=None, instanceName=None, instanceType="NA")
        assert training_price(json.dumps(told)) == (P5, 98.32)

    @pytest.mark.parametrize(
        "its_terms",
        [
            {},
            {"Reserved": terms(dimension("9.5"))["OnDemand"]},
            {"OnDemand": {}},
            {"OnDemand": {"a": {}}},
            {"OnDemand": []},
            terms(),
            terms(dimension("0.0000000000")),
            terms(dimension("-1")),
            terms(dimension("NaN")),
            terms(dimension("Infinity")),
            terms(dimension("a lot")),
            terms(dimension("1.5", unit="Seconds")),
            terms({**dimension("1.5"), "pricePerUnit": {"CNY": "10.0"}}),
            terms({**dimension("1.5"), "pricePerUnit": {}}),
        ],
    )
    def test_without_an_hourly_price_on_demand_has_none(self, its_terms):
        assert training_price(json.dumps({**product(P5), "terms": its_terms})) is None

    def test_has_the_lowest_of_several_hourly_prices_above_0(self):
        told = {
            **product(P5),
            "terms": terms(dimension("0"), dimension("98.32"), dimension("1.5", "GB"), dimension("55")),
        }
        assert training_price(json.dumps(told)) == (P5, 55.0)

    @pytest.mark.parametrize("text", ["", "{", "null", "[]", '"text"', '{"product": {"attributes": null}}'])
    def test_that_is_none_is_passed_over(self, text):
        assert training_price(text) is None


ENDPOINTS = boto3.session.Session()
"""One session: each would read the list again."""


@pytest.mark.parametrize("region", ENDPOINTS.get_available_regions("sagemaker"))
def test_every_region_asks_where_the_list_has_an_endpoint(region):
    """As botocore's `endpoints.json` has them."""
    assert endpoint_region(region) in ENDPOINTS.get_available_regions("pricing")


def test_the_endpoint_is_near_and_in_the_partition():
    asked = ["us-west-2", "ca-central-1", "eu-north-1", "me-south-1", "ap-northeast-1", "cn-north-1", "us-gov-west-1"]
    near = ["us-east-1", "us-east-1", "eu-central-1", "eu-central-1", "ap-south-1", "cn-northwest-1", "us-gov-west-1"]
    assert [endpoint_region(region) for region in asked] == near
