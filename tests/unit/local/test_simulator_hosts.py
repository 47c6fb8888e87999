"""Real commands of jobs with several instances: a process, a directory and an address each."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime

import pytest
from simulated import resources
from wall import WallAccount, wait_until_gone

from builders import G5, P5, a_request
from processes import alive
from trainmaster.local.simulator.containers.hosts import MAX_BYTE, LoopbackAddresses, host_names, hosts_of
from trainmaster.local.simulator.containers.layout import checkpoint_directory
from trainmaster.local.simulator.service.job import TrainingJob
from trainmaster.local.simulator.service.profiles import Profile

SAY = "import os; print(os.environ['SM_CURRENT_HOST'], os.environ['TRAINMASTER_LOCAL_ADDR'], flush=True);"
WAIT = "import time; time.sleep(600)"
PIDS = "import os; print('pid', os.getpid(), flush=True);"


@pytest.fixture
def account(tmp_path):
    with WallAccount(tmp_path) as account:
        yield account


def gang(account: WallAccount, name: str, program: str, count: int = 3, **members) -> None:
    account.python(name, program, ResourceConfig=resources(count=count), **members)


def pids(account: WallAccount, count: int = 3) -> list[int]:
    account.lines.wait_for(lambda _: len([each for each in account.lines.things if "pid" in each.text]) == count)
    return [int(line.text.split()[1]) for line in account.lines.things]


def test_each_instance_is_a_process_with_its_own_host_address_directory_and_log_stream(account):
    gang(account, "job1", SAY + "open(os.environ['SM_MODEL_DIR'] + '/mine', 'w').write(os.environ['SM_CURRENT_HOST'])")
    account.wait_for("job1", "Completed")
    said = dict(line.text.split() for line in account.lines.things)
    assert sorted(said) == ["algo-1", "algo-2", "algo-3"]
    assert len(set(said.values())) == 3
    assert all(address.startswith("127.0.") and address != "127.0.0.1" for address in said.values())
    for line in account.lines.things:
        assert line.stream.startswith(f"job1/{line.text.split()[0]}-")
    for host in said:
        base = account.root / "jobs/job1" / host
        assert (base / "model/mine").read_text() == host
        config = json.loads((base / "input/config/resourceconfig.json").read_text())
        assert config["current_host"] == host
        assert config["hosts"] == ["algo-1", "algo-2", "algo-3"]
        assert config["network_interface_name"] == "lo"


def test_instances_can_reach_each_other_on_their_addresses(account):
    serve = (
        "import os, pathlib, socket, time\n"
        "host, place = os.environ['SM_CURRENT_HOST'], pathlib.Path(os.environ['SM_CHECKPOINT_DIR'])\n"
        "if host == 'algo-1':\n"
        "    server = socket.create_server((os.environ['TRAINMASTER_LOCAL_ADDR'], 0))\n"
        "    (place / 'new').write_text(' '.join(map(str, server.getsockname())))\n"
        "    (place / 'new').rename(place / 'server')\n"
        "    print('heard', server.accept()[0].recv(99).decode(), flush=True)\n"
        "else:\n"
        "    while not (place / 'server').exists(): time.sleep(0.01)\n"
        "    address, port = (place / 'server').read_text().split()\n"
        "    socket.create_connection((address, int(port))).sendall(host.encode())\n"
    )
    gang(account, "job1", serve, count=2, CheckpointConfig={"S3Uri": "s3://bucket/together"})
    account.wait_for("job1", "Completed")
    assert account.wait_for_line("heard").text == "heard algo-2"


def test_a_job_completes_only_when_its_last_instance_has_ended(account):
    last = "import os, time; time.sleep(0.3 if os.environ['SM_CURRENT_HOST'] == 'algo-2' else 0); print('done')"
    gang(account, "job1", last)
    account.wait_for("job1", "Completed")
    assert len(account.lines.things) == 3


def test_one_failing_instance_fails_the_job_for_its_reason_and_ends_the_others(account):
    program = (
        "import os, pathlib, sys, time\n"
        "up = pathlib.Path(os.environ['SM_CHECKPOINT_DIR'])\n"
        "(up / str(os.getpid())).touch()\n"
        "while len(list(up.iterdir())) < 3: time.sleep(0.01)\n"
        "if os.environ['SM_CURRENT_HOST'] == 'algo-2':\n"
        "    open(os.environ['SM_OUTPUT_DIR'] + '/failure', 'w').write('lost a shard'); sys.exit(5)\n"
        "time.sleep(600)"
    )
    uri = "s3://bucket/up"
    gang(account, "job1", program, CheckpointConfig={"S3Uri": uri})
    assert account.wait_for("job1", "Failed")["FailureReason"] == "AlgorithmError: lost a shard, exit code: 5"
    running = [int(each.name) for each in checkpoint_directory(account.root, uri).iterdir()]
    assert len(running) == 3
    assert not any(map(alive, running))


def test_an_instance_that_ignores_being_told_does_not_keep_a_failed_job(account):
    program = (
        "import os, pathlib, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "deaf = pathlib.Path(os.environ['SM_CHECKPOINT_DIR'], 'deaf')\n"
        "if os.environ['SM_CURRENT_HOST'] == 'algo-1':\n"
        "    deaf.touch(); time.sleep(600)\n"
        "while not deaf.exists(): time.sleep(0.01)\n"
        "raise SystemExit(3)"
    )
    gang(account, "job1", program, count=2, CheckpointConfig={"S3Uri": "s3://bucket/deaf"})
    assert account.wait_for("job1", "Failed")["FailureReason"].endswith("exit code: 3")


def test_a_stop_reaches_every_instance(account):
    told = PIDS + "import signal, threading; told = threading.Event();"
    told += "signal.signal(signal.SIGTERM, lambda *_: told.set()); print('ready', flush=True); told.wait();"
    told += "print('told', flush=True)"
    gang(account, "job1", told)
    account.lines.wait_for(lambda _: len([each for each in account.lines.things if each.text == "ready"]) == 3)
    account.client.stop_training_job(TrainingJobName="job1")
    account.wait_for("job1", "Stopped")
    assert [line.text for line in account.lines.things].count("told") == 3


def test_closing_ends_every_instance(tmp_path):
    with WallAccount(tmp_path) as account:
        gang(account, "job1", PIDS + WAIT)
        running = pids(account)
    for pid in running:
        wait_until_gone(pid)


def test_a_command_that_does_not_exist_fails_a_gang_and_leaves_no_address_taken(account):
    account.create("job1", "/no/such/program", ResourceConfig=resources(count=3))
    assert "exit code: 127" in account.wait_for("job1", "Failed")["FailureReason"]
    assert account.runner._addresses._taken == set()


def test_addresses_are_unique_while_taken_and_go_round():
    addresses = LoopbackAddresses(first=MAX_BYTE * MAX_BYTE - 2)
    first = addresses.allocate(4)
    assert first == ["127.0.254.253", "127.0.254.254", "127.0.1.1", "127.0.1.2"]
    addresses.release(first[:2])
    assert addresses.allocate(2) == ["127.0.1.3", "127.0.1.4"]
    with pytest.raises(OSError, match="no loopback address"):
        addresses.allocate(MAX_BYTE * MAX_BYTE)


def test_addresses_given_back_are_taken_again_once_round():
    addresses = LoopbackAddresses()
    everything = addresses.allocate(MAX_BYTE * MAX_BYTE)
    assert len(set(everything)) == MAX_BYTE * MAX_BYTE
    addresses.release(everything[7:8])
    assert addresses.allocate(1) == everything[7:8]


def test_hosts_follow_the_instance_groups_and_are_listed_sorted_as_text():
    groups = [
        {"InstanceType": P5, "InstanceCount": 1, "InstanceGroupName": "learner"},
        {"InstanceType": G5, "InstanceCount": 9, "InstanceGroupName": "actors"},
    ]
    hosts = hosts_of(a_training_job(ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 1}))
    assert [(each.name, each.instance_type, each.group) for each in hosts[:2]] == [
        ("algo-1", P5, "learner"),
        ("algo-2", G5, "actors"),
    ]
    assert host_names(hosts)[:3] == ["algo-1", "algo-10", "algo-2"]


def test_the_chosen_type_of_a_job_with_preferences_is_its_hosts_type():
    preferences = [{"InstanceType": P5, "InstanceCount": 1}, {"InstanceType": G5, "InstanceCount": 2}]
    job = a_training_job(ResourceConfig={"InstancePreferences": preferences, "VolumeSizeInGB": 1})
    job.instances = {G5: 2}
    assert [each.instance_type for each in hosts_of(job)] == [G5, G5]


def a_training_job(**members) -> TrainingJob:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    request = a_request("job1", **members)
    return TrainingJob("job1", "arn", request, now, Profile(), {}, now)


def test_commands_find_what_the_server_was_told_to_give_them(tmp_path):
    with WallAccount(
        tmp_path, inherited={"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1", "OWN": "server"}
    ) as account:
        program = "import os; print(os.environ['AWS_ENDPOINT_URL_DYNAMODB'], os.environ['OWN'])"
        account.create("job1", sys.executable, "-c", program, Environment={"OWN": "request"})
        account.wait_for("job1", "Completed")
        assert account.lines.things[0].text == "http://127.0.0.1:1 request"
