"""Rows of records hold the histograms of run times as they were, within what a row rounds."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import at
from trainmaster.adapters.dynamodb.records import records_of, records_row
from trainmaster.domain.jobs.run_times import BUCKETS, MAX_HALVED, History, Sketch
from trainmaster.domain.records import Records

weights = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 50_000).map(lambda parts: parts / 100))
times = st.lists(st.integers(0, 10**9), max_size=MAX_HALVED).map(lambda drawn: tuple(map(at, sorted(drawn))))
kinds = st.dictionaries(st.sampled_from(["*", "|p5|1", "a|b|p5|1"]), st.builds(Sketch, weights, times))


@given(kinds)
def test_a_row_keeps_histograms_and_the_times_at_which_they_halved(known):
    found = records_of(records_row(Records(History(known)), 1)).history.kinds
    assert found.keys() == known.keys()
    for kind, sketch in known.items():
        assert found[kind].weights == pytest.approx(sketch.weights, abs=0.0101)
        assert found[kind].halved == sketch.halved


def test_a_row_of_an_older_release_tells_of_no_halvings():
    row = records_row(Records(History({"*": Sketch({3: 7.0}, (at(60),))})), 1)
    values = json.loads(zlib.decompress(row["records"]["B"]))
    del values["halved"]
    older = {**row, "records": {"B": zlib.compress(json.dumps(values).encode())}}
    assert records_of(older).history.kinds == {"*": Sketch({3: 7.0})}
