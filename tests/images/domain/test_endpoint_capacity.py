"""Endpoints' pools: what a variant takes at once, what of it is used, and what throttling teaches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import at
from trainmaster.images.domain.capacity import (
    UNLIMITED,
    cap_of,
    capacity_of,
    factor_at,
    is_overloaded,
    pools_of,
    throttled_at,
)
from trainmaster.images.domain.endpoint import (
    Endpoint,
    Limits,
    Pressure,
    Variant,
    never_described,
    pool_name,
    pool_parts,
)

LIMITS = Limits()
NOW = at(0)
MODEL = "https://models.example/detect"


def an_endpoint(*variants, **also):
    return Endpoint(key="m", variants=variants, described_at=NOW, **also)


def instances(count, name="a", **also):
    return Variant(name=name, instances=count, **also)


def caps(endpoint, *named, **limits):
    return {name: cap.requests for name, cap in pools_of(endpoint, Limits(**limits), NOW, named).items()}


@pytest.mark.parametrize("url", ["http://localhost:8080", MODEL, "HTTP://MODELS.example"])
def test_an_http_endpoint_takes_a_fixed_number(url):
    assert capacity_of(never_described(url), "", LIMITS) == 10
    assert caps(never_described(url), http_concurrency=3) == {f"endpoint/{url}": 3}


def test_a_serverless_variant_takes_its_max_concurrency():
    assert capacity_of(an_endpoint(Variant(name="a", max_concurrency=100)), "a", LIMITS) == 100
    assert capacity_of(an_endpoint(Variant(name="a", max_concurrency=0)), "a", LIMITS) == 0


def test_instances_take_the_default_or_what_the_tag_says():
    assert capacity_of(an_endpoint(instances(2)), "a", LIMITS) == 4
    assert capacity_of(an_endpoint(instances(3), instance_concurrency=5), "a", LIMITS) == 15
    assert capacity_of(an_endpoint(instances(0)), "a", LIMITS) == 0


def test_each_variant_has_a_capacity_of_its_own():
    endpoint = an_endpoint(instances(2, "a"), instances(3, "b"))
    assert [capacity_of(endpoint, name, LIMITS) for name in ("a", "b", "")] == [4, 6, 10]
    assert caps(endpoint) == {"endpoint/m/a": 4, "endpoint/m/b": 6}


def test_a_variant_that_is_not_there_takes_nothing_but_its_jobs_run_one_at_a_time():
    endpoint = an_endpoint(instances(2))
    assert capacity_of(endpoint, "gone", LIMITS) == 0
    assert caps(endpoint, "gone") == {"endpoint/m/a": 4, "endpoint/m/gone": 1}
    assert capacity_of(an_endpoint(), "a", LIMITS) == 0


def test_an_endpoint_that_was_never_described_counts_as_one_instance():
    unknown = never_described("m")
    assert capacity_of(unknown, "a", LIMITS) == 2
    assert caps(unknown, "a", "b") == {"endpoint/m/a": 2, "endpoint/m/b": 2}
    assert caps(unknown) == {}


def test_w18_without_tags_the_default_is_times_the_instances_that_are_known():
    assert caps(an_endpoint(instances(8))) == {"endpoint/m/a": 16}


@pytest.mark.parametrize(
    ("capacity", "target", "cap"),
    [(100, 0.8, 80), (50, 1.0, 50), (200, 1.2, 240), (3, 0.8, 2), (100, 0.29, 29), (100, 1.1, 110), (1, 0.5, 1)],
)
def test_a_share_of_the_capacity_is_used(capacity, target, cap):
    endpoint = an_endpoint(Variant(name="a", max_concurrency=capacity))
    assert caps(endpoint, target=target) == {"endpoint/m/a": cap}
    assert caps(replace(endpoint, target=target)) == {"endpoint/m/a": cap}, "the tag says more than the setting"


def test_a_target_of_zero_leaves_one_image_at_a_time():
    endpoint = an_endpoint(instances(10), target=0.0)
    assert caps(endpoint) == {"endpoint/m/a": 1}


def test_without_throttling_there_is_no_cap_to_speak_of():
    endpoint = an_endpoint(instances(0), pressure={"a": Pressure(factor=0.1, since=NOW)})
    assert caps(endpoint, throttling=False) == {"endpoint/m/a": UNLIMITED}


def test_w17_throttling_halves_what_is_used_once_in_half_a_minute():
    once = throttled_at(Pressure(), NOW)
    assert once == Pressure(factor=0.5, since=NOW)
    assert throttled_at(once, at(29)) == once
    again = throttled_at(once, at(30))
    assert again.factor == pytest.approx(0.275), "half of what it had recovered to"


def test_w17_throttling_is_forgotten_with_time():
    low = Pressure(factor=0.5, since=NOW)
    assert [factor_at(low, at(seconds)) for seconds in (0, 60, 300, 3_000)] == pytest.approx([0.5, 0.6, 1.0, 1.0])
    assert factor_at(low, at(-60)) == 0.5, "by a clock that is behind"


def test_w17_throttling_lowers_the_cap_of_its_own_variant_only():
    endpoint = an_endpoint(instances(10, "a"), instances(10, "b"), pressure={"a": Pressure(factor=0.5, since=NOW)})
    assert caps(endpoint) == {"endpoint/m/a": 10, "endpoint/m/b": 20}
    assert cap_of(endpoint, "a", LIMITS, at(120)).requests == 14


@given(st.lists(st.integers(0, 1_000), max_size=20))
def test_the_factor_stays_within_its_bounds_whatever_is_refused_and_when(pauses):
    pressure, moment = Pressure(), 0
    for pause in pauses:
        moment += pause
        pressure = throttled_at(pressure, at(moment))
        assert 0.1 <= factor_at(pressure, at(moment)) <= 1.0


@pytest.mark.parametrize(
    ("key", "variant"), [("m", "AllTraffic"), ("111122223333:m", "a"), (MODEL, ""), ("HTTP://x/y", "")]
)
def test_a_pools_name_says_endpoint_and_variant(key, variant):
    assert pool_parts(pool_name(key, variant)) == (key, variant)


@pytest.mark.parametrize(
    ("asked", "refused", "strained"), [(9, 9, False), (10, 1, False), (10, 2, True), (100, 10, False), (100, 11, True)]
)
def test_w17_more_than_a_tenth_of_ten_requests_or_more_is_too_many(asked, refused, strained):
    assert is_overloaded(asked, refused) is strained
