"""The shipped table of instance types: its script makes it from installed sources, and other sources agree."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from trainmaster.adapters.sagemaker.service_model import shape
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType

ROOT = Path(__file__).parents[3]


def script():
    spec = importlib.util.spec_from_file_location("instance_table_script", ROOT / "scripts" / "instance_table.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


made = script()
TYPES = frozenset(shape("TrainingInstanceType").enum)


def test_it_is_what_the_script_makes_where_the_versions_agree():
    """With another moto, which may know newer answers of EC2, the types and what they have at least stay."""
    kinds = list(made.table(TYPES))
    if f"as moto {made.moto_version()} has it" in made.TARGET.read_text():
        assert made.TARGET.read_text() == made.render(kinds, made.moto_version()), (
            "run: python scripts/instance_table.py"
        )
    assert {kind.name for kind in kinds} == set(SHIPPED)


def test_a_type_that_no_source_describes_is_listed_with_its_name_alone():
    (kind,) = made.table(["ml.new.large"])
    assert kind == InstanceType(name="ml.new.large")
    assert "\nnew.large\n" in made.render([kind], "0")


def test_it_has_every_type_that_sagemaker_trains_on_and_no_other():
    assert set(SHIPPED) == TYPES
    assert all(kind.name == name for name, kind in SHIPPED.items())


def test_every_type_has_known_values():
    assert all(kind.vcpus >= 2 and kind.memory_gib >= 3.75 for kind in SHIPPED.values())


@pytest.mark.parametrize("name", sorted(name for name in TYPES if re.match(r"ml\.(p|g|trn)\d", name)))
def test_every_accelerated_type_has_accelerators_with_memory(name):
    """A new type in the model fails here until the table is generated again."""
    kind = SHIPPED[name]
    assert kind.accelerators > 0
    assert kind.accelerator == ("aws" if name.startswith("ml.trn") else "nvidia")
    assert 12 <= kind.accelerator_memory_gib / kind.accelerators <= 288


@pytest.mark.parametrize("name", sorted(name for name in TYPES if not re.match(r"ml\.(p|g|trn)\d", name)))
def test_no_other_type_has_any(name):
    kind = SHIPPED[name]
    assert (kind.accelerators, kind.accelerator, kind.accelerator_memory_gib) == (0, "", 0)


def test_rows_that_everybody_can_look_up():
    """AWS's pages "Amazon EC2 P5 instances", "Amazon EC2 Trn2 instances", "Amazon EC2 M5 instances"."""
    assert SHIPPED["ml.p5.48xlarge"] == InstanceType(
        name="ml.p5.48xlarge",
        vcpus=192,
        memory_gib=2048,
        accelerators=8,
        accelerator="nvidia",
        accelerator_memory_gib=640,
        network_gbps=3200,
        efa=32,
        price=63.296,
        storage_gb=30400,
    )
    trn2 = SHIPPED["ml.trn2.48xlarge"]
    assert (trn2.accelerators, trn2.accelerator, trn2.accelerator_memory_gib) == (16, "aws", 1536)
    assert SHIPPED["ml.m5.large"] == InstanceType(
        name="ml.m5.large", vcpus=2, memory_gib=8, network_gbps=10, price=0.115
    )


def test_every_price_is_of_a_type_that_there_is():
    assert set(made.prices()) <= TYPES
    assert all(0.1 <= dollars < 500 for dollars in made.prices().values())


def test_more_of_the_same_never_costs_less():
    priced = [kind for kind in SHIPPED.values() if kind.price]
    for small in priced:
        for large in priced:
            if small.name.split(".")[1] == large.name.split(".")[1] and small.accelerators == large.accelerators:
                assert small.vcpus > large.vcpus or small.price <= large.price, (small, large)


def test_the_sagemaker_sdk_counts_the_same_accelerators():
    found = list(ROOT.glob(".venv-sdk2/lib/*/site-packages/sagemaker/image_uri_config/instance_gpu_info.json"))
    if not found:
        pytest.skip("the SageMaker SDK v2 is not installed (make install-all)")
    told = json.loads(found[0].read_text())["us-east-1"]
    both = set(told) & set(SHIPPED)
    assert len(both) > 15
    assert {name: SHIPPED[name].accelerators for name in both} == {name: told[name]["Count"] for name in both}
