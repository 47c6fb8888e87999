"""A search that learns from ended trials: Optuna's ask-and-tell, with the study in a storage of the user's.

Source: Optuna's documentation, "Ask-and-Tell Interface". A trial's job has the number of the study's trial in its
name, so a search that was interrupted finds the jobs of its open trials again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from trainmaster.client.api.errors import NotConfigured
from trainmaster.client.sweeps.space import Categorical, Integer, Range, value_text
from trainmaster.client.sweeps.sweep import Sweep, Trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainmaster.client.views.types import JobView

_REVERSED: Final = "1 - {name}"
"""Name of a parameter with reverse logarithmic scaling in the study, which has the logarithm of its complement."""


class OptunaSearch:
    """The study of a sweep. Raises NotConfigured if Optuna is not installed."""

    def __init__(self, sweep: Sweep) -> None:
        optuna = _optuna()
        self._sweep, self._states = sweep, optuna.trial.TrialState
        self._numbers: dict[str, int] = {}
        self._distributions = dict(_distribution(optuna, name, each) for name, each in sweep.space.items())
        goal = sweep.objective.goal.lower() if sweep.objective else "minimize"
        self._study = optuna.create_study(
            study_name=sweep.name,
            storage=sweep.storage,
            direction=goal,
            load_if_exists=True,
            sampler=optuna.samplers.TPESampler(seed=sweep.seed),
        )

    def unfinished(self) -> Iterator[Trial]:
        """Yield the trials that the study waits for, such as those of an interrupted search."""
        for trial in self._study.get_trials(deepcopy=False, states=[self._states.RUNNING]):
            yield self._of(trial)

    def remaining(self) -> int:
        """Return the number of trials that have not ended, of all that the sweep should have."""
        ended = [trial for trial in self._study.get_trials(deepcopy=False) if trial.state.is_finished()]
        return max((self._sweep.trials or 0) - len(ended), 0)

    def ask(self) -> Trial | None:
        """Return the next trial to submit; None if the study has as many as the sweep should have."""
        if len(self._study.get_trials(deepcopy=False)) >= (self._sweep.trials or 0):
            return None
        return self._of(self._study.ask(self._distributions))

    def tell(self, job: JobView, metric: float | None) -> None:
        """Tell the study how a trial has ended: a stopped one as pruned, one without a value as failed."""
        number = self._numbers.pop(job["jobName"])
        if metric is None or not math.isfinite(metric) or job["jobState"] not in ("completed", "stopped"):
            self._study.tell(number, state=self._states.FAIL)
        elif job["jobState"] == "stopped":
            self._study.tell(number, state=self._states.PRUNED)
        else:
            self._study.tell(number, metric)

    def _of(self, trial: Any) -> Trial:
        values = {name: _text(name, trial.params) for name in self._sweep.space}
        found = self._sweep.numbered(trial.number, values)
        self._numbers[found.name] = trial.number
        return found


def _text(name: str, parameters: Mapping[str, Any]) -> str:
    """Return the value of a hyperparameter in a study's trial."""
    if name in parameters:
        return value_text(parameters[name])
    return value_text(1.0 - parameters[_REVERSED.format(name=name)])


def _distribution(optuna: Any, name: str, given: Range) -> tuple[str, Any]:
    """Return the name and the distribution of a range in the study."""
    kinds = optuna.distributions
    if isinstance(given, Categorical):
        return name, kinds.CategoricalDistribution(given.values)
    is_log = given.scale == "Logarithmic"
    if isinstance(given, Integer):
        return name, kinds.IntDistribution(given.low, given.high, log=is_log)
    if given.scale == "ReverseLogarithmic":
        return _REVERSED.format(name=name), kinds.FloatDistribution(1 - given.high, 1 - given.low, log=True)
    return name, kinds.FloatDistribution(given.low, given.high, log=is_log)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        hint = "Install it: pip install 'trainmaster[optuna]'. A random search does not need it."
        raise NotConfigured("Optuna is not installed.", type="OptunaMissing", hint=hint) from error
    return optuna
