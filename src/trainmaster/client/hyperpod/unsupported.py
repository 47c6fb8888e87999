"""Reasons why fields of a HyperPodPyTorchJob are not honoured, by path without indexes."""

from __future__ import annotations

from collections.abc import Mapping

_TEMPLATE = "spec.replicaSpecs.template"
_POD = f"{_TEMPLATE}.spec"
_SINGLE_CONTAINER = "a training job has one container per instance: the first container of the first replica spec"

DEFAULT_REASON = "a training job has no equivalent"
REASONS: Mapping[str, str] = {
    "status": "the cluster sets it",
    "metadata.namespace": "the queue has shares instead: set one with the label kueue.x-k8s.io/queue-name",
    "metadata.annotations": "SageMaker has only tags: use labels",
    "metadata.creationTimestamp": "the cluster sets it",
    "metadata.generation": "the cluster sets it",
    "metadata.managedFields": "the cluster sets it",
    "metadata.resourceVersion": "the cluster sets it",
    "metadata.uid": "the cluster sets it",
    "spec.elasticPolicy": "the queue has no such option",
    "spec.replicaSpecs.spares": "the queue has no idle spares: it replaces a lost instance from the pool",
    "spec.replicaSpecs": "the queue has no such option",
    _TEMPLATE: _SINGLE_CONTAINER,
    f"{_TEMPLATE}.metadata": "SageMaker tags apply to the job: put labels into its own metadata",
    _POD: DEFAULT_REASON,
    f"{_POD}.affinity": "set the type in nodeSelector, or ResourceConfig.InstanceType in --with",
    f"{_POD}.containers": _SINGLE_CONTAINER,
    f"{_POD}.containers.env.valueFrom": "there are no config maps or secrets: set a value, or read it in the script",
    f"{_POD}.containers.envFrom": "there are no config maps or secrets: set values, or read them in the script",
    f"{_POD}.containers.resources": "a training job uses all resources of its instances",
    f"{_POD}.containers.volumeMounts": "set InputDataConfig in --with: channels are under /opt/ml/input/data",
    f"{_POD}.initContainers": _SINGLE_CONTAINER,
    f"{_POD}.nodeSelector": "a training job selects nodes only by instance type",
    f"{_POD}.priorityClassName": "priority classes are names, but the queue's priorities are numbers: use --priority",
    f"{_POD}.serviceAccountName": "the job has the permissions of RoleArn",
    f"{_POD}.tolerations": "a training job does not share its instances",
    f"{_POD}.volumes": "set InputDataConfig in --with, for S3, EFS and FSx",
    "spec.runPolicy": "the queue has no such option",
    "spec.runPolicy.cleanPodPolicy": "SageMaker releases instances when a training job ends; logs stay in CloudWatch",
    "spec.runPolicy.faultDeadlineSeconds": "the queue retries starts without capacity: see --option retry-capacity",
    "spec.runPolicy.jobMaxRetryCount": "only elastic jobs count restarts: see --option retry-algorithm",
    "spec.runPolicy.logMonitoringConfiguration": "the queue reads no logs: let the script exit if it hangs",
    "spec.runPolicy.restartPolicy.maxNumRepeatOffendersToAvoid": "SageMaker replaces faulty instances itself",
    "spec.runPolicy.startupDeadlineSeconds": "set StoppingCondition.MaxPendingTimeInSeconds in --with",
    "spec.runPolicy.suspend": "submit the job, then run `trainmaster hold`",
    "spec.runPolicy.ttlSecondsAfterFinished": "an ended job uses no resources",
}
