"""Accelerators by instance type, held against the types that SageMaker's service model has."""

from __future__ import annotations

import re

import pytest

from builders import P5
from trainmaster.adapters.service_model import shape
from trainmaster.domain.capacity import Pool
from trainmaster.domain.instances import ACCELERATORS, accelerators_of

TYPES = frozenset(shape("TrainingInstanceType").enum)
# One accelerator each, however large the rest of the machine is.
SINGLE = re.compile(
    r"ml\.(p2\.xlarge|p3\.2xlarge|p5\.4xlarge|trn1\.2xlarge|g(4dn|5|6|6e)\.(|2|4|8|16)xlarge|g7e?\.[248]xlarge)"
)


def test_every_type_is_one_that_sagemaker_trains_on():
    assert set(ACCELERATORS) <= TYPES


@pytest.mark.parametrize("instance_type", sorted(name for name in TYPES if re.match(r"ml\.(p|g|trn)\d", name)))
def test_every_accelerated_type_is_known(instance_type):
    """A new one in the model fails here until somebody has looked up what it has."""
    assert (accelerators_of(instance_type) == 1) is bool(SINGLE.fullmatch(instance_type))


def test_others_count_one():
    assert accelerators_of("ml.m5.large") == accelerators_of("whatever") == 1


def test_a_pool_may_say_otherwise():
    assert (Pool(P5, 1).accelerators, Pool("a", 1, type_=P5).accelerators) == (8, 8)
    assert Pool(P5, 1, accelerators_per_unit=4).accelerators == 4
