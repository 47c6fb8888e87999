"""Reads the sizes, timeouts and restarts of a HyperPod job as options of an elastic job."""

from __future__ import annotations

from typing import Any

from trainmaster.client.hyperpod.kinds import HYPERPOD, Layout
from trainmaster.client.hyperpod.yaml_reader import ManifestReader, Path

_POLICY: Path = ("spec", "elasticPolicy")
_RUN: Path = ("spec", "runPolicy")
_RESTARTS: Path = (*_RUN, "restartPolicy")
_TIMEOUTS = {
    "scalingTimeoutInSeconds": "scaling-timeout",
    "gracefulShutdownTimeoutInSeconds": "graceful-shutdown-timeout",
    "faultyScaleDownTimeoutInSeconds": "faulty-scale-down-timeout",
}
_NOT_ELASTIC = "the job is not elastic: it has neither maxReplicas nor replicaDiscreteValues"


def sizes_of(reader: ManifestReader, layout: Layout) -> tuple[dict[str, Any], int]:
    """Return the options for sizes, timeouts and restarts, and the initial instance count."""
    if layout.kind != HYPERPOD:
        return {}, sum(layout.replicas)
    replicas = list(layout.replicas)
    values = _discrete_values(reader)
    maximum = _max_replicas(reader, replicas)
    minimum = reader.take(int, *_POLICY, "minReplicas") if values or maximum else None
    for index in range(len(replicas)):
        reader.take(str, "spec", "replicaSpecs", index, "name")
        reader.accept_default(0, "spec", "replicaSpecs", index, "spares")
    if not values and maximum is None:
        for path in (_POLICY, _RESTARTS):
            reader.note(_NOT_ELASTIC, *path)
        return {}, sum(replicas) or 1
    minimum, maximum, count = _fit_discrete_values(reader, values, minimum, maximum, sum(replicas))
    options = {
        "min-instances": minimum,
        "max-instances": maximum,
        "instance-step": reader.take(int, *_POLICY, "replicaIncrementStep"),
        "instance-values": "+".join(map(str, values)) or None,
        **{option: reader.take(int, *_POLICY, name) for name, option in _TIMEOUTS.items()},
        **_restarts(reader),
    }
    return {name: value for name, value in options.items() if value is not None}, count


def _fit_discrete_values(
    reader: ManifestReader, values: list[int], minimum: int | None, maximum: int | None, replicas: int
) -> tuple[int | None, int | None, int]:
    """Return bounds and count; HyperPod accepts bounds outside the discrete values and uses only the values."""
    if not values:
        minimum = minimum if minimum is not None else replicas or None
        return minimum, maximum, replicas or minimum or 1
    if minimum is not None and minimum < min(values):
        reader.note(f"replicaDiscreteValues sets the sizes; the smallest is {min(values)}", *_POLICY, "minReplicas")
        minimum = None
    if maximum is not None and maximum > max(values):
        reader.note(f"replicaDiscreteValues sets the sizes; the largest is {max(values)}", *_POLICY, "maxReplicas")
        maximum = None
    if replicas not in values and replicas:
        reason = f"replicaDiscreteValues sets the sizes, so the job requests {min(values)}"
        reader.note(reason, "spec", "replicaSpecs", 0, "replicas")
    return minimum, maximum, replicas if replicas in values else min(values)


def _discrete_values(reader: ManifestReader) -> list[int]:
    path = (*_POLICY, "replicaDiscreteValues")
    values = [reader.take(int, *path, index) for index in range(len(reader.items(*path)))]
    return [value for value in values if value is not None]


def _max_replicas(reader: ManifestReader, replicas: list[int]) -> int | None:
    """Return the policy's maximum, else the sum over the replica specs; None if there is none."""
    paths = [("spec", "replicaSpecs", index, "maxReplicas") for index in range(len(replicas))]
    policy = reader.take(int, *_POLICY, "maxReplicas")
    has_bounds = any(reader.peek(*path) is not None for path in paths)
    if policy is not None and has_bounds:
        for path in paths:
            reader.note("elasticPolicy.maxReplicas takes precedence", *path)
    if policy is not None or not has_bounds:
        return policy
    bounds = [reader.take(int, *path) for path in paths]
    return sum(count if bound is None else bound for count, bound in zip(replicas, bounds, strict=True))


def _restarts(reader: ManifestReader) -> dict[str, int | None]:
    """Return the options of the restart budget."""
    threshold = reader.take(int, *_RESTARTS, "numRestartBeforeFullJobRestart")
    options = {
        "max-total-restarts": reader.take(int, *_RUN, "jobMaxRetryCount"),
        "scale-up-snooze": reader.take(int, *_RESTARTS, "scaleUpSnoozeTimeInSeconds"),
        "restarts-before-full": threshold,
    }
    counters = {"evalPeriodSeconds": "eval-period", "maxFullJobRestarts": "max-full-restarts"}
    for name, option in counters.items():
        if threshold is not None:
            options[option] = reader.take(int, *_RESTARTS, name)
        else:
            reader.note("it has no effect without numRestartBeforeFullJobRestart", *_RESTARTS, name)
    return options
