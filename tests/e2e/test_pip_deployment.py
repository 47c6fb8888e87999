"""`trainmaster deploy`, `doctor`, `upgrade` and `uninstall` against ministack, without SAM's command line.

ministack expands the SAM transform, compares change sets and deploys as CloudFormation does; it does not know Service
Quotas. Its change sets call every resource behind a changed function a change.
"""

import contextlib
import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass, field

import pytest

from trainmaster.local.stack import LocalStack
from trainmaster.local.stack.build import local_parameters
from trainmaster.local.stack.deploy import _set_concurrency_as_numbers
from trainmaster.local.stack.signed import client

STACK = "trainmaster"
TYPE = "ml.p5.48xlarge"
ROLE = "arn:aws:iam::000000000000:role/trainer"


@dataclass
class Desk:
    """The command line of a person who has the package and credentials."""

    environment: dict
    aws: str
    parameters: list
    api_url: str = ""
    first: subprocess.CompletedProcess | None = None

    def __call__(self, *arguments, ok=True):
        environment = {**self.environment, **({"TRAINMASTER_API_URL": self.api_url} if self.api_url else {})}
        command = [sys.executable, "-m", "trainmaster", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode == 0) is ok, done.stdout[-2000:] + done.stderr[-2000:]
        return done

    def stack(self):
        (found,) = client("cloudformation", self.aws).describe_stacks(StackName=STACK)["Stacks"]
        return found

    def outputs(self):
        return {one["OutputKey"]: one["OutputValue"] for one in self.stack()["Outputs"]}


@dataclass(slots=True)
class DeployedByPip(LocalStack):
    """The local stack, deployed by `trainmaster deploy` instead of SAM's command line."""

    desks: list = field(default_factory=list)

    def _deploy(self, environment, aws, ministack):
        ministack.wait_until(lambda: reachable(aws), 60)
        given = local_parameters(self.checkout.project(), {"Pools": f"{TYPE}=2"})
        options = [part for name, value in given.items() for part in ("--parameter", f"{name}={value}")]
        desk = Desk({**environment, "PYTHONPATH": str(self.checkout.source)}, aws, options)
        self.desks.append(desk)
        desk.first = desk("deploy", "--yes", "--json", *options)
        _set_concurrency_as_numbers(aws)
        return desk.outputs()


def reachable(aws):
    with contextlib.suppress(Exception):
        return bool(client("sts", aws).get_caller_identity())
    return False


@pytest.fixture(scope="module")
def desk():
    stack = DeployedByPip(label="pip", limits={TYPE: 2}, simulator=("--speed", "100"))
    with stack as address:
        (found,) = stack.desks
        found.environment |= address.environment()
        del found.environment["TRAINMASTER_API_URL"]
        found.api_url = address.api_url
        yield found


def test_the_package_deploys_a_queue_that_doctor_finds_sound(desk):
    told = json.loads(desk.first.stdout)
    assert (told["action"], told["executed"]) == ("create", True)
    assert told["outputs"]["ApiId"] == desk.outputs()["ApiId"]
    assert {one["action"] for one in told["changes"]} == {"Add"}
    levels = {one["check"]: one["level"] for one in json.loads(desk("doctor", "--json").stdout)}
    assert {name for name, level in levels.items() if level != "ok"} == {"quotas", "alarms"}


@pytest.mark.slow
def test_doctor_runs_a_job_of_its_own(desk):
    tried = desk("doctor", "--try", "--yes", "--role", ROLE, "--output-path", "s3://training/output")
    assert "completed: jobs start and end" in tried.stderr


@pytest.mark.slow
def test_a_repeated_deployment_changes_nothing_and_a_dry_run_shows_what_would(desk):
    assert desk("deploy", "--yes", *desk.parameters).stdout == "Nothing changes.\n"
    before = desk.stack()["StackStatus"]
    shown = json.loads(desk("upgrade", "--dry-run", "--json", "--parameter", "LogLevel=DEBUG").stdout)
    assert (shown["action"], shown["executed"]) == ("update", False)
    assert {"ApiFunction", "ManagerFunction"} <= {one["name"] for one in shown["changes"]}
    assert desk.stack()["StackStatus"] == before
    left = client("cloudformation", desk.aws).list_change_sets(StackName=STACK)["Summaries"]
    assert {one["ExecutionStatus"] for one in left} <= {"EXECUTE_COMPLETE"}, "only what was deployed"


@pytest.mark.slow
def test_nothing_happens_without_a_terminal_or_with_a_wrong_name(desk):
    assert "no terminal" in desk("upgrade", "--parameter", "LogLevel=DEBUG", ok=False).stderr
    assert "no terminal" in desk("uninstall", ok=False).stderr
    assert "Nothing was deleted" in desk("uninstall", "--confirm", "other", ok=False).stderr
    assert desk.stack()["StackStatus"] == "CREATE_COMPLETE"


@pytest.mark.slow
def test_the_template_for_other_tools_names_its_code_and_the_platform_of_it(desk, tmp_path):
    file = tmp_path / "queue.json"
    # Another stack, whose parameters are all to be given.
    other = ["deploy", "--stack", "other", "--template-out", str(file), "--json", "--parameter", "LogLevel=DEBUG"]
    told = json.loads(desk(*other).stdout)
    assert told["parametersWithoutDefault"] == ["Pools", "AllowedRoles"]
    defaults = {name: one.get("Default") for name, one in json.loads(file.read_text())["Parameters"].items()}
    assert defaults["Runtime"] == f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert defaults["LogLevel"] == "DEBUG"
    bucket, _, key = told["templateUrl"].partition("amazonaws.com/")[2].partition("/")
    assert client("s3", desk.aws).get_object(Bucket=bucket, Key=key)["Body"].read() == file.read_bytes()


@pytest.mark.slow
def test_an_upgrade_keeps_the_parameters_and_reports_the_releases(desk):
    done = desk("upgrade", "--yes", "--parameter", "LogLevel=WARNING")
    assert done.stderr.startswith("From release 0.2.0 to 0.2.0")
    found = {one["ParameterKey"]: one["ParameterValue"] for one in desk.stack()["Parameters"]}
    assert (found["LogLevel"], found["Pools"]) == ("WARNING", f"{TYPE}=2")
    assert desk.stack()["StackStatus"] == "UPDATE_COMPLETE"


@pytest.mark.slow
def test_uninstall_keeps_the_table_and_a_new_deployment_adopts_it(desk):
    done = desk("uninstall", "--confirm", STACK)
    assert "AWS::DynamoDB::Table  sagemaker-queue" in done.stderr
    desk.api_url = ""
    assert "There is no stack trainmaster" in desk("uninstall", "--confirm", STACK, ok=False).stderr
    again = desk("deploy", "--yes", "--json", *desk.parameters)
    assert {"Import"} <= {one["action"] for one in json.loads(again.stdout)["changes"]}
    assert "adopts it" in again.stderr


@pytest.mark.slow
def test_the_wheel_has_what_a_deployment_is_built_from(checkout, tmp_path):
    """An installation without the checkout builds the same bundles, byte for byte."""
    wheel = [sys.executable, "-m", "uv", "build", "--quiet", "--wheel", ".", "--out-dir", str(tmp_path)]
    subprocess.run(wheel, cwd=checkout.root, check=True)
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *map(str, tmp_path.glob("*.whl"))], check=True)
    program = (
        "import sys, pathlib, tempfile; from trainmaster.deployment.bundle import *; s = Sources.here(); "
        "print(s.template, build(s, 'ManagerFunction', runtime='python3.11', architecture='arm64', "
        "folder=pathlib.Path(tempfile.mkdtemp()))[0].key)"
    )
    found = []
    for interpreter, path in ((python, ""), (sys.executable, str(checkout.source))):
        environment = {**os.environ, "PYTHONPATH": path}
        command = [interpreter, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
        found.append(done.stdout.split())
    assert "site-packages" in found[0][0]
    assert found[0][1] == found[1][1]
