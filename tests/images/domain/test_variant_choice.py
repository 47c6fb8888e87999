"""Variant of a job: the requested one, the only one, or one by weight; always the same one for a job."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import at
from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.endpoint import Endpoint, Variant, never_described
from trainmaster.images.domain.variant import choose_variant

ASKED = "imageProcessorParameters.TargetVariant"
JOBS = [f"job-{number}" for number in range(1_000)]


def weighing(**weights):
    variants = tuple(Variant(name=name, weight=weight) for name, weight in weights.items())
    return Endpoint(key="m", variants=variants, described_at=at(0))


def counts(endpoint):
    return Counter(choose_variant(endpoint, None, job) for job in JOBS)


def refused(endpoint, asked=None):
    with pytest.raises(InvalidRequest) as caught:
        choose_variant(endpoint, asked, "job")
    return caught.value


@pytest.mark.parametrize(
    ("first", "second", "share"), [(1.0, 1.0, 0.5), (50, 50, 0.5), (0.8, 0.2, 0.8), (80, 20, 0.8), (70, 30, 0.7)]
)
def test_variants_get_jobs_by_their_weights(first, second, share):
    found = counts(weighing(a=first, b=second))
    assert found["a"] == pytest.approx(share * 1_000, abs=50)
    assert found.total() == 1_000
    assert set(found) == {"a", "b"}


def test_three_variants_get_jobs_by_their_weights():
    found = counts(weighing(a=1, b=2, c=7))
    assert [found[name] for name in "abc"] == pytest.approx([100, 200, 700], abs=50)


def test_a_variant_without_a_weight_of_its_own_weighs_one():
    endpoint = Endpoint(key="m", variants=(Variant(name="a"), Variant(name="b", weight=1.0)), described_at=at(0))
    assert counts(endpoint)["a"] == pytest.approx(500, abs=50)


def test_a_job_gets_the_same_variant_whenever_it_is_looked_at():
    endpoint = weighing(a=50, b=50)
    assert [choose_variant(endpoint, None, job) for job in JOBS] == [choose_variant(endpoint, "", job) for job in JOBS]
    assert choose_variant(endpoint, None, "harbour-7") == "b", "in every release"


@given(st.text(max_size=70), st.lists(st.floats(0, 1e6), min_size=1, max_size=5))
def test_a_variant_of_weight_zero_is_never_chosen(job, weights):
    endpoint = weighing(zero=0.0, heavy=1.0, **{f"v{index}": weight for index, weight in enumerate(weights)})
    chosen = choose_variant(endpoint, None, job)
    assert {variant.name: variant.weight for variant in endpoint.variants}[chosen] > 0


def test_the_variant_that_is_asked_for_is_taken_whatever_it_weighs():
    endpoint = weighing(a=1, b=0)
    assert choose_variant(endpoint, "b", "job") == "b"
    assert {choose_variant(endpoint, None, job) for job in JOBS} == {"a"}


def test_the_only_variant_is_taken_whatever_it_weighs():
    assert choose_variant(weighing(a=1), None, "job") == choose_variant(weighing(a=0), "", "job") == "a"


def test_where_nothing_weighs_anything_the_job_is_refused_with_the_reason():
    error = refused(weighing(a=0, b=0))
    assert (error.field, error.message) == (
        ASKED,
        "No variant of the endpoint 'm' has a weight, so none can be chosen.",
    )
    assert "TargetVariant" in error.hint


def test_w18_an_unknown_variant_is_refused_by_its_field():
    error = refused(weighing(blue=1, green=1), "blu")
    assert (error.field, error.message) == (ASKED, "The endpoint 'm' has no variant 'blu'.")
    assert error.hint.startswith("Did you mean 'blue'? Its variants are: blue, green.")
    assert refused(weighing(), "blue").field == ASKED


@pytest.mark.parametrize("asked", [None, "blue"])
def test_no_image_can_be_sent_to_an_asynchronous_endpoint(asked):
    error = refused(replace(weighing(blue=1), asynchronous=True), asked)
    assert error.field == "imageProcessor.name"
    assert error.message == "The endpoint 'm' is asynchronous, so it does not answer when a tile is sent."


def test_w13_no_job_goes_without_a_variant_to_an_endpoint_that_must_have_one():
    """So no load is hidden from those that name the variant."""
    assert refused(weighing()).field == "imageProcessor.name"


def test_w18_no_variant_is_chosen_before_the_endpoint_is_described():
    assert choose_variant(never_described("m"), None, "job") == choose_variant(never_described("m"), "", "job") == ""


def test_a_variant_of_an_endpoint_that_was_never_described_is_believed():
    assert choose_variant(never_described("m"), "blue", "job") == "blue"


def test_an_endpoint_that_is_being_created_has_no_variants_to_choose_from_yet():
    creating = replace(weighing(), status="Creating")
    assert choose_variant(creating, None, "job") == ""
    assert choose_variant(creating, "blue", "job") == "blue"
    assert refused(replace(weighing(), status="Failed")).field == "imageProcessor.name"
    assert refused(replace(weighing(blue=1), status="Creating"), "green").field == ASKED


@pytest.mark.parametrize("asked", [None, "", "blue"])
def test_a_url_has_no_variants(asked):
    assert choose_variant(never_described("https://models.example/detect"), asked, "job") == ""
