"""Settings of image jobs: the guide's names and defaults; wrong ones are refused, not swallowed."""

from __future__ import annotations

import pytest

from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.capacity import capacity_of
from trainmaster.images.domain.endpoint import Endpoint, Limits, Variant
from trainmaster.images.domain.limits import TAGS, VARIABLES, limits_of, tagged

ENDPOINT = Endpoint(key="m", variants=(Variant(name="a", instances=3),))
CONCURRENCY = "osml:instance-concurrency"


def test_without_variables_the_guides_defaults_hold():
    defaults = Limits(
        throttling=True,
        target=1.0,
        instance_concurrency=2,
        http_concurrency=10,
        tile_workers=4,
        region_size=(10_240, 10_240),
        fresh_for=300,
        attempts=3,
    )
    assert limits_of({}) == limits_of(dict.fromkeys(VARIABLES, "")) == limits_of({"PATH": "/bin"}) == defaults


def test_every_variable_is_read():
    given = {
        "SCHEDULER_THROTTLING_ENABLED": "False",
        "CAPACITY_TARGET_PERCENTAGE": "0.85",
        "DEFAULT_INSTANCE_CONCURRENCY": "3",
        "DEFAULT_HTTP_ENDPOINT_CONCURRENCY": "20",
        "TILE_WORKERS_PER_INSTANCE": "64",
        "REGION_SIZE": "(8192, 4096)",
        "ENDPOINT_FRESH_SECONDS": "60",
        "REGION_ATTEMPTS": "5",
        "WATCH_OTHER_CALLERS": "False",
    }
    assert given.keys() == VARIABLES.keys()
    assert limits_of(given) == Limits(
        throttling=False,
        target=0.85,
        instance_concurrency=3,
        http_concurrency=20,
        tile_workers=64,
        region_size=(8_192, 4_096),
        fresh_for=60,
        attempts=5,
        watch_others=False,
    )


@pytest.mark.parametrize(
    ("text", "target"),
    [("0.8", 0.8), ("1.0", 1.0), ("1.2", 1.2), ("1.5", 1.5), ("0.0", 0.0), (" 1 ", 1.0), (".5", 0.5)],
)
def test_targets_are_shares_up_to_one_and_a_half(text, target):
    assert limits_of({"CAPACITY_TARGET_PERCENTAGE": text}).target == target


@pytest.mark.parametrize(("text", "on"), [("True", True), ("true", True), ("FALSE", False), ("false", False)])
def test_throttling_is_on_or_off_in_any_case(text, on):
    assert limits_of({"SCHEDULER_THROTTLING_ENABLED": text}).throttling is on


@pytest.mark.parametrize("text", ["(8192, 8192)", "(8192,8192)", "8192, 8192", "( 8192 , 8192 )", "(8192, 8192,)"])
def test_region_sizes_are_read_as_modelrunner_writes_them(text):
    assert limits_of({"REGION_SIZE": text}).region_size == (8_192, 8_192)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SCHEDULER_THROTTLING_ENABLED", "yes"),
        *[
            ("CAPACITY_TARGET_PERCENTAGE", text)
            for text in ("-0.5", "1.51", "80", "nan", "inf", "1e-1", "80%", "9" * 99)
        ],
        *[("DEFAULT_INSTANCE_CONCURRENCY", text) for text in ("0", "-1", "2.5", "two", "1000000")],
        *[("DEFAULT_HTTP_ENDPOINT_CONCURRENCY", text) for text in ("0", "-1", "ten")],
        *[("TILE_WORKERS_PER_INSTANCE", text) for text in ("0", "-1", "65", "100000", "\u0664")],
        *[("REGION_SIZE", text) for text in ("8192", "(8192)", "(0, 8192)", "(8192, 8192", "(1, 2, 3)", "(a, b)")],
        ("ENDPOINT_FRESH_SECONDS", "0"),
        ("REGION_ATTEMPTS", "0"),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(name, text):
    with pytest.raises(InvalidRequest) as caught:
        limits_of({name: text})
    assert caught.value.field == name
    assert caught.value.hint == f"It must be {VARIABLES[name].takes}."


def test_an_endpoints_tags_say_more_than_the_settings():
    found, wrong = tagged(
        ENDPOINT, {CONCURRENCY: "5", "osml:capacity-target-percentage": "0.8", "osml:tile-workers": "2", "team": "sea"}
    )
    assert (found.instance_concurrency, found.target, found.tile_workers, wrong) == (5, 0.8, 2, ())
    assert capacity_of(found, "a", Limits()) == 15


def test_a_tag_that_is_gone_says_nothing_any_more():
    found, _ = tagged(ENDPOINT, dict.fromkeys(TAGS, "1"))
    assert tagged(found, {}) == (ENDPOINT, ())


@pytest.mark.parametrize("text", ["0", "-2", "2.5", "lots", "1e3"])
def test_a_wrong_tag_leaves_the_default_with_a_word_about_it(text):
    """ModelRunner takes 0 and -2, for a capacity of 0 and -6."""
    found, wrong = tagged(ENDPOINT, {CONCURRENCY: text, "osml:tile-workers": "2"})
    assert capacity_of(found, "a", Limits()) == 6
    assert found.tile_workers == 2
    assert [(problem.field, problem.message) for problem in wrong] == [(CONCURRENCY, f"{CONCURRENCY} is '{text}'.")]


@pytest.mark.parametrize(("text", "workers"), [("64", 64), ("65", None), ("100000", None)])
def test_a_region_makes_no_more_than_64_requests_at_once_whatever_a_tag_says(text, workers):
    found, wrong = tagged(ENDPOINT, {"osml:tile-workers": text})
    assert (found.tile_workers, [problem.field for problem in wrong]) == (
        workers,
        [] if workers else ["osml:tile-workers"],
    )
    assert [problem.hint for problem in wrong] == ["It must be a whole number from 1 to 64."] * len(wrong)


@pytest.mark.parametrize("text", ["1.6", "-1", "nan"])
def test_a_target_beyond_its_bounds_is_named_by_its_tag(text):
    found, wrong = tagged(ENDPOINT, {"osml:capacity-target-percentage": text})
    assert (found.target, [problem.field for problem in wrong]) == (None, ["osml:capacity-target-percentage"])
