"""Reads a sweep from a file and the command line's options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

import typer

from trainmaster.cli.common.parameters import expand_parameter
from trainmaster.cli.common.request import read_job, with_tags
from trainmaster.cli.output.render import print_warnings
from trainmaster.client.api.errors import Refused
from trainmaster.client.sweeps.space import Categorical, Continuous, Integer, Range, Scaling
from trainmaster.client.sweeps.sweep import Objective, Sweep
from trainmaster.client.sweeps.tuning_job import convert_tuning_job, is_tuning_job
from trainmaster.domain.compat import StrEnum

if TYPE_CHECKING:
    from trainmaster.client.hyperpod.manifest import ConvertedManifest

R = TypeVar("R")
_SCALINGS: Final[Mapping[str, Scaling]] = {
    "auto": "Auto",
    "linear": "Linear",
    "log": "Logarithmic",
    "reverse-log": "ReverseLogarithmic",
}


class StrategyOption(StrEnum):
    """Strategies of a sweep."""

    GRID = "grid"
    RANDOM = "random"
    OPTUNA = "optuna"


SweepFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A CreateTrainingJob request in JSON or a manifest, whose name becomes the sweep's, or a "
        "CreateHyperParameterTuningJob request in JSON with its ranges and limits; - reads standard input.",
    ),
]
SweepName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the sweep.")]
Rename = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the sweep, instead of the file's.")]
Continuous_ = Annotated[
    list[str] | None,
    typer.Option(
        "--continuous",
        metavar="NAME=MIN:MAX[:SCALING]",
        help="Search a hyperparameter over real numbers; scaling: auto, linear, log or reverse-log. May be repeated.",
    ),
]
Integer_ = Annotated[
    list[str] | None,
    typer.Option(
        "--integer",
        metavar="NAME=MIN:MAX[:SCALING]",
        help="Search a hyperparameter over integers; scaling: auto, linear or log. May be repeated.",
    ),
]
Categorical_ = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical", metavar="NAME=VALUE,...", help="Search a hyperparameter over these values. May be repeated."
    ),
]
Strategy = Annotated[
    StrategyOption | None,
    typer.Option(
        "--strategy",
        metavar="STRATEGY",
        help="grid: all combinations; random: draws; optuna: a search that learns from ended trials, while the command "
        "runs. Default: random, or the file's.",
    ),
]
Trials = Annotated[int | None, typer.Option("--trials", metavar="N", min=1, help="Number of trials.")]
MaxConcurrent = Annotated[
    int | None,
    typer.Option(
        "--max-concurrent",
        metavar="N",
        min=1,
        help="Maximum trials that hold instances at once; sets the tag `trainmaster:max-concurrent`.",
    ),
]
Points = Annotated[
    int | None,
    typer.Option(
        "--points",
        metavar="N",
        min=1,
        help="Values of each continuous range of a grid, and at most of each integer range.",
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="Seed of the draws. Default: derived from the sweep's name.")
]
Minimize = Annotated[
    str | None,
    typer.Option("--minimize", metavar="METRIC", help="Metric of the request's definitions; the lowest is best."),
]
Maximize = Annotated[
    str | None,
    typer.Option("--maximize", metavar="METRIC", help="Metric of the request's definitions; the highest is best."),
]
EarlyStop = Annotated[
    bool | None,
    typer.Option(
        "--early-stop/--no-early-stop",
        help="Stop running trials that are worse than the median of completed ones, while the command runs. Default: "
        "no, or the file's.",
    ),
]
Storage = Annotated[
    str | None,
    typer.Option("--storage", metavar="URL", help="Optuna's storage of the study, for example sqlite:///sweep.db."),
]


Changes: TypeAlias = dict[str, Any]
"""Attributes of a sweep that the command line sets."""


def sweep_options(command: Callable[..., R]) -> Callable[..., R]:
    """Replace the command's parameter `changes` by the options that set a sweep's attributes. Raises BadParameter."""
    parameters = {
        name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    }
    return expand_parameter(command, "changes", parameters, _changes)


def read_sweep(file: str, priority: int | None, tags: Mapping[str, str], changes: Changes) -> Sweep:
    """Return the sweep of a file, with the attributes that the command line sets. Raises Refused."""
    job = read_job(file)
    if job.uploads:
        hint = "Put it into the image, and name the script."
        raise Refused("The command of the manifest is too long for a request.", type="InvalidRequest", hint=hint)
    arguments = _tuning_job(job) if is_tuning_job(job.request) else _training_job(job)
    space = {**arguments["space"], **changes["space"]}
    request = with_tags(arguments["request"], priority, tags)
    return Sweep(**{**arguments, **changes, "space": space, "request": request})


def _changes(  # noqa: PLR0913 -- one parameter per option
    *,
    continuous: Sequence[str] | None,
    integer: Sequence[str] | None,
    categorical: Sequence[str] | None,
    strategy: StrategyOption | None,
    minimize: str | None,
    maximize: str | None,
    early_stop: bool | None,
    **others: Any,
) -> Changes:
    """Return the attributes of a sweep that options set. Raises BadParameter."""
    given = others | {
        "strategy": None if strategy is None else strategy.value,
        "objective": objective_of_options(minimize, maximize),
        "early_stopping": early_stop,
        "space": space_of(continuous, integer, categorical),
    }
    return {name: value for name, value in given.items() if value is not None}


_OPTIONS: Final[Mapping[str, Any]] = {
    "name": Rename,
    "continuous": Continuous_,
    "integer": Integer_,
    "categorical": Categorical_,
    "strategy": Strategy,
    "trials": Trials,
    "max_concurrent": MaxConcurrent,
    "points": Points,
    "seed": Seed,
    "minimize": Minimize,
    "maximize": Maximize,
    "early_stop": EarlyStop,
    "storage": Storage,
}
"""Options of a sweep by the names of their parameters."""


def space_of(
    continuous: Sequence[str] | None, integer: Sequence[str] | None, categorical: Sequence[str] | None
) -> dict[str, Range]:
    """Return the ranges of the command line. Raises BadParameter."""
    space: dict[str, Range] = {}
    for option, texts, parse in (
        ("--continuous", continuous, _continuous),
        ("--integer", integer, _integer),
        ("--categorical", categorical, lambda text: Categorical(*text.split(","))),
    ):
        for text in texts or ():
            name, equals, value = text.partition("=")
            if not name or not equals or not value:
                raise typer.BadParameter(f"{text!r} is no range: use NAME=RANGE", param_hint=f"'{option}'")
            if name in space:
                raise typer.BadParameter(f"there are two ranges of {name}", param_hint=f"'{option}'")
            space[name] = _parsed(parse, value, option)
    return space


def objective_of_options(minimize: str | None, maximize: str | None) -> Objective | None:
    """Return the objective of the command line; None if it has none. Raises BadParameter for two."""
    if minimize and maximize:
        raise typer.BadParameter(
            "a sweep has one metric: leave --minimize or --maximize out", param_hint="'--maximize'"
        )
    if maximize:
        return Objective(maximize, "Maximize")
    return Objective(minimize, "Minimize") if minimize else None


def _tuning_job(job: ConvertedManifest) -> dict[str, Any]:
    converted = convert_tuning_job(job.request)
    if converted.not_honored:
        print_warnings([f"Without effect on the sweep: {', '.join(converted.not_honored)}."])
    return dict(converted.arguments)


def _training_job(job: ConvertedManifest) -> dict[str, Any]:
    request = dict(job.request)
    return {"name": str(request.pop("TrainingJobName", "")), "request": request, "space": {}}


def _parsed(parse: Callable[[str], Range], value: str, option: str) -> Range:
    try:
        return parse(value)
    except Refused as error:
        raise typer.BadParameter(f"{value!r}: {error.message} {error.hint}", param_hint=f"'{option}'") from error
    except ValueError:
        raise typer.BadParameter(f"{value!r} is not MIN:MAX or MIN:MAX:SCALING", param_hint=f"'{option}'") from None


def _continuous(text: str) -> Continuous:
    low, high, scaling = _bounds(text)
    return Continuous(float(low), float(high), scaling)


def _integer(text: str) -> Integer:
    low, high, scaling = _bounds(text)
    return Integer(int(low), int(high), scaling)


def _bounds(text: str) -> tuple[str, str, Scaling]:
    """Return the bounds and the scaling of a text. Raises ValueError."""
    low, high, *more = text.split(":")
    if len(more) > 1 or (more and more[0] not in _SCALINGS):
        raise ValueError(text)
    return low, high, _SCALINGS[more[0]] if more else "Auto"
