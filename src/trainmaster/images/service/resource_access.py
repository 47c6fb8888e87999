"""Rules on the models, roles, images and outputs that callers may use: the deployment's `ImageAccess`.

The image functions act with permissions of their own, so without a rule every caller may use what the deployment lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.patterns import glob, matches, pattern_problem
from trainmaster.domain.errors import AccessDenied, InvalidRequest
from trainmaster.images.domain.endpoint import key_of
from trainmaster.images.domain.urls import without_secrets

ACCESS_SETTING = "IMAGE_ACCESS"
KINDS = ("model", "role", "image", "output")
_EXAMPLE = "arn:aws:iam::111122223333:role/vision model:ships-* image:s3://scenes/* output:s3://results/vision/*"


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that a request uses.

    Attributes:
        kind: one of `KINDS`.
        name: name of an endpoint, URL, or ARN of a role.
        field: the request's field that names it.
    """

    kind: str
    name: str
    field: str


@dataclass(frozen=True, slots=True)
class ResourceAccess:
    """Patterns of resources by pattern of callers; empty to allow every caller all that the deployment lists."""

    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def check(self, request: Mapping[str, Any], caller: Caller) -> None:
        """Raise `AccessDenied` for the first resource that a rule would have to allow to the caller, and none does.

        Raises `InvalidRequest` for a body that is not a valid request.
        """
        if not self.rules:
            return
        granted = [one for who, patterns in self.rules.items() if matches(caller.principal, (who,)) for one in patterns]
        for resource in resources_of(request):
            text = f"{resource.kind}:{resource.name}"
            if _climbs(resource) or not any(glob(text, pattern) for pattern in granted):
                raise AccessDenied(
                    f"{caller.name} may not use the {resource.kind} {resource.name} through this queue.",
                    field=resource.field,
                    hint="The parameter ImageAccess of the deployment of image jobs names what each caller may use.",
                )


EVERYTHING = ResourceAccess()
"""Allows every caller all that the deployment lists."""


def parse_access(text: str) -> ResourceAccess:
    """Return the rules of a setting: a caller and what it may use, separated by blanks; rules are separated by `;`.

    Raises `InvalidRequest`.
    """
    rules: dict[str, tuple[str, ...]] = {}
    for who, *patterns in filter(None, (rule.split() for rule in text.split(";"))):
        if problem := pattern_problem(who):
            raise InvalidRequest(f"The caller {who} {problem[0]}.", field=ACCESS_SETTING, hint=problem[1])
        for pattern in patterns:
            if pattern.partition(":")[0] not in KINDS:
                wrong = f"{pattern} does not begin with one of {', '.join(f'{kind}:' for kind in KINDS)}"
                raise InvalidRequest(wrong, field=ACCESS_SETTING, hint=f"For example: {_EXAMPLE}")
        rules[who] = (*rules.get(who, ()), *patterns)
    return ResourceAccess(rules)


def resources_of(request: Mapping[str, Any]) -> Iterator[Resource]:
    """Yield what a request uses, as `images/handlers/models.py` reads it; URLs without credentials and signatures.

    The manager checks stored requests, and its bundle has no parser of requests. Raises `InvalidRequest` for a body
    that is not a valid request.
    """
    try:
        names = list(_names(request))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidRequest("The request is not one of an image job.") from error
    for kind, name, where in names:
        if not isinstance(name, str):
            raise InvalidRequest("This must be text.", field=where)
        yield Resource(kind, name, where)


def _names(request: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield the kind, the name and the field of each resource."""
    processor = request["imageProcessor"]
    yield "model", key_of(processor["name"]), "imageProcessor.name"
    if processor.get("assumedRole"):
        yield "role", processor["assumedRole"], "imageProcessor.assumedRole"
    if request.get("imageReadRole"):
        yield "role", request["imageReadRole"], "imageReadRole"
    for number, url in enumerate(request["imageUrls"]):
        yield "image", without_secrets(url), f"imageUrls[{number}]"
    for number, output in enumerate(_outputs(request)):
        to_stream = output["type"] == "Kinesis"
        yield "output", (_stream if to_stream else _folder)(output), f"outputs[{number}]"
        role = "assumedRole" if to_stream else "role"
        if output.get(role):
            yield "role", output[role], f"outputs[{number}].{role}"


def _outputs(request: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the outputs; ModelRunner's older form has one."""
    if outputs := request.get("outputs"):
        return list(outputs)
    if bucket := request.get("outputBucket"):
        return [{"type": "S3", "bucket": bucket, "prefix": request.get("outputPrefix")}]
    return []


def _folder(output: Mapping[str, Any]) -> str:
    bucket, prefix = output["bucket"], (output.get("prefix") or "").strip("/")
    return f"s3://{bucket}/{prefix}/" if prefix else f"s3://{bucket}/"


def _stream(output: Mapping[str, Any]) -> str:
    stream: str = output["stream"]
    return stream if stream.startswith("arn:") else f"kinesis://{stream}"


def _climbs(resource: Resource) -> bool:
    """Return whether a path has parts that an HTTP client may resolve to another path than the pattern has seen."""
    parts = unquote(resource.name).replace("\\", "/").split("/")
    return resource.kind != "role" and not {".", ".."}.isdisjoint(parts)
