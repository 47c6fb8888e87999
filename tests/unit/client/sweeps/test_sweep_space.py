"""Ranges of hyperparameters and the trials that they give."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_api import a_request
from trainmaster.client.api.errors import Refused
from trainmaster.client.sweeps.space import Categorical, Continuous, Integer, parse_ranges
from trainmaster.client.sweeps.sweep import MAX_SWEEP_NAME, Objective, Sweep, trial_pattern

FRACTIONS = st.floats(0, 1)
BOUNDS = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(sorted)
POSITIVE = st.tuples(st.floats(1e-9, 1e6), st.floats(1e-9, 1e6)).map(sorted)
PARTS = st.tuples(st.floats(0, 0.999999), st.floats(0, 0.999999)).map(sorted)
CONTINUOUS = st.one_of(
    st.builds(lambda pair: Continuous(*pair), BOUNDS),
    st.builds(lambda pair: Continuous(*pair, "Logarithmic"), POSITIVE),
    st.builds(lambda pair: Continuous(*pair, "ReverseLogarithmic"), PARTS),
)


@given(CONTINUOUS, FRACTIONS, st.integers(1, 20))
def test_continuous_values_are_numbers_within_their_bounds(
    given_range: Continuous, fraction: float, points: int
) -> None:
    for text in (given_range.text(fraction), *given_range.grid(points)):
        assert given_range.low <= float(json.loads(text)) <= given_range.high
    assert 1 <= len(given_range.grid(points)) <= points


@given(st.tuples(st.integers(1, 500), st.integers(1, 500)).map(sorted), FRACTIONS, st.integers(1, 20))
@pytest.mark.parametrize("scaling", ["Auto", "Linear", "Logarithmic"])
def test_integers_are_within_their_bounds(scaling: Any, bounds: list[int], fraction: float, points: int) -> None:
    one = Integer(*bounds, scaling)
    for text in (one.text(fraction), *one.grid(points)):
        assert text == str(int(text))
        assert one.low <= int(text) <= one.high
    assert one.grid(None) == [str(value) for value in range(one.low, one.high + 1)]


def test_scalings_place_the_middle() -> None:
    assert Continuous(0, 10, "Linear").text(0.5) == "5.0"
    assert float(Continuous(1e-4, 1e-2, "Logarithmic").text(0.5)) == pytest.approx(1e-3)
    assert float(Continuous(0.9, 0.999, "ReverseLogarithmic").text(0.5)) == pytest.approx(0.99)
    assert Integer(1, 10_000, "Logarithmic").grid(3) == ["1", "100", "10000"]


def test_auto_is_logarithmic_over_three_orders_of_magnitude() -> None:
    assert [Continuous(low, 1.0).scale for low in (-1.0, 0.0, 0.01, 0.001)] == ["Linear"] * 3 + ["Logarithmic"]


def test_every_integer_has_its_part_of_the_range() -> None:
    drawn = [Integer(1, 4).text((index + 0.5) / 400) for index in range(400)]
    assert [drawn.count(str(value)) for value in (1, 2, 3, 4)] == [100] * 4


def test_values_are_texts_of_requests() -> None:
    assert Categorical("adam", 1, 0.5, True, "adam").values == ("adam", "1", "0.5", "true")
    assert Categorical('"adam"').values == ('"adam"',)


RANGES = {
    "ContinuousParameterRanges": [{"Name": "lr", "MinValue": "1e-4", "MaxValue": "0.1", "ScalingType": "Logarithmic"}],
    "IntegerParameterRanges": [{"Name": "layers", "MinValue": "2", "MaxValue": "8"}],
    "CategoricalParameterRanges": [{"Name": "optimizer", "Values": ["adam", "sgd"]}],
}


def test_ranges_are_those_of_a_tuning_job() -> None:
    assert parse_ranges(RANGES) == {
        "lr": Continuous(1e-4, 0.1, "Logarithmic"),
        "layers": Integer(2, 8),
        "optimizer": Categorical("adam", "sgd"),
    }


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ({"ContinuousParameterRanges": [{"Name": "lr", "MinValue": "x", "MaxValue": "1"}]}, "'x' is not a number"),
        ({"ContinuousParameterRanges": [{"Name": "lr", "MinValue": "nan", "MaxValue": "1"}]}, "'nan' is not"),
        ({"ContinuousParameterRanges": [{"Name": "lr", "MaxValue": "1"}]}, "MinValue is missing"),
        ({"ContinuousParameterRanges": [{"Name": "lr", "MinValue": "2", "MaxValue": "1"}]}, "2.0 to 1.0 is no range"),
        ({"ContinuousParameterRanges": {"Name": "lr"}}, "is not a list"),
        ({"ContinuousParameterRanges": ["lr"]}, "Name is missing"),
        ({"IntegerParameterRanges": [{"Name": "n", "MinValue": "1.5", "MaxValue": "3"}]}, "not integers"),
        ({"IntegerParameterRanges": [{"Name": "n", "MinValue": 1, "MaxValue": 3, "ScalingType": "Log"}]}, "no scaling"),
        ({"CategoricalParameterRanges": [{"Name": "o", "Values": []}]}, "no values"),
        ({"AutoParameters": [{"Name": "lr", "ValueHint": "0.1"}]}, "AutoParameters cannot be honored"),
        ({**RANGES, "CategoricalParameterRanges": [{"Name": "lr", "Values": ["1"]}]}, "two ranges of lr"),
    ],
)
def test_invalid_ranges_are_refused_in_words(ranges: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        parse_ranges(ranges)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Continuous(0, 1, "Logarithmic"),
        lambda: Continuous(0, 1, "ReverseLogarithmic"),
        lambda: Continuous(0, math.inf),
        lambda: Integer(0, 4, "Logarithmic"),
        lambda: Integer(1, 4, "ReverseLogarithmic"),
        lambda: Continuous(0, 1).grid(None),
        lambda: Categorical("x" * 2501),
    ],
)
def test_bounds_that_a_scaling_does_not_allow_are_refused(make: Any) -> None:
    with pytest.raises(Refused):
        make()


def a_sweep(**changes: Any) -> Sweep:
    request = a_request("base", HyperParameters={"epochs": "3", "lr": "1"})
    space = {"lr": Continuous(1e-4, 1e-1), "optimizer": Categorical("adam", "sgd")}
    return Sweep(**{"name": "sweep", "request": request, "space": space, "trials": 10} | changes)


def test_a_grid_has_every_combination_once() -> None:
    trials = a_sweep(strategy="grid", points=3, trials=None).planned()
    values = [tuple(trial.values.values()) for trial in trials]
    assert len(set(values)) == len(values) == 6
    assert {value[1] for value in values} == {"adam", "sgd"}


def test_a_grid_beyond_the_number_of_trials_is_refused() -> None:
    with pytest.raises(Refused, match="The grid has 6 trials, more than 5"):
        a_sweep(strategy="grid", points=3, trials=5).planned()


@given(st.integers(1, 30), st.integers(0, 30), st.none() | st.integers(0, 5))
def test_more_trials_begin_with_the_same_ones(number: int, more: int, seed: int | None) -> None:
    few, many = (a_sweep(trials=each, seed=seed).planned() for each in (number, number + more))
    assert many[:number] == few
    assert len({trial.name for trial in many}) == len(many) == number + more


def test_a_small_space_gives_each_trial_once() -> None:
    trials = a_sweep(space={"optimizer": Categorical("adam", "sgd")}, trials=50).planned()
    assert sorted(trial.values["optimizer"] for trial in trials) == ["adam", "sgd"]


def test_a_wider_grid_keeps_the_names_of_its_trials() -> None:
    narrow, wide = (
        {trial.name for trial in a_sweep(strategy="grid", space={"o": Categorical(*values)}).planned()}
        for values in ("ab", "cab")
    )
    assert narrow < wide


def test_a_trial_is_the_request_with_its_values_and_its_group() -> None:
    sweep = a_sweep(max_concurrent=2, objective=Objective("validation:loss", "Maximize"))
    trial = sweep.planned()[0]
    request = sweep.request_of(trial)
    assert request["TrainingJobName"] == trial.name
    assert trial_pattern("sweep").fullmatch(trial.name)
    assert request["HyperParameters"] == {"epochs": "3"} | trial.values
    tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    assert tags == {
        "team": "vision",
        "trainmaster:group": "sweep",
        "trainmaster:max-concurrent": "2",
        "sweep:metric": "validation:loss",
        "sweep:goal": "Maximize",
    }
    assert sweep.request["HyperParameters"]["lr"] == "1", "the given request is as it was"


def test_the_longest_name_leaves_room_for_the_trials() -> None:
    longest = "s" * MAX_SWEEP_NAME
    assert len(a_sweep(name=longest).planned()[0].name) == 63
    with pytest.raises(Refused, match="cannot be the name of a sweep"):
        a_sweep(name=longest + "s")


@given(st.text(min_size=1, max_size=60), st.sampled_from(["Minimize", "Maximize"]))
def test_an_objective_survives_its_tags(metric: str, goal: Any) -> None:
    try:
        metric.encode()
    except UnicodeEncodeError:
        return
    tags = Objective(metric, goal).tags
    assert all(character.isalnum() or character in " _.:/=+-@" for value in tags.values() for character in value)
    assert Objective.of_tags(tags) == Objective(metric, goal)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "a/b"}, "cannot be the name"),
        ({"name": ""}, "cannot be the name"),
        ({"space": {}}, "no ranges"),
        ({"trials": None}, "number of trials is missing"),
        ({"trials": 0}, "trials is 0"),
        ({"early_stopping": True}, "metric to compare trials by is missing"),
        ({"strategy": "optuna"}, "metric to compare trials by is missing"),
        ({"strategy": "optuna", "objective": Objective("m")}, "maximum number of concurrent trials is missing"),
        ({"strategy": "optuna", "objective": Objective("m"), "max_concurrent": 2}, "storage is missing"),
        ({"request": a_request("base", Tags="x")}, "tags are not a list"),
        ({"request": a_request("base", HyperParameters=["x"])}, "hyperparameters are not an object"),
    ],
)
def test_an_incomplete_sweep_is_refused_in_words(changes: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        a_sweep(**changes)
