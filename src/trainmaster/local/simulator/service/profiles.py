"""Profiles: how long each part of a simulated training job takes, and how it ends.

A request may set the fields of its profile in `Environment` or `HyperParameters`: `SIMULATOR_TRAINING_SECONDS=30`,
`SIMULATOR_OUTCOME=failed`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from trainmaster.domain.compat import StrEnum
from trainmaster.local.simulator.wire.errors import invalid

PREFIX = "SIMULATOR_"


class Outcome(StrEnum):
    """Outcome of a training script that is not stopped."""

    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Profile of a training job; durations in seconds.

    Attributes:
        requesting_seconds: from the request to the request for EC2 instances.
        starting_seconds: from allocated to ready instances.
        warm_starting_seconds: the same in a warm pool, whose instances are allocated at once.
        downloading_seconds: time in Downloading.
        training_seconds: total work of the script; a job with the same checkpoint URI does the rest.
        restarting_seconds: time that such a job needs before it makes progress.
        uploading_seconds: time in Uploading, after any end of the script.
        stopping_seconds: time from SIGTERM to the end of the script, at most the grace period.
        interrupted_seconds: from the loss of spot instances to the request for others.
        pending_seconds: maximum time in Pending of a job without a limit of its own.
        outcome: outcome of the script.
        failure_reason: `FailureReason` of a failed script.
        log_seconds: time between two log lines about the progress of the script; 0 writes none.
        internal_errors: number of runs that end with an internal error of SageMaker.
        limited: False to ignore the request's time limits, for traces.
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
    log_seconds: float = 60
    outcome: Outcome = Outcome.COMPLETED
    failure_reason: str = "AlgorithmError: ExecuteUserScriptError, exit code: 1"
    internal_errors: int = 0
    limited: bool = True

    def at_speed(self, speed: float) -> Profile:
        """Return the profile with all durations divided by `speed`."""
        if speed == 1:
            return self
        seconds = {name: getattr(self, name) / speed for name in FIELDS if name.endswith("_seconds")}
        return replace(self, **seconds)


FIELDS = tuple(field.name for field in dataclasses.fields(Profile))
"""Names of the fields; each has a variable."""


def profile_from(fields: Mapping[str, str]) -> Profile:
    """Return the default profile with these fields, given as text. Raises `ApiError` for an invalid one."""
    return Profile(**{name: _parsed(name, value) for name, value in fields.items()})


class Profiles:
    """Profiles by job: the request's variables, else the profile set for its name, else the default.

    Args:
        default: profile of other jobs.
        speed: divides every duration.

    Attributes:
        pace: returns the seconds of `training_seconds` that a request's job does in one second, above 0, which may
            depend on its instances. May be set at any time.
        adjust: changes the profile of a new job.
    """

    def __init__(self, default: Profile, speed: float = 1) -> None:
        self.default = default
        self._speed = speed
        self._by_pattern: dict[str, Profile] = {}
        self.pace: Callable[[Mapping[str, Any]], float] = lambda _request: 1.0
        self.adjust: Callable[[Mapping[str, Any], Profile], Profile] = lambda _request, profile: profile

    def current_pace(self, request: Mapping[str, Any]) -> float:
        """Return the current pace of a request's job."""
        return self.pace(request)

    def set(self, pattern: str, profile: Profile) -> None:
        """Set the profile of all names that match (`job1`, `job1*`); the last pattern takes precedence."""
        self._by_pattern.pop(pattern, None)
        self._by_pattern[pattern] = profile

    def profile_for(self, request: Mapping[str, Any]) -> Profile:
        """Return the profile of a request's job. Raises `ApiError` for an invalid variable."""
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
        raise invalid(f"{PREFIX}{name.upper()} is not a variable of the simulator")
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
        raise ValueError("must be a finite number of seconds, at least 0")
    return seconds


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def _unquoted(value: str) -> str:
    """Return the text of a hyperparameter; the SageMaker SDKs write these as JSON."""
    try:
        decoded = json.loads(value)
    except ValueError:
        return value
    return decoded if isinstance(decoded, str) else value
