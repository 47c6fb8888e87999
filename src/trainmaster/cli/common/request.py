"""Reads a request, a manifest or another object from a file or standard input; sets the tags of options.

It must not check the request's meaning: the queue does, the same for every client.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from trainmaster.client.api.errors import Refused
from trainmaster.client.hyperpod.manifest import ConvertedManifest, convert_manifest, is_manifest
from trainmaster.client.hyperpod.yaml_reader import parse_yaml
from trainmaster.client.sdk.elastic import ElasticOptions
from trainmaster.domain.requests.tag_names import OPTION_PREFIX, PRIORITY_TAG

_IN_YAML = re.compile(r"^(apiVersion|kind)[ \t]*:", re.MULTILINE)
"""What begins a line of a manifest in YAML, and none of a request in JSON."""
_HINT = "Write it as `aws sagemaker create-training-job --generate-cli-skeleton` does."
_JOB_HINT = f"{_HINT} A manifest, also in YAML, needs both apiVersion and kind."


def read_job(file: str, base: str | None = None) -> ConvertedManifest:
    """The request in a file, or that of the manifest in it; on standard input where the file is `-`.

    `base` is a file with what a manifest does not say. Raises Refused, typer.BadParameter.
    """
    text = _text_of(file, "request")
    value = _yaml(text, file) if _IN_YAML.search(text) else _json(text, file, _JOB_HINT)
    if is_manifest(value):
        return convert_manifest(value, None if base is None else read_object(base, "part of a request", _HINT))
    if base is not None:
        raise typer.BadParameter(
            f"{_called(file)} is a request, no manifest: write it all there", param_hint="'--with'"
        )
    return ConvertedManifest(value, ())


def read_object(file: str, what: str, hint: str) -> dict[str, Any]:
    """The JSON object in a file, or on standard input where the file is `-`. Raises Refused."""
    return _json(_text_of(file, what), file, hint)


def not_honoured(job: ConvertedManifest) -> dict[str, Any]:
    """What of a manifest is not honoured, as a member of what `--json` prints; nothing for a request."""
    fields = [{"field": field, "why": why} for field, why in job.not_honoured]
    return {"notHonoured": fields} if fields else {}


def cautions(job: ConvertedManifest) -> list[str]:
    """The same in sentences."""
    return [f"{field} is not honoured: {why}." for field, why in job.not_honoured]


def _json(text: str, file: str, hint: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=no_number)
    except ValueError as error:
        raise _invalid(f"{_called(file)} is not JSON: {error}", hint) from error
    if not isinstance(value, dict):
        raise _invalid(f"{_called(file)} holds no JSON object", hint)
    return value


def _yaml(text: str, file: str) -> dict[str, Any]:
    try:
        value = parse_yaml(text)
    except ValueError as error:
        raise _invalid(f"{_called(file)} is no YAML that can be read: {error}", "Give one manifest a file") from error
    if not isinstance(value, dict) or not is_manifest(value):
        raise _invalid(f"{_called(file)} holds no manifest", "Give its apiVersion and kind")
    return value


def options_of(
    texts: Sequence[str],
    resources: str | None = None,
    instances: int | None = None,
    elastic: ElasticOptions | None = None,
) -> dict[str, str]:
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
    tags = {OPTION_PREFIX + name: value for name, value in given.items()}
    return tags if elastic is None else tags | elastic.tags


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
    except UnicodeDecodeError as error:
        raise _invalid(f"{_called(file)} is not JSON: {error}", _HINT) from error
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
