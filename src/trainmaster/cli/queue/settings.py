"""`trainmaster settings`: shows the settings, sets them from a file or one by one, and tells their JSON schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json
from trainmaster.cli.common.request import read_object
from trainmaster.cli.output.render import as_json
from trainmaster.cli.queue.setting_paths import lines_of, value_of, with_value, without
from trainmaster.client.api.errors import Conflict

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.jobs import SettingsView

_TRIES = 5
_HINT = "Write it as `trainmaster settings --json` does."
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_COMPONENTS, _DEFINITIONS = "#/components/schemas/", "#/$defs/"

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def settings(context: typer.Context, json: Json = False) -> None:
    """Show the settings, or change them.

    Each line is one setting as `trainmaster settings set` takes it.
    """
    if context.invoked_subcommand is None:
        with tools_of(context).api() as api:
            _print(api.settings(), json=json)


@app.command("set")
def set_settings(
    context: typer.Context,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|NAME=VALUE...",
            help="A whole document in JSON (- reads standard input), or single settings with JSON values.",
        ),
    ],
    json: Json = False,
) -> None:
    """Set the settings from a file, or change some of them.

    A file replaces all settings: what it does not say is as by default, and with a `version` it is refused where
    somebody has changed them since. Single settings leave the others as they are. Where anything is wrong, nothing
    changes.
    """
    if len(what) == 1 and "=" not in what[0]:
        document = read_object(what[0], "settings", _HINT)
        document.pop("$schema", None)
        with tools_of(context).api() as api:
            _print(api.set_settings(document), json=json)
        return
    pairs = [_pair(text) for text in what]
    with tools_of(context).api() as api:
        _print(_changed(api, lambda now: reduce(lambda said, pair: with_value(said, *pair), pairs, now)), json=json)


@app.command("unset")
def unset(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Settings, or whole parts such as a share.")],
    json: Json = False,
) -> None:
    """Set settings back to their defaults; a share that is named is removed."""
    with tools_of(context).api() as api:
        _print(_changed(api, lambda now: reduce(without, names, now)), json=json)


@app.command("schema")
def schema(context: typer.Context) -> None:
    """Print the JSON schema of settings files, for editors that check while one types."""
    with tools_of(context).api() as api:
        typer.echo(as_json(_schema(api.openapi()["components"]["schemas"])))


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise typer.BadParameter(
            f"{text!r} is neither a single file nor NAME=VALUE, such as order=fifo", param_hint="'FILE|NAME=VALUE...'"
        )
    return name, value_of(value)


def _changed(api: ApiClient, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> SettingsView:
    """The API replaces all settings at once: what was read is changed, and again where somebody else was faster."""
    for _ in range(_TRIES - 1):
        try:
            return api.set_settings(change(api.settings()))
        except Conflict:
            continue
    return api.set_settings(change(api.settings()))


def _schema(components: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of settings with all that it refers to."""
    needed: dict[str, Any] = {}
    names = ["Settings"]
    while names:
        name = names.pop()
        if name not in needed:
            needed[name] = _relocated(components[name], names)
    return {"$schema": _DIALECT, "$ref": f"{_DEFINITIONS}Settings", "$defs": dict(sorted(needed.items()))}


def _relocated(value: Any, names: list[str]) -> Any:
    """The part of a schema with its references as `$defs`; adds the names of what it refers to."""
    if isinstance(value, list):
        return [_relocated(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _relocated(each, names) for key, each in value.items()}
    target = value.get("$ref")
    if isinstance(target, str):
        names.append(target.removeprefix(_COMPONENTS))
        found["$ref"] = _DEFINITIONS + names[-1]
    return found


def _print(answer: SettingsView, *, json: bool) -> None:
    shown = {name: value for name, value in answer.items() if name != "version"}
    typer.echo(as_json(answer) if json else "\n".join(lines_of(shown)))
