"""Commands of manifests: in the request at the limits of SageMaker, otherwise in a script, which really runs here."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import examples
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.client.api.errors import Refused
from trainmaster.client.hyperpod.command import MAX_VARIABLE_LENGTH, MAX_VARIABLES, MAX_WORD_LENGTH, MAX_WORDS
from trainmaster.client.hyperpod.expansion import expand, runtime, shell_word
from trainmaster.client.hyperpod.launch_script import CHANNEL, ENTRY_POINT
from trainmaster.client.hyperpod.manifest import ConvertedManifest, convert_manifest

BASE = {
    "RoleArn": "arn:aws:iam::111122223333:role/training",
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
}
CONTAINER = "spec.replicaSpecs[0].template.spec.containers[0]"
SHOW = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]))"


def convert(
    container: dict[str, Any],
    base: dict[str, Any] | None = None,
    replicas: int = 1,
    volumes: list[Any] | None = None,
    companions: tuple[Any, ...] = (),
) -> ConvertedManifest:
    pod = {
        "nodeSelector": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"},
        "containers": [{"image": "my/image:1"} | container],
        "volumes": volumes or [],
    }
    job = {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": {"name": "llama", "namespace": "team-a"},
        "spec": {"replicaSpecs": [{"name": "pods", "replicas": replicas, "template": {"spec": pod}}]},
    }
    return convert_manifest(job, BASE | (base or {}), companions)


def algorithm(made: ConvertedManifest) -> dict[str, Any]:
    return dict(made.request["AlgorithmSpecification"])


def started(
    made: ConvertedManifest, home: Path, hosts: tuple[str, ...] = ("algo-1",), host: str = "algo-1", path: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the launch script as the container does, with `home` in the place of /opt/ml."""
    channel = home / "input/data" / CHANNEL
    channel.mkdir(parents=True)
    for uri, text in made.uploads.items():
        (channel / uri.rpartition("/")[2]).write_text(text)
    groups = [{"instance_group_name": "g", "instance_type": "ml.p5.48xlarge", "hosts": hosts}]
    config = {"current_host": host, "hosts": hosts, "instance_groups": groups, "network_interface_name": "eth0"}
    (home / "input/config").mkdir()
    (home / "input/config/resourceconfig.json").write_text(json.dumps(config))
    environment = {"PATH": f"{path}:{os.environ['PATH']}", "TRAINING_JOB_NAME": "llama"}
    command = ["/bin/sh", str(channel / "run.sh")]
    return subprocess.run(
        command, env=environment | made.request.get("Environment", {}), capture_output=True, text=True, check=False
    )


def shown(done: subprocess.CompletedProcess[str]) -> tuple[list[str], dict[str, str], str]:
    assert done.returncode == 0, done.stderr
    words, environment, directory = json.loads(done.stdout)
    return words, environment, directory


class TestLimits:
    @pytest.mark.parametrize(
        ("command", "args"),
        [
            (["python", "x" * MAX_WORD_LENGTH], []),
            (["python"], ["x" * MAX_WORD_LENGTH]),
            (["python"] * MAX_WORDS, ["x"] * MAX_WORDS),
            (["python", ""], ["", "ü€😀"]),
        ],
    )
    def test_what_sagemaker_takes_is_in_the_request(self, command, args):
        made = convert({"command": command, "args": args})
        assert algorithm(made)["ContainerEntrypoint"] == command
        assert algorithm(made).get("ContainerArguments", []) == args
        assert made.uploads == {}
        assert problems(made.request) == []

    @pytest.mark.parametrize(
        ("command", "args"),
        [
            (["python", "x" * (MAX_WORD_LENGTH + 1)], []),
            (["python"], ["x" * (MAX_WORD_LENGTH + 1)]),
            (["python"] * (MAX_WORDS + 1), []),
            (["python"], ["x"] * (MAX_WORDS + 1)),
            (["python"], ["a\nb"]),
            (["bash", "-c", "echo " + "x" * 100_000], []),
        ],
    )
    def test_what_it_does_not_take_is_uploaded(self, command, args):
        made = convert({"command": command, "args": args})
        assert algorithm(made)["ContainerEntrypoint"] == list(ENTRY_POINT)
        assert "ContainerArguments" not in algorithm(made)
        (channel,) = made.request["InputDataConfig"]
        prefix = channel["DataSource"]["S3DataSource"]["S3Uri"]
        assert prefix.startswith(f"s3://bucket/out/{CHANNEL}/")
        assert set(made.uploads) == {f"{prefix}run.sh"}
        assert problems(made.request) == []
        assert problems({**made.request, "AlgorithmSpecification": algorithm(made) | {
            "ContainerEntrypoint": command, "ContainerArguments": args or ["x"]}}) != []  # fmt: skip

    def test_the_same_manifest_gives_the_same_request(self):
        one, two, other = (convert({"command": ["sh", "-c", f"\n{text}"]}) for text in "aab")
        assert one == two
        assert set(one.uploads).isdisjoint(other.uploads)

    def test_channels_of_the_base_request_stay(self):
        channel = {"ChannelName": "train", "DataSource": {"S3DataSource": {"S3Uri": "s3://b/x"}}}
        made = convert({"command": ["sh", "-c", "\n"]}, {"InputDataConfig": [channel]})
        assert [each["ChannelName"] for each in made.request["InputDataConfig"]] == ["train", CHANNEL]

    def test_only_args_of_an_image_cannot_be_uploaded(self):
        with pytest.raises(Refused, match="Set `command` too") as refused:
            convert({"args": ["a\nb"]})
        assert refused.value.field == f"{CONTAINER}.args"

    @pytest.mark.parametrize(
        ("variables", "inside"),
        [
            ({"A": "x" * MAX_VARIABLE_LENGTH}, True),
            ({"A": "x" * (MAX_VARIABLE_LENGTH + 1)}, False),
            ({f"V{number}": "1" for number in range(MAX_VARIABLES)}, True),
            ({f"V{number}": "1" for number in range(MAX_VARIABLES + 1)}, False),
            ({"with.dot": "1"}, False),
        ],
    )
    def test_variables_that_a_request_cannot_contain_are_set_by_the_script(self, tmp_path, variables, inside):
        env = [{"name": name, "value": value} for name, value in variables.items()]
        made = convert({"command": ["python3", "-c", SHOW], "env": env})
        assert (variables.items() <= made.request["Environment"].items()) == inside
        assert problems(made.request) == []
        if not inside:
            assert variables.items() <= shown(started(made, tmp_path))[1].items()


class TestTwoCommands:
    def test_are_refused(self):
        base = {"AlgorithmSpecification": {"ContainerEntrypoint": ["python", "other.py"]}}
        with pytest.raises(Refused, match="are both set, and only one can run") as refused:
            convert({"command": ["python", "train.py"]}, base)
        assert refused.value.field == f"{CONTAINER}.command"
        base = {"AlgorithmSpecification": {"ContainerArguments": ["x"]}}
        with pytest.raises(Refused, match="are both set") as refused:
            convert({"command": ["python"], "args": ["train.py"]}, base)
        assert refused.value.field == f"{CONTAINER}.args"

    def test_except_that_the_worker_starts_the_manifests_own(self):
        base = {"AlgorithmSpecification": {"ContainerEntrypoint": ["trainmaster-run"]}}
        made = convert({"command": ["python"], "args": ["train.py"]}, base)
        assert algorithm(made)["ContainerEntrypoint"] == ["trainmaster-run", "python"]
        assert algorithm(made)["ContainerArguments"] == ["train.py"]
        made = convert({"command": ["sh", "-c", "\n"]}, base)
        assert algorithm(made)["ContainerEntrypoint"] == ["trainmaster-run", *ENTRY_POINT]

    @pytest.mark.parametrize("replicas", [1, 4])
    def test_of_the_worker_finds_the_other_instances_itself(self, replicas):
        base = {"AlgorithmSpecification": {"ContainerEntrypoint": ["/opt/bin/trainmaster-run"]}}
        made = convert({"args": ["train.py"]}, base, replicas)
        assert algorithm(made)["ContainerEntrypoint"] == ["/opt/bin/trainmaster-run"]
        assert algorithm(made)["ContainerArguments"] == ["train.py"]
        assert "Environment" not in made.request
        assert not any(each.changes_result for each in made.not_honored)

    def test_of_an_image_starts_without_the_operators_variables(self):
        for container in ({}, {"args": ["train.py"]}):
            (found,) = (each for each in convert(container, replicas=2).not_honored if each.changes_result)
            assert found.field == f"{CONTAINER}.image"
            assert not any(each.changes_result for each in convert(container).not_honored)

    def test_of_which_each_file_has_a_part_are_one(self):
        base = {"AlgorithmSpecification": {"ContainerEntrypoint": ["python"]}}
        made = convert({"args": ["train.py"]}, base)
        assert algorithm(made)["ContainerEntrypoint"] == ["python"]
        assert algorithm(made)["ContainerArguments"] == ["train.py"]
        base = {"AlgorithmSpecification": {"ContainerArguments": ["train.py"]}}
        made = convert({"command": ["python"]}, base)
        assert algorithm(made)["ContainerArguments"] == ["train.py"]


class TestReferences:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("$(A)", "1"),
            ("x$(A)y$(B)", "x1y2"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$$$$(A)", "$$(A)"),
            ("$(C)", "$(C)"),
            ("$A $", "$A $"),
            ("$(A", "$(A"),
            ("$(hostname -i)", "$(hostname -i)"),
            ("$()", "$()"),
            ("$$", "$"),
        ],
    )
    def test_are_expanded_as_kubernetes_does(self, text, expected):
        assert expand(text, {"A": "1", "B": "2"}) == expected

    def test_see_only_variables_before_them(self):
        env = [{"name": name, "value": value} for name, value in
               [("B", "$(A)"), ("A", "1"), ("C", "$(A)2"), ("D", "$(C)$$(A)"), ("A", "3")]]  # fmt: skip
        made = convert({"command": ["echo"], "args": ["$(A) $(D) $(X)"], "env": env})
        assert made.request["Environment"].items() >= {"A": "3", "B": "$(A)", "C": "12", "D": "12$(A)"}.items()
        assert algorithm(made)["ContainerArguments"] == ["3 12$(A) $(X)"]

    def test_to_the_base_requests_variables_have_their_values(self):
        base = {"Environment": {"A": "base"}}
        made = convert({"command": ["echo", "$(A)"], "env": [{"name": "A", "value": "1"}]}, base)
        assert algorithm(made)["ContainerEntrypoint"] == ["echo", "base"]
        assert made.request["Environment"]["A"] == "base"

    def test_to_values_that_are_not_known_stay_and_are_named(self):
        env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
        made = convert({"command": ["echo", "$(A)"], "env": env})
        assert algorithm(made)["ContainerEntrypoint"] == ["echo", "$(A)"]
        found = {each.field: each for each in made.not_honored}
        assert found[f"{CONTAINER}.command[1]"].why == "$(A) stays as it is: its value is not known"
        assert found[f"{CONTAINER}.env[0].valueFrom"].changes_result

    def test_to_the_container_are_resolved_there(self, tmp_path):
        env = [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "LOG", "value": "/log/$(POD_NAME)"},
        ]
        made = convert({"command": ["python3", "-c", SHOW, "$(LOG)", "it's $(NNODES)"], "env": env}, replicas=3)
        words, environment, _ = shown(started(made, tmp_path, ("algo-1", "algo-2", "algo-3"), "algo-2"))
        assert words == ["/log/llama-algo-2", "it's 3"]
        assert environment.items() >= {"NAMESPACE": "team-a", "LOG": "/log/llama-algo-2"}.items()

    def test_to_the_first_pod_are_to_the_first_host(self, tmp_path):
        env = [{"name": "STORE", "value": "tcp://llama-pods-0:1"}, {"name": "OTHER", "value": "my-llama-pods-0"}]
        words = ["--endpoint=llama-pods-0:29400", "llama-pods-0.llama.team-a.svc:1", "llama-pods-01", "x llama-pods-0"]
        made = convert({"command": ["python3", "-c", SHOW, *words], "env": env}, replicas=2)
        found, environment, _ = shown(started(made, tmp_path, ("algo-1", "algo-2"), "algo-2"))
        assert found == ["--endpoint=algo-1:29400", "algo-1:1", "llama-pods-01", "x algo-1"]
        assert environment.items() >= {"STORE": "tcp://algo-1:1", "OTHER": "my-llama-pods-0"}.items()
        made = convert({"command": ["python3", *words]})
        assert algorithm(made)["ContainerEntrypoint"][1] == "--endpoint=localhost:29400"

    @pytest.mark.parametrize(("host", "address"), [("localhost", ("127.0.0.1", "::1")), ("algo-x.invalid", None)])
    def test_to_the_pods_address_are_to_the_hosts(self, tmp_path, host, address):
        env = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
        made = convert({"command": ["python3", "-c", SHOW], "env": env})
        _, environment, _ = shown(started(made, tmp_path, (host,), host))
        assert environment["POD_IP"] in (address or (host,))
        assert not any(each.changes_result for each in made.not_honored)

    def test_in_commands_without_a_shell_are_named(self):
        made = convert({"command": ["python", "train.py"], "args": ["--lr=$LR"]})
        (found,) = (each for each in made.not_honored if each.changes_result)
        assert (found.field, found.why) == (f"{CONTAINER}.args[0]", "$LR stays as it is: only a shell expands it")
        made = convert({"command": ["bash", "-c", "echo $LR"]})
        assert not any(each.changes_result for each in made.not_honored)


class TestTheScript:
    @pytest.mark.parametrize(("host", "rank"), [("algo-1", "0"), ("algo-2", "1"), ("algo-10", "2")])
    def test_sets_the_operators_variables(self, tmp_path, host, rank):
        made = convert({"command": ["python3", "-c", SHOW]}, replicas=3)
        _, environment, _ = shown(started(made, tmp_path, ("algo-1", "algo-2", "algo-10"), host))
        expected = {"MASTER_ADDR": "algo-1", "MASTER_PORT": "29500", "NNODES": "3", "PET_NODE_RANK": rank}
        assert environment.items() >= (expected | {"PET_NNODES": "3", "PET_MASTER_ADDR": "algo-1"}).items()

    @pytest.mark.parametrize(
        "base",
        [
            {"ResourceConfig": {"InstanceCount": 2}},
            {"ResourceConfig": {"InstanceGroups": [{"InstanceGroupName": "g", "InstanceCount": 2}]}},
            {"Tags": [{"Key": "trainmaster:max-instances", "Value": "2"}]},
            {"Tags": [{"Key": "trainmaster:instance-values", "Value": "1+2"}]},
            {"Tags": [{"Key": "trainmaster:instances", "Value": "2"}]},
        ],
    )
    def test_knows_that_the_base_request_gives_the_job_several_instances(self, base):
        container = {"command": ["python3", "-c", SHOW]}
        assert convert(container).request["Environment"]["NNODES"] == "1"
        made = convert(container, base)
        assert "NNODES" not in made.request.get("Environment", {})
        assert any("export NNODES=" in text for text in made.uploads.values())

    def test_of_members_is_the_workers(self):
        members = {"Tags": [{"Key": "trainmaster:resize-by", "Value": "members"}]}
        (found,) = (each for each in convert({"command": ["ls"]}, members).not_honored if each.changes_result)
        assert found.field == f"{CONTAINER}.command"
        worker = {"AlgorithmSpecification": {"ContainerEntrypoint": ["trainmaster-run"]}}
        made = convert({"args": ["train.py"]}, members | worker)
        assert not any(each.changes_result for each in made.not_honored)

    def test_starts_torchrun_in_place_of_hyperpodrun(self, tmp_path):
        (tmp_path / "bin").mkdir()
        torchrun = tmp_path / "bin/torchrun"
        torchrun.write_text(f'#!/bin/sh\nexec python3 -c {shlex.quote(SHOW)} "$@"\n')
        torchrun.chmod(0o755)
        text = (
            'exec hyperpodrun --nproc_per_node=8 --log_dir "$LOG" --tee 3 --inprocess-restart --server-log-level info'
            " --server-port=9 --rdzv-backend hyperpod --shutdown-timeout=5 --standalone train.py --server-port 7 'a b'"
        )
        made = convert({"command": ["bash", "-c", text], "env": [{"name": "LOG", "value": "/my log"}]})
        words, _, _ = shown(started(made, tmp_path / "ml", path=str(tmp_path / "bin")))
        assert words == [
            "--nproc_per_node=8", "--log_dir", "/my log", "--tee", "3", "--standalone",
            "train.py", "--server-port", "7", "a b",
        ]  # fmt: skip
        (found,) = (each for each in made.not_honored if each.changes_result)
        assert found.why.startswith("torchrun runs instead")

    def test_runs_the_programs_before_and_after_the_training(self, tmp_path):
        (tmp_path / "bin").mkdir()
        for name in ("torchrun", "pre", "post"):
            (tmp_path / "bin" / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
            (tmp_path / "bin" / name).chmod(0o755)
        command = ["/usr/bin/hyperpodrun", "--pre-train-script=pre", "--pre-train-args", "a b",
                   "--post-train-script", "post", "-m", "train", "x"]  # fmt: skip
        done = started(convert({"command": command}), tmp_path / "ml", path=str(tmp_path / "bin"))
        assert done.stdout == "pre a b\ntorchrun -m train x\npost\n"

    def test_ends_as_its_command_does(self, tmp_path):
        assert started(convert({"command": ["sh", "-c", "\nexit 7"]}), tmp_path).returncode == 7

    def test_prepares_directories(self, tmp_path):
        data = tmp_path / "ml/input/data/fsx-claim"
        data.mkdir(parents=True)
        (data / "sample").write_text("1")
        volumes = [
            {"name": "scratch", "emptyDir": {}},
            {"name": "node", "hostPath": {"path": "/mnt"}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "fsx-claim"}},
            {"name": "config", "configMap": {"name": "recipe"}},
        ]
        places = {name: str(tmp_path / "c c" / name) for name in ("scratch", "node", "data", "config")}
        mounts = [{"name": name, "mountPath": path} for name, path in (places | {"shm": "/dev/shm"}).items()]
        recipe = {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": "recipe"},
            "data": {"a.yaml": "x: 'ü'\n"},
        }
        channel = {"ChannelName": "fsx-claim", "DataSource": {"S3DataSource": {"S3Uri": "s3://b/x"}}}
        container = {"command": ["python3", "-c", SHOW], "volumeMounts": mounts, "workingDir": places["scratch"]}
        made = convert(container, {"InputDataConfig": [channel]}, volumes=volumes, companions=(recipe,))
        words, _, directory = shown(started(made, tmp_path / "ml"))
        assert (words, directory) == ([], places["scratch"])
        assert (Path(places["data"]) / "sample").read_text() == "1"
        assert (Path(places["config"]) / "a.yaml").read_text() == "x: 'ü'\n"
        assert list(Path(places["node"]).iterdir()) == []
        found = {each.field for each in made.not_honored if each.changes_result}
        assert found == {f"{CONTAINER}.volumeMounts[1]"}

    def test_without_a_channel_a_claim_says_how_to_get_one(self):
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "fsx-claim"}}]
        made = convert({"command": ["ls"], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}, volumes=volumes)
        assert made.not_honored[0].field == f"{CONTAINER}.volumeMounts[0]"
        assert "to have its data at /data, name a channel" in made.not_honored[0].why
        assert "in --with 'fsx-claim'" in made.not_honored[0].why


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=40)


@examples(60, deadline=None)
@given(st.lists(TEXTS, max_size=4), TEXTS)
def test_any_text_reaches_the_program_unchanged(words, value):
    quoted = " ".join(map(shell_word, ["printf", "%s\\0", *words, f"{value}{runtime('V')}"]))
    done = subprocess.run(["/bin/sh", "-c", quoted], env={"V": value}, capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [*words, value + value]
