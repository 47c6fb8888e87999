"""trainmaster-run as SageMaker starts it: a process of its own, with the directories and variables of a container."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.checkpoints.notices import Notices
from trainmaster.worker.container.container import Container, ElasticJob, Hook
from trainmaster.worker.container.run import build_command, environment, make_parser, network_variables, report
from trainmaster.worker.container.supervise import CommandResult, StopTimeouts
from trainmaster.worker.warm import start as warm_start

HERE = Container(base=Path("/opt/ml"), training_job_name="bert", host="algo-1", hosts=("algo-1",), address="10.0.0.7")
MEMBERS = ElasticJob(hook=Hook.MEMBERS, run="bert", table="queue", min_nodes=2, max_nodes=8)
PLAIN = ElasticJob(hook=Hook.RESTART)


def command(*arguments, job=PLAIN, environ=None):
    return build_command(make_parser(environ or {}).parse_args(arguments), HERE, job)


@pytest.fixture
def run(tmp_path):
    config = tmp_path / "input" / "config"
    config.mkdir(parents=True)
    resources = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}
    (config / "resourceconfig.json").write_text(json.dumps(resources))
    started = []

    def start(*arguments, **environ):
        about = {"SM_BASE_DIR": str(tmp_path), "TRAINING_JOB_NAME": "bert", "TMPDIR": str(tmp_path)}
        process = subprocess.Popen(
            [sys.executable, "-m", "trainmaster.worker.container.run", *arguments],
            env={**os.environ, **about, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def said(tmp_path):
    return (tmp_path / "output" / "failure").read_text()


def test_a_script_runs_as_it_is_and_its_success_is_the_containers(run, tmp_path):
    (tmp_path / "train.py").write_text("import sys; print('trained', sys.argv[1:])")
    process = run(str(tmp_path / "train.py"), "--epochs", "3")
    assert process.stdout.read() == "trained ['--epochs', '3']\n"
    assert process.wait(60) == 0
    assert not (tmp_path / "output" / "failure").exists()
    assert not list(tmp_path.glob("trainmaster-*")), "the notices' directory is removed"


def test_a_failure_is_passed_on_with_its_reason(run, tmp_path):
    assert run(sys.executable, "-c", "raise SystemExit(9)").wait(60) == 9
    assert said(tmp_path) == "trainmaster: the command ended with exit code 9"


def test_a_reason_that_the_script_has_left_stays(run, tmp_path):
    path = tmp_path / "output" / "failure"
    path.parent.mkdir()
    script = f"open({str(path)!r}, 'w').write('out of data'); raise SystemExit(1)"
    assert run(sys.executable, "-c", script).wait(60) == 1
    assert said(tmp_path) == "out of data"


def test_a_script_killed_by_a_signal_ends_the_container_as_a_shell_would_say_it(run, tmp_path):
    assert run(sys.executable, "-c", "import os; os.kill(os.getpid(), 9)").wait(60) == 137
    assert "137" in said(tmp_path)


def test_a_stop_that_was_asked_for_is_no_failure(run, tmp_path):
    process = run(sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    assert not (tmp_path / "output" / "failure").exists()


def test_a_registered_script_saves_before_it_is_stopped(run, tmp_path):
    script = """
import time
from trainmaster.worker import training
training.requests()
print("ready", flush=True)
step = 0
while True:
    step += 1
    time.sleep(0.01)
    if training.checkpoint_requested():
        with training.checkpoints().writing(step) as directory:
            (directory / "state").write_text(str(step))
        training.checkpoint_saved()
        print("still here", flush=True)
"""
    process = run(sys.executable, "-c", script, SM_CHECKPOINT_DIR=str(tmp_path / "kept"))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    assert process.stdout.read() == "", "it waits to be ended once it has saved"
    assert [path.name[:13] for path in (tmp_path / "kept").glob("a*")] == ["a0001-r000000"]


def test_a_command_that_is_not_there_is_told(run, tmp_path):
    assert run("/no/such/program").wait(60) == 127
    assert "cannot start /no/such/program" in said(tmp_path)


def test_what_is_missing_in_the_environment_is_named_as_the_reason_of_the_failure(run, tmp_path):
    process = run("true", TRAINMASTER_HOOK="members")
    assert process.wait(60) == 2
    assert said(tmp_path) == "trainmaster-run: TRAINMASTER_RUN is not set; the queue sets it for elastic jobs"
    assert process.stderr.read() == said(tmp_path) + "\n"


def test_the_reason_of_a_failure_is_told_although_the_node_cannot_be_removed(run, tmp_path, monkeypatch):
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    given = {"RUN": "bert", "RENDEZVOUS_TABLE": "queue", "RENDEZVOUS_KEY": "k", "MIN": "1", "MAX": "1"}
    environ = {f"TRAINMASTER_{name}": text for name, text in given.items()} | {"TRAINMASTER_HOOK": "members"}
    environ["AWS_CONFIG_FILE"] = str(tmp_path / "none")
    process = run("--launcher", "none", sys.executable, "-c", "raise SystemExit(9)", **environ)
    assert process.wait(60) == 9
    assert said(tmp_path) == "trainmaster: the command ended with exit code 9"
    assert "could not remove this node; the other nodes will evict it: NoRegionError" in process.stderr.read()


def test_a_script_that_clears_the_temporary_files_goes_on_without_requests(run):
    script = """
import os, shutil
from trainmaster.worker import training
shutil.rmtree(os.environ["TRAINMASTER_NOTICES"])
print(training.checkpoint_requested())
"""
    process = run(sys.executable, "-c", script)
    assert process.stdout.read() == "False\n"
    assert "does not wait for this process to save a checkpoint" in process.stderr.read()


def test_a_script_finds_what_the_training_toolkit_would_tell_it(run, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("SM_")]:
        monkeypatch.delenv(name)
    config = tmp_path / "input" / "config"
    given = {"lr": "1e-4", "checkpoints": '"s3://bucket/bert"', "batch-size": "32", "note": "as is"}
    (config / "hyperparameters.json").write_text(json.dumps(given | {"sagemaker_program": '"train.py"'}))
    (config / "inputdataconfig.json").write_text(json.dumps({"train": {"TrainingInputMode": "File"}}))
    script = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('SM_')}))"
    told = json.loads(run(sys.executable, "-c", script, SM_MODEL_DIR="mine").stdout.read())
    assert {name: told[name] for name in told if name.startswith("SM_HP_")} == {
        "SM_HP_LR": "0.0001",
        "SM_HP_CHECKPOINTS": "s3://bucket/bert",
        "SM_HP_BATCH-SIZE": "32",
        "SM_HP_BATCH_SIZE": "32",
        "SM_HP_NOTE": "as is",
    }
    assert json.loads(told["SM_HPS"])["lr"] == 1e-4
    assert (told["SM_CHANNEL_TRAIN"], told["SM_CHANNELS"]) == (str(tmp_path / "input/data/train"), '["train"]')
    assert (told["SM_OUTPUT_DATA_DIR"], told["SM_HOSTS"]) == (str(tmp_path / "output/data"), '["algo-1"]')
    assert told["SM_MODEL_DIR"] == "mine", "what the request sets stays"


def test_more_hyperparameters_than_a_variable_can_hold_are_given_one_by_one(run, tmp_path):
    path = tmp_path / "input" / "config" / "hyperparameters.json"
    path.write_text(json.dumps({f"text{number}": "x" * 2500 for number in range(100)}))
    script = "import os; print(len(os.environ['SM_HP_TEXT99']), 'SM_HPS' in os.environ)"
    assert run(sys.executable, "-c", script).stdout.read() == "2500 False\n"


def test_a_job_without_members_needs_no_network(run, tmp_path):
    path = tmp_path / "input" / "config" / "resourceconfig.json"
    local_mode = {"current_host": "algo-1-abc", "hosts": ["algo-1-abc"], "network_interface_name": "ethwe"}
    path.write_text(json.dumps(local_mode))
    process = run(sys.executable, "-c", "print('trained')")
    assert process.stdout.read() == "trained\n", process.stderr.read()


def test_a_job_with_members_is_started_by_torchrun_in_its_rendezvous():
    made = command("--nproc-per-node", "2", "--", "train.py", "--lr", "1", job=MEMBERS)
    assert made[1:3] == ["-m", "torch.distributed.run"]
    assert set(made) >= {
        "--nproc-per-node=2",
        "--nnodes=2:8",
        "--rdzv-backend=dynamodb",
        "--rdzv-endpoint=queue",
        "--rdzv-id=bert",
        "--local-addr=10.0.0.7",
        "--max-restarts=1000000",
    }
    assert made[-3:] == ["train.py", "--lr", "1"]


def test_the_workers_of_a_node_may_be_given_as_torchrun_takes_them():
    assert "--nproc-per-node=auto" in command("train.py", job=MEMBERS)
    assert "--nproc-per-node=8" in command("train.py", job=MEMBERS, environ={"PET_NPROC_PER_NODE": "8"})


def test_a_program_that_is_no_script_is_run_by_torchrun_as_such():
    assert command("./train", job=MEMBERS)[-2:] == ["--no-python", "./train"]
    assert command("-m", "package.train", job=MEMBERS)[-2:] == ["--module", "package.train"]


@pytest.mark.parametrize("given", [("--preload", "torch"), ()])
def test_workers_of_a_job_with_members_may_start_from_what_is_preloaded(given):
    environ = {} if given else {"TRAINMASTER_PRELOAD": "torch"}
    made = command(*given, "train.py", "--lr", "1", job=MEMBERS, environ=environ)
    assert made[-4:] == [warm_start.__file__, "train.py", "--lr", "1"]
    module = command(*given, "-m", "package.train", job=MEMBERS, environ=environ)
    assert module[-3:] == [warm_start.__file__, "-m", "package.train"]


def test_only_python_below_torchrun_in_a_rendezvous_is_preloaded():
    assert command("--preload", "torch", "./train", job=MEMBERS)[-2:] == ["--no-python", "./train"]
    assert command("--preload", "torch", "--launcher", "none", "train.py", job=MEMBERS)[1:] == ["train.py"]
    assert command("--preload", "torch", "--launcher", "torchrun", "train.py")[-1:] == ["train.py"]
    assert warm_start.__file__ not in command("--preload", "torch", "--launcher", "torchrun", "train.py")


def test_a_job_with_members_may_do_without_torchrun():
    assert command("--launcher", "none", "train.py", job=MEMBERS) == [sys.executable, "train.py"]


def test_torchrun_serves_one_host_where_there_is_no_rendezvous():
    made = command("--launcher", "torchrun", "train.py")
    assert "--standalone" in made
    assert not any("rdzv" in argument for argument in made)


def test_torchrun_serves_all_hosts_of_a_training_job_together():
    second = replace(HERE, host="algo-2", hosts=("algo-1", "algo-2"))
    made = build_command(make_parser({}).parse_args(["--launcher", "torchrun", "train.py"]), second, PLAIN)
    assert made[4:] == ["--nnodes=2", "--node-rank=1", "--master-addr=algo-1", "train.py"]


def test_hosts_that_work_together_talk_over_the_network_between_them():
    alone, several = replace(HERE, interface="eth1"), replace(HERE, interface="eth1", hosts=("algo-1", "algo-2"))
    both = {"NCCL_SOCKET_IFNAME": "eth1", "GLOO_SOCKET_IFNAME": "eth1"}
    assert network_variables(several, PLAIN) == network_variables(alone, MEMBERS) == both
    assert network_variables(alone, PLAIN) == network_variables(HERE, MEMBERS) == {}


def test_a_module_is_run_by_this_python():
    assert command("-m", "package.train", "x") == [sys.executable, "-m", "package.train", "x"]


def test_nothing_to_run_is_refused():
    with pytest.raises(InvalidRequest, match="no command is given"):
        command("--")


def test_the_reason_of_the_end_goes_before_the_exit_code(tmp_path):
    notices, failure = Notices.create(tmp_path), tmp_path / "output" / "failure"
    notices.fail_job("trainmaster: full restart: 4 restarts within 60 seconds, 3 allowed before it")
    assert report(CommandResult(1, stopped=False), notices, failure) == 1
    assert failure.read_text().startswith("trainmaster: full restart")


def test_what_torch_wrote_down_of_the_first_failure_is_the_cause(tmp_path):
    notices, failure = Notices.create(tmp_path), tmp_path / "output" / "failure"
    path = Path(environment({}, notices, StopTimeouts())["TORCHELASTIC_ERROR_FILE"])
    path.write_text(json.dumps({"message": {"message": "ValueError: no data"}}))
    assert report(CommandResult(1, stopped=False), notices, failure) == 1
    assert failure.read_text() == "trainmaster: the command ended with exit code 1: ValueError: no data"


def test_torchs_workers_have_the_whole_grace_after_sigterm_and_no_round_of_another_world(tmp_path):
    made = environment({"TRAINMASTER_ROUND": "7"}, Notices.create(tmp_path), StopTimeouts(total=120, sigkill_margin=3))
    assert made["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] == "114"
    assert "TRAINMASTER_ROUND" not in made


def test_an_unknown_hook_is_refused():
    with pytest.raises(InvalidRequest):
        ElasticJob.from_environment({"TRAINMASTER_HOOK": "x"})
