"""The rows of what was learned and of placement's cursors: whatever goes in comes out, and it stays small."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import builders as b
from trainmaster.adapters.dynamodb.catalogue import catalogue_of, catalogue_row, cursors_of, cursors_row
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.plan import Cursors

LARGEST_ROW = 400_000
"""Bytes (DynamoDB developer guide, "Quotas", item size)."""

counts = st.integers(0, 10_000)
amounts = st.floats(0, 1e6, allow_nan=False)
names = st.text("abé-.1", min_size=1, max_size=12).map(lambda name: f"ml.{name}")
types = st.builds(
    InstanceType,
    name=names,
    vcpus=counts,
    memory_gib=amounts,
    accelerators=counts,
    accelerator=st.sampled_from(("", "nvidia", "aws")),
    accelerator_memory_gib=amounts,
    network_gbps=amounts,
    efa=counts,
    price=amounts,
)
times = st.none() | st.integers(0, 10**15).map(lambda micros: b.at(micros / 1e6))
catalogues = st.builds(
    lambda kinds, *others: Catalogue({kind.name: kind for kind in kinds}, *others),
    st.lists(types, max_size=5),
    st.dictionaries(names, counts, max_size=5),
    times,
    st.dictionaries(names, amounts, max_size=5),
    times,
)
cursors = st.builds(Cursors, names, st.dictionaries(names, st.floats(-1e9, 1e9, allow_nan=False), max_size=5))


@given(catalogues)
def test_any_catalogue_comes_back_from_its_row_as_it_was(catalogue):
    assert catalogue_of(catalogue_row(catalogue)) == catalogue


@given(cursors)
def test_any_cursors_come_back_from_their_row_as_they_were(at):
    assert cursors_of(cursors_row(at)) == at


def test_without_rows_nothing_is_learned_and_placement_begins():
    assert (catalogue_of(None), cursors_of(None)) == (Catalogue(), Cursors())


def test_a_row_of_a_release_that_knew_no_prices_is_read():
    values = {"types": [], "quotas": {b.P5: 4}, "at": b.NOW.timestamp()}
    row = {"catalogue": {"B": zlib.compress(json.dumps(values).encode())}}
    assert catalogue_of(row) == Catalogue(quotas={b.P5: 4}, learned_at=b.NOW)


def test_shipped_values_are_not_written():
    """So that a later release, which may know better, is believed."""
    assert catalogue_of(catalogue_row(Catalogue(SHIPPED))) == Catalogue()


def test_all_that_can_be_learned_takes_a_small_part_of_a_row():
    everything = {name: replace(kind, efa=kind.efa + 1) for name, kind in SHIPPED.items()}
    prices = {name: float(f"{(number * 7919 % 100_003) / 1000:.4g}") for number, name in enumerate(SHIPPED)}
    row = catalogue_row(Catalogue(everything, dict.fromkeys(SHIPPED, 20), b.NOW, prices, b.NOW))
    assert len(row["catalogue"]["B"]) < LARGEST_ROW / 50
