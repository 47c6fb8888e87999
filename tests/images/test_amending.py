"""Changing what is remembered of an endpoint while others do."""

from __future__ import annotations

from dataclasses import replace

import builders as b
from trainmaster.images.domain.endpoint import Endpoint, Variant
from trainmaster.images.ports import MAX_TRIES, amend


class Busy:
    """A store in which another writer writes before each of the first writes."""

    def __init__(self, others):
        self.kept, self.others, self.tries = Endpoint(key="ships"), others, 0

    def known(self, keys):
        return dict.fromkeys(keys, self.kept)

    def remember(self, endpoint, before):
        self.tries += 1
        if self.tries <= self.others:
            self.kept = replace(self.kept, instance_concurrency=self.tries)
        if self.kept != before:
            return False
        self.kept = endpoint
        return True


def with_a_variant(endpoint):
    return None if endpoint is None else replace(endpoint, variants=(Variant(name="blue"),))


def test_concurrent_updates_are_kept():
    memory = Busy(others=MAX_TRIES - 1)
    amend(memory, "ships", with_a_variant, memory.kept)
    assert memory.kept == Endpoint(key="ships", variants=(Variant(name="blue"),), instance_concurrency=MAX_TRIES - 1)


def test_repeated_conflicts_end_in_an_error():
    memory = Busy(others=1_000)
    amend(memory, "ships", with_a_variant, memory.kept)
    assert (memory.tries, memory.kept.variants) == (MAX_TRIES, ())


def test_unchanged_values_are_not_written():
    memory = Busy(others=0)
    amend(memory, "ships", lambda endpoint: endpoint, memory.kept)
    amend(memory, "ships", lambda _: None, memory.kept)
    amend(memory, "ships", lambda _: replace(memory.kept, described_at=b.NOW), memory.kept)
    assert (memory.tries, memory.kept.described_at) == (1, b.NOW)
