"""A sweep: many jobs of one group, so many at once, beside jobs that are none of it."""

from __future__ import annotations

import pytest

from builders import G5, P5
from samples import sample
from tables import new_table
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.reasons.rules import GroupFull
from trainmaster.local.simulator import Profile
from trainmaster.service.explain.explain import explain_in
from world import World, a_request

BRISK = Profile(
    requesting_seconds=1, starting_seconds=5, downloading_seconds=2, uploading_seconds=2, stopping_seconds=5
)


def in_group(name, group, most, **asked):
    request = a_request(name, **asked)
    tags = [{"Key": "trainmaster:group", "Value": group}]
    if most:
        tags.append({"Key": "trainmaster:max-concurrent", "Value": str(most)})
    return {**request, "Tags": [*request["Tags"], *tags]}


class Peaks:
    """The most training jobs whose names begin so that were open at once, by SageMaker's own events."""

    def __init__(self, world, *prefixes):
        self._world = world
        self.most = dict.fromkeys(prefixes, 0)
        measure = world._measure
        world._measure = lambda: (measure(), self._look())

    def _look(self):
        names = [name for name, _ in self._world._open()]
        for prefix in self.most:
            self.most[prefix] = max(self.most[prefix], sum(name.startswith(prefix) for name in names))


@pytest.mark.parametrize("count", sample([200, 500]))
def test_a_sweep_of_hundreds_of_jobs_20_at_a_time(count):
    world = World(pools=f"{G5}=64", profile=BRISK)
    peaks = Peaks(world, "trial-", "other-")
    names = [f"trial-{number:03d}" for number in range(count)]
    for name in names:
        world.submit_request(in_group(name, "sweep", 20, kind=G5, training_seconds=60))
    world.run(60, step=20)
    for number in range(30):
        world.submit(f"other-{number}", kind=G5, training_seconds=60)
    world.run(40, step=20)
    said = explain_in(world.api_context.store.read_snapshot(), world.now(), [world.job(names[-1])])[names[-1]]
    assert said.reason == GroupFull("sweep", 20)
    world.run_until_ended(*names, limit=6000)
    assert set(world.states(*names).values()) == {"completed"}
    assert peaks.most == {"trial-": 20, "other-": 30}
    assert world.peaks[G5] <= 64
    # No job waits for a tick: when one of the group ends, the next one starts.
    assert (world.now() - world.job(names[0]).entry_time).total_seconds() < 1.5 * count / 20 * 75


@pytest.mark.parametrize("engine", ["memory", "dynamodb"])
def test_the_least_that_any_job_says_counts_for_as_long_as_it_waits_or_runs(engine):
    with new_table() as client:
        world = World(client if engine == "dynamodb" else None, pools=f"{P5}=8", profile=BRISK)
        peaks = Peaks(world, "a-", "b-")
        for number in range(6):
            world.submit_request(in_group(f"a-{number}", "a", 7 - number, training_seconds=30))
            world.submit_request(in_group(f"b-{number}", "b", None, training_seconds=30))
        world.run_until_ended(*(f"{group}-{number}" for group in "ab" for number in range(6)))
        assert peaks.most == {"a-": 2, "b-": 6}


def test_a_job_that_steps_aside_leaves_its_place_in_the_group():
    world = World(pools=f"{P5}=1,{G5}=1", profile=BRISK)
    world.submit_request(in_group("trial-1", "sweep", 1, training_seconds=300))
    world.run(30)
    world.submit_request(in_group("trial-2", "sweep", 1, kind=G5, training_seconds=60))
    world.run(30)
    assert world.job("trial-2").state is JobState.PENDING
    world.submit("urgent", priority=5, training_seconds=400)
    world.run_until_ended("trial-2")
    assert world.job("trial-1").state is JobState.PREEMPTED
    world.run_until_ended("trial-1", "urgent")
