"""Real commands as training scripts, under a wall clock."""

from __future__ import annotations

import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError
from simulated import Account
from wall import COUNTER, WallAccount, a_command, wait_until_gone

from builders import a_request
from processes import alive
from trainmaster.local.simulator.containers.layout import checkpoint_directory


@pytest.fixture
def account(tmp_path):
    with WallAccount(tmp_path) as account:
        yield account


def counting(account: WallAccount, name: str, steps: int, pause: float = 0) -> None:
    account.create(
        name,
        sys.executable,
        arguments=(str(COUNTER),),
        HyperParameters={"steps": str(steps)},
        Environment={"PAUSE": str(pause)},
        CheckpointConfig={"S3Uri": "s3://bucket/checkpoints/job1"},
    )


def test_a_command_that_ends_well_completes_its_job(account):
    counting(account, "job1", steps=3)
    account.wait_for("job1", "Completed")
    assert (account.root / "jobs/job1/model/model.txt").read_text() == "3"
    statuses = [each["Status"] for each in account.describe("job1")["SecondaryStatusTransitions"]]
    assert statuses == ["Starting", "Downloading", "Training", "Uploading", "Completed"]


def test_a_preempted_command_gets_sigterm_and_its_next_attempt_goes_on_from_the_checkpoint(account):
    counting(account, "job1", steps=10_000, pause=0.01)
    account.wait_for_line("step 3")
    account.client.stop_training_job(TrainingJobName="job1")
    account.wait_for("job1", "Stopped")
    told = int(account.wait_for_line("told at").text.rpartition(" ")[2])
    counting(account, "job1-qstamp-2", steps=told + 2)
    account.wait_for_line(f"from {told}")
    account.wait_for("job1-qstamp-2", "Completed")
    assert (account.root / "jobs/job1-qstamp-2/model/model.txt").read_text() == str(told + 2)


def test_the_log_of_a_command_has_only_its_output_and_that_of_another_job_is_marked(account):
    account.client.create_training_job(**a_request("job2", Environment={"SIMULATOR_TRAINING_SECONDS": "0"}))
    account.wait_for("job2", "Completed")
    account.python("job1", "print('alone')", Environment={"SIMULATOR_LOG_SECONDS": "0.001"})
    account.wait_for("job1", "Completed")
    account.wait_for_line("alone")
    texts = {
        name: [each.text for each in account.lines.things if each.stream.startswith(name)] for name in ("job1", "job2")
    }
    assert texts["job1"] == ["alone"]
    assert {text.partition("]")[0] for text in texts["job2"]} == {"[simulated"}


def test_output_goes_to_the_jobs_log_stream_line_by_line(account):
    account.python("job1", r"import sys; print('first\r'); sys.stderr.write('ä and \xff no line end')")
    account.wait_for("job1", "Completed")
    first = account.wait_for_line("first")
    assert first.group == "/aws/sagemaker/TrainingJobs"
    assert first.stream.startswith("job1/algo-1-")
    assert [line.text for line in account.lines.things] == ["first", "ä and ÿ no line end"]


def test_a_command_that_fails_fails_its_job_with_its_exit_code(account):
    account.python("job1", "raise SystemExit(3)")
    account.wait_for("job1", "Failed")
    assert account.describe("job1")["FailureReason"] == "AlgorithmError: , exit code: 3"


def test_a_command_may_say_why_it_failed(account):
    program = "import os; open(os.environ['SM_OUTPUT_DIR'] + '/failure', 'w').write('no data'); raise SystemExit(1)"
    account.python("job1", program)
    assert account.wait_for("job1", "Failed")["FailureReason"] == "AlgorithmError: no data, exit code: 1"


def test_a_command_that_does_not_exist_fails_its_job(account):
    account.create("job1", "/no/such/program")
    assert "exit code: 127" in account.wait_for("job1", "Failed")["FailureReason"]


def test_a_command_killed_by_a_signal_is_told_as_a_shell_would(account):
    account.python("job1", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert account.wait_for("job1", "Failed")["FailureReason"].endswith("exit code: 137")


def test_a_command_is_an_argument_list_that_no_shell_sees(account):
    account.create("job1", "/bin/echo", arguments=("$HOME; touch /tmp/oops", "`id`"))
    assert account.wait_for_line("HOME").text == "$HOME; touch /tmp/oops `id`"


def test_a_command_that_ignores_sigterm_is_killed_with_its_children_after_the_grace(tmp_path):
    program = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "child = subprocess.Popen([sys.executable, '-c',"
        '\'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print("up", flush=True);'
        " time.sleep(600)']);"
        "print('child', child.pid, flush=True); time.sleep(600)"
    )
    with WallAccount(tmp_path, grace=timedelta(seconds=0.2)) as account:
        account.python("job1", program)
        child = int(account.wait_for_line("child").text.split()[1])
        account.wait_for_line("up")
        account.client.stop_training_job(TrainingJobName="job1")
        account.wait_for("job1", "Stopped")
        wait_until_gone(child)


def test_children_that_a_script_leaves_behind_end_with_it(account):
    program = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "print('child', child.pid, flush=True)"
    )
    account.python("job1", program)
    account.wait_for("job1", "Completed")
    wait_until_gone(int(account.wait_for_line("child").text.split()[1]))


def test_closing_the_simulator_ends_every_command(tmp_path):
    with WallAccount(tmp_path) as account:
        account.python("job1", "import os, time; print('pid', os.getpid(), flush=True); time.sleep(600)")
        pid = int(account.wait_for_line("pid").text.split()[1])
        assert alive(pid)
    assert not alive(pid)


def test_a_command_that_exceeds_its_runtime_is_stopped(account):
    account.python("job1", "import time; time.sleep(600)", StoppingCondition={"MaxRuntimeInSeconds": 1})
    assert account.wait_for("job1", "MaxRuntimeExceeded")["TrainingJobStatus"] == "Stopped"


def test_an_interrupted_spot_command_is_run_again(tmp_path):
    profile = {"SIMULATOR_INTERRUPTED_SECONDS": "0"}
    with WallAccount(tmp_path) as account:
        account.create(
            "job1",
            sys.executable,
            arguments=(str(COUNTER),),
            HyperParameters={"steps": "30"},
            Environment={"PAUSE": "0.02", **profile},
            EnableManagedSpotTraining=True,
            StoppingCondition={"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 600},
        )
        account.wait_for_line("step 2")
        account.simulator.interrupt("job1")
        told = account.wait_for_line("told at").text.rpartition(" ")[2]
        account.wait_for_line(f"from {told}")
        account.wait_for("job1", "Completed")


def test_the_script_finds_what_a_sagemaker_container_has(account):
    names = "SM_HPS SM_HP_LR SM_CHANNELS SM_CHANNEL_TRAINING SM_BASE_DIR TRAINING_JOB_NAME TRAINING_JOB_ARN OWN"
    program = (
        "import json, os;"
        f"print(json.dumps({{name: os.environ[name] for name in {names.split()!r}}}));"
        "print(sorted(os.listdir(os.environ['SM_BASE_DIR'])));"
        "print(os.listdir(os.environ['SM_BASE_DIR'] + '/input/data'));"
        "print('leaked' if 'HOME' in os.environ else 'clean')"
    )
    channel = {
        "ChannelName": "training",
        "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/data"}},
    }
    account.python("job1", program, HyperParameters={"lr": "0.1"}, Environment={"OWN": "1"}, InputDataConfig=[channel])
    account.wait_for("job1", "Completed")
    seen = json.loads(account.lines.things[0].text)
    base = account.root / "jobs/job1"
    assert seen == {
        "SM_HPS": '{"lr": "0.1"}', "SM_HP_LR": "0.1", "SM_CHANNELS": '["training"]',
        "SM_CHANNEL_TRAINING": str(base / "input/data/training"), "SM_BASE_DIR": str(base),
        "TRAINING_JOB_NAME": "job1", "OWN": "1",
        "TRAINING_JOB_ARN": "arn:aws:sagemaker:us-east-1:111122223333:training-job/job1",
    }  # fmt: skip
    rest = [line.text for line in account.lines.things[1:]]
    assert rest == ["['checkpoints', 'code', 'input', 'model', 'output']", "['training']", "clean"]
    config = json.loads((base / "input/config/resourceconfig.json").read_text())
    assert (config["current_host"], config["current_instance_type"]) == ("algo-1", "ml.p5.48xlarge")
    assert json.loads((base / "input/config/hyperparameters.json").read_text()) == {"lr": "0.1"}
    assert (
        json.loads((base / "input/config/inputdataconfig.json").read_text())["training"]["TrainingInputMode"] == "File"
    )


@pytest.mark.parametrize(
    ("local_path", "expected"),
    [
        ("/opt/ml/checkpoints/", "checkpoints"),
        ("/opt/ml/ckpt/deep", "ckpt/deep"),
        ("/opt/ml/../../etc/cron.d", "checkpoints"),
        ("/etc", "checkpoints"),
        ("/opt/ml", "checkpoints"),
        ("/opt/ml/input", "checkpoints"),
    ],
)
def test_a_checkpoint_path_of_the_request_never_leads_outside_the_jobs_directory(account, local_path, expected):
    uri = "s3://bucket/../../../checkpoints/job1"
    config = {"S3Uri": uri, "LocalPath": local_path}
    account.python("job1", "import os; open(os.environ['SM_CHECKPOINT_DIR'] + '/x', 'w')", CheckpointConfig=config)
    account.wait_for("job1", "Completed")
    assert (account.root / "jobs/job1" / expected / "x").exists()
    kept = checkpoint_directory(account.root, uri)
    assert (kept / "x").exists()
    assert kept.parent == account.root / "checkpoints"


def test_checkpoints_of_different_uris_are_kept_apart(tmp_path):
    uris = ["s3://a/x", "s3://b/x", "s3://a/x/y", "s3://a/..", "s3://a/.hidden"]
    assert len({checkpoint_directory(tmp_path, uri) for uri in uris}) == len(uris)
    assert checkpoint_directory(tmp_path, "s3://a/x") == checkpoint_directory(tmp_path, "s3://a/x/")


def test_a_job_without_a_command_follows_its_script_under_a_wall_clock_too(account):
    account.client.create_training_job(
        TrainingJobName="job1",
        AlgorithmSpecification={"TrainingImage": "image", "TrainingInputMode": "File"},
        RoleArn="arn:aws:iam::111122223333:role/training",
        OutputDataConfig={"S3OutputPath": "s3://bucket/output"},
        ResourceConfig={"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 600},
        Environment={"SIMULATOR_TRAINING_SECONDS": "0.05"},
    )
    account.wait_for("job1", "Completed")


def test_time_goes_on_after_a_sink_has_failed(account, caplog):
    def fail_once(event):
        account.events.put(event)
        if event["detail"]["SecondaryStatus"] == "Uploading":
            raise RuntimeError("the receiver died")

    account.simulator.sink = fail_once
    account.client.create_training_job(**a_request("job1", Environment={"SIMULATOR_TRAINING_SECONDS": "0.05"}))
    account.wait_for("job1", "Completed")
    assert "the receiver died" in caplog.text


def test_without_a_runner_a_command_is_not_run(tmp_path):
    account = Account()
    witness = tmp_path / "ran"
    account.client.create_training_job(**a_command("job1", "/bin/touch", str(witness)))
    account.simulator.run_until_idle()
    assert account.status("job1") == ("Completed", "Completed")
    assert not witness.exists()


def test_many_jobs_created_from_many_threads_never_exceed_the_limit(tmp_path):
    def create(number: int) -> str:
        try:
            account.client.create_training_job(**a_command(f"job{number}", sys.executable, "-c", "input()"))
        except ClientError as error:
            return error.response["Error"]["Code"]
        return "created"

    with WallAccount(tmp_path, limits={"ml.p5.48xlarge": 3}, capacity={"ml.p5.48xlarge": 0}) as account:
        with ThreadPoolExecutor(8) as pool:
            answers = Counter(pool.map(create, range(24)))
        assert answers == {"created": 3, "ResourceLimitExceeded": 21}
