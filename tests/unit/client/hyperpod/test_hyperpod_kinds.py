"""Kinds of manifests, their pods and instance types, and templates that have to be filled in first."""

from __future__ import annotations

from typing import Any

import pytest

from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.client.api.errors import Refused
from trainmaster.client.hyperpod.kinds import the_job
from trainmaster.client.hyperpod.manifest import ConvertedManifest, convert_manifest
from trainmaster.client.hyperpod.placeholders import check_placeholders, check_text
from trainmaster.client.hyperpod.yaml_reader import parse_documents
from trainmaster.client.training_job_manifest import convert_training_job

BASE = {
    "RoleArn": "arn:aws:iam::111122223333:role/training",
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
}
POD = {"containers": [{"image": "my/image:1", "command": ["python", "train.py"]}]}


def job_of(kind: str, version: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "llama"} | metadata, "spec": spec}


def hyperpod(pod: dict[str, Any], kind: str = "HyperPodPyTorchJob", version: str = "v1") -> dict[str, Any]:
    specs = [{"replicas": 1, "template": {"spec": POD | pod}}]
    return job_of(kind, f"sagemaker.amazonaws.com/{version}", {"replicaSpecs": specs})


def pytorch(**roles: Any) -> dict[str, Any]:
    specs = {name: {"template": {"spec": POD}} | role for name, role in roles.items()}
    return job_of("PyTorchJob", "kubeflow.org/v1", {"pytorchReplicaSpecs": specs})


def batch(**spec: Any) -> dict[str, Any]:
    return job_of("Job", "batch/v1", {"template": {"spec": POD}} | spec)


def job_set(*jobs: dict[str, Any]) -> dict[str, Any]:
    return job_of("JobSet", "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": list(jobs)})


def replicated(replicas: int = 1, **spec: Any) -> dict[str, Any]:
    return {"name": "w", "replicas": replicas, "template": {"spec": {"template": {"spec": POD}} | spec}}


def count(made: ConvertedManifest) -> int:
    return int(made.request["ResourceConfig"]["InstanceCount"])


def script(made: ConvertedManifest) -> str:
    return next(iter(made.uploads.values()))


class TestKinds:
    @pytest.mark.parametrize("kind", ["HyperPodPyTorchJob", "HyperPodPytorchJob"])
    @pytest.mark.parametrize("version", ["v1", "v1alpha1", "v2"])
    def test_hyperpods_has_two_spellings(self, kind, version):
        made = convert_manifest(hyperpod({}, kind, version), BASE)
        assert made.request["AlgorithmSpecification"]["ContainerEntrypoint"] == ["python", "train.py"]

    @pytest.mark.parametrize(
        ("job", "instances"),
        [
            (pytorch(Worker={"replicas": 3}), 3),
            (pytorch(Master={"replicas": 1}, Worker={"replicas": 3}), 4),
            (pytorch(Master={}, Worker={"replicas": 0}), 1),
            (batch(), 1),
            (batch(parallelism=4, completions=4, completionMode="Indexed"), 4),
            (batch(parallelism=4), 4),
            (job_set(replicated(2, parallelism=2, completions=2)), 4),
            (job_set(replicated()), 1),
        ],
    )
    def test_run_all_their_pods(self, job, instances):
        made = convert_manifest(job, BASE)
        assert count(made) == instances
        assert problems(made.request) == []

    def test_set_the_variables_of_their_operators(self):
        assert "export RANK=$rank" in script(convert_manifest(pytorch(Worker={"replicas": 2}), BASE))
        indexed = batch(parallelism=2, completions=2, completionMode="Indexed")
        assert "export JOB_COMPLETION_INDEX=$rank" in script(convert_manifest(indexed, BASE))
        assert convert_manifest(batch(parallelism=2), BASE).uploads == {}
        one = convert_manifest(pytorch(Worker={"replicas": 1}), BASE)
        assert one.uploads == {}
        assert (
            one.request["Environment"].items() >= {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost"}.items()
        )

    @pytest.mark.parametrize(
        ("job", "words"),
        [
            (job_of("MPIJob", "kubeflow.org/v2beta1", {}), "kind is MPIJob of kubeflow.org/v2beta1: its launcher"),
            (job_of("RayJob", "ray.io/v1", {}), "a training job has no Ray cluster"),
            (job_of("TrainJob", "trainer.kubeflow.org/v1alpha1", {}), "a runtime of the cluster"),
            (job_of("PyTorchJob", "example.com/v1", {}), "kind is PyTorchJob of example.com/v1"),
            (job_of("CronTab", "example.com/v1", {}), "the queue cannot convert it"),
            (pytorch(), "pytorchReplicaSpecs has no replicas"),
            (pytorch(Worker={"replicas": 0}), "pytorchReplicaSpecs has no replicas"),
            (batch(parallelism=2, completions=5), "spec.completions is 5, but parallelism is 2"),
            (batch(completions=5), "spec.completions is 5, but parallelism is 1"),
            (job_set(replicated(), replicated()), "spec.replicatedJobs has 2 entries"),
        ],
    )
    def test_that_one_training_job_cannot_run_are_refused(self, job, words):
        with pytest.raises(Refused) as refused:
            convert_manifest(job, BASE)
        assert words in refused.value.message
        assert refused.value.hint

    def test_run_one_command(self):
        other = {"spec": {"containers": [{"image": "my/image:1", "command": ["python", "other.py"]}]}}
        with pytest.raises(Refused, match="differs from that of the first pods") as refused:
            convert_manifest(pytorch(Master={"replicas": 1}, Worker={"replicas": 1, "template": other}), BASE)
        assert refused.value.field == "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].command"

    def test_have_the_type_and_resources_that_any_of_their_pods_names(self):
        container = POD["containers"][0] | {"resources": {"limits": {"nvidia.com/gpu": 4}}}
        worker = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
        job = pytorch(Master={"replicas": 1}, Worker=worker)
        made = convert_manifest(job, BASE)
        assert made.request["Tags"] == [{"Key": "trainmaster:resources", "Value": "accelerators=4+accelerator=nvidia"}]
        assert made.not_honored == ()
        worker["template"]["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": "ml.g5.12xlarge"}
        assert convert_manifest(job, BASE).request["ResourceConfig"]["InstanceType"] == "ml.g5.12xlarge"

    @pytest.mark.parametrize("job", [batch(completionMode="Indexed"), batch(parallelism=2, completionMode="Indexed")])
    def test_know_their_index_by_its_annotation(self, job):
        path = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        env = [{"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
        job["spec"]["template"] = {"spec": {"containers": [POD["containers"][0] | {"env": env}]}}
        made = convert_manifest(job, BASE)
        assert made.not_honored == ()
        if count(made) == 1:
            assert made.request["Environment"]["INDEX"] == "0"
        else:
            assert 'export INDEX="${JOB_COMPLETION_INDEX}"' in script(made)

    def test_with_accelerators_that_the_queue_does_not_know_say_so(self):
        container = POD["containers"][0] | {"resources": {"limits": {"google.com/tpu": 4, "vpc.amazonaws.com/efa": 1}}}
        (found, other) = convert_manifest(hyperpod({"containers": [container]}), BASE).not_honored
        assert ("google.com/tpu" in found.field, found.changes_result) == (True, True)
        assert ("efa" in other.field, other.changes_result) == (True, False)

    def test_say_first_what_changes_the_result_most(self):
        job = hyperpod({"priorityClassName": "high", "hostNetwork": True, "containers": [
            {"image": "i", "command": ["hyperpodrun", "train.py"], "imagePullPolicy": "Always"}]})  # fmt: skip
        job["metadata"]["labels"] = {"kueue.x-k8s.io/priority-class": "high"}
        fields = [each.field.rpartition("spec.")[2] for each in convert_manifest(job, BASE).not_honored]
        container, *others = fields
        assert container == "containers[0].command[0]"
        assert set(others[:2]) == {"metadata.labels[kueue.x-k8s.io/priority-class]", "priorityClassName"}
        assert others[2:] == ["containers[0].imagePullPolicy", "hostNetwork"]

    def test_keep_their_size_whatever_kubeflows_policy_says(self):
        job = pytorch(Worker={"replicas": 2})
        job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 64}
        made = convert_manifest(job, BASE)
        assert (count(made), made.request["Tags"]) == (2, [])
        assert "--min-instances" in {each.field: each.why for each in made.not_honored}["spec.elasticPolicy"]

    def test_get_the_same_generated_name_every_time(self):
        job = batch()
        job["metadata"] = {"generateName": "llama-"}
        name = convert_manifest(job, BASE).request["TrainingJobName"]
        assert name.startswith("llama-")
        assert name == convert_manifest(job, BASE).request["TrainingJobName"]
        job["spec"]["backoffLimit"] = 3
        assert name != convert_manifest(job, BASE).request["TrainingJobName"]

    def test_need_an_image(self):
        job = hyperpod({"containers": [{"image": "", "command": ["ls"]}]})
        with pytest.raises(Refused, match="image is empty"):
            convert_manifest(job, BASE)
        made = convert_manifest(job, BASE | {"AlgorithmSpecification": {"TrainingImage": "other"}})
        assert made.request["AlgorithmSpecification"]["TrainingImage"] == "other"


def affinity(*expressions: dict[str, Any], preferred: bool = False) -> dict[str, Any]:
    terms = {"matchExpressions": list(expressions)}
    if preferred:
        return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": terms}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [terms]}}


def among(*values: str, key: str = "node.kubernetes.io/instance-type") -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


class TestInstanceTypes:
    @pytest.mark.parametrize(
        "pod",
        [
            {"nodeSelector": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"}},
            {"nodeSelector": {"beta.kubernetes.io/instance-type": "ml.p5.48xlarge"}},
            {"nodeSelector": {"sagemaker.amazonaws.com/instance-type": "ml.p5.48xlarge"}},
            {"nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"}},
            {"nodeSelector": dict.fromkeys(("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
                                           "p5.48xlarge")},
            {"affinity": {"nodeAffinity": affinity(among("ml.p5.48xlarge"))}},
            {"affinity": {"nodeAffinity": affinity(among("p5.48xlarge", key="beta.kubernetes.io/instance-type"))}},
            {"affinity": {"nodeAffinity": affinity(among("x", key="other"), among("ml.p5.48xlarge"))}},
            {"affinity": {"nodeAffinity": affinity(among("ml.p5.48xlarge"), preferred=True)}},
        ],
    )  # fmt: skip
    def test_come_from_selectors_and_affinity(self, pod):
        made = convert_manifest(hyperpod(pod), BASE)
        assert made.request["ResourceConfig"] == {"InstanceCount": 1, "InstanceType": "ml.p5.48xlarge"}
        assert not [each for each in made.not_honored if "instance-type" in each.field or each.changes_result]

    def test_of_which_there_are_several_are_named(self):
        pod = {"affinity": {"nodeAffinity": affinity(among("ml.p5.48xlarge", "ml.p4d.24xlarge"))}}
        made = convert_manifest(hyperpod(pod), BASE)
        assert "InstanceType" not in made.request["ResourceConfig"]
        assert made.not_honored[0].why.startswith("several instance types")
        pod = {"nodeSelector": {"node.kubernetes.io/instance-type": "g5.xlarge",
                                "beta.kubernetes.io/instance-type": "g5.2xlarge"}}  # fmt: skip
        made = convert_manifest(hyperpod(pod), BASE)
        assert made.request["ResourceConfig"]["InstanceType"] == "ml.g5.xlarge"
        assert made.not_honored[0].why == "another label sets the instance type ml.g5.xlarge"

    def test_that_are_none_are_refused(self):
        pod = {"nodeSelector": {"node.kubernetes.io/instance-type": "large"}}
        with pytest.raises(Refused, match="is 'large'"):
            convert_manifest(hyperpod(pod), BASE)

    def test_of_the_base_request_go_before_and_are_named(self):
        pod = {"nodeSelector": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"}}
        made = convert_manifest(hyperpod(pod), BASE | {"ResourceConfig": {"InstanceType": "ml.g5.xlarge"}})
        assert made.request["ResourceConfig"]["InstanceType"] == "ml.g5.xlarge"
        (found,) = made.not_honored
        assert (found.why, found.changes_result) == ("--with sets InstanceType", False)


SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "etcd"}}


class TestFiles:
    def test_have_one_job_among_other_documents(self):
        listed = {"apiVersion": "v1", "kind": "List", "items": [SERVICE, batch()]}
        assert the_job([SERVICE, batch()]) == the_job([listed]) == (batch(), [SERVICE])
        made = convert_manifest(batch(), BASE, [SERVICE])
        assert [(each.field, each.why) for each in made.not_honored] == [
            ("Service etcd", "the queue converts only the job")
        ]

    def test_with_two_jobs_or_none_are_refused(self):
        with pytest.raises(Refused, match="contains 2 jobs: Job llama, JobSet llama"):
            the_job([batch(), job_set(replicated())])
        with pytest.raises(Refused, match="contains 0 jobs"):
            the_job([SERVICE, SERVICE])
        with pytest.raises(Refused, match="kind is Service of v1"):
            the_job([SERVICE])

    def test_give_their_config_maps_to_the_environment(self):
        data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"LR": "0.1"}}
        container = POD["containers"][0] | {
            "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "X_"}],
            "env": [{"name": "RATE", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "LR"}}}],
            "args": ["--lr=$(X_LR)"],
        }
        made = convert_manifest(hyperpod({"containers": [container]}), BASE, [data])
        assert made.request["Environment"].items() >= {"X_LR": "0.1", "RATE": "0.1"}.items()
        assert made.request["AlgorithmSpecification"]["ContainerArguments"] == ["--lr=0.1"]
        assert made.not_honored == ()
        missing = convert_manifest(hyperpod({"containers": [container]}), BASE)
        reasons = [each.why.partition(":")[0] for each in missing.not_honored if each.changes_result]
        assert reasons == ["the ConfigMap is not in the file"] * 2


class TestTemplates:
    @pytest.mark.parametrize(
        "text",
        [
            "metadata:\n  name: {{ .Values.name }}",
            "{{- if .Values.on }}\nkind: Job\n{{- end }}",
            "{{ $config := .Values }}",
            'labels:\n{{- include "chart.labels" . | nindent 4 }}',
            "labels:\n{{- toYaml .Values.labels | nindent 4 }}",
            "{{/* a comment */}}",
        ],
    )
    def test_of_helm_are_recognized(self, text):
        with pytest.raises(Refused, match="is a Helm template") as refused:
            check_text(text, "-")
        assert (
            refused.value.hint == "Render it first: helm template NAME CHART --show-only templates/FILE > rendered.yaml"
        )

    @pytest.mark.parametrize("text", ["replicas: {{ nodes }}", "{% if x %}", "{{workflow.parameters.nodes}}"])
    def test_of_other_programs_are_recognized(self, text):
        with pytest.raises(Refused, match="has a placeholder"):
            check_text(text, "job.yaml")

    def test_of_envsubst_name_all_variables(self):
        job = hyperpod({"containers": [{"image": "${IMAGE}", "command": ["torchrun", "--nnodes=$NODES", "$$(A)"],
                                        "env": [{"name": "T", "value": "${TOKEN}"}]}]})  # fmt: skip
        with pytest.raises(Refused, match="has placeholders: IMAGE, NODES, TOKEN") as refused:
            check_placeholders(job, "job.yaml")
        assert str(refused.value.hint).endswith("envsubst '$IMAGE $NODES $TOKEN' < job.yaml > rendered.yaml")

    def test_in_angle_brackets_are_recognized_unless_the_base_request_sets_the_value(self):
        job = hyperpod({"containers": [{"image": "<account>.dkr.ecr.us-east-1.amazonaws.com/x"}]})
        with pytest.raises(Refused, match="has a placeholder: <account>"):
            check_placeholders(job, "job.yaml")
        check_placeholders(job, "job.yaml", {"AlgorithmSpecification": {"TrainingImage": "i"}})

    @pytest.mark.parametrize(
        "word", ["echo $HOME ${X:-1}", "docker inspect --format '{{.Id}}'", "cat <input >output", "{% raw %}"]
    )
    def test_scripts_have_such_texts_as_well(self, word):
        container = {"image": "i", "command": ["bash", "-c", word], "env": [{"name": "A", "value": word}]}
        check_placeholders(hyperpod({"containers": [container]}), "job.yaml")


def test_documents_that_are_empty_do_not_count():
    assert parse_documents("---\na: 1\n---\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]


class TestKueue:
    """Labels and annotations with which Kueue changes how a job runs."""

    def notes(self, manifest: dict[str, Any], base: dict[str, Any] | None = None) -> dict[str, bool]:
        made = convert_manifest(manifest, BASE | (base or {}))
        return {each.field: each.changes_result for each in made.not_honored if "kueue" in each.field}

    @pytest.mark.parametrize(
        "metadata",
        [
            {"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "600"}},
            {"annotations": {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "600"}},
        ],
    )
    @pytest.mark.parametrize(("own", "limit"), [({}, 600), ({"activeDeadlineSeconds": 60}, 60)])
    def test_the_shortest_time_limit_applies(self, metadata, own, limit):
        manifest = batch(**own)
        manifest["metadata"] |= metadata
        made = convert_manifest(manifest, BASE)
        assert made.request["StoppingCondition"] == {"MaxRuntimeInSeconds": limit}
        assert made.request["Tags"] == []
        assert self.notes(manifest) == {}

    def test_a_limit_of_the_second_file_is_said_to_replace_it(self):
        manifest = batch()
        manifest["metadata"]["labels"] = {"kueue.x-k8s.io/max-exec-time-seconds": "600"}
        base = {"StoppingCondition": {"MaxRuntimeInSeconds": 60}}
        assert self.notes(manifest, base) == {"metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]": False}

    def test_a_limit_is_a_number(self):
        manifest = batch()
        manifest["metadata"]["labels"] = {"kueue.x-k8s.io/max-exec-time-seconds": "1h"}
        with pytest.raises(Refused, match="max-exec-time-seconds"):
            convert_manifest(manifest, BASE)

    def test_annotations_that_change_the_size_come_first_and_the_topology_changes_nothing(self):
        manifest = batch(parallelism=4)
        minimum, topology = "kueue.x-k8s.io/job-min-parallelism", "kueue.x-k8s.io/podset-required-topology"
        manifest["metadata"]["annotations"] = {minimum: "2", topology: "rack", "mine": "x"}
        assert self.notes(manifest) == {
            f"metadata.annotations[{minimum}]": True,
            f"metadata.annotations[{topology}]": False,
        }

    @pytest.mark.parametrize(
        ("kind", "version", "advice"),
        [
            ("AppWrapper", "workload.codeflare.dev/v1beta2", "spec.components"),
            ("Job", "batch.volcano.sh/v1alpha1", "batch/v1"),
            ("JAXJob", "kubeflow.org/v1", "JobSet"),
            ("XGBoostJob", "kubeflow.org/v1", "XGBoost estimator"),
            ("CronJob", "batch/v1", "EventBridge"),
            ("Workflow", "argoproj.io/v1alpha1", "--after"),
        ],
    )
    def test_other_kinds_of_jobs_are_refused_with_advice(self, kind, version, advice):
        with pytest.raises(Refused, match=advice):
            the_job_converted(job_of(kind, version, {}))


def the_job_converted(manifest: dict[str, Any]) -> ConvertedManifest:
    job, companions = the_job([manifest])
    return convert_manifest(job, BASE, companions)


ACK = """
trainingJobName: xgboost
roleARN: arn:aws:iam::111122223333:role/training
algorithmSpecification: {trainingImage: "xgboost:1", trainingInputMode: File}
hyperParameters: {max_depth: "5", Eta: "0.2"}
inputDataConfig:
  - channelName: train
    compressionType: None
    dataSource: {s3DataSource: {s3DataType: S3Prefix, s3URI: "s3://bucket/train"}}
outputDataConfig: {s3OutputPath: "s3://bucket/out", kmsKeyID: key}
resourceConfig: {instanceCount: 1, instanceType: ml.m5.large, volumeSizeInGB: 5}
stoppingCondition: {maxRuntimeInSeconds: 86400}
vpcConfig: {securityGroupIDs: [sg-1], subnets: [subnet-1]}
checkpointConfig:
tags: [{key: team, value: vision}]
"""
OPERATOR = """
region: us-west-2
sageMakerEndpoint: https://vpce-1.sagemaker.us-west-2.vpce.amazonaws.com
roleArn: arn:aws:iam::111122223333:role/training
algorithmSpecification: {trainingImage: "xgboost:1", trainingInputMode: File}
hyperParameters: [{name: max_depth, value: "5"}, {name: Eta, value: "0.2"}]
inputDataConfig:
  - channelName: train
    compressionType: None
    dataSource: {s3DataSource: {s3DataType: S3Prefix, s3Uri: "s3://bucket/train"}}
outputDataConfig: {s3OutputPath: "s3://bucket/out", kmsKeyId: key}
resourceConfig: {instanceCount: 1, instanceType: ml.m5.large, volumeSizeInGB: 5}
stoppingCondition: {maxRuntimeInSeconds: 86400}
vpcConfig: {securityGroupIds: [sg-1], subnets: [subnet-1]}
tags: [{key: team, value: vision}]
"""
REQUEST = {
    "TrainingJobName": "xgboost",
    "RoleArn": "arn:aws:iam::111122223333:role/training",
    "AlgorithmSpecification": {"TrainingImage": "xgboost:1", "TrainingInputMode": "File"},
    "HyperParameters": {"max_depth": "5", "Eta": "0.2"},
    "InputDataConfig": [
        {
            "ChannelName": "train",
            "CompressionType": "None",
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/train"}},
        }
    ],
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out", "KmsKeyId": "key"},
    "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 5},
    "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
    "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
    "Tags": [{"Key": "team", "Value": "vision"}],
}


def training_job(version: str, spec: str) -> dict[str, Any]:
    return job_of("TrainingJob", version, parse_documents(spec)[0], name="xgboost")


class TestTrainingJobs:
    @pytest.mark.parametrize(
        ("version", "spec"),
        [("sagemaker.services.k8s.aws/v1alpha1", ACK), ("sagemaker.aws.amazon.com/v1", OPERATOR)],
    )
    def test_are_requests_in_the_names_of_both_controllers(self, version, spec):
        manifest = training_job(version, spec)
        job, _ = the_job([manifest])
        check_placeholders(job, "job.yaml")
        made = convert_training_job(job, {})
        assert made.request == REQUEST
        assert list(problems(made.request)) == []

    def test_tell_what_the_queue_does_not_take_from_them(self):
        made = convert_training_job(training_job("sagemaker.aws.amazon.com/v1", OPERATOR), {})
        assert [each.field for each in made.not_honored] == ["spec.region", "spec.sageMakerEndpoint"]

    def test_yield_to_a_second_file_and_to_options(self):
        manifest = training_job("sagemaker.services.k8s.aws/v1alpha1", ACK)
        base = {"OutputDataConfig": {"S3OutputPath": "s3://other"}, "Tags": [{"Key": "priority", "Value": "5"}]}
        request = convert_training_job(manifest, base).request
        assert request["OutputDataConfig"] == {"S3OutputPath": "s3://other", "KmsKeyId": "key"}
        assert request["Tags"] == [*REQUEST["Tags"], *base["Tags"]]

    def test_keep_members_that_sagemaker_does_not_have_for_the_queue_to_name_them(self):
        manifest = training_job("sagemaker.services.k8s.aws/v1alpha1", ACK)
        manifest["spec"] |= {"roleRef": "role", "tags": [{"name": "team"}]}
        request = convert_training_job(manifest, {"Tags": [{"Key": "a", "Value": "b"}]}).request
        assert request["roleRef"] == "role"
        assert request["Tags"][0] == {"name": "team"}

    def test_may_have_any_text_in_hyperparameters(self):
        manifest = training_job("sagemaker.services.k8s.aws/v1alpha1", ACK)
        manifest["spec"]["hyperParameters"]["path"] = "$HOME/<name>"
        check_placeholders(manifest, "job.yaml")

    def test_without_a_specification_are_refused(self):
        with pytest.raises(Refused, match="spec is not an object"):
            convert_training_job(job_of("TrainingJob", "sagemaker.aws.amazon.com/v1", None), {})  # type: ignore[arg-type]
