"""Contract of every store of refused requests, in memory and on a DynamoDB engine."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from api_world import StillClock
from builders import at
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.images.adapters.refusals import DynamoRefusals, row_of
from trainmaster.images.domain.refusal import RETENTION, Refusal
from trainmaster.images.local.memory_refusals import MemoryRefusals


class RefusalsContract:
    @pytest.fixture
    def clock(self):
        return StillClock()

    def test_no_refusal_is_stored_for_other_requests(self, refusals):
        assert refusals.of("harbour-7") is None

    def test_the_newest_of_a_name_comes_back(self, refusals):
        first = Refusal(job="harbour-7", at=at(0.25), reason="There are 2 images.", field="imageUrls")
        other = Refusal(job="harbour-8", at=at(1), reason="No.")
        for each in (first, other):
            refusals.note(each)
        assert [refusals.of(each.job) for each in (first, other)] == [first, other]
        newer = Refusal(job="harbour-7", at=at(5), reason="This is no image.")
        refusals.note(newer)
        assert refusals.of("harbour-7") == newer

    def test_it_is_forgotten_after_a_week(self, refusals, clock):
        refusals.note(Refusal(job="harbour-7", at=clock.now(), reason="No."))
        clock.sleep((RETENTION - timedelta(seconds=1)).total_seconds())
        assert refusals.of("harbour-7") is not None
        clock.sleep(1)
        assert refusals.of("harbour-7") is None

    def test_a_long_reason_is_cut(self, refusals):
        refusals.note(Refusal(job="harbour-7", at=at(0), reason="x" * 500_000))
        assert refusals.of("harbour-7").reason == "x" * MAX_REASON_LENGTH


class TestMemoryRefusals(RefusalsContract):
    @pytest.fixture
    def refusals(self, clock):
        return MemoryRefusals(clock)


class TestDynamoRefusals(RefusalsContract):
    @pytest.fixture
    def table(self, dynoxide_engine):
        return Table(dynoxide_engine.client, dynoxide_engine.name, threading.Event().wait)

    @pytest.fixture
    def refusals(self, clock, table):
        return DynamoRefusals(table, clock)

    def test_dynamodb_is_told_when_to_delete_it(self, refusals, table, clock):
        refusals.note(Refusal(job="harbour-7", at=clock.now(), reason="No."))
        row = table.get(row_of("harbour-7"))
        assert int(row["expires"]["N"]) == (clock.now() + RETENTION).timestamp()
