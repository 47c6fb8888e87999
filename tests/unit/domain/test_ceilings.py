"""Ceilings that no request to the API can exceed."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import G5, P5, a_job
from trainmaster.domain.access.ceilings import Ceilings, job_problems, priority_problem, settings_problems
from trainmaster.domain.capacity.catalogue import AS_SHIPPED
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.elastic.sizes import Elastic
from trainmaster.domain.policy.settings import Expansion, Share

NONE = Expansion()


def wrong(ceilings, after, before=((), NONE)):
    """The fields that a change of pools and expansion has above these ceilings."""
    return [problem.field for problem in settings_problems(ceilings, before, after, AS_SHIPPED)]


@pytest.mark.parametrize(
    "text", ["size=3", "priority", "priority=x", "instances=-1", "dollarsPerHour=nan", "priority=9999999"]
)
def test_a_wrong_text_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        Ceilings.parse(text)


def test_a_text_has_those_that_it_names():
    assert Ceilings.parse("") == Ceilings()
    assert Ceilings.parse("priority=-5, instances=64,dollarsPerHour=2.5") == Ceilings(-5, 64, 2.5)


@given(st.integers(-9, 9), st.none() | st.integers(-9, 9), st.none() | st.integers(-9, 9))
def test_a_priority_is_refused_above_the_lower_ceiling_only(priority, deployment, share):
    problem = priority_problem(priority, "priority", Ceilings(deployment), Share(name="vision", max_priority=share))
    lowest = min(ceiling for ceiling in (deployment, share, inf) if ceiling is not None)
    assert (problem is not None) is (priority > lowest)


def test_the_message_names_the_ceiling_and_where_it_is_set():
    problem = priority_problem(9, "priority", Ceilings(), Share(name="vision", max_priority=5))
    assert problem.message == "Priority 9 is more than the ceiling of its share, 5 (shares.vision.maxPriority)."


POOLS = {P5: Pool(P5, 8, price=98.0), G5: Pool(G5, 8, price=1.5)}


@pytest.mark.parametrize(
    ("fields", "share", "fields_wrong"),
    [
        ({"units": {P5: 4}}, {"max_job_instances": 4}, 0),
        ({"units": {P5: 5}}, {"max_job_instances": 4}, 1),
        ({"units": {P5: 1}, "elastic": Elastic(min_instances=1, max_instances=5)}, {"max_job_instances": 4}, 1),
        ({"units": {P5: 1}}, {"max_job_dollars_per_hour": 100.0}, 0),
        ({"units": {P5: 2}}, {"max_job_dollars_per_hour": 100.0}, 1),
        ({"units": {G5: 60}}, {"max_job_dollars_per_hour": 100.0}, 0),
        (
            {"units": {P5: 1}, "elastic": Elastic(min_instances=1, max_instances=2)},
            {"max_job_dollars_per_hour": 99.0},
            1,
        ),
        ({"units": {P5: 99}}, {}, 0),
    ],
)
def test_the_size_of_a_job(fields, share, fields_wrong):
    problems = list(job_problems(a_job(**fields), Share(name="vision", **share), POOLS, AS_SHIPPED))
    assert [problem.field for problem in problems] == ["ResourceConfig"] * fields_wrong


def test_the_caps_of_all_pools_count_together_with_those_that_may_be_created():
    ceiling = Ceilings(instances=10)
    assert wrong(ceiling, ([Pool(P5, 6), Pool(G5, 4)], NONE)) == []
    assert wrong(ceiling, ([Pool(P5, 6), Pool(G5, 5)], NONE)) == ["cap"]
    more = Expansion(enabled=True, max_instances=5)
    assert wrong(ceiling, ([Pool(P5, 6)], more)) == ["expansion.maxInstances"]
    assert wrong(ceiling, ([Pool(P5, 6), Pool(G5, 5, made_for="x")], NONE)) == []


def test_the_cost_of_all_pools_counts_at_least_with_the_price_list():
    listed = AS_SHIPPED.type_of(P5).price
    assert wrong(Ceilings(dollars_per_hour=listed), ([Pool(P5, 1, price=0.01)], NONE)) == []
    assert wrong(Ceilings(dollars_per_hour=listed), ([Pool(P5, 2, price=0.01)], NONE)) == ["cap"]
    assert wrong(Ceilings(dollars_per_hour=1.0), ([Pool("s", 2, type_=P5, kind=Kind.SPOT, price=0.5)], NONE)) == []
    assert wrong(Ceilings(dollars_per_hour=1.0), ([Pool("ml.unheard.large", 1)], NONE)) == ["cap"]


def test_an_expansion_without_a_bound_is_above_any_ceiling_of_dollars():
    ceiling = Ceilings(dollars_per_hour=50)
    assert wrong(ceiling, ((), Expansion(enabled=True))) == ["expansion.dollarsPerHour"]
    assert wrong(ceiling, ((), Expansion(enabled=True, dollars_per_hour=50))) == []
    assert wrong(ceiling, ((), Expansion(dollars_per_hour=None))) == []


caps = st.integers(0, 9)


@given(caps, caps, caps, caps, caps)
def test_a_change_above_a_ceiling_is_refused_unless_it_only_lowers(ceiling, before_p5, before_g5, p5, g5):
    before, after = [Pool(P5, before_p5), Pool(G5, before_g5)], [Pool(P5, p5), Pool(G5, g5)]
    refused = bool(wrong(Ceilings(instances=ceiling), (after, NONE), (before, NONE)))
    assert refused is (p5 + g5 > ceiling and p5 + g5 > before_p5 + before_g5)
