"""Reasons why fields of a manifest are not honored, and whether the job can end differently without them.

Paths have no indexes; `template` stands for the pod template of any kind, `pod` for its specification, `container` for
its first container.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainmaster.client.hyperpod.kinds import Layout
from trainmaster.client.hyperpod.yaml_reader import Path

MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
TOPOLOGY = tuple(f"kueue.x-k8s.io/podset-{kind}-topology" for kind in ("required", "preferred", "unconstrained"))
KNOWN_ANNOTATIONS = frozenset({MIN_PARALLELISM, *TOPOLOGY})
"""Annotations that change how a cluster runs the job."""
_SINGLE_CONTAINER = "a training job has one container per instance: the first container of the first pod template"
_OTHER_PODS = "all instances are as the first pods"
_CLUSTER = "the cluster sets it"
_NO_EQUIVALENT = "a training job has no equivalent"
_PRIORITY = "priority classes are names, but the queue's priorities are numbers: use --priority"
_RETRIES = "the queue has retries of its own: see --option retry-algorithm"
_OWN_INSTANCES = "a training job does not share its instances"

CHANGES_RESULT: Mapping[str, str] = {
    "": _NO_EQUIVALENT,
    "spec": "the queue has no such option",
    "spec.elasticPolicy": "the job keeps its replicas: --min-instances and --max-instances let the queue resize it",
    "spec.replicaSpecs": "the queue has no such option",
    "spec.pytorchReplicaSpecs": "the queue has no such option",
    "spec.runPolicy": "the queue has no such option",
    "spec.runPolicy.logMonitoringConfiguration": "the queue reads no logs: let the script exit if it hangs",
    "spec.runPolicy.jobMaxRetryCount": "only elastic jobs count restarts: see --option retry-algorithm",
    "template": _SINGLE_CONTAINER,
    "pod": _NO_EQUIVALENT,
    "pod.containers": _SINGLE_CONTAINER,
    "pod.initContainers": _SINGLE_CONTAINER,
    "pod.imagePullSecrets": "SageMaker pulls images with RoleArn; for others set TrainingImageConfig in --with",
    "pod.priorityClassName": _PRIORITY,
    "container.env.valueFrom": "the value is not known before the start: set one, or read it in the script",
    "container.envFrom": "the values are not known: set them, or read them in the script",
    "container.volumeMounts": "set InputDataConfig in --with: channels are under /opt/ml/input/data",
    f"metadata.annotations.{MIN_PARALLELISM}": "the job keeps its size: --min-instances lets the queue start fewer",
    "metadata.labels.kueue.x-k8s.io/priority-class": _PRIORITY,
    "metadata.labels.priority": _PRIORITY,
}
"""Reasons for fields without which a job can end otherwise; `""` is for all others."""
NO_RESULT: Mapping[str, str] = {
    "status": _CLUSTER,
    "metadata": "SageMaker has only tags: use labels",
    **{f"metadata.annotations.{key}": "SageMaker places the instances of a training job" for key in TOPOLOGY},
    "metadata.namespace": "the queue has shares instead: set one with the label kueue.x-k8s.io/queue-name",
    "metadata.creationTimestamp": _CLUSTER,
    "metadata.generation": _CLUSTER,
    "metadata.managedFields": _CLUSTER,
    "metadata.resourceVersion": _CLUSTER,
    "metadata.uid": _CLUSTER,
    "template.metadata": "SageMaker tags apply to the job: put labels into its own metadata",
    "spec.replicaSpecs.spares": "the queue has no idle spares: it replaces a lost instance from the pool",
    "spec.replicaSpecs.maxReplicas": "elasticPolicy.maxReplicas takes precedence",
    "spec.runPolicy.cleanPodPolicy": "SageMaker releases instances when a training job ends; logs stay in CloudWatch",
    "spec.runPolicy.faultDeadlineSeconds": "the queue retries starts without capacity: see --option retry-capacity",
    "spec.runPolicy.backoffLimit": _RETRIES,
    "spec.runPolicy.schedulingPolicy": "a training job starts all its instances at the same time",
    "spec.runPolicy.restartPolicy.maxNumRepeatOffendersToAvoid": "SageMaker replaces faulty instances itself",
    "spec.runPolicy.startupDeadlineSeconds": "set StoppingCondition.MaxPendingTimeInSeconds in --with",
    "spec.runPolicy.suspend": "submit the job, then run `trainmaster hold`",
    "spec.runPolicy.ttlSecondsAfterFinished": "an ended job uses no resources",
    "spec.runPolicy.workloadMode": _NO_EQUIVALENT,
    "spec.pytorchReplicaSpecs.restartPolicy": _RETRIES,
    "spec.backoffLimit": _RETRIES,
    "spec.suspend": "submit the job, then run `trainmaster hold`",
    "spec.ttlSecondsAfterFinished": "an ended job uses no resources",
    "spec.failurePolicy": _RETRIES,
    "spec.successPolicy": "a training job ends when its first instance ends",
    "spec.network": "the instances reach each other by the names of SageMaker's hosts",
    "spec.replicatedJobs.template.spec.backoffLimit": _RETRIES,
    "spec.replicatedJobs.template.metadata": "SageMaker has only tags: use labels",
    "pod.affinity": "set the type in nodeSelector, or ResourceConfig.InstanceType in --with",
    "pod.automountServiceAccountToken": "the job has the permissions of RoleArn",
    "pod.dnsPolicy": "the network is that of VpcConfig",
    "pod.dnsConfig": "the network is that of VpcConfig",
    "pod.enableServiceLinks": "there are no services",
    "pod.hostIPC": _OWN_INSTANCES,
    "pod.hostNetwork": "the network is that of VpcConfig",
    "pod.hostPID": _OWN_INSTANCES,
    "pod.hostname": "SageMaker names hosts algo-1, algo-2, ...",
    "pod.subdomain": "SageMaker names hosts algo-1, algo-2, ...",
    "pod.nodeSelector": "a training job selects nodes only by instance type",
    "pod.restartPolicy": _RETRIES,
    "pod.schedulerName": "the queue schedules the job",
    "pod.securityContext": "SageMaker runs the container as its image says",
    "pod.serviceAccount": "the job has the permissions of RoleArn",
    "pod.serviceAccountName": "the job has the permissions of RoleArn",
    "pod.terminationGracePeriodSeconds": "SageMaker gives a container 120 seconds to stop",
    "pod.tolerations": _OWN_INSTANCES,
    "pod.topologySpreadConstraints": _OWN_INSTANCES,
    "pod.volumes": "see its volumeMounts",
    "container.imagePullPolicy": "SageMaker pulls the image for every training job",
    "container.livenessProbe": "SageMaker sends no probes",
    "container.ports": "the containers of a training job reach each other on all ports",
    "container.readinessProbe": "SageMaker sends no probes",
    "container.resources": "a training job uses all resources of its instances",
    "container.securityContext": "SageMaker runs the container as its image says",
    "container.stdin": _NO_EQUIVALENT,
    "container.terminationMessagePath": "write the reason to /opt/ml/output/failure",
    "container.terminationMessagePolicy": "write the reason to /opt/ml/output/failure",
    "container.tty": _NO_EQUIVALENT,
}
"""Reasons for fields without which a job runs the same."""


def reason_for(path: Path, layout: Layout) -> tuple[str, bool]:
    """Return the reason for a field, and whether the job can end differently without it."""
    names = _generic(path, layout)
    for end in range(len(names), -1, -1):
        key = ".".join(names[:end])
        if key in NO_RESULT:
            return NO_RESULT[key], False
        if key in CHANGES_RESULT:
            is_first = path[: len(layout.templates[0])] == layout.templates[0]
            is_other = any(path[: len(other)] == other for other in layout.templates) and not is_first
            return _OTHER_PODS if is_other else CHANGES_RESULT[key], True
    raise AssertionError("the empty path has a reason")


def _generic(path: Path, layout: Layout) -> list[str]:
    """Return the names of a path, with `container`, `pod` or `template` instead of its beginning."""
    for template in layout.templates:
        beginnings = ((*template, "spec", "containers", 0), (*template, "spec"), template)
        for beginning, name in zip(beginnings, ("container", "pod", "template"), strict=True):
            if path[: len(beginning)] == beginning:
                return [name, *_names(path[len(beginning) :])]
    names = _names(path)
    if names[:2] == ["spec", "pytorchReplicaSpecs"] and len(names) > 2:
        del names[2]
    return names


def _names(path: Path) -> list[str]:
    return [str(key) for key in path if not isinstance(key, int)]
