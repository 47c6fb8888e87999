"""The request policy of a deployment: rules for the requests of all training jobs.

A deployment states it as a JSON object; a rule that it omits allows everything. In patterns, `*` matches any text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from trainmaster.domain.access.patterns import glob
from trainmaster.domain.errors import RequestNotAllowed
from trainmaster.domain.requests.fields import entries, part, shown, text

Object = Mapping[str, object]
Rule = Callable[["RequestPolicy", Object], Iterator[RequestNotAllowed]]
_NOT_OF_SAGEMAKER = ("Environment", "HyperParameters", "Tags")
"""Members whose texts only the user's code reads."""
_HINT = "The deployment's RequestPolicy requires this; its administrators can change it."


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """The rules; each is the member of the JSON object with the same name in camel case.

    Attributes:
        subnets: patterns of subnets; if any, a request needs a VpcConfig, and all its subnets must match.
        security_groups: patterns of security groups; if any, a request needs a VpcConfig, and all of them must match.
        kms_keys: patterns of keys, as requests name them; if any, a request needs a key for its output, and that of its
            volumes must match too, if it has one: instance types with local storage accept none.
        images: patterns of container images; if any, a request needs a TrainingImage, and all its images must match.
        buckets: patterns of the S3 buckets that SageMaker reads and writes for the job.
        required_tags: patterns of the value of each required tag, by its key.
        network_isolation: whether EnableNetworkIsolation must be true.
        traffic_encryption: whether EnableInterContainerTrafficEncryption must be true.
    """

    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    kms_keys: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()
    required_tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    network_isolation: bool = False
    traffic_encryption: bool = False

    @classmethod
    def parse(cls, document: object) -> RequestPolicy:
        """Return the policy that a JSON value states. Raises `ValueError` naming an unknown or wrong member."""
        if not isinstance(document, Mapping):
            raise ValueError("it must be a JSON object")  # noqa: TRY004 - settings report ValueError
        readers = {_camel(each.name): (each.name, _READERS.get(each.name, _patterns)) for each in fields(cls)}
        if unknown := sorted(document.keys() - readers.keys()):
            raise ValueError(f"unknown member {unknown[0]}; known: {', '.join(readers)}")
        read = {readers[name][0]: readers[name][1](name, value) for name, value in document.items()}
        return cls(**read)

    def violations(self, request: Object) -> Iterator[RequestNotAllowed]:
        """Yield an error for each rule that a request breaks. The request is of the right shape."""
        for rule in _RULES:
            yield from rule(self, request)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _patterns(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(each, str) and each for each in value):
        raise ValueError(f"{name} must be a list of patterns, with at least one")
    return tuple(value)


def _switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false")  # noqa: TRY004 - settings report ValueError
    return value


def _tags(name: str, value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be an object: tag keys with lists of patterns")  # noqa: TRY004
    return {key: _patterns(f"{name}.{key}", patterns) for key, patterns in value.items()}


_READERS: Mapping[str, Callable[[str, object], Any]] = {
    "required_tags": _tags,
    "network_isolation": _switch,
    "traffic_encryption": _switch,
}


def _matches(value: str, patterns: Sequence[str]) -> bool:
    return any(glob(value, each) for each in patterns)


def _not_allowed(path: str, value: str, patterns: Sequence[str]) -> RequestNotAllowed:
    allowed = ", ".join(patterns)
    return RequestNotAllowed(f"{path} is {shown(value)}, which this queue does not allow.", field=path,
                             hint=f"Allowed: {allowed}. {_HINT}")  # fmt: skip


def _missing(path: str, wanted: str) -> RequestNotAllowed:
    return RequestNotAllowed(f"This queue requires {wanted}.", field=path, hint=_HINT)


def _vpc(policy: RequestPolicy, request: Object) -> Iterator[RequestNotAllowed]:
    config = part(request, "VpcConfig")
    for key, patterns in (("Subnets", policy.subnets), ("SecurityGroupIds", policy.security_groups)):
        values = config.get(key)
        listed = values if isinstance(values, list | tuple) else ()
        if patterns and not listed:
            yield _missing(f"VpcConfig.{key}", f"a VpcConfig whose {key} match {', '.join(patterns)}")
        for index, value in enumerate(listed if patterns else ()):
            if not _matches(str(value), patterns):
                yield _not_allowed(f"VpcConfig.{key}[{index}]", str(value), patterns)


def _keys(policy: RequestPolicy, request: Object) -> Iterator[RequestNotAllowed]:
    if not policy.kms_keys:
        return
    output = text(part(request, "OutputDataConfig"), "KmsKeyId")
    if not output:
        wanted = f"a KMS key for the output that matches {', '.join(policy.kms_keys)}"
        yield _missing("OutputDataConfig.KmsKeyId", wanted)
    named = {
        "OutputDataConfig.KmsKeyId": output,
        "ResourceConfig.VolumeKmsKeyId": text(part(request, "ResourceConfig"), "VolumeKmsKeyId"),
    }
    for path, key in named.items():
        if key and not _matches(key, policy.kms_keys):
            yield _not_allowed(path, key, policy.kms_keys)


def _images(policy: RequestPolicy, request: Object) -> Iterator[RequestNotAllowed]:
    if not policy.images:
        return
    path = "AlgorithmSpecification.TrainingImage"
    image = text(part(request, "AlgorithmSpecification"), "TrainingImage")
    if not image:
        yield _missing(path, f"a TrainingImage that matches {', '.join(policy.images)}")
    elif not _matches(image, policy.images):
        yield _not_allowed(path, image, policy.images)
    for member in ("DebugRuleConfigurations", "ProfilerRuleConfigurations"):
        for index, rule in enumerate(entries(request, member)):
            image = text(rule, "RuleEvaluatorImage") or ""
            if not _matches(image, policy.images):
                yield _not_allowed(f"{member}[{index}].RuleEvaluatorImage", image, policy.images)


def _buckets(policy: RequestPolicy, request: Object) -> Iterator[RequestNotAllowed]:
    if not policy.buckets:
        return
    for path, value in _texts({key: each for key, each in request.items() if key not in _NOT_OF_SAGEMAKER}):
        if _is_place(path, value) and not _matches(_bucket(value), policy.buckets):
            yield _not_allowed(path, value, policy.buckets)


def _is_place(path: str, value: str) -> bool:
    """Return whether a text is the address of S3 objects; SageMaker also accepts addresses that begin with https."""
    return value.startswith("s3://") or path.rpartition(".")[2] in ("S3Uri", "S3OutputPath")


def _bucket(address: str) -> str:
    """Return the bucket of an `s3://` address; any other address as it is, which no pattern of a bucket matches."""
    scheme, _, rest = address.partition("://")
    return rest.partition("/")[0] if scheme == "s3" else address


def _texts(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in a JSON value with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _texts(each, f"{path}[{index}]")


def _required_tags(policy: RequestPolicy, request: Object) -> Iterator[RequestNotAllowed]:
    tags = {text(tag, "Key"): (f"Tags[{index}].Value", text(tag, "Value") or "")
            for index, tag in enumerate(entries(request, "Tags"))}  # fmt: skip
    for key, patterns in policy.required_tags.items():
        if key not in tags:
            yield _missing("Tags", f"the tag {key} with a value that matches {', '.join(patterns)}")
        elif not _matches(tags[key][1], patterns):
            yield _not_allowed(*tags[key], patterns)


def _switches(policy: RequestPolicy, request: Object) -> Iterator[RequestNotAllowed]:
    required = {
        "EnableNetworkIsolation": policy.network_isolation,
        "EnableInterContainerTrafficEncryption": policy.traffic_encryption,
    }
    for path, wanted in required.items():
        if wanted and request.get(path) is not True:
            yield _missing(path, f"{path}=true")


_RULES: tuple[Rule, ...] = (_vpc, _keys, _images, _buckets, _required_tags, _switches)
