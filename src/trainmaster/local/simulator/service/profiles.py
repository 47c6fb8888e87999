"""How a simulated training job goes: how long each part of it takes, and how it ends.

A request may carry its own script in `Environment` or `HyperParameters`, one variable for each field of `Profile`:
`SIMULATOR_TRAINING_SECONDS=30`, `SIMULATOR_OUTCOME=failed`. It must not know states or clocks.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from trainmaster.local.simulator.wire.errors import invalid

PREFIX = "SIMULATOR_"


class Outcome(StrEnum):
    """How the training script ends by itself."""

    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The course of one training job; all durations in seconds.

    Attributes:
        requesting_seconds: from the request until EC2 is asked for instances.
        starting_seconds: from having instances until they are ready.
        warm_starting_seconds: the same on a warm pool, which is asked at once.
        downloading_seconds: downloading the input.
        training_seconds: what the script has to do in all; a new attempt with the same checkpoint URI does the rest.
        restarting_seconds: what such an attempt needs before it makes progress again.
        uploading_seconds: uploading the model after any end of the script.
        stopping_seconds: how long the script goes on after SIGTERM; above the grace it is killed.
        interrupted_seconds: from losing spot instances until EC2 is asked for others.
        pending_seconds: how long a job without EC2 capacity is kept pending where no limit of its own says it.
        outcome: how the script ends by itself.
        failure_reason: the `FailureReason` of a failed script.
        internal_errors: so many runs end by SageMaker's own fault before the script may end by itself.
        limited: whether the request's time limits end the job; a trace's jobs run as long as the trace says.
    """

    requesting_seconds: float = 5
    starting_seconds: float = 55
    warm_starting_seconds: float = 5
    downloading_seconds: float = 20
    training_seconds: float = 600
    restarting_seconds: float = 0
    uploading_seconds: float = 20
    stopping_seconds: float = 10
    interrupted_seconds: float = 60
    pending_seconds: float = 3600
    outcome: Outcome = Outcome.COMPLETED
    failure_reason: str = "AlgorithmError: ExecuteUserScriptError, exit code: 1"
    internal_errors: int = 0
    limited: bool = True

    def at_speed(self, speed: float) -> Profile:
        """The same course, so many times faster."""
        if speed == 1:
            return self
        seconds = {name: getattr(self, name) / speed for name in FIELDS if name.endswith("_seconds")}
        return replace(self, **seconds)


FIELDS = tuple(field.name for field in dataclasses.fields(Profile))
"""Every field that a variable can set."""


def profile_from(fields: Mapping[str, str]) -> Profile:
    """The default profile with some fields as text. Raises `ApiError` where one has no meaning."""
    return Profile(**{name: _parsed(name, value) for name, value in fields.items()})


class Profiles:
    """Which profile a training job follows: its own variables, else one given for its name, else the default.

    Args:
        default: for jobs that nothing else is said of.
        speed: divides every duration, whoever gave it.

    Attributes:
        pace: how many seconds of its `training_seconds` the script of a job with this request does in one second,
            which may depend on its instances; above 0. May be set at any time.
        adjust: changes the profile of a job that is being created; for courses that depend on what was before.
    """

    def __init__(self, default: Profile, speed: float = 1) -> None:
        self.default = default
        self._speed = speed
        self._by_pattern: dict[str, Profile] = {}
        self.pace: Callable[[Mapping[str, Any]], float] = lambda _request: 1.0
        self.adjust: Callable[[Mapping[str, Any], Profile], Profile] = lambda _request, profile: profile

    def current_pace(self, request: Mapping[str, Any]) -> float:
        """The pace of this request's job now."""
        return self.pace(request)

    def set(self, pattern: str, profile: Profile) -> None:
        """Give a profile to all names that match (`job1`, `job1*`); the pattern given last wins."""
        self._by_pattern.pop(pattern, None)
        self._by_pattern[pattern] = profile

    def profile_for(self, request: Mapping[str, Any]) -> Profile:
        """The profile that this request's job follows. Raises `ApiError` where a variable has no meaning."""
        name = request["TrainingJobName"]
        given = [profile for pattern, profile in self._by_pattern.items() if fnmatchcase(name, pattern)]
        profile = given[-1] if given else self.default
        return self.adjust(request, replace(profile, **_request_fields(request))).at_speed(self._speed)


def _request_fields(request: Mapping[str, Any]) -> dict[str, Any]:
    variables = {**request.get("HyperParameters", {}), **request.get("Environment", {})}
    named = {key[len(PREFIX) :].lower(): value for key, value in variables.items() if key.startswith(PREFIX)}
    return {name: _parsed(name, value) for name, value in named.items()}


def _parsed(name: str, value: str) -> Any:
    if name not in FIELDS:
        raise invalid(f"{PREFIX}{name.upper()} is no variable of the simulator")
    try:
        return _parser_of(name)(_unquoted(value))
    except ValueError as error:
        raise invalid(f"{PREFIX}{name.upper()} cannot be '{value}': {error}") from error


def _parser_of(name: str) -> Callable[[str], Any]:
    if name.endswith("_seconds"):
        return _seconds
    kinds: dict[str, Callable[[str], Any]] = {"outcome": Outcome, "internal_errors": int, "limited": _boolean}
    return kinds.get(name, str)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise ValueError("a duration is a finite number of seconds, at least 0")
    return seconds


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("it is true or false")
    return text == "true"


def _unquoted(value: str) -> str:
    """The SDKs write hyperparameters as JSON: a text arrives in quotes."""
    try:
        decoded = json.loads(value)
    except ValueError:
        return value
    return decoded if isinstance(decoded, str) else value
