"""Replaces one parameter of a command by several options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

R = TypeVar("R")


def expand_parameter(
    command: Callable[..., R],
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    collect: Callable[..., Any],
) -> Callable[..., R]:
    """Replace a parameter of a command by others, whose values `collect` turns into its value."""
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def run(*args: Any, **arguments: Any) -> R:
        own = {each: arguments.pop(each) for each in parameters if each in arguments}
        return command(*args, **arguments, **{name: collect(**own)})

    # typer reads options from the signature, and must not unwrap this function.
    del run.__wrapped__
    run.__annotations__ = {}
    expanded: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        expanded += parameters.values() if parameter.name == name else [parameter]
    run.__signature__ = signature.replace(parameters=expanded)  # type: ignore[attr-defined]
    return run
