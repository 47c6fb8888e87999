"""A queue of many lanes is read in parts, in threads or one after the other: nothing is missed or read twice."""

from __future__ import annotations

import random
import threading

import pytest

import builders as b
from trainmaster.adapters.dynamodb.lanes.heads import PARTS, KnownLanes
from trainmaster.bootstrap.threads import for_each_in_threads
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.policy.settings import Policy, Share

SHARES = [f"team{number:02d}" for number in range(60)]


def submit(store, rng, names, shares):
    """A few jobs for each of these shares, sometimes more than a pass reads of a lane."""
    for share in shares:
        for _ in range(rng.choice((1, 2, 5, 40))):
            store.submit(b.a_job(f"job{next(names)}", share=share, entry_time=b.at(rng.randint(0, 9))), {})


def cancel_all(store, shares):
    for job in store.read_snapshot(depth=100).waiting:
        if job.share in shares:
            assert store.transition([(job, lifecycle.cancel(job, b.NOW, "ada"))])


@pytest.mark.parametrize("for_each", [map, for_each_in_threads], ids=["one by one", "in threads"])
def test_what_is_read_in_parts_is_what_is_read_as_a_whole(dynoxide_engine, for_each):
    rng, names, sizes = random.Random(7), iter(range(10**6)), []

    def counted(call, values):
        given = list(values)
        sizes.append(len(given))
        return for_each(call, given)

    policy = Policy(shares={name: Share(name=name) for name in SHARES})
    store = dynoxide_engine.open(policy=policy, for_each=counted)
    for _ in range(3):
        submit(store, rng, names, rng.sample(SHARES, 12))
        for read in (store.begin_pass, store.read_snapshot):
            fresh = dynoxide_engine.open(policy=policy)
            assert (seen := read()).waiting
            whole = (fresh.begin_pass if read == store.begin_pass else fresh.read_snapshot)()
            assert (seen.waiting, seen.cut_lanes) == (whole.waiting, whole.cut_lanes)
        cancel_all(store, rng.sample(SHARES, 10))
    assert sizes[0] == 1
    assert PARTS in sizes


def test_an_error_in_a_part_is_the_error_of_the_read_and_no_part_goes_on():
    ended = []

    def call(number):
        if number == 2:
            raise ValueError("part 2")
        ended.append(number)

    with pytest.raises(ValueError, match="part 2"):
        for_each_in_threads(call, range(4))
    assert set(ended) <= {0, 1, 3}
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("for-each")]


@pytest.mark.parametrize(("lanes", "parts"), [(0, 1), (7, 1), (8, 2), (12, 3), (16, 4), (1_000, 4)])
def test_each_part_has_some_lanes_and_there_are_a_few_parts(lanes, parts):
    keys = [f"lane{number:04d}" for number in range(lanes)]
    ends = KnownLanes(keys).parts()
    assert len(ends) == parts
    found = [[key for key in keys if after <= key and (not end or key < end)] for after, end in ends]
    assert [key for part in found for key in part] == keys
    assert max(map(len, found)) - min(map(len, found)) <= 1
