"""The simulator over HTTP beside moto, and as a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError
from simulated import QUICK, refusal
from wall import COUNTER, Stream, WallAccount, a_command, wait_until_gone
from werkzeug.serving import make_server

from aws_clients import aws_client
from builders import a_request
from doc_blocks import blocks, commands
from processes import alive
from samples import sample
from trainmaster.local.simulator import Hostility, SageMakerSimulator, VirtualClock
from trainmaster.local.simulator import __main__ as main_module
from trainmaster.local.simulator.__main__ import main
from trainmaster.local.simulator.wire.server import Application, serve

QUICK_COURSE = [
    f"--profile={part}_seconds={seconds}"
    for part, seconds in (("requesting", 0), ("starting", 0), ("downloading", 0), ("uploading", 0), ("training", 60))
]


def client(service: str, address: str):
    return aws_client(
        service,
        endpoint_url=address,
        aws_access_key_id="111122223333",
        aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


@pytest.fixture(scope="module")
def simulator():
    return SageMakerSimulator(VirtualClock(), profile=QUICK, check_responses=True)


@pytest.fixture(scope="module")
def address(simulator):
    server = serve(simulator)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_training_jobs_are_answered_over_http(simulator, address):
    sagemaker = client("sagemaker", address)
    arn = sagemaker.create_training_job(**a_request("job1"))["TrainingJobArn"]
    simulator.advance(50)
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "team", "Value": "vision"}])
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "vision"}]
    sagemaker.stop_training_job(TrainingJobName="job1")
    assert sagemaker.describe_training_job(TrainingJobName="job1")["TrainingJobStatus"] == "Stopping"
    assert sagemaker.list_training_jobs()["TrainingJobSummaries"][0]["TrainingJobName"] == "job1"


def test_errors_keep_their_code_text_and_status_over_http(simulator, address):
    sagemaker = client("sagemaker", address)
    code, text = refusal(sagemaker.describe_training_job, TrainingJobName="missing")
    assert (code, text) == ("ValidationException", "Requested resource not found.")
    simulator.faults.inject("DescribeTrainingJob", "ServiceUnavailable")
    with pytest.raises(sagemaker.exceptions.ClientError) as caught:
        sagemaker.describe_training_job(TrainingJobName="missing")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503


def test_s3_is_passed_through_to_moto(address):
    s3 = client("s3", address)
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="data/train.csv", Body=b"1,2\n" * 100_000)
    assert s3.get_object(Bucket="bucket", Key="data/train.csv")["Body"].read() == b"1,2\n" * 100_000


def test_sts_and_logs_are_passed_through_to_moto(address):
    assert client("sts", address).get_caller_identity()["Account"]
    client("logs", address).create_log_group(logGroupName="group")
    assert client("logs", address).describe_log_groups()["logGroups"][0]["logGroupName"] == "group"


def test_sagemakers_other_operations_are_passed_through_to_moto(address):
    sagemaker = client("sagemaker", address)
    arn = sagemaker.create_model(ModelName="model", ExecutionRoleArn="arn:aws:iam::111122223333:role/training")[
        "ModelArn"
    ]
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}])
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "a", "Value": "1"}]
    assert sagemaker.describe_model(ModelName="model")["ModelName"] == "model"


def test_moto_is_entered_by_one_request_at_a_time(address):
    table = client("dynamodb", address)
    table.create_table(
        TableName="counter",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

    def add(_number):
        client("dynamodb", address).update_item(
            TableName="counter",
            Key={"id": {"S": "one"}},
            UpdateExpression="ADD hits :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(40)))
    assert table.get_item(TableName="counter", Key={"id": {"S": "one"}})["Item"]["hits"] == {"N": "40"}


@pytest.mark.parametrize("body", [b"[1]", b"{", b"7"])
def test_a_body_that_is_no_object_is_answered_as_an_error(simulator, body):
    statuses = []
    application = Application(simulator, lambda *_: pytest.fail("not for moto"))
    environ = {"HTTP_X_AMZ_TARGET": "SageMaker.AddTags", "CONTENT_LENGTH": str(len(body)), "wsgi.input": BytesIO(body)}
    answer = application(environ, lambda status, _headers: statuses.append(status))
    assert statuses == ["400 Bad Request"]
    assert json.loads(b"".join(answer))["__type"] == "SerializationException"


class Served:
    """The simulator as a process, as `make demo` starts it."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "trainmaster.local.simulator", *QUICK_COURSE, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout
        ready = self.process.stdout.readline()
        assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+\n", ready)
        self.address = ready.split()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def end(self, number: int) -> tuple[int, str]:
        """Its exit code and what it had to say."""
        self.process.send_signal(number)
        said = "".join(self.process.communicate(timeout=20))
        return self.process.returncode, said


def test_the_server_of_the_page_starts():
    (block,) = [each for each in blocks() if each.page == "docs/reference/simulator.md" and each.mark == "run by"]
    (words,) = commands(block)
    assert words[:4] == ["python", "-m", "trainmaster.local.simulator", "--port"]
    with Served("--port", "0", *words[5:]) as served:
        assert client("sagemaker", served.address).list_training_jobs()["TrainingJobSummaries"] == []


def start_sleeper(served: Served, pid_file) -> list[int]:
    """A job whose script has a child, both deaf to SIGTERM; returns their process ids."""
    program = pid_file.with_suffix(".py")
    program.write_text(
        "import os, pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "if child:\n"
        f"    path = pathlib.Path({str(pid_file)!r})\n"
        "    path.with_suffix('.new').write_text(f'{os.getpid()} {child}')\n"
        "    path.with_suffix('.new').rename(path)\n"
        "time.sleep(600)\n"
    )
    client("sagemaker", served.address).create_training_job(**a_command("job1", sys.executable, str(program)))
    waiting = threading.Event()
    for _ in range(1000):
        if pid_file.exists():
            return [int(pid) for pid in pid_file.read_text().split()]
        waiting.wait(0.02)
    raise AssertionError("the script did not start")


@pytest.mark.parametrize("number", sample([signal.SIGTERM, signal.SIGKILL, signal.SIGINT], 2))
def test_no_command_outlives_the_server_however_it_ends(tmp_path, number):
    with Served("--allow-commands", f"--work-dir={tmp_path / 'work'}") as served:
        pids = start_sleeper(served, tmp_path / "pids")
        assert all(map(alive, pids))
        code, said = served.end(number)
    assert (code, said) == ((-9, "") if number == signal.SIGKILL else (0, ""))
    for pid in pids:
        wait_until_gone(pid)


def test_the_server_runs_commands_only_when_told_to(tmp_path):
    witness = tmp_path / "ran"
    with Served("--limit=ml.p5.48xlarge=1", "--profile=training_seconds=0") as served:
        sagemaker = client("sagemaker", served.address)
        sagemaker.create_training_job(**a_command("job1", "/bin/touch", str(witness)))
        assert refusal(sagemaker.create_training_job, **a_request("job2", count=2))[0] == "ResourceLimitExceeded"
        waiting = threading.Event()
        while sagemaker.describe_training_job(TrainingJobName="job1")["TrainingJobStatus"] == "InProgress":
            waiting.wait(0.02)
        assert not witness.exists()


def test_commands_find_the_variables_that_the_server_was_told_to_give_them(tmp_path):
    endpoint = "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000"
    with Served("--allow-commands", f"--container-env={endpoint}", "--profile=requesting_seconds=0") as served:
        program = f"import os, pathlib; pathlib.Path({str(tmp_path / 'env')!r}).write_text(repr(dict(os.environ)))"
        client("sagemaker", served.address).create_training_job(**a_command("job1", sys.executable, "-c", program))
        waiting = threading.Event()
        for _ in range(1000):
            if (tmp_path / "env").exists() and (tmp_path / "env").read_text().endswith("}"):
                break
            waiting.wait(0.02)
        assert repr(endpoint.partition("=")[2]) in (tmp_path / "env").read_text()


def test_the_server_can_have_a_training_plan():
    with Served("--plan=spring=ml.p5.48xlarge:2:8") as served:
        plan = client("sagemaker", served.address).describe_training_plan(TrainingPlanName="spring")
        assert (plan["Status"], plan["TotalInstanceCount"], plan["DurationHours"]) == ("Active", 2, 8)


class Receiver:
    """A server that keeps what is put to EventBridge and CloudWatch Logs."""

    def __init__(self) -> None:
        self.calls = Stream()

    def __call__(self, environ, start_response):
        body = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        self.calls.put((environ["HTTP_X_AMZ_TARGET"].rpartition(".")[2], body))
        answer = json.dumps({"FailedEntryCount": 0, "Entries": []}).encode()
        start_response("200 OK", [("Content-Type", "application/x-amz-json-1.1"), ("Content-Length", str(len(answer)))])
        return [answer]

    def wait_for(self, operation: str, text: str) -> dict:
        return self.calls.wait_for(lambda call: call[0] == operation and text in json.dumps(call[1]))[1]


@pytest.fixture
def receiver():
    application = Receiver()
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    application.address = f"http://127.0.0.1:{server.server_port}"
    yield application
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_server_puts_events_and_log_lines_to_the_endpoints_given(receiver):
    endpoints = [f"--events-endpoint={receiver.address}", f"--logs-endpoint={receiver.address}"]
    with Served("--allow-commands", "--event-source=trainmaster.local", "--events-bus=other", *endpoints) as served:
        request = a_command("job1", sys.executable, str(COUNTER), HyperParameters={"steps": "2"})
        client("sagemaker", served.address).create_training_job(**request)
        done = receiver.wait_for("PutEvents", "Completed")["Entries"][-1]
        assert (done["Source"], done["EventBusName"]) == ("trainmaster.local", "other")
        lines = receiver.wait_for("PutLogEvents", "step 2")
        assert lines["logGroupName"] == "/aws/sagemaker/TrainingJobs"
        assert lines["logStreamName"].startswith("job1/algo-1-")
        client("sagemaker", served.address).create_training_job(**a_request("job2"))
        assert receiver.wait_for("PutLogEvents", "[simulated]")["logStreamName"].startswith("job2/algo-1-")


@pytest.mark.parametrize("options", [["--limit=ml.p5.48xlarge"], ["--rate=ListTrainingJobs=fast"], ["--plan=a=b"]])
def test_options_without_meaning_are_refused(options, capsys):
    with pytest.raises(SystemExit) as caught:
        main(options)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_a_preempted_command_resumes_over_http_too(tmp_path):
    with WallAccount(tmp_path) as account:
        server = serve(account.simulator)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            sagemaker = client("sagemaker", f"http://127.0.0.1:{server.server_port}")
            checkpoint = {"S3Uri": "s3://bucket/checkpoints/job1"}
            first = a_command("job1", sys.executable, str(COUNTER), HyperParameters={"steps": "9999"},
                              Environment={"PAUSE": "0.01"}, CheckpointConfig=checkpoint)  # fmt: skip
            sagemaker.create_training_job(**first)
            account.wait_for_line("step 2")
            sagemaker.stop_training_job(TrainingJobName="job1")
            account.wait_for("job1", "Stopped")
            told = account.wait_for_line("told at").text.rpartition(" ")[2]
            again = a_command("job1-qstamp-2", sys.executable, str(COUNTER), HyperParameters={"steps": told},
                              CheckpointConfig=checkpoint)  # fmt: skip
            sagemaker.create_training_job(**again)
            account.wait_for_line(f"from {told}")
            account.wait_for("job1-qstamp-2", "Completed")
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def test_the_environment_of_the_server_does_not_reach_its_commands(tmp_path):
    secret = {**os.environ, "AWS_SECRET_ACCESS_KEY": "do-not-tell"}
    out = tmp_path / "out"
    program = f"import json, os; open({str(out)!r} + '.new', 'w').write(json.dumps(dict(os.environ)))"
    (tmp_path / "show.py").write_text(program + f"; os.rename({str(out)!r} + '.new', {str(out)!r})")
    command = [sys.executable, "-m", "trainmaster.local.simulator", *QUICK_COURSE, "--allow-commands"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=secret) as process:
        address = process.stdout.readline().split()[1]
        request = a_command("job1", sys.executable, str(tmp_path / "show.py"))
        client("sagemaker", address).create_training_job(**request)
        waiting = threading.Event()
        while not out.exists():
            waiting.wait(0.02)
        process.terminate()
    assert process.returncode == 0
    assert "AWS_SECRET_ACCESS_KEY" not in json.loads(out.read_text())


def test_a_hostile_server_closes_connections_and_answers_again_when_hostility_ends(simulator, address):
    sagemaker = client("sagemaker", address)
    simulator.hostility = Hostility(failed_calls=1)
    seen = set()
    for _ in range(40):
        with pytest.raises((ClientError, ConnectionClosedError)) as caught:
            sagemaker.list_training_jobs()
        seen.add(caught.type is ConnectionClosedError)
    assert seen == {True, False}
    simulator.hostility = Hostility()
    simulator.advance(1)
    sagemaker.list_training_jobs()


def test_the_process_misbehaves_with_a_seed():
    options = main_module._parser().parse_args(["--hostile", "7"])
    with main_module._simulator(options) as simulator:
        assert simulator.hostility == Hostility.moderate()
    with main_module._simulator(main_module._parser().parse_args([])) as simulator:
        assert simulator.hostility == Hostility()
