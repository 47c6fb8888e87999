"""Tests of the containers of scripts: S3 input and artifacts, `/opt/ml`, host names, packages."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws
from simulated import resources
from wall import WallAccount

from builders import a_request
from trainmaster.local.simulator.containers import opt_ml
from trainmaster.local.simulator.containers.interpreters import Interpreter, Interpreters
from trainmaster.local.simulator.containers.launchers import LAUNCHERS, why_not_launched
from trainmaster.local.simulator.containers.pipes import Pipe
from trainmaster.local.simulator.containers.transfer import ObjectStore, local_paths
from trainmaster.local.stack.__main__ import _start_message

UNMOUNTED = opt_ml.why_unavailable()
mounted = pytest.mark.skipif(UNMOUNTED is not None, reason=f"/opt/ml cannot be mounted here: {UNMOUNTED}")
DATA = "s3://data/train"


@pytest.fixture
def s3():
    with mock_aws():
        client = boto3.client("s3", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        client.create_bucket(Bucket="data")
        yield client


@pytest.fixture
def account(tmp_path, s3):
    with WallAccount(tmp_path, containers={"store": ObjectStore(s3)}) as account:
        yield account


def put(s3, **objects: str) -> None:
    for key, text in objects.items():
        s3.put_object(Bucket="data", Key=key.replace("__", "/"), Body=text.encode())


def channel(uri: str = DATA, name: str = "train", **source) -> dict:
    return {"ChannelName": name, "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri, **source}}}


LIST = (
    "import os, pathlib; here = pathlib.Path(os.environ['SM_CHANNEL_TRAIN']);"
    "print(os.environ['SM_CURRENT_HOST'], sorted(str(p.relative_to(here)) for p in here.rglob('*') if p.is_file()))"
)


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("s3://data/train", ["a.csv", "deep/b.csv"]),
        ("s3://data/train/", ["a.csv", "deep/b.csv"]),
        ("s3://data/train/a.csv", ["a.csv"]),
        ("s3://data/train/de", ["deep/b.csv"]),
        ("s3://data", ["other/x", "train/a.csv", "train/deep/b.csv"]),
    ],
)
def test_an_input_channel_holds_the_objects_of_its_prefix(account, s3, uri, found):
    put(s3, train__a="", train__deep__b="", other__x="")
    for key in ("train/a", "train/deep/b"):
        s3.copy_object(Bucket="data", Key=f"{key}.csv", CopySource=f"data/{key}")
        s3.delete_object(Bucket="data", Key=key)
    account.python("job1", LIST, InputDataConfig=[channel(uri)])
    account.wait_for("job1", "Completed")
    assert account.lines.things[0].text == f"algo-1 {found}"


@given(st.text(alphabet="ab./", max_size=6), st.lists(st.text(alphabet="ab./", min_size=1, max_size=9)))
def test_no_object_is_written_outside_its_channel(prefix, keys):
    paths = local_paths(f"s3://bucket/{prefix}", [key for key in keys if key.startswith(prefix)])
    assert all(not path.is_absolute() and ".." not in path.parts and path.parts for path in paths.values())


def test_a_manifest_names_the_objects_of_a_channel(account, s3):
    put(s3, train__a="", train__b="", manifest=json.dumps([{"prefix": "s3://data/train/"}, "b"]))
    account.python("job1", LIST, InputDataConfig=[channel("s3://data/manifest", S3DataType="ManifestFile")])
    account.wait_for("job1", "Completed")
    assert account.lines.things[0].text == "algo-1 ['b']"


def test_the_first_pipe_is_there_before_anyone_feeds_it(tmp_path):
    Pipe(tmp_path / "train", ()).create()
    assert (tmp_path / "train_0").is_fifo()


def test_a_channel_in_pipe_mode_flows_through_a_pipe_in_each_epoch(account, s3):
    put(s3, train__a="1,2;", train__b="3,4;")
    program = (
        "import os\n"
        "for epoch in range(2):\n"
        "    with open(os.environ['SM_CHANNEL_TRAIN'] + f'_{epoch}') as pipe: print(pipe.read())\n"
    )
    account.python("job1", program, InputDataConfig=[{**channel(), "InputMode": "Pipe"}])
    account.wait_for("job1", "Completed")
    assert [line.text for line in account.lines.things] == ["1,2;3,4;", "1,2;3,4;"]


def test_instances_share_a_channel_by_key_and_by_instance_group(account, s3):
    put(s3, train__a="", train__b="", train__c="")
    account.python(
        "job1",
        LIST,
        ResourceConfig=resources(count=2),
        InputDataConfig=[channel(S3DataDistributionType="ShardedByS3Key")],
    )
    account.wait_for("job1", "Completed")
    assert sorted(line.text for line in account.lines.things) == ["algo-1 ['a', 'c']", "algo-2 ['b']"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (channel("s3://data/nothing"), 'no S3 objects found under "s3://data/nothing" (channel train)'),
        (channel("s3://no-such-bucket/x"), "s3://no-such-bucket/x: "),
        (channel(S3DataType="AugmentedManifestFile"), "the simulator reads no AugmentedManifestFile"),
        (
            {
                "ChannelName": "train",
                "DataSource": {
                    "FileSystemDataSource": {
                        "FileSystemId": "fs-01234567890",
                        "FileSystemAccessMode": "ro",
                        "FileSystemType": "EFS",
                        "DirectoryPath": "/x",
                    }
                },
            },
            "channel train: this machine has no file systems",
        ),
    ],
)
def test_input_that_is_not_there_fails_the_job_with_its_name(account, source, said):
    account.python("job1", LIST, InputDataConfig=[source])
    reason = account.wait_for("job1", "Failed")["FailureReason"]
    assert reason.startswith("ClientError: Data download failed: ")
    assert said in reason
    assert account.lines.things == []


def test_the_artifacts_of_all_instances_are_one_archive(account, s3):
    program = (
        "import os, pathlib; host = os.environ['SM_CURRENT_HOST'];"
        "pathlib.Path(os.environ['SM_MODEL_DIR'], host).write_text(host);"
        "pathlib.Path(os.environ['SM_OUTPUT_DATA_DIR'], 'metrics').write_text('1')"
    )
    output = {"S3OutputPath": "s3://new-bucket/out/"}
    account.python("job1", program, ResourceConfig=resources(count=2), OutputDataConfig=output)
    account.wait_for("job1", "Completed")
    assert names(s3, "new-bucket", "out/job1/output/model.tar.gz") == ["algo-1", "algo-2"]
    assert names(s3, "new-bucket", "out/job1/output/output.tar.gz")[0] == "metrics"


def names(s3, bucket: str, key: str) -> list[str]:
    body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        return archive.getnames()


def test_a_failed_job_leaves_no_model_and_uncompressed_output_is_a_folder(account, s3):
    program = "import os, pathlib, sys; pathlib.Path(os.environ['SM_MODEL_DIR'], 'm').write_text('');"
    output = {"S3OutputPath": "s3://data/out", "CompressionType": "NONE"}
    account.python("bad", program + "sys.exit(1)", OutputDataConfig=output)
    account.python("good", program, OutputDataConfig=output)
    account.wait_for("bad", "Failed")
    account.wait_for("good", "Completed")
    written = [each["Key"] for each in s3.list_objects_v2(Bucket="data").get("Contents", [])]
    assert written == ["out/good/output/model/m"]


def test_checkpoints_come_from_s3_and_go_there(account, s3):
    put(s3, runs__7__old="1")
    program = (
        "import os, pathlib; here = pathlib.Path(os.environ['SM_CHECKPOINT_DIR']);"
        "print(sorted(p.name for p in here.iterdir())); (here / 'new').touch()"
    )
    account.python("job1", program, CheckpointConfig={"S3Uri": "s3://data/runs/7"})
    account.wait_for("job1", "Completed")
    assert account.lines.things[0].text == "['old']"
    assert "runs/7/new" in [each["Key"] for each in s3.list_objects_v2(Bucket="data")["Contents"]]


OPT_ML_JOB = (
    "import json, os, pathlib, socket\n"
    "print(sorted(os.listdir('/opt/ml')), socket.gethostname(), socket.gethostbyname('algo-2'))\n"
    "pathlib.Path('/opt/ml/model/mine').write_text(socket.gethostname())\n"
    "print(json.load(open('/opt/ml/input/config/resourceconfig.json'))['current_host'])\n"
)


@mounted
def test_each_instance_has_its_own_opt_ml_and_resolves_the_others(tmp_path):
    before = sorted(Path("/opt").iterdir())
    with WallAccount(tmp_path, containers={"mounts": True}) as account:
        account.python("job1", OPT_ML_JOB, ResourceConfig=resources(count=2))
        account.wait_for("job1", "Completed")
        said = [line.text for line in account.lines.things]
        addresses = {line.split()[-1] for line in said if line.startswith("[")}
        assert {line for line in said if line.startswith("algo")} == {"algo-1", "algo-2"}
        assert len(addresses) == 1
        assert addresses.pop().startswith("127.0.")
        for host in ("algo-1", "algo-2"):
            assert (tmp_path / "jobs/job1" / host / "model/mine").read_text() == host
    assert sorted(Path("/opt").iterdir()) == before


@mounted
def test_a_command_that_does_not_exist_is_the_reason_under_opt_ml_too(tmp_path):
    with WallAccount(tmp_path, containers={"mounts": True}) as account:
        account.create("job1", "/no/such/program")
        reason = account.wait_for("job1", "Failed")["FailureReason"]
    assert reason == "AlgorithmError: [Errno 2] No such file or directory: '/no/such/program', exit code: 127"


def test_without_mounts_the_path_is_replaced_where_the_simulator_can_see_it(account, s3):
    put(s3, code__run="cat /opt/ml/input/config/hyperparameters.json; echo $OWN $1", code__data="/opt/ml/x")
    s3.copy_object(Bucket="data", Key="code/run.sh", CopySource="data/code/run")
    account.create(
        "job1",
        "/bin/sh",
        arguments=("/opt/ml/input/data/code/run.sh", "/opt/ml/model/m"),
        Environment={"OWN": "/opt/ml/checkpoints"},
        HyperParameters={"out": "/opt/ml/output", "other": "/opt/mlx"},
        InputDataConfig=[channel("s3://data/code", "code")],
    )
    account.wait_for("job1", "Completed")
    base = account.root / "jobs/job1"
    expected = {"out": f"{base}/output", "other": "/opt/mlx"}
    assert account.lines.things[0].text == f"{json.dumps(expected)}{base}/checkpoints {base}/model/m"
    assert (base / "input/data/code/data").read_text() == "/opt/ml/x", "data stays as it is"


@pytest.fixture(scope="module")
def here():
    return Interpreter.of(Path(sys.executable))


def test_an_overlay_sees_the_packages_of_its_environment_and_would_install_into_itself(here, tmp_path):
    programs = here.overlay(tmp_path / "overlay")
    python = str(programs / "python")
    asked = "import sys, pytest, sysconfig; print(sys.prefix, sysconfig.get_path('purelib'))"
    prefix, packages = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert prefix == str(tmp_path / "overlay")
    assert packages.startswith(prefix)
    assert (programs / "pip").read_text().splitlines()[0] == f"#!{python}"


def test_a_job_gets_the_environment_that_has_its_images_packages(here, tmp_path):
    torch = Interpreter(tmp_path, tmp_path, "3.11", tmp_path, tmp_path, nested=True, packages={"torch": "2.6"})
    old = Interpreter(tmp_path, tmp_path, "3.11", tmp_path, tmp_path, nested=True, packages={"sagemaker": "2.230.0"})
    choices = Interpreters()
    choices._asked = [here, torch, old]

    def chosen(image: str, *arguments: str, more=()):
        algorithm = {"TrainingImage": image, "ContainerArguments": list(arguments)}
        job = type("Job", (), {"request": {"AlgorithmSpecification": algorithm}})()
        choice = choices.choose(job, more)
        return choice.interpreter, choice.missing

    assert chosen("1.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.6") == (torch, ())
    assert chosen("1.dkr.ecr.us-east-1.amazonaws.com/mine:1") == (here, ())
    assert chosen("1.dkr.ecr.us-east-1.amazonaws.com/mine:1", more=["torch"]) == (torch, ())
    assert chosen("x", "--client_sagemaker_pysdk_version", "2.200.1") == (old, ())
    assert chosen("1.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2") == (here, ("tensorflow",))


def test_a_launcher_that_the_machine_lacks_fails_the_job_with_what_is_missing(account):
    account.create(
        "job1", "/bin/sh", arguments=("-c", "mpirun -np 2 python train.py"), Environment={"PATH": "/nowhere"}
    )
    reason = account.wait_for("job1", "Failed")["FailureReason"]
    assert "this machine lacks mpirun" in reason
    assert "which the image has and MPI needs" in reason


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: launcher.name)
def test_a_launcher_that_is_there_lacks_nothing(launcher, tmp_path):
    for name in launcher.programs:
        (tmp_path / name.rpartition("/")[2]).touch(mode=0o755)
    lacking = why_not_launched(launcher, str(tmp_path), launcher.packages)
    assert lacking is None or "/usr/sbin" in lacking.split(",")[0]
    assert "the package" in str(why_not_launched(launcher, str(tmp_path), ()))


def script_mode_parameters(uri: str, **parameters) -> dict[str, str]:
    own = {"sagemaker_program": "train.py", "sagemaker_submit_directory": uri}
    return {name: json.dumps(value) for name, value in {**own, **parameters}.items()}


def archive_of(**files: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{name}.py")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return file.getvalue()


def test_a_framework_image_runs_the_program_of_its_hyperparameters(tmp_path, s3):
    text = "import os, sys; print(sys.argv[1:], os.environ['SM_HP_LR'], os.environ['SM_USER_ENTRY_POINT'])"
    s3.put_object(Bucket="data", Key="source.tar.gz", Body=archive_of(train=text))
    containers = {"store": ObjectStore(s3), "interpreters": Interpreters([Path(sys.executable)])}
    parameters = script_mode_parameters("s3://data/source.tar.gz", lr=0.1, name="a b", flag=True)
    with WallAccount(tmp_path, containers=containers) as account:
        image = {"TrainingImage": "mine:1", "TrainingInputMode": "File"}
        account.client.create_training_job(
            **a_request("job1", HyperParameters=parameters, AlgorithmSpecification=image)
        )
        account.wait_for("job1", "Completed")
        said = account.lines.things[0].text
    assert said == "['--flag', 'True', '--lr', '0.1', '--name', 'a b'] 0.1 train.py"


def test_the_start_message_says_that_entry_points_run_as_the_user_and_what_cannot_be_mounted():
    assert "run as processes on this machine, with your user's permissions" in _start_message(Path("env"), None)
    assert "cannot mount" not in _start_message(Path("env"), None)
    assert "cannot mount /opt/ml for a job (no namespaces)" in _start_message(Path("env"), "no namespaces")


def test_scripts_of_an_environment_that_a_link_leads_to_run_in_the_overlay(here, tmp_path):
    (tmp_path / "real" / "bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    bodies = {
        "short": "#!{}/link/bin/python3\nprint()",
        "long": "#!/bin/sh\n'''exec' {}/link/bin/python3.11 \"$0\"",
        "other": "#!/usr/bin/python3\n",
        "shell": "#!/bin/sh\necho {}/link/bin/python3",
    }
    for name, body in bodies.items():
        (tmp_path / "real" / "bin" / name).write_text(body.format(tmp_path))
        (tmp_path / "real" / "bin" / name).chmod(0o755)
    environment = Interpreter(here.python, here.base, "3.11", tmp_path, tmp_path / "real/bin", nested=True, packages={})
    programs = environment.overlay(tmp_path / "overlay")
    copied = {path.name: path.read_text() for path in programs.iterdir() if not path.is_symlink()}
    assert copied == {
        "short": f"#!{programs}/python\nprint()",
        "long": f"#!/bin/sh\n'''exec' {programs}/python \"$0\"",
    }
