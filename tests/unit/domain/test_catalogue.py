"""Attributes of instance types, and of pools whose type is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders as b
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Pool

OWN = "ml.own.48xlarge"
NEW = InstanceType(name="ml.new.large", vcpus=4, memory_gib=16)
WANTED = Resources(accelerators=8, accelerator_memory_gib=640, vcpus=96, memory_gib=768, accelerator="nvidia")
"""The example of the issue."""


def a_pool_of_its_own(**said):
    return Pool("mine", 2, type_=OWN, **said)


class TestOfPool:
    def test_a_pool_has_what_is_known_of_its_type(self):
        assert Catalogue().of_pool(b.a_pool()) == SHIPPED[b.P5]
        assert Catalogue().of_pool(Pool("spot", 2, type_=b.P5)) == SHIPPED[b.P5]
        learned = Catalogue({b.P5: replace(SHIPPED[b.P5], vcpus=96)})
        assert learned.of_pool(b.a_pool()).vcpus == 96

    def test_an_unknown_type_has_nothing_that_anybody_knows(self):
        assert Catalogue().of_pool(a_pool_of_its_own()) == InstanceType(name=OWN)
        assert Catalogue().type_of(OWN) is None

    def test_an_unknown_type_has_what_the_pools_settings_say(self):
        pool = a_pool_of_its_own(
            price=50.5,
            accelerators_per_unit=8,
            vcpus=192,
            memory_gib=2000.5,
            accelerator="nvidia",
            accelerator_memory_gib=640,
        )
        assert Catalogue().of_pool(pool) == InstanceType(
            name=OWN,
            vcpus=192,
            memory_gib=2000.5,
            accelerators=8,
            accelerator="nvidia",
            accelerator_memory_gib=640,
            price=50.5,
        )

    @pytest.mark.parametrize(
        ("missing", "covers"),
        [
            (None, True),
            ("accelerators_per_unit", False),
            ("vcpus", False),
            ("memory_gib", False),
            ("accelerator", False),
            ("accelerator_memory_gib", False),
            ("price", True),
        ],
    )
    def test_a_demand_is_covered_by_a_pool_of_unknown_type_as_far_as_its_settings_say(self, missing, covers):
        said = {
            "price": 50.5,
            "accelerators_per_unit": 8,
            "vcpus": 96,
            "memory_gib": 768,
            "accelerator": "nvidia",
            "accelerator_memory_gib": 640,
        }
        said.pop(missing, None)
        assert WANTED.covered_by(Catalogue().of_pool(a_pool_of_its_own(**said))) is covers

    def test_settings_of_a_pool_override_known_values(self):
        pool = replace(b.a_pool(), price=1.5, vcpus=64)
        assert Catalogue().of_pool(pool) == replace(SHIPPED[b.P5], price=1.5, vcpus=64)


class TestTypes:
    def test_learned_values_override_the_shipped_table(self):
        other = replace(SHIPPED[b.P5], efa=64)
        catalogue = Catalogue({b.P5: other, NEW.name: NEW})
        assert (catalogue.type_of(b.P5), catalogue.type_of(NEW.name)) == (other, NEW)
        assert catalogue.type_of(b.G5) == SHIPPED[b.G5]
        assert len(catalogue.types) == len(SHIPPED) + 1
        assert [kind.name for kind in catalogue.types] == sorted({*SHIPPED, NEW.name})

    def test_a_learned_price_goes_before_that_of_the_type_and_changes_nothing_else(self):
        known = {NEW.name: replace(NEW, price=9.0)}
        catalogue = Catalogue(known, prices={NEW.name: 0.2, b.P5: 50.0})
        assert catalogue.type_of(NEW.name) == replace(NEW, price=0.2)
        assert catalogue.type_of(b.P5) == replace(SHIPPED[b.P5], price=50.0)
        assert catalogue.type_of(b.G5) == SHIPPED[b.G5]
        assert list(catalogue.types) == [catalogue.type_of(kind.name) for kind in catalogue.types]
        assert [kind.price for kind in catalogue.covering(WANTED) if kind.name == b.P5] == [50.0]

    def test_a_price_alone_makes_no_type_known(self):
        catalogue = Catalogue(prices={NEW.name: 0.2})
        assert (catalogue.type_of(NEW.name), catalogue.types) == (None, Catalogue().types)

    def test_the_price_that_a_pool_was_given_goes_before_a_learned_one(self):
        catalogue = Catalogue(prices={b.P5: 50.0})
        assert catalogue.of_pool(b.a_pool()).price == 50.0
        assert catalogue.of_pool(replace(b.a_pool(), price=1.5)).price == 1.5

    def test_the_types_that_cover_a_demand(self):
        assert [kind.name for kind in Catalogue().covering(WANTED)] == [
            "ml.g7e.48xlarge",
            "ml.p4de.24xlarge",
            "ml.p5.48xlarge",
            "ml.p5e.48xlarge",
            "ml.p5en.48xlarge",
            "ml.p6-b200.48xlarge",
            "ml.p6-b300.48xlarge",
        ]

    def test_a_demand_larger_than_any_type_is_covered_by_none(self):
        assert not list(Catalogue().covering(Resources(accelerators=17)))

    def test_memory_is_counted_as_ec2_tells_it_not_as_it_is_sold(self):
        """An A10G is sold with 24 GB, of which EC2 counts 22,888 MiB."""
        assert "ml.g5.xlarge" not in {k.name for k in Catalogue().covering(Resources(accelerator_memory_gib=24))}
        assert "ml.g5.xlarge" in {k.name for k in Catalogue().covering(Resources(accelerator_memory_gib=22))}
