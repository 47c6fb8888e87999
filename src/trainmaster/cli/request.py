"""Reads a CreateTrainingJob request, or another object, from a file or standard input; sets the tags of options.

It must not check the request's meaning: the queue does, the same for every client.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from trainmaster.client.errors import Refused

PRIORITY_TAG = "priority"
OPTION_PREFIX = "trainmaster:"
_HINT = "Write it as `aws sagemaker create-training-job --generate-cli-skeleton` does."


def read_request(file: str) -> dict[str, Any]:
    """The request in a file, or on standard input where the file is `-`. Raises Refused."""
    return read_object(file, "request", _HINT)


def read_object(file: str, what: str, hint: str) -> dict[str, Any]:
    """The JSON object in a file, or on standard input where the file is `-`. Raises Refused."""
    try:
        value = json.loads(_text_of(file, what), parse_constant=no_number)
    except ValueError as error:
        raise _invalid(f"{_called(file)} is not JSON: {error}", hint) from error
    if not isinstance(value, dict):
        raise _invalid(f"{_called(file)} holds no JSON object", hint)
    return value


def options_of(texts: Sequence[str], resources: str | None = None, instances: int | None = None) -> dict[str, str]:
    """The options `name=value` as tags, and with them those that have an option of their own.

    Raises typer.BadParameter.
    """
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise typer.BadParameter("write NAME=VALUE, for example preemptible=false", param_hint="'--option'")
    own = {"resources": resources, "instances": None if instances is None else str(instances)}
    given = {name.removeprefix(OPTION_PREFIX): value for name, _, value in pairs}
    given |= {name: value for name, value in own.items() if value is not None}
    return {OPTION_PREFIX + name: value for name, value in given.items()}


def with_tags(request: Mapping[str, Any], priority: int | None, options: Mapping[str, str]) -> dict[str, Any]:
    """The request with the tags of the command line, which replace those of the same keys. Raises Refused."""
    new = dict(options) if priority is None else {PRIORITY_TAG: str(priority), **options}
    if not new:
        return dict(request)
    tags = request.get("Tags", [])
    if not isinstance(tags, list):
        raise Refused("The request's tags are no list.", type="InvalidRequest", field="Tags", hint=_HINT)
    kept = [tag for tag in tags if not (isinstance(tag, dict) and tag.get("Key") in new)]
    return {**request, "Tags": [*kept, *({"Key": key, "Value": value} for key, value in new.items())]}


def _text_of(file: str, what: str) -> str:
    """The file's text, with or without the byte order mark that some editors write."""
    try:
        content = _awaited(what) if file == "-" else Path(file).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise Refused(f"{_called(file)} cannot be read: {error.strerror}.", type="InvalidFile") from error


def _called(file: str) -> str:
    return "Standard input" if file == "-" else file


def no_number(text: str) -> float:
    """For what Python reads as a number and JSON does not have. Raises ValueError."""
    raise ValueError(f"{text} is not a number in JSON")


def _invalid(message: str, hint: str) -> Refused:
    return Refused(f"{message}.", type="InvalidFile", hint=hint)


def _awaited(what: str) -> bytes:
    """What comes on standard input; a person at a terminal is told that it is awaited."""
    if sys.stdin.isatty():
        typer.echo(f"Type the {what} in JSON, then Ctrl-D.", err=True)
    return typer.get_binary_stream("stdin").read()
