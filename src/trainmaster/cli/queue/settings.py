"""`trainmaster settings`: shows and changes settings, and prints their JSON schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json
from trainmaster.cli.common.request import read_object
from trainmaster.cli.common.subcommands import Subcommands
from trainmaster.cli.output.render import as_json
from trainmaster.cli.queue.setting_paths import (
    changed_lines,
    helpful,
    parse_value,
    remove_value,
    set_value,
    setting_lines,
)
from trainmaster.cli.queue.settings_replay import replay_settings
from trainmaster.client.api.errors import Conflict
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import SettingsInForceView

_MAX_ATTEMPTS = 5
_SUFFIXES = (".json", ".yaml", ".yml", ".txt")
_HINT = "Use the format of `trainmaster settings --json`."
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_COMPONENTS, _DEFINITIONS = "#/components/schemas/", "#/$defs/"

app = typer.Typer(cls=Subcommands, invoke_without_command=True, rich_markup_mode=None, add_completion=False)
app.command("replay")(replay_settings)


@app.callback()
def settings(context: typer.Context, json: Json = False) -> None:
    """Show or change the settings.

    Each line is one setting, in the form that `trainmaster settings set` accepts.
    """
    if context.invoked_subcommand is None:
        with cli_context(context).api() as api:
            _print(api.settings(), json=json)


@app.command("set")
def set_settings(
    context: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|NAME=VALUE...",
            help="A complete document in JSON (- reads standard input), or single settings with JSON values.",
        ),
    ],
    json: Json = False,
) -> None:
    """Replace the settings from a file, or change some of them.

    A file replaces all settings: absent ones take their defaults. If the file has a `version`, it is refused if the
    settings have changed since. Single settings leave the others as they are. If any setting is invalid, nothing
    changes. The output has each setting that has changed, with its value before and after.
    """
    if len(sources) == 1 and "=" not in sources[0] and (sources[0] == "-" or not _is_setting(sources[0])):
        document = read_object(sources[0], "settings", _HINT)
        document.pop("$schema", None)
        with cli_context(context).api() as api:
            before = api.settings()
            with helpful(before, {}):
                _print_changes(before, api.set_settings(document), json=json)
        return
    pairs = [_pair(text) for text in sources]
    with cli_context(context).api() as api:
        _update_settings(
            api, lambda now: reduce(lambda document, pair: set_value(document, *pair), pairs, now), pairs, json=json
        )


@app.command("unset")
def unset(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Settings, or whole sections such as a share.")],
    json: Json = False,
) -> None:
    """Reset settings to their defaults; resetting a share removes it."""
    with cli_context(context).api() as api:
        _update_settings(api, lambda now: reduce(remove_value, names, now), json=json)


@app.command("schema")
def schema(context: typer.Context) -> None:
    """Print the JSON schema of settings files, for validation in editors."""
    with cli_context(context).api() as api:
        typer.echo(as_json(_schema(api.openapi()["components"]["schemas"])))


def _is_setting(text: str) -> bool:
    """Return whether the text can be meant only as a setting: it has no suffix of a file, and there is no such file."""
    path = Path(text)
    return not path.exists() and "/" not in text and path.suffix.lower() not in _SUFFIXES


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise typer.BadParameter(
            f"{text!r} is neither a single file nor NAME=VALUE, such as order=fifo",
            param_hint="'NAME=VALUE'",
        )
    return name, parse_value(value)


def _update_settings(
    api: ApiClient,
    change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    pairs: Sequence[tuple[str, Any]] = (),
    *,
    json: bool,
) -> None:
    """Read, change and replace all settings, again if they changed in between; print what has changed."""
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        now = api.settings()
        try:
            with helpful(now, dict(pairs)):
                changed = api.set_settings(change(now))
        except Conflict:
            if attempt == _MAX_ATTEMPTS:
                raise
        else:
            _print_changes(now, changed, json=json)
            return


def _schema(components: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of settings with all schemas that it refers to."""
    needed: dict[str, Any] = {}
    names = ["Settings"]
    while names:
        name = names.pop()
        if name not in needed:
            needed[name] = _with_definitions(components[name], names)
    return {"$schema": _DIALECT, "$ref": f"{_DEFINITIONS}Settings", "$defs": dict(sorted(needed.items()))}


def _with_definitions(value: Any, names: list[str]) -> Any:
    """Return the schema with references to `$defs`, and add the names it refers to."""
    if isinstance(value, list):
        return [_with_definitions(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    result = {key: _with_definitions(item, names) for key, item in value.items()}
    target = value.get("$ref")
    if isinstance(target, str):
        names.append(target.removeprefix(_COMPONENTS))
        result["$ref"] = _DEFINITIONS + names[-1]
    return result


def _print(answer: SettingsInForceView, *, json: bool) -> None:
    typer.echo(as_json(answer) if json else "\n".join(setting_lines(sanitize(_shown(answer)))))


def _print_changes(before: SettingsInForceView, after: SettingsInForceView, *, json: bool) -> None:
    """Print each setting that has changed, with its value before and after."""
    if json:
        typer.echo(as_json(after))
        return
    changes = changed_lines(sanitize(_shown(before)), sanitize(_shown(after)))
    typer.echo("\n".join(changes) or "Nothing has changed.")


def _shown(settings: SettingsInForceView) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name != "version"}
