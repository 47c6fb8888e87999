"""Accelerators by instance type, for what is counted in GPU-hours."""

from __future__ import annotations

import pytest

from builders import P5
from trainmaster.domain.capacity.instances import accelerators_of
from trainmaster.domain.capacity.units import Pool


@pytest.mark.parametrize(
    ("instance_type", "count"),
    [(P5, 8), ("ml.p2.16xlarge", 16), ("ml.trn2.48xlarge", 16), ("ml.g6e.12xlarge", 4), ("ml.g5.16xlarge", 1)],
)
def test_a_type_counts_the_accelerators_that_it_has(instance_type, count):
    assert accelerators_of(instance_type) == count


def test_types_without_and_unknown_types_count_one():
    assert accelerators_of("ml.m5.large") == accelerators_of("whatever") == 1


def test_a_pool_may_say_otherwise():
    assert (Pool(P5, 1).accelerators, Pool("a", 1, type_=P5).accelerators) == (8, 8)
    assert Pool(P5, 1, accelerators_per_unit=4).accelerators == 4
