"""HyperPod's manifests: the request that comes of one, and that every field of it is honored or named."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import examples
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.client.api.errors import Refused
from trainmaster.client.hyperpod.kinds import is_manifest
from trainmaster.client.hyperpod.manifest import ConvertedManifest, convert_manifest, merge_requests
from trainmaster.client.hyperpod.yaml_reader import parse_documents
from trainmaster.domain.requests.option_rules import option_problems
from trainmaster.domain.requests.tags import options_of
from trainmaster.domain.requests.training_job import meaning_problems

BASE = {
    "RoleArn": "arn:aws:iam::111122223333:role/training",
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
}
COMMAND = ["python", "train.py"]
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/train:1"
EVERY_FIELD = f"""
apiVersion: sagemaker.amazonaws.com/v1
kind: HyperPodPyTorchJob
metadata:
  name: llama
  namespace: team-a
  labels:
    kueue.x-k8s.io/queue-name: vision
    kueue.x-k8s.io/priority-class: high
    priority: high
    project: apollo
  annotations: {{a: b}}
spec:
  nprocPerNode: 8
  elasticPolicy:
    minReplicas: 2
    maxReplicas: 8
    replicaIncrementStep: 2
    scalingTimeoutInSeconds: 61
    gracefulShutdownTimeoutInSeconds: 62
    faultyScaleDownTimeoutInSeconds: 63
  runPolicy:
    activeDeadlineSeconds: 7200
    cleanPodPolicy: OnlyComplete
    faultDeadlineSeconds: 60
    jobMaxRetryCount: 50
    logMonitoringConfiguration: [{{name: hang, logPattern: ".*step.*", expectedRecurringFrequencyInSeconds: 60}}]
    startupDeadlineSeconds: 900
    suspend: false
    ttlSecondsAfterFinished: 0
    workloadMode: managed
    restartPolicy:
      evalPeriodSeconds: 21600
      maxFullJobRestarts: 2
      numRestartBeforeFullJobRestart: 3
      maxNumRepeatOffendersToAvoid: 1
      scaleUpSnoozeTimeInSeconds: 600
  replicaSpecs:
  - name: pods
    replicas: 4
    maxReplicas: 8
    spares: 1
    template:
      metadata: {{labels: {{x: y}}}}
      spec:
        nodeSelector: {{node.kubernetes.io/instance-type: ml.p5.48xlarge, zone: a}}
        serviceAccountName: trainer
        priorityClassName: high
        tolerations: [{{operator: Exists}}]
        volumes: [{{name: fsx}}]
        initContainers: [{{name: first}}]
        containers:
        - name: pytorch
          image: {IMAGE}
          command: [python]
          args: [train.py, "--epochs=3"]
          env: [{{name: A, value: "1"}}, {{name: B, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}]
          envFrom: [{{configMapRef: {{name: c}}}}]
          resources: {{limits: {{nvidia.com/gpu: 8, memory: 100Gi}}}}
          volumeMounts: [{{name: fsx, mountPath: /fsx}}]
        - name: sidecar
          image: other
"""
NOT_HONORED = [
    "metadata.namespace",
    "metadata.labels[kueue.x-k8s.io/priority-class]",
    "metadata.labels.priority",
    "metadata.annotations",
    "spec.runPolicy.cleanPodPolicy",
    "spec.runPolicy.faultDeadlineSeconds",
    "spec.runPolicy.logMonitoringConfiguration",
    "spec.runPolicy.startupDeadlineSeconds",
    "spec.runPolicy.ttlSecondsAfterFinished",
    "spec.runPolicy.workloadMode",
    "spec.runPolicy.restartPolicy.maxNumRepeatOffendersToAvoid",
    "spec.replicaSpecs[0].maxReplicas",
    "spec.replicaSpecs[0].spares",
    "spec.replicaSpecs[0].template.metadata",
    "spec.replicaSpecs[0].template.spec.nodeSelector.zone",
    "spec.replicaSpecs[0].template.spec.serviceAccountName",
    "spec.replicaSpecs[0].template.spec.priorityClassName",
    "spec.replicaSpecs[0].template.spec.tolerations",
    "spec.replicaSpecs[0].template.spec.volumes[0]",
    "spec.replicaSpecs[0].template.spec.initContainers",
    "spec.replicaSpecs[0].template.spec.containers[0].envFrom[0]",
    "spec.replicaSpecs[0].template.spec.containers[0].resources",
    "spec.replicaSpecs[0].template.spec.containers[0].volumeMounts[0]",
    "spec.replicaSpecs[0].template.spec.containers[1]",
]


def manifest(**spec: Any) -> dict[str, Any]:
    """A small one; `spec` replaces members of its spec."""
    pod = {
        "containers": [{"image": IMAGE, "command": COMMAND}],
        "nodeSelector": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"},
    }
    plain = {"replicaSpecs": [{"replicas": 2, "template": {"spec": pod}}]}
    return {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": {"name": "llama"},
        "spec": plain | spec,
    }


def with_container(**members: Any) -> dict[str, Any]:
    job = manifest()
    job["spec"]["replicaSpecs"][0]["template"]["spec"] = {
        "containers": [{"image": IMAGE, "command": COMMAND} | members]
    }
    return job


def tags(made: ConvertedManifest) -> dict[str, str]:
    return {tag["Key"].removeprefix("trainmaster:"): tag["Value"] for tag in made.request["Tags"]}


def named(made: ConvertedManifest) -> dict[str, str]:
    return {each.field: each.why for each in made.not_honored}


def every_field() -> dict[str, Any]:
    (found,) = parse_documents(EVERY_FIELD)
    assert isinstance(found, dict)
    return found


class TestEveryField:
    def test_becomes_a_request_that_the_queue_takes(self):
        made = convert_manifest(every_field(), BASE)
        assert made.request == BASE | {
            "TrainingJobName": "llama",
            "AlgorithmSpecification": {
                "TrainingImage": IMAGE,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": ["/bin/sh", "/opt/ml/input/data/trainmaster-command/run.sh"],
            },
            "InputDataConfig": made.request["InputDataConfig"],
            "Environment": {"A": "1", "PET_NPROC_PER_NODE": "8"},
            "StoppingCondition": {"MaxRuntimeInSeconds": 7200},
            "ResourceConfig": {"InstanceCount": 4, "InstanceType": "ml.p5.48xlarge"},
            "Tags": made.request["Tags"],
        }
        assert tags(made) == {
            "share": "vision",
            "project": "apollo",
            "min-instances": "2",
            "max-instances": "8",
            "instance-step": "2",
            "scaling-timeout": "61",
            "graceful-shutdown-timeout": "62",
            "faulty-scale-down-timeout": "63",
            "max-total-restarts": "50",
            "scale-up-snooze": "600",
            "restarts-before-full": "3",
            "eval-period": "21600",
            "max-full-restarts": "2",
        }
        assert [*problems(made.request), *meaning_problems(made.request)] == []
        assert [*option_problems(made.request, options_of(made.request))] == []

    def test_that_is_not_honored_is_named_with_a_reason(self):
        found = named(convert_manifest(every_field(), BASE))
        assert sorted(found) == sorted(NOT_HONORED)
        assert all(found.values())


Path = tuple[str | int, ...]
WITHOUT_EFFECT = ("apiVersion", "kind", "name", "suspend", "spares")
"""Last words of paths that are honored by doing nothing."""
REQUIRED = ("apiVersion", "kind", "image")


def leaves(value: Any, path: Path = ()) -> list[Path]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for key, each in items for leaf in leaves(each, (*path, key))]
    return found or ([path] if value not in ({}, [], None) else [])


def shown(path: Path) -> str:
    plain = [f".{key}" if isinstance(key, str) and "/" not in key else f"[{key}]" for key in path]
    return "".join(plain).removeprefix(".")


def changed(job: dict[str, Any], path: Path) -> dict[str, Any]:
    """The manifest with another value there."""
    copy = deepcopy(job)
    inside: Any = copy
    for key in path[:-1]:
        inside = inside[key]
    before = inside[path[-1]]
    other = {"memory": "7Gi", "node.kubernetes.io/instance-type": "ml.g5.xlarge"}.get(str(path[-1]), "other")
    inside[path[-1]] = not before if isinstance(before, bool) else before + 1 if isinstance(before, int) else other
    return copy


def without(job: dict[str, Any], gone: list[Path]) -> dict[str, Any]:
    copy = deepcopy(job)
    for path in gone:
        inside: Any = copy
        for key in path[:-1]:
            inside = inside[key]
        if isinstance(inside, dict):
            inside.pop(path[-1], None)
    return copy


def converted_or_refused(job: dict[str, Any]) -> ConvertedManifest | str:
    try:
        return convert_manifest(job, BASE)
    except Refused as refused:
        return refused.message


@examples(40, deadline=None)
@given(st.lists(st.sampled_from(leaves(every_field())), unique=True), st.booleans())
def test_each_field_has_an_effect_or_is_named(gone, by_values):
    job = without(every_field(), [path for path in gone if path[-1] not in REQUIRED])
    if by_values:
        job["spec"]["elasticPolicy"]["replicaDiscreteValues"] = [2, 4, 8]
    made = convert_manifest(job, BASE)
    for path in leaves(job):
        text = shown(path)
        if any(text == field or text.startswith((f"{field}.", f"{field}[")) for field in named(made)):
            continue
        if path[-1] not in WITHOUT_EFFECT or path == ("metadata", "name"):
            # Where another value is honored otherwise, that shows in what is named.
            assert converted_or_refused(changed(job, path)) != made, text


class TestSizes:
    def test_without_a_most_or_values_the_job_is_not_elastic_and_says_so(self):
        run = {"jobMaxRetryCount": 3, "restartPolicy": {"evalPeriodSeconds": 3600}}
        made = convert_manifest(manifest(elasticPolicy={"minReplicas": 1}, runPolicy=run), BASE)
        assert tags(made) == {}
        assert "not elastic" in named(made)["spec.elasticPolicy.minReplicas"]
        assert "not elastic" in named(made)["spec.runPolicy.restartPolicy"]
        assert "only elastic jobs" in named(made)["spec.runPolicy.jobMaxRetryCount"]

    def test_base_and_elastic_parts_are_added_up(self):
        job = manifest()
        (base,) = job["spec"]["replicaSpecs"]
        job["spec"]["replicaSpecs"].append(
            {"name": "elastic", "replicas": 0, "maxReplicas": 6, "template": {"spec": {}}}
        )
        made = convert_manifest(job, BASE)
        assert tags(made) == {"min-instances": "2", "max-instances": "8"}
        assert base["replicas"] == made.request["ResourceConfig"]["InstanceCount"] == 2
        assert named(made) == {}
        job["spec"]["replicaSpecs"][1]["template"] = deepcopy(base["template"])
        assert named(convert_manifest(job, BASE)) == {}
        job["spec"]["replicaSpecs"][1]["template"]["spec"]["nodeSelector"] = {}
        assert named(convert_manifest(job, BASE)) == {}
        job["spec"]["replicaSpecs"][1]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
        found = named(convert_manifest(job, BASE))
        assert found == {"spec.replicaSpecs[1].template.spec.containers[0].env": "all instances are as the first pods"}
        job["spec"]["replicaSpecs"][1]["template"]["spec"]["containers"][0]["command"] = ["sleep"]
        with pytest.raises(Refused, match="differs from that of the first pods"):
            convert_manifest(job, BASE)

    def test_hyperpods_own_values_need_not_have_the_bounds_in_them(self):
        policy = {"minReplicas": 1, "maxReplicas": 9, "replicaDiscreteValues": [4, 8]}
        made = convert_manifest(manifest(elasticPolicy=policy), BASE)
        assert tags(made) == {"instance-values": "4+8"}
        assert made.request["ResourceConfig"]["InstanceCount"] == 4
        assert sorted(named(made)) == [
            "spec.elasticPolicy.maxReplicas",
            "spec.elasticPolicy.minReplicas",
            "spec.replicaSpecs[0].replicas",
        ]
        assert [*option_problems(made.request, options_of(made.request))] == []

    def test_discrete_values_in_any_order_are_told_by_their_least_and_largest(self):
        policy = {"minReplicas": 1, "maxReplicas": 9, "replicaDiscreteValues": [8, 4]}
        made = convert_manifest(manifest(elasticPolicy=policy), BASE)
        assert made.request["ResourceConfig"]["InstanceCount"] == 4
        assert named(made)["spec.elasticPolicy.minReplicas"].endswith("the smallest is 4")
        assert named(made)["spec.elasticPolicy.maxReplicas"].endswith("the largest is 8")
        # That the list is not in order, the queue says: it may be a mistake.
        assert tags(made) == {"instance-values": "8+4"}

    def test_hyperpods_command_line_gives_a_period_that_counts_nothing(self):
        run = {"restartPolicy": {"evalPeriodSeconds": 3600, "scaleUpSnoozeTimeInSeconds": 60}}
        made = convert_manifest(manifest(elasticPolicy={"maxReplicas": 4}, runPolicy=run), BASE)
        assert tags(made) == {"min-instances": "2", "max-instances": "4", "scale-up-snooze": "60"}
        assert list(named(made)) == ["spec.runPolicy.restartPolicy.evalPeriodSeconds"]
        assert [*option_problems(made.request, options_of(made.request))] == []

    @pytest.mark.parametrize("value", [-1, "2", True, 1.5, []])
    def test_numbers_are_whole_and_not_negative(self, value):
        with pytest.raises(Refused) as refused:
            convert_manifest(manifest(elasticPolicy={"maxReplicas": value}), BASE)
        assert refused.value.field == "spec.elasticPolicy.maxReplicas"


class TestTheContainer:
    def test_environment_is_text(self):
        with pytest.raises(Refused, match="a string, quoted") as refused:
            convert_manifest(with_container(env=[{"name": "A", "value": 8}]), BASE)
        assert refused.value.field == "spec.replicaSpecs[0].template.spec.containers[0].env[0].value"

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ({"limits": {"nvidia.com/gpu": 8}}, "accelerators=8+accelerator=nvidia"),
            ({"requests": {"cpu": "1500m", "memory": "768Gi"}}, "vcpus=2+memory_gib=768"),
            ({"limits": {"memory": "1G"}, "requests": {"memory": "1"}}, "memory_gib=1"),
            ({"limits": {"aws.amazon.com/neurondevice": "16"}}, "accelerators=16+accelerator=aws"),
            ({"limits": {"memory": "1500Mi"}}, "memory_gib=1.5"),
        ],
    )
    def test_a_job_without_a_type_asks_for_what_its_container_asks(self, asked, expected):
        made = convert_manifest(with_container(resources=asked), BASE)
        assert tags(made) == {"resources": expected}
        assert options_of(made.request).resources is not None
        assert named(made) == {}

    def test_resources_that_instances_lack_are_named(self):
        asked = {"limits": {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}}
        field = "spec.replicaSpecs[0].template.spec.containers[0].resources.limits[vpc.amazonaws.com/efa]"
        assert list(named(convert_manifest(with_container(resources=asked), BASE))) == [field]

    def test_a_type_in_the_second_file_goes_before(self):
        base = BASE | {"ResourceConfig": {"InstanceType": "ml.g5.2xlarge"}}
        made = convert_manifest(with_container(resources={"limits": {"cpu": 8}}), base)
        assert tags(made) == {}
        assert made.request["ResourceConfig"] == {"InstanceCount": 2, "InstanceType": "ml.g5.2xlarge"}

    @pytest.mark.parametrize("amount", ["many", "8Xi", "-1", -1])
    def test_no_quantity_is_refused(self, amount):
        with pytest.raises(Refused) as refused:
            convert_manifest(with_container(resources={"limits": {"cpu": amount}}), BASE)
        assert refused.value.field == "spec.replicaSpecs[0].template.spec.containers[0].resources.limits.cpu"


class TestAround:
    def test_a_request_is_no_manifest(self):
        assert is_manifest(manifest())
        assert not is_manifest({"TrainingJobName": "a"})

    def test_no_replicas_are_refused(self):
        with pytest.raises(Refused) as refused:
            convert_manifest(manifest(replicaSpecs=[]), BASE)
        assert refused.value.field == "spec.replicaSpecs"

    @pytest.mark.parametrize(
        ("base", "lacking"),
        [(None, "RoleArn and OutputDataConfig.S3OutputPath"), ({"RoleArn": "r"}, "OutputDataConfig.S3OutputPath")],
    )
    def test_members_that_manifests_lack_are_required(self, base, lacking):
        with pytest.raises(Refused, match=f"requires {lacking},"):
            convert_manifest(manifest(), base)

    def test_the_second_file_goes_before_member_by_member_and_tag_by_tag(self):
        below = {"A": {"b": 1, "c": 2}, "Tags": [{"Key": "x", "Value": "1"}, {"Key": "y", "Value": "1"}], "L": [1]}
        above = {"A": {"c": 3}, "Tags": [{"Key": "y", "Value": "2"}], "L": [2]}
        tags_ = [{"Key": "x", "Value": "1"}, {"Key": "y", "Value": "2"}]
        assert merge_requests(below, above) == {"A": {"b": 1, "c": 3}, "Tags": tags_, "L": [2]}

    def test_yaml_makes_plain_values_only(self):
        with pytest.raises(ValueError, match="python/object"):
            parse_documents("!!python/object/apply:os.system ['true']")
        assert parse_documents("a: &x {b: 1}\nc:\n  <<: *x\n  d: 2") == [{"a": {"b": 1}, "c": {"b": 1, "d": 2}}]
