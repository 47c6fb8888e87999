"""Options of elastic jobs, and HyperPod manifests instead of requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli_terminal import Terminal
from fake_api import ROLE, FakeApi, a_request
from trainmaster.cli.common.elastic_options import _HELP
from trainmaster.client.sdk.elastic import TAGS

PLANNED = {"decision": "start", "reason": None, "warnings": [], "wouldPreempt": [], "estimatedStart": None}
BASE = {"RoleArn": ROLE, "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"}}
MANIFEST = """\
apiVersion: sagemaker.amazonaws.com/v1
kind: HyperPodPyTorchJob
metadata:
  name: llama
  namespace: team-a
spec:
  elasticPolicy: {maxReplicas: 4}
  replicaSpecs:
  - replicas: 2
    template:
      spec:
        nodeSelector: {node.kubernetes.io/instance-type: ml.p5.48xlarge}
        containers:
        - image: my/image:1
          command: [python, train.py]
"""
NAMESPACE = "the queue has shares instead: set one with the label kueue.x-k8s.io/queue-name"


@pytest.fixture
def files(tmp_path: Path) -> Any:
    def write(name: str, content: Any) -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def sent(world: FakeApi) -> dict[str, Any]:
    (_, _, request) = world.calls[0]
    return dict(request)


def tags(world: FakeApi) -> dict[str, str]:
    return {tag["Key"].removeprefix("trainmaster:"): tag["Value"] for tag in sent(world)["Tags"]}


def test_there_is_an_option_for_every_tag_of_elastic_jobs() -> None:
    assert {f"trainmaster:{name}" for name in _HELP} == TAGS


@pytest.mark.parametrize("command", ["submit", "plan"])
def test_options_become_tags(world: FakeApi, run: Terminal, files: Any, command: str) -> None:
    world.planned = PLANNED
    numbers = [f"--{name}=3" for name, (metavar, _) in _HELP.items() if metavar == "N"]
    times = [f"--{name}=1h" for name, (metavar, _) in _HELP.items() if metavar == "DURATION"]
    others = ["--instance-values", "2,4,8", "--resize-by", "custom", "--resize-target", "event"]
    path = files("request.json", a_request("job1", Tags=[]))
    assert run(command, path, *numbers, *times, *others).exit_code == 0
    found = tags(world)
    assert {f"trainmaster:{name}" for name in found} == TAGS
    assert (found["instance-values"], found["max-instances"], found["eval-period"]) == ("2+4+8", "3", "1h")
    assert (found["resize-by"], found["resize-target"]) == ("custom", "event")


def test_without_them_a_job_is_not_elastic(world: FakeApi, run: Terminal, files: Any) -> None:
    assert run("submit", files("request.json", a_request("job1", Tags=[]))).exit_code == 0
    assert tags(world) == {}


@pytest.mark.parametrize("option", ["--min-instances=0", "--instance-step=0", "--max-restarts=-1"])
def test_numbers_that_none_can_mean_are_wrong_usage(run: Terminal, files: Any, option: str) -> None:
    assert run("submit", files("request.json", a_request("job1")), option).exit_code == 2


class TestManifests:
    def test_become_requests_and_what_is_not_honored_is_named(self, world: FakeApi, run: Terminal, files: Any) -> None:
        done = run("submit", files("job.yaml", MANIFEST), "--with", files("base.json", BASE), "--min-instances", "1")
        assert done.exit_code == 0
        assert sent(world)["TrainingJobName"] == "llama"
        assert sent(world)["RoleArn"] == ROLE
        assert tags(world) == {"min-instances": "1", "max-instances": "4"}
        assert "Warning: Without effect on the result (reasons with --json): metadata.namespace.\n" in done.stderr
        assert "not honored" not in done.stderr
        assert run.s3.keys() == {"run.sh"}

    @pytest.mark.parametrize("command", [["submit"], ["plan"], ["submit", "--wait"]])
    def test_scripts_get_the_list_too(self, world: FakeApi, run: Terminal, files: Any, command: list[str]) -> None:
        world.planned = PLANNED
        name, *wait = command
        if wait:
            run.meanwhile.append(lambda: world.end("llama"))
        path, base = files("job.yaml", MANIFEST), files("base.json", BASE)
        answer = json.loads(run(name, path, "--with", base, "--json", *wait).stdout)
        assert answer["notHonored"] == [{"field": "metadata.namespace", "why": NAMESPACE, "changesResult": False}]
        assert [uri.rpartition("/")[2] for uri in answer["uploads"]] == ["run.sh"]
        assert bool(run.s3) == (name == "submit")

    def test_of_a_request_there_is_no_such_list(self, run: Terminal, files: Any) -> None:
        answer = json.loads(run("submit", files("request.json", a_request("job1")), "--json").stdout)
        assert "notHonored" not in answer

    def test_come_on_standard_input_and_in_json(self, world: FakeApi, run: Terminal, files: Any) -> None:
        pod = {"spec": {"containers": [{"image": "my/image:1"}]}}
        spec = {"replicaSpecs": [{"replicas": 1, "template": pod}]}
        job = {"apiVersion": "sagemaker.amazonaws.com/v1", "kind": "HyperPodPyTorchJob", "spec": spec}
        base = files("base.json", BASE | {"TrainingJobName": "b"})
        assert run("submit", "-", "--with", base, stdin=json.dumps(job)).exit_code == 0
        assert sent(world)["TrainingJobName"] == "b"

    def test_lack_what_a_training_job_needs(self, world: FakeApi, run: Terminal, files: Any) -> None:
        done = run("submit", files("job.yaml", MANIFEST))
        assert done.exit_code != 0
        assert "requires RoleArn and OutputDataConfig.S3OutputPath" in done.stderr
        assert "--with base.json" in done.stderr
        assert world.calls == []

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (MANIFEST + "    replicas: 3\n    replicas: 4\n", "is not valid YAML"),
            (MANIFEST.replace("kind: HyperPodPyTorchJob", "kind: Pod"), "kind is Pod of"),
            ("kind: [", "is not valid YAML"),
            ("kind: Pod", "does not contain a manifest"),
            (
                f"{MANIFEST}---\n{MANIFEST}",
                "The file contains 2 jobs: HyperPodPyTorchJob llama, HyperPodPyTorchJob llama.",
            ),
            (MANIFEST.replace("  name: llama", "  name: llama\n  name: lama"), "'name' is a duplicate key"),
            (MANIFEST.replace("replicas: 2", "replicas: two"), "spec.replicaSpecs[0].replicas is 'two'"),
        ],
    )
    def test_that_cannot_be_read_are_refused(self, run: Terminal, files: Any, text: str, words: str) -> None:
        done = run("submit", files("job.yaml", text), "--with", files("base.json", BASE))
        assert done.exit_code != 0
        assert words in done.stderr

    def test_alone_have_a_second_file(self, run: Terminal, files: Any) -> None:
        done = run("submit", files("request.json", a_request("job1")), "--with", files("base.json", BASE))
        assert done.exit_code == 2
        assert "is a request, not a manifest" in done.stderr

    def test_become_elastic_by_options(self, world: FakeApi, run: Terminal, files: Any) -> None:
        text = MANIFEST.replace("replicas: 2", "replicas: 1").replace("  elasticPolicy: {maxReplicas: 4}\n", "")
        base = files("base.json", BASE)
        assert run("submit", files("job.yaml", text), "--with", base).exit_code == 0
        assert sent(world)["Environment"]["NNODES"] == "1"
        assert run.s3 == {}
        world.calls.clear()
        job = files("elastic.yaml", text.replace("name: llama", "name: elastic"))
        assert run("submit", job, "--with", base, "--max-instances", "4").exit_code == 0
        assert "Environment" not in sent(world)
        assert run.s3.keys() == {"run.sh"}

    def test_that_cannot_be_uploaded_are_not_submitted(self, world: FakeApi, run: Terminal, files: Any) -> None:
        run.s3_error = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutObject")
        done = run("submit", files("job.yaml", MANIFEST), "--with", files("base.json", BASE))
        assert done.exit_code != 0
        assert "You need s3:PutObject there" in done.stderr
        assert world.calls == []

    def test_are_encrypted_as_the_output_of_the_job_is(self, run: Terminal, files: Any) -> None:
        base = BASE | {"OutputDataConfig": BASE["OutputDataConfig"] | {"KmsKeyId": "alias/mine"}}  # type: ignore[operator]
        assert run("submit", files("job.yaml", MANIFEST), "--with", files("base.json", base)).exit_code == 0
        assert run.s3["run.sh"]["SSEKMSKeyId"] == "alias/mine"

    def test_warnings_that_matter_come_first_one_by_one(self, run: Terminal, files: Any) -> None:
        container = "          imagePullPolicy: Always\n          envFrom: [{secretRef: {name: s}}]\n"
        done = run("submit", files("job.yaml", MANIFEST + container), "--with", files("base.json", BASE))
        first, second, third = [line for line in done.stderr.splitlines() if line.startswith("Warning")][:3]
        assert "containers[0].envFrom[0] is not honored" in first
        assert second.endswith(": containers[0].imagePullPolicy, metadata.namespace.")
        assert third.startswith("Warning: The command is uploaded to s3://bucket/out/trainmaster-command/")

    @pytest.mark.parametrize("folder", ["templates", "."])
    def test_a_helm_template_names_the_command_that_renders_it(
        self, run: Terminal, tmp_path: Path, folder: str
    ) -> None:
        chart = tmp_path / "chart"
        (chart / folder).mkdir(parents=True, exist_ok=True)
        (chart / "Chart.yaml").touch()
        (chart / folder / "job.yaml").write_text(MANIFEST.replace("replicas: 2", "replicas: {{ .Values.nodes }}"))
        done = run("submit", str(chart / folder / "job.yaml"))
        assert done.exit_code != 0
        assert "is a Helm template" in done.stderr
        assert f"helm template NAME {chart} --show-only templates/job.yaml > rendered.yaml" in " ".join(
            done.stderr.split()
        )
