"""The example script for JAX in real containers: its processes meet at the coordinator that a rendezvous has named.

Every step sums the gradients of all processes by an all-reduce (gloo), so a loss that is right says that the sum was.
"""

from __future__ import annotations

import itertools

import pytest
from tests.containers import RUN, alone, until

from trainmaster.domain.elastic.rendezvous import Control, Role

NONE = "--launcher=none"
THIRD = "bert-qstamp-1-m3"


def ranks_of(group):
    return {node.training_job_name: node.rank for node in group.nodes if node.role is Role.MEMBER}


def steps_of(*containers):
    """Return the lines of rank 0 on any node, by round and step."""
    return sorted((line for one in containers for line in one.steps), key=lambda line: (line["round"], line["step"]))


def works(size, *containers, steps=5):
    """Wait until the newest world has this size, and has done some steps."""

    def found():
        newest = max((line["round"] for line in steps_of(*containers)), default=0)
        lines = [line for line in steps_of(*containers) if line["round"] == newest]
        return len(lines) >= steps and lines[-1]["world"] == size

    until(found)


def as_one_process_says(lines, script, tmp_path):
    expected = {line["step"]: line["loss"] for line in alone(script, max(line["step"] for line in lines), tmp_path)}
    return max(abs(line["loss"] - expected[line["step"]]) for line in lines) < 1e-6


def test_a_job_of_jax_grows_and_shrinks_with_stable_ranks_and_the_sums_of_one_process(
    containers, groups, script, tmp_path
):
    groups.set(RUN, Control(epoch=1, min_nodes=1, max_nodes=2))
    some = [containers(1, NONE), containers(2, NONE)]
    works(2, *some)
    before = ranks_of(groups.get(RUN))
    groups.set(RUN, Control(epoch=2, min_nodes=1, max_nodes=3))
    third = containers(3, NONE)
    works(3, *some, third)
    assert ranks_of(groups.get(RUN)) == before | {THIRD: 2}
    groups.set(RUN, Control(epoch=3, min_nodes=1, max_nodes=2, drain=(THIRD,), grace=60.0))
    assert third.ends() == 0, "a drained member ends in peace"
    works(2, *some)
    group = groups.get(RUN)
    assert (ranks_of(group), group.restarts) == (before, 0)
    for one in some:
        one.stop()
    assert [one.ends() for one in some] == [0, 0], "who is stopped has saved, and left"
    lines = steps_of(*some)
    assert third.steps == [], "rank 0 is the same one all the time"
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1)), "no step lost or done twice"
    assert [size for size, _ in itertools.groupby(line["world"] for line in lines)][:3] == [2, 3, 2]
    assert as_one_process_says(lines, script, tmp_path)


@pytest.mark.slow
def test_the_others_go_on_from_the_last_checkpoint_when_the_node_of_the_first_rank_is_lost(
    containers, groups, script, tmp_path
):
    some = [containers(number, NONE, SM_HP_SAVE_EVERY="10") for number in (1, 2, 3)]
    works(3, *some, steps=25)
    (first,) = [one for one in some if one.steps]
    first.process.kill()
    first.ends()
    others = [one for one in some if one is not first]
    works(2, *others, steps=15)
    assert groups.get(RUN).restarts == 1
    for one in others:
        one.stop()
    assert [one.ends() for one in others] == [0, 0]
    lines = steps_of(*some)
    ends = [line["step"] for line in lines if line["round"] == 1]
    begins = next(line["step"] for line in lines if line["round"] > 1)
    assert begins == ends[-1] // 10 * 10 + 1
    assert as_one_process_says(lines, script, tmp_path)


@pytest.mark.slow
def test_the_job_is_over_for_all_once_its_steps_are_done(containers, groups):
    groups.set(RUN, Control(epoch=1, min_nodes=2, max_nodes=2))
    some = [containers(number, NONE, SM_HP_STEPS="20") for number in (1, 2, 3)]
    assert [one.ends() for one in some] == [0, 0, 0], "a spare included"
    group = groups.get(RUN)
    assert (group.closed, group.reason) == (True, "done")
