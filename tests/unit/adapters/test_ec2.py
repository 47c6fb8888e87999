"""Instance types as EC2 describes them: against moto, which ships its own answer, and what else it may say."""

from __future__ import annotations

import pytest
from botocore.exceptions import ConnectTimeoutError
from moto import mock_aws

from aws_clients import impatient_client, scripted
from builders import G5, P5
from trainmaster.adapters.catalogue.ec2 import Ec2InstanceTypes, instance_type
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable


@pytest.fixture
def script():
    with scripted("ec2") as script:
        yield script


def described(name, **more):
    return {"InstanceType": name, **more}


@mock_aws
def test_all_that_ship_are_as_ec2_describes_them():
    found = Ec2InstanceTypes(lambda: impatient_client("ec2")).describe(SHIPPED)
    former = {"ml.p2.16xlarge", "ml.p2.8xlarge", "ml.p2.xlarge", "ml.p3.16xlarge", "ml.p3.2xlarge", "ml.p3.8xlarge"}
    assert set(SHIPPED) - set(found) == {*former, "ml.p6e-gb200.36xlarge"}
    assert found[P5] == InstanceType(
        name=P5,
        vcpus=192,
        memory_gib=2048,
        accelerators=8,
        accelerator="nvidia",
        accelerator_memory_gib=640,
        network_gbps=3200,
        efa=32,
        storage_gb=30400,
    )


@mock_aws
def test_only_named_types_come_whatever_else_their_family_has():
    assert set(Ec2InstanceTypes(lambda: impatient_client("ec2")).describe({P5, "ml.m5.large", "ml.never.large"})) == {
        P5,
        "ml.m5.large",
    }


def test_families_are_asked_for_and_every_page_is_read(script):
    filters = [{"Name": "instance-type", "Values": ["g5.*", "p5.*"]}]
    asked = {"Filters": filters, "MaxResults": 100}
    script.add_response(
        "describe_instance_types", {"InstanceTypes": [described("p5.48xlarge")], "NextToken": "t"}, asked
    )
    script.add_response(
        "describe_instance_types", {"InstanceTypes": [described("g5.2xlarge")]}, {**asked, "NextToken": "t"}
    )
    assert set(Ec2InstanceTypes(lambda: script.client).describe([P5, G5, "ml.p5.4xlarge"])) == {P5, G5}
    script.assert_no_pending_responses()


def test_more_families_than_a_filter_takes_are_asked_for_in_turns(script):
    for count in (200, 50):
        script.add_response(
            "describe_instance_types", {"InstanceTypes": [described(f"f{count}.large")]}, expected_params=None
        )
    found = Ec2InstanceTypes(lambda: script.client).describe([f"ml.f{n}.large" for n in range(250)])
    assert set(found) == {"ml.f200.large", "ml.f50.large"}
    script.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "error"),
    [("UnauthorizedOperation", NotPermitted), ("RequestLimitExceeded", Throttled), ("InternalError", Unavailable)],
)
def test_ec2_errors_become_domain_errors(script, code, error):
    script.add_client_error("describe_instance_types", code, "no", 400)
    with pytest.raises(error, match=code):
        Ec2InstanceTypes(lambda: script.client).describe([P5])


def test_no_way_to_ec2_is_no_answer():
    def unreachable():
        raise ConnectTimeoutError(endpoint_url="x")

    with pytest.raises(Unavailable):
        Ec2InstanceTypes(unreachable).describe([P5])


def test_values_missing_from_ec2_are_unknown():
    assert instance_type(described("new.large")) == InstanceType(name="ml.new.large")


@pytest.mark.parametrize(
    ("words", "gbps"),
    [
        ("3200 Gigabit", 3200),
        ("4x 100 Gigabit", 400),
        ("Up to 12.5 Gigabit", 12.5),
        ("High", 3.5),
        ("Very Low", 3.5),
    ],
)
def test_bandwidth_is_what_the_words_say_or_else_what_the_cards_do(words, gbps):
    cards = [{"PeakBandwidthInGbps": 2.5}, {"PeakBandwidthInGbps": 1.0}, {}]
    network = {"NetworkPerformance": words, "NetworkCards": cards}
    assert instance_type(described("a.b", NetworkInfo=network)).network_gbps == gbps


def test_accelerators_of_several_kinds_of_chip_are_counted_together():
    gpus = [
        {"Count": 2, "Manufacturer": "AMD", "MemoryInfo": {"SizeInMiB": 8192}},
        {"Count": 1, "Manufacturer": "AMD", "MemoryInfo": {"SizeInMiB": 4096}},
    ]
    kind = instance_type(described("a.b", GpuInfo={"Gpus": gpus}))
    assert (kind.accelerators, kind.accelerator, kind.accelerator_memory_gib) == (3, "amd", 20)


def test_neuron_chips_that_are_told_twice_count_once():
    chips = [{"Count": 6, "MemoryInfo": {"SizeInMiB": 32768}}]
    both = {
        "NeuronInfo": {"NeuronDevices": chips},
        "InferenceAcceleratorInfo": {"Accelerators": [{"Count": 6, "Manufacturer": "AWS"}]},
    }
    kind = instance_type(described("inf2.24xlarge", GpuInfo={"Gpus": []}, **both))
    assert (kind.accelerators, kind.accelerator, kind.accelerator_memory_gib) == (6, "aws", 192)


def test_a_figure_that_ec2_is_known_to_tell_wrongly_is_put_right():
    chips = [{"Count": 16, "MemoryInfo": {"SizeInMiB": 524_288}}]
    kind = instance_type(described("trn2.48xlarge", NeuronInfo={"NeuronDevices": chips}))
    assert (kind.accelerators, kind.accelerator_memory_gib) == (16, 1536)
