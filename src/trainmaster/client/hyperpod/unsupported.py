"""Why fields of a HyperPodPyTorchJob are not honoured, by their paths without indexes."""

from __future__ import annotations

from collections.abc import Mapping

_TEMPLATE = "spec.replicaSpecs.template"
_POD = f"{_TEMPLATE}.spec"
_ONE = "a training job has one container an instance: that of the first replica specification's first container"

OTHERWISE = "a training job has nothing like it"
REASONS: Mapping[str, str] = {
    "status": "the cluster writes it",
    "metadata.namespace": "the queue has shares: the label kueue.x-k8s.io/queue-name names one",
    "metadata.annotations": "SageMaker has tags only: make them labels",
    "metadata.creationTimestamp": "the cluster writes it",
    "metadata.generation": "the cluster writes it",
    "metadata.managedFields": "the cluster writes it",
    "metadata.resourceVersion": "the cluster writes it",
    "metadata.uid": "the cluster writes it",
    "spec.elasticPolicy": "the queue has no such option",
    "spec.replicaSpecs.spares": "the queue keeps no idle spares: a lost instance is replaced from the pool",
    "spec.replicaSpecs": "the queue has no such option",
    _TEMPLATE: _ONE,
    f"{_TEMPLATE}.metadata": "SageMaker's tags are those of the job: put labels into its own metadata",
    _POD: OTHERWISE,
    f"{_POD}.affinity": "say the type in nodeSelector, or give ResourceConfig.InstanceType in --with",
    f"{_POD}.containers": _ONE,
    f"{_POD}.containers.env.valueFrom": "there are no config maps and secrets: give a value, or read it in the script",
    f"{_POD}.containers.envFrom": "there are no config maps and secrets: give values, or read them in the script",
    f"{_POD}.containers.resources": "a training job has its instances to itself, with all that they have",
    f"{_POD}.containers.volumeMounts": "give InputDataConfig in --with: channels are under /opt/ml/input/data",
    f"{_POD}.initContainers": _ONE,
    f"{_POD}.nodeSelector": "of nodes a training job chooses the instance type only",
    f"{_POD}.priorityClassName": "classes are names, and the queue's priorities numbers: give --priority",
    f"{_POD}.serviceAccountName": "the job's permissions are those of RoleArn",
    f"{_POD}.tolerations": "a training job's instances are its own",
    f"{_POD}.volumes": "give InputDataConfig in --with, for S3, EFS and FSx",
    "spec.runPolicy": "the queue has no such option",
    "spec.runPolicy.cleanPodPolicy": "instances are given back when a training job ends; logs stay in CloudWatch",
    "spec.runPolicy.faultDeadlineSeconds": "a start that meets no capacity is tried again: see --option retry-capacity",
    "spec.runPolicy.jobMaxRetryCount": "only elastic jobs count restarts: see --option retry-algorithm",
    "spec.runPolicy.logMonitoringConfiguration": "the queue reads no logs: let the script end when it hangs",
    "spec.runPolicy.restartPolicy.maxNumRepeatOffendersToAvoid": "SageMaker replaces faulty instances by itself",
    "spec.runPolicy.startupDeadlineSeconds": "see StoppingCondition.MaxPendingTimeInSeconds, for --with",
    "spec.runPolicy.suspend": "submit it, then `trainmaster hold`",
    "spec.runPolicy.ttlSecondsAfterFinished": "an ended job takes nothing",
}
