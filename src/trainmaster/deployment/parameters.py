"""Values of the template's parameters: read from options and files, checked before anything is uploaded."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from trainmaster.client.api.errors import Refused
from trainmaster.domain.requests.fields import did_you_mean

RUNTIMES: Final = "Runtime"
_HINT: Final = "docs/how-to/deploy.md describes all parameters."


def read_config(file: str) -> dict[str, str]:
    """Return the parameters in a file, a JSON or YAML object by name. Raises Refused."""
    import yaml

    try:
        found = yaml.safe_load(Path(file).read_text(encoding="utf-8-sig"))
    except OSError as error:
        message = f"{file} cannot be read: {error.strerror}."
        raise Refused(message, type="InvalidFile", hint="Check the path.") from error
    except (ValueError, yaml.YAMLError) as error:
        message = f"{file} cannot be read: {' '.join(str(error).split())}."
        raise Refused(message, type="InvalidFile", hint="Write a JSON or YAML object of parameters.") from error
    if not isinstance(found, dict):
        raise Refused(
            f"{file} is no object.", type="InvalidFile", hint="Write parameters by name: `Pools: ml.g5.xlarge=2`."
        )
    return {str(name): _text(value) for name, value in found.items()}


def _text(value: Any) -> str:
    """Return a value as CloudFormation takes it: lists are joined by commas, objects are JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else "" if value is None else str(value)


def read_options(texts: Iterable[str]) -> dict[str, str]:
    """Return the parameters of options `Name=Value`. Raises Refused."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise Refused(
                f"{text!r} is no parameter.", hint="Use --parameter Name=Value, such as Pools=ml.g5.xlarge=2."
            )
        found[name] = value
    return found


def check(declared: Mapping[str, Any], given: Mapping[str, str]) -> None:
    """Check names and values against the template. Raises Refused for the first that is wrong."""
    for name, value in given.items():
        if name not in declared:
            meant = did_you_mean(name, declared)
            guess = f" Did you mean {meant}?" if meant else ""
            raise Refused(f"The template has no parameter {name}.{guess}", type="InvalidParameter", hint=_HINT)
        if problem := problem_of(declared[name], value):
            raise Refused(f"{name}={value} is not accepted: {problem}.", type="InvalidParameter", hint=_HINT)


def problem_of(declared: Mapping[str, Any], value: str) -> str | None:
    """Return what is wrong with a value; None if CloudFormation accepts it."""
    allowed = [str(each) for each in declared.get("AllowedValues", ())]
    if allowed and value not in allowed:
        return f"use {', '.join(allowed)}"
    words = str(declared.get("ConstraintDescription", "it must match the parameter's pattern")).rstrip(".")
    is_list = str(declared["Type"]).startswith(("CommaDelimitedList", "List<"))
    pattern = declared.get("AllowedPattern")
    if pattern and not all(re.fullmatch(pattern, each.strip()) for each in (value.split(",") if is_list else [value])):
        return words
    return _number_problem(declared, value) if declared["Type"] == "Number" else None


def _number_problem(declared: Mapping[str, Any], value: str) -> str | None:
    try:
        number = float(value)
    except ValueError:
        return "it must be a number"
    low, high = declared.get("MinValue", number), declared.get("MaxValue", number)
    return None if low <= number <= high else f"it must be from {low} to {high}"


def missing(declared: Mapping[str, Any], given: Mapping[str, str], kept: Iterable[str]) -> list[str]:
    """Return the parameters that need a value: those without a default, and the endpoints of a private API."""
    known = {*given, *kept}
    found = [name for name, one in declared.items() if "Default" not in one and name not in known]
    if "VpcEndpointIds" not in known and "EndpointType" not in known:
        found.append("VpcEndpointIds")
    return found


def own_runtime(declared: Mapping[str, Any], version: tuple[int, int] = sys.version_info[:2]) -> str:
    """Return the runtime of this Python, which can compile for it, if Lambda has it; else the template's default."""
    own = f"python{version[0]}.{version[1]}"
    return own if own in declared[RUNTIMES]["AllowedValues"] else str(declared[RUNTIMES]["Default"])


def as_members(declared: Mapping[str, Any], given: Mapping[str, str], kept: Iterable[str]) -> list[dict[str, Any]]:
    """Return the parameters as CreateChangeSet takes them; those of the stack that are not given keep their values."""
    previous = {*kept} - {*given}
    return [
        {"ParameterKey": name, "UsePreviousValue": True}
        if name in previous
        else {"ParameterKey": name, "ParameterValue": given[name]}
        for name in declared
        if name in given or name in previous
    ]
