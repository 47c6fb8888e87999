"""Acts that are repeated for many jobs: one that goes wrong keeps no other from its turn."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import builders as b
from trainmaster.domain import errors
from trainmaster.service.context import for_each_job

JOBS = tuple(b.a_job(name) for name in ("a", "b", "c"))
GOING_ON = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, errors.ServiceError)
    and kind not in (errors.ServiceError, errors.Throttled, errors.Fenced)
]


def looked_at(trouble: Exception, faults: list[str] | None = None) -> list[str]:
    """Whose turn came, where the second job meets trouble."""
    seen = []

    def step(_, job):
        seen.append(job.name)
        if job.name == "b":
            raise trouble
        return job

    assert for_each_job(SimpleNamespace(faults=faults), JOBS, step) == JOBS
    return seen


@pytest.mark.parametrize("kind", GOING_ON)
def test_trouble_with_one_job_keeps_no_other_from_its_turn(kind):
    assert looked_at(kind("no")) == ["a", "b", "c"]


def test_throttling_ends_the_round():
    assert looked_at(errors.Throttled("slow down")) == ["a", "b"]


def test_who_has_been_overtaken_stops():
    with pytest.raises(errors.Fenced):
        looked_at(errors.Fenced("a later pass has begun"))


def test_a_fault_of_ours_at_one_job_is_noted_and_keeps_no_other_from_its_turn():
    faults = []
    assert looked_at(KeyError("ResourceConfig"), faults) == ["a", "b", "c"]
    assert faults == ["b"]
