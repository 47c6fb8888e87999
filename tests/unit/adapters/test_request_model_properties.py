"""Requests against SageMaker's service model, with botocore's own validator as the oracle."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from botocore.model import ServiceModel, Shape
from botocore.validate import ParamValidator
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from samples import examples
from trainmaster.adapters.sagemaker.request_model import _check, problems
from trainmaster.adapters.sagemaker.service_model import SERVICE_FILE, shape
from trainmaster.domain.java_patterns import _compiled

INPUT: Any = shape("CreateTrainingJobRequest")


@lru_cache(maxsize=1)
def what_botocore_checks() -> Shape:
    """The same input without the rules that botocore leaves to the service."""
    model = json.loads(SERVICE_FILE.read_bytes())
    for each in model["shapes"].values():
        for rule in ("max", "pattern", "enum"):
            each.pop(rule, None)
    return ServiceModel(model, "sagemaker").shape_for("CreateTrainingJobRequest")


def values_of(rule: Any) -> st.SearchStrategy[Any]:
    """Values that the shape allows."""
    rules = rule.metadata
    least, most = rules.get("min", 0), min(rules.get("max", 3), 3)
    if rule.type_name == "structure":
        required = {name: values_of(rule.members[name]) for name in rule.required_members}
        optional = {name: values_of(child) for name, child in rule.members.items() if name not in required}
        return st.fixed_dictionaries(required, optional=optional)
    if rule.type_name == "list":
        return st.lists(values_of(rule.member), min_size=least, max_size=max(least, most))
    if rule.type_name == "map":
        return st.dictionaries(values_of(rule.key), values_of(rule.value), min_size=least, max_size=max(least, most))
    if rule.type_name == "boolean":
        return st.booleans()
    if rule.type_name in {"integer", "long"}:
        return st.integers(rules.get("min", -(2**31)), rules.get("max", 2**31 - 1))
    return texts_of(tuple(rule.enum), rules.get("pattern", ".*"), least, rules.get("max", 100))


@lru_cache(maxsize=500)
def texts_of(allowed: tuple[str, ...], pattern: str, least: int, most: int) -> st.SearchStrategy[str]:
    if allowed:
        return st.sampled_from(allowed)
    alphabet = st.characters(codec="utf-8") if "p{" not in pattern else st.characters(codec="ascii")
    return st.from_regex(_compiled(pattern), fullmatch=True, alphabet=alphabet).filter(
        lambda t: least <= len(t) <= most
    )


@lru_cache(maxsize=1)
def valid_requests() -> st.SearchStrategy[Any]:
    """Required members and a few of the others, so that examples stay small."""
    required = {name: values_of(INPUT.members[name]) for name in INPUT.required_members}
    others = [st.just({})] + [
        st.fixed_dictionaries({name: values_of(child)}) for name, child in INPUT.members.items() if name not in required
    ]
    return st.builds(
        lambda base, one, two: base | one | two, st.fixed_dictionaries(required), st.one_of(others), st.one_of(others)
    )


scalars = (
    st.none() | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.floats() | st.text(st.characters(codec="utf-8"))
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key of a JSON value."""
    keys: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


@st.composite
def mutated_requests(draw: st.DrawFn) -> dict[str, Any]:
    """A valid request in which something was replaced, removed or added."""
    request: dict[str, Any] = copy.deepcopy(draw(valid_requests()))
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(list(places(request)) or [(request, "x")]))
        deed = draw(st.sampled_from(["replace", "remove", "add"]))
        if deed == "replace" or (deed == "add" and isinstance(container, list)):
            container[key] = draw(json_values)
        elif deed == "add":
            container[draw(st.sampled_from(["Name", "InstanceType", "x"]) | st.text(max_size=5))] = draw(json_values)
        else:
            container.pop(key)
    return request


thorough = examples(150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


class TestProperties:
    @given(json_values | st.dictionaries(st.sampled_from(list(INPUT.members)), json_values))
    @thorough
    def test_any_value_yields_problems_and_raises_nothing(self, value: Any) -> None:
        found = problems(value)
        assert found or isinstance(value, dict)
        for problem in found:
            assert problem.field
            json.dumps([problem.field, problem.message, problem.hint]).encode()
            assert len(problem.message) < 500

    @given(valid_requests())
    @thorough
    def test_valid_requests_have_no_problem(self, request_: dict[str, Any]) -> None:
        assert problems(request_) == []
        assert not ParamValidator().validate(request_, INPUT).has_errors()

    @given(mutated_requests())
    @thorough
    def test_botocore_finds_as_many_problems_where_it_looks(self, request_: dict[str, Any]) -> None:
        shape = what_botocore_checks()
        oracle = ParamValidator().validate(request_, shape)
        found = [p for p in _check(shape, request_, "") if "surrogate" not in p.message]
        assert len(found) == len(oracle._errors), oracle.generate_report()

    @given(mutated_requests())
    @thorough
    def test_requests_that_botocore_rejects_are_rejected(self, request_: dict[str, Any]) -> None:
        if ParamValidator().validate(request_, INPUT).has_errors():
            assert problems(request_)
