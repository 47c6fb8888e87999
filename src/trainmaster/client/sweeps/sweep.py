"""A sweep: a request, the ranges of its hyperparameters, and the trials that a grid or a random search gives.

A trial's name is the sweep's and a hash of its hyperparameters. So a sweep that is submitted again, or with more
trials or values, submits only the trials that are missing.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import quote, unquote

from trainmaster.client.sweeps.space import Space, invalid
from trainmaster.domain.jobs.names import MAX_NAME
from trainmaster.domain.requests.tag_names import OPTION_PREFIX

Strategy = Literal["grid", "random", "optuna"]
Goal = Literal["Minimize", "Maximize"]
"""Direction of the search (CreateHyperParameterTuningJob, `HyperParameterTuningJobObjective.Type`)."""
MAX_TRIALS: Final = 10_000
METRIC_TAG: Final = "sweep:metric"
GOAL_TAG: Final = "sweep:goal"
GROUP_TAG: Final = f"{OPTION_PREFIX}group"
_LIMIT_TAG: Final = f"{OPTION_PREFIX}max-concurrent"
_DIGEST: Final = 10
MAX_SWEEP_NAME: Final = MAX_NAME - _DIGEST - 1
_NAME: Final = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*")
_DRAWS_PER_TRIAL: Final = 20
"""Draws for each trial of a random search before the space is taken to have no other values."""


@dataclass(frozen=True, slots=True)
class Objective:
    """The metric that a sweep compares trials by, one of the request's MetricDefinitions, and its direction."""

    metric: str
    goal: Goal = "Minimize"

    def is_better(self, value: float, other: float) -> bool:
        """Return whether a value is strictly better than another."""
        return value < other if self.goal == "Minimize" else value > other

    @property
    def tags(self) -> dict[str, str]:
        """The objective as tags of the trials; a tag's value allows fewer characters than a metric's name."""
        text = quote(self.metric, safe=" _.:/+-@").replace("%", "=").replace("~", "=7E")
        return {METRIC_TAG: text, GOAL_TAG: self.goal}

    @classmethod
    def of_tags(cls, tags: Mapping[str, str]) -> Objective | None:
        """Return the objective of a trial's tags; None if it has none."""
        metric, goal = tags.get(METRIC_TAG), tags.get(GOAL_TAG)
        if metric is None or goal not in ("Minimize", "Maximize"):
            return None
        return cls(unquote(metric.replace("=", "%")), "Minimize" if goal == "Minimize" else "Maximize")


@dataclass(frozen=True, slots=True)
class Trial:
    """A training job of a sweep: its name, and the hyperparameters that the sweep chose."""

    name: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Trials of one request with other hyperparameters. Raises Refused if it is invalid.

    Attributes:
        name: its name and its group's; the trials' names begin with it.
        request: a CreateTrainingJob request; its name is replaced, its other hyperparameters stay.
        space: ranges by the name of their hyperparameter.
        strategy: `grid` for all combinations, `random` for draws, `optuna` for a search that learns from ended trials.
        trials: number of trials; None only for a grid.
        max_concurrent: maximum number of trials that hold instances at once; None sets no limit.
        objective: how trials are compared; a search that learns and early stopping need it.
        points: number of values of each continuous range of a grid, and at most of each integer range.
        seed: of draws; by default they follow from the name.
        early_stopping: whether `SweepRun` stops trials that the median rule finds worse than others.
        storage: Optuna's storage of the study, a URL such as `sqlite:///sweep.db`.
    """

    name: str
    request: Mapping[str, Any]
    space: Space
    strategy: Strategy = "random"
    trials: int | None = None
    max_concurrent: int | None = None
    objective: Objective | None = None
    points: int | None = None
    seed: int | None = None
    early_stopping: bool = False
    storage: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.name) > MAX_SWEEP_NAME:
            hint = f"Use at most {MAX_SWEEP_NAME} letters, digits and hyphens."
            raise invalid(f"{self.name!r} cannot be the name of a sweep.", "name", hint)
        if not self.space:
            raise invalid("The sweep has no ranges.", "ParameterRanges", "Give at least one hyperparameter a range.")
        for name, value in (("trials", self.trials), ("maxConcurrent", self.max_concurrent), ("points", self.points)):
            if value is not None and not 1 <= value <= MAX_TRIALS:
                raise invalid(f"{name} is {value}.", name, f"Use a number from 1 to {MAX_TRIALS}.")
        _check_request(self.request)
        self._check_needs()

    def _check_needs(self) -> None:
        """Raise Refused for a setting without another that it needs."""
        if self.strategy != "grid" and self.trials is None:
            raise invalid("The number of trials is missing.", "trials", "Set it.")
        if self.objective is None and (self.strategy == "optuna" or self.early_stopping):
            raise invalid("The metric to compare trials by is missing.", "objective", "Set the metric and the goal.")
        if self.strategy == "optuna" and self.max_concurrent is None:
            hint = "Set the number of trials that may run at once: the search learns from those that have ended."
            raise invalid("The maximum number of concurrent trials is missing.", "maxConcurrent", hint)
        if self.strategy == "optuna" and not self.storage:
            hint = f"Set one, for example sqlite:///{self.name}.db: the search continues from it."
            raise invalid("Optuna's storage is missing.", "storage", hint)

    def planned(self) -> list[Trial]:
        """Return all trials of a grid or a random search, each combination of values once. Raises Refused."""
        values = self._grid() if self.strategy == "grid" else self._drawn()
        return [Trial(self._trial_name(each), each) for each in values]

    def request_of(self, trial: Trial) -> dict[str, Any]:
        """Return the CreateTrainingJob request of a trial."""
        tags = {GROUP_TAG: self.name} | ({} if self.objective is None else self.objective.tags)
        if self.max_concurrent is not None:
            tags[_LIMIT_TAG] = str(self.max_concurrent)
        others = [tag for tag in self.request.get("Tags", []) if tag.get("Key") not in {*tags, _LIMIT_TAG}]
        return {
            **self.request,
            "TrainingJobName": trial.name,
            "HyperParameters": {**self.request.get("HyperParameters", {}), **trial.values},
            "Tags": [*others, *({"Key": key, "Value": value} for key, value in tags.items())],
        }

    def numbered(self, number: int, values: Mapping[str, str]) -> Trial:
        """Return the trial of a study that numbers its trials."""
        return Trial(f"{self.name}-{number:04d}", values)

    def _grid(self) -> Iterator[dict[str, str]]:
        axes = [each.grid(self.points) for each in self.space.values()]
        size, most = math.prod(map(len, axes)), MAX_TRIALS if self.trials is None else self.trials
        if size > most:
            hint = "Use fewer values or points, more trials, or a random search."
            raise invalid(f"The grid has {size} trials, more than {most}.", "trials", hint)
        return (dict(zip(self.space, values, strict=True)) for values in itertools.product(*axes))

    def _drawn(self) -> Iterator[dict[str, str]]:
        """Yield distinct draws; a larger number of trials begins with the same ones."""
        rng = random.Random(self.name if self.seed is None else self.seed)  # noqa: S311 - a search, not a secret
        wanted, seen = self.trials or 0, set[str]()
        for _ in range(wanted * _DRAWS_PER_TRIAL):
            values = {name: each.text(rng.random()) for name, each in self.space.items()}
            key = json.dumps(values)
            if len(seen) < wanted and key not in seen:
                seen.add(key)
                yield values

    def _trial_name(self, values: Mapping[str, str]) -> str:
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:_DIGEST]
        return f"{self.name}-{digest}"


def _check_request(request: Mapping[str, Any]) -> None:
    """Raise Refused for a request whose tags or hyperparameters cannot be extended."""
    tags = request.get("Tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, Mapping) for tag in tags):
        raise invalid("The request's tags are not a list of objects.", "Tags", "Use CreateTrainingJob's members.")
    if not isinstance(request.get("HyperParameters", {}), Mapping):
        hint = "Use CreateTrainingJob's members."
        raise invalid("The request's hyperparameters are not an object.", "HyperParameters", hint)


def trial_pattern(sweep: str) -> re.Pattern[str]:
    """Return the pattern of the names of a sweep's trials."""
    return re.compile(re.escape(sweep) + rf"-([0-9a-f]{{{_DIGEST}}}|\d{{4,}})")
