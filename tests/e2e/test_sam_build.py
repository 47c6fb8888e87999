"""SAM itself: the functions and the layer that `sam build` makes, and the deployments that the docs describe."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from cfnlint.decode import decode

from doc_pages import DOCS
from permissions import template as template_of_the_queue
from trainmaster.local.stack import LocalStack
from trainmaster.local.stack.address import aws_environment, clean_environment
from trainmaster.local.stack.processes import free_port, listening, run
from trainmaster.local.stack.signed import client


@pytest.fixture
def template(checkout, tmp_path):
    """The real template of image jobs, with the layer as its only resource."""
    images = checkout.project("images")
    (tmp_path / "platforms").symlink_to(checkout.platforms)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "layer").symlink_to(images.layer)
    whole, _ = decode(str(images.template))
    parts = {name: whole[name] for name in ("Transform", "Parameters")}
    path = tmp_path / "images" / "template.json"
    path.write_text(json.dumps({**parts, "Resources": {"ImagingLayer": whole["Resources"]["ImagingLayer"]}}))
    return path


@pytest.mark.slow
def test_sam_makes_the_layer_for_its_runtime_and_its_cache_mixes_nothing_up(checkout, template):
    made = template.parent / "made" / "build"
    command = [checkout.sam, "build", "--template-file", template, "--build-dir", made, "--cached"]
    cache = ["--cache-dir", template.parent / "cache"]
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "BUILT": "/built"}

    def built(*parameters):
        given = ["--parameter-overrides", *parameters] if parameters else []
        run("sam build", [*command, *cache, *given], environment, template.parent / "log")
        layer = made / "ImagingLayer"
        return {str(path.relative_to(layer)) for path in layer.rglob("*") if path.is_file()}

    site = "python/lib/{}/site-packages/imaging.pth"
    assert built() == {site.format("python3.13")}
    assert built("Runtime=python3.12") == {site.format("python3.12")}
    assert built() == {site.format("python3.13")}


PYDANTIC = {"pydantic", "pydantic_core"}
FUNCTIONS = {
    "": {"ApiFunction": PYDANTIC, "ManagerFunction": set(), "PipelineFunction": set(), "TaskFunction": set()},
    "images": {"IntakeFunction": PYDANTIC, "RegionFunction": PYDANTIC},
}
"""The functions of each template, with packages that they need beside Powertools."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_plain_sam_build_makes_a_compiled_bundle_for_each_function_and_its_platform(checkout, tmp_path, name):
    runtime = f"python{sys.version_info.major}.{sys.version_info.minor}"
    project = checkout.project(name)
    command = [checkout.sam, "build", "--template-file", project.template, "--build-dir", tmp_path / "build"]
    parameters = ["--config-env", "local", "--parameter-overrides", f"Runtime={runtime}", "Architecture=arm64"]
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "PYTHON": sys.executable, "BUILT": "/built"}
    run("sam build", [*command, *parameters], environment, tmp_path / "log")

    built = {path.name for path in (tmp_path / "build").iterdir() if path.is_dir()}
    assert built == FUNCTIONS[name].keys() | ({"ImagingLayer"} if project.layer else set())
    for function, folders in FUNCTIONS[name].items():
        bundle = tmp_path / "build" / function
        assert {"aws_lambda_powertools", "trainmaster", *folders} <= {path.name for path in bundle.iterdir()}
        assert not {"boto3", "botocore"} & {path.name for path in bundle.iterdir()}
        assert not {"client", "cli", "local", "worker"} & {path.name for path in (bundle / "trainmaster").iterdir()}
        assert len([*bundle.rglob("*.py")]) == len([*bundle.rglob("*.pyc")])
        assert all("aarch64" in path.name for path in bundle.rglob("*.so"))


@pytest.fixture
def shell(checkout, tmp_path):
    """Runs a command in a copy of the checkout, before an AWS account without stacks; it reads only what is given."""
    for name in ("template.yaml", "samconfig.toml"):
        shutil.copyfile(checkout.root / name, tmp_path / name)
    for name in ("src", "platforms"):
        shutil.copytree(checkout.root / name, tmp_path / name, symlinks=True)
    (tmp_path / "aws").mkdir()
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    environment = {**clean_environment(os.environ), **aws_environment(endpoint, endpoint), "SAM_CLI_TELEMETRY": "0"}
    environment["PATH"] = f"{checkout.sam.parent}:{environment['PATH']}"

    def ran(command, given=None):
        stdin = {"input": given} if given else {"stdin": subprocess.DEVNULL}
        bash = ["bash", "-e", "-o", "pipefail", "-c", command]
        done = subprocess.run(
            bash, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300, **stdin
        )
        return done.returncode, done.stdout + done.stderr

    def parameters():
        (stack,) = client("cloudformation", endpoint).describe_stacks(StackName="trainmaster")["Stacks"]
        return {each["ParameterKey"]: each["ParameterValue"] for each in stack["Parameters"]}

    with contextlib.ExitStack() as opening:
        stack = LocalStack(label="sam-deploy")
        stack.logs.mkdir(parents=True, exist_ok=True)
        ministack = stack._ministack(opening, environment, port, tmp_path / "aws")
        ministack.wait_until(lambda: listening(port), 60)
        ran.parameters = parameters
        yield ran


@pytest.mark.slow
def test_the_documented_commands_deploy_without_a_terminal(shell):
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / "how-to" / "deploy.md").read_text(), re.DOTALL)
    (block,) = [each for each in blocks if "sam build" in each and "Pools=" in each]
    code, told = shell(block)
    assert (code, "Successfully created/updated stack" in told) == (0, True), told
    first = shell.parameters()
    assert first["Pools"] == "ml.p5.48xlarge=2,ml.g5.2xlarge=8"
    code, told = shell("sam build && sam deploy")
    assert (code, "is up to date" in told) == (0, True), told
    assert shell.parameters() == first
    code, told = shell("sam deploy --parameter-overrides CheckPassRole=false")
    assert (code != 0, "Name them in Admins" in told) == (True, True), told

    answers = {"Admins": "arn:aws:iam::111122223333:role/ops", "CheckPassRole": "false", "EndpointType": "REGIONAL"}
    answers |= {"Pools": "ml.g5.xlarge=1", "AllowedRoles": "arn:aws:iam::111122223333:role/training"}
    asked = [answers.get(name, "") for name in template_of_the_queue()["Parameters"]]
    code, told = shell("sam deploy --guided", "\n".join(["", "", *asked, *[""] * 9]))
    assert (code, "Parameter Admins []" in told) == (0, True), told
    assert shell.parameters().items() >= answers.items()
