"""Reads requests, manifests and other JSON objects from files; sets tags from options. The queue validates requests."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from trainmaster.client.api.errors import Refused
from trainmaster.client.hyperpod.kinds import check_kind, is_manifest, the_job
from trainmaster.client.hyperpod.manifest import ConvertedManifest, convert_manifest
from trainmaster.client.hyperpod.placeholders import check_placeholders, check_text
from trainmaster.client.hyperpod.uploads import upload
from trainmaster.client.hyperpod.yaml_reader import parse_documents
from trainmaster.client.sdk.elastic import ElasticOptions
from trainmaster.client.training_job_manifest import convert_training_job, is_training_job_manifest
from trainmaster.domain.requests.tag_names import OPTION_PREFIX, PRIORITY_TAG

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext

_YAML_LINE = re.compile(r"^[A-Za-z]\w*[ \t]*:|^---|^\{\{|^\{%", re.MULTILINE)
"""The beginning of a line in YAML or a template of it; no line of a JSON request begins like this."""
_MANIFEST_MEMBERS = frozenset({"apiVersion", "kind", "metadata", "spec"})
_HINT = "Use the format of `aws sagemaker create-training-job --generate-cli-skeleton`."
_JOB_HINT = f"{_HINT} A manifest, in YAML or JSON, needs apiVersion and kind."


def read_job(file: str, base: str | None = None, options: Mapping[str, str] | None = None) -> ConvertedManifest:
    """Return the request in a file, or the request of a manifest in it; `-` reads standard input.

    `base` is a file with members that a manifest lacks; `options` are tags of the command line, which decide with the
    manifest whether the job can have several instances. Raises Refused, typer.BadParameter.
    """
    text = _read_text(file, "request", _JOB_HINT)
    documents = _parse_yaml(text, file) if _YAML_LINE.search(text) else [_parse_json(text, file, _JOB_HINT)]
    if not is_manifest(documents[0]):
        if base is not None:
            raise typer.BadParameter(
                f"{_display_name(file)} is a request, not a manifest: put all members into it", param_hint="'--with'"
            )
        return ConvertedManifest(documents[0])
    manifest, companions = the_job(documents)
    members = {} if base is None else read_object(base, "part of a request", _HINT)
    check_kind(manifest)
    check_placeholders(manifest, file, members)
    members = with_tags(members, None, options or {})
    if is_training_job_manifest(manifest):
        return convert_training_job(manifest, members)
    return convert_manifest(manifest, members, companions)


def read_object(file: str, noun: str, hint: str) -> dict[str, Any]:
    """Return the JSON object in a file; `-` reads standard input. Raises Refused."""
    return _parse_json(_read_text(file, noun, hint), file, hint)


def upload_command(cli: CliContext, job: ConvertedManifest) -> None:
    """Upload the files that the job's command needs, if any. Raises Refused."""
    if job.uploads:
        upload(cli.connect_s3(cli.target), job.uploads, job.request)


def conversion_members(job: ConvertedManifest) -> dict[str, Any]:
    """Return the manifest's fields that are not honored and the uploaded files, for `--json`; empty for a request."""
    fields = [{"field": each.field, "why": each.why, "changesResult": each.changes_result} for each in job.not_honored]
    return ({"notHonored": fields} if fields else {}) | ({"uploads": [*job.uploads]} if job.uploads else {})


def conversion_warnings(job: ConvertedManifest, uploads: str = "The command is uploaded to") -> list[str]:
    """Return a warning for each field without which the job can end otherwise, and one for all others."""
    warnings = [f"{each.field} is not honored: {each.why}." for each in job.not_honored if each.changes_result]
    others = [each.field.rpartition("template.spec.")[2] for each in job.not_honored if not each.changes_result]
    if others:
        warnings.append(f"Without effect on the result (reasons with --json): {', '.join(others)}.")
    if job.uploads:
        warnings.append(f"{uploads} {next(iter(job.uploads)).rpartition('/')[0]}/, which RoleArn must be able to read.")
    return warnings


def _parse_json(text: str, file: str, hint: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=reject_constant)
    except ValueError as error:
        wrong = f"not valid JSON: {error}" if text.strip() else "empty"
        raise _invalid(f"{_display_name(file)} is {wrong}", hint) from error
    if not isinstance(value, dict):
        raise _invalid(f"{_display_name(file)} does not contain a JSON object", hint)
    return value


def _parse_yaml(text: str, file: str) -> list[Any]:
    """Return the manifests of a text, or the one request."""
    try:
        documents = parse_documents(text)
        if len(documents) == 1 and isinstance(documents[0], dict) and not documents[0].keys() & _MANIFEST_MEMBERS:
            return [_as_json(documents[0])]
    except ValueError as error:
        check_text(text, file)
        raise _invalid(f"{_display_name(file)} is not valid YAML: {error}", "Correct it there.") from error
    if not documents or not all(map(is_manifest, documents)):
        check_text(text, file)
        raise _invalid(
            f"{_display_name(file)} does not contain a manifest",
            "A manifest, in YAML or JSON, needs apiVersion and kind.",
        )
    return documents


def _as_json(request: dict[Any, Any]) -> Any:
    """Return a request as JSON has it: dates, which JSON does not have, as text. Raises ValueError."""
    try:
        return json.loads(json.dumps(request, default=str), parse_constant=reject_constant)
    except TypeError as error:
        raise ValueError(f"{error}") from error


def option_tags(
    texts: Sequence[str],
    resources: str | None = None,
    instances: int | None = None,
    elastic: ElasticOptions | None = None,
) -> dict[str, str]:
    """Return the tags of options `name=value` and of options with their own flags.

    Raises typer.BadParameter.
    """
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise typer.BadParameter("use NAME=VALUE, for example preemptible=false", param_hint="'--option'")
    named = {"resources": resources, "instances": None if instances is None else str(instances)}
    given = {name.removeprefix(OPTION_PREFIX): value for name, _, value in pairs}
    given |= {name: value for name, value in named.items() if value is not None}
    tags = {OPTION_PREFIX + name: value for name, value in given.items()}
    return tags if elastic is None else tags | elastic.tags


def with_tags(request: Mapping[str, Any], priority: int | None, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the request with the command line's tags, which replace tags of the same keys. Raises Refused."""
    new = dict(options) if priority is None else {PRIORITY_TAG: str(priority), **options}
    if not new:
        return dict(request)
    tags = request.get("Tags", [])
    if not isinstance(tags, list):
        raise Refused("The request's tags are not a list.", type="InvalidRequest", field="Tags", hint=_HINT)
    others = [tag for tag in tags if not (isinstance(tag, dict) and tag.get("Key") in new)]
    return {**request, "Tags": [*others, *({"Key": key, "Value": value} for key, value in new.items())]}


def _read_text(file: str, noun: str, hint: str) -> str:
    """Return the file's text without the byte order mark that some editors write."""
    try:
        content = _read_stdin(noun) if file == "-" else Path(file).read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _invalid(f"{_display_name(file)} is not text in UTF-8", hint) from error
    except OSError as error:
        raise _invalid(f"{_display_name(file)} cannot be read: {error.strerror}", _file_hint(error, noun)) from error
    except ValueError as error:
        raise _invalid(f"{_display_name(file)} is no name of a file", f"Give the file of the {noun}.") from error


def _file_hint(error: OSError, noun: str) -> str:
    """Return what to do about a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return f"Check the path, or give - to read the {noun} from standard input."
    return f"Give a file that you may read, with the {noun}."


def _display_name(file: str) -> str:
    return "Standard input" if file == "-" else file or repr(file)


def reject_constant(text: str) -> float:
    """Raise ValueError for a constant that Python's json reads as a number, but JSON does not have."""
    raise ValueError(f"{text} is not a number in JSON")


def _invalid(message: str, hint: str) -> Refused:
    return Refused(f"{message}.", type="InvalidFile", hint=hint)


def _read_stdin(noun: str) -> bytes:
    """Return standard input; on a terminal, print a prompt first."""
    if sys.stdin.isatty():
        typer.echo(f"Enter the {noun} in JSON, then press Ctrl-D.", err=True)
    return typer.get_binary_stream("stdin").read()
