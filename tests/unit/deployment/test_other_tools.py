"""The examples for Terraform and CDK take every parameter of the template, and name nothing that it lacks."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from doc_pages import DOCS
from trainmaster.deployment.bucket import url_of
from trainmaster.deployment.bundle import Sources, with_defaults, with_table_name
from trainmaster.deployment.parameters import check, missing

EXAMPLES = Path(__file__).parents[3] / "examples"
MODULE = (EXAMPLES / "terraform" / "main.tf").read_text()
APP = (EXAMPLES / "cdk" / "app.py").read_text()
ARGUMENTS = {"name", "template_url", "parameters", "capabilities", "iam_role_arn", "tags"}
"""Arguments of the provider's resource that the module uses (its documentation, `aws_cloudformation_stack`)."""
BLOCK = re.compile(r'^resource "aws_cloudformation_stack" "queue" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
URL = url_of("trainmaster-bundles-111122223333-eu-west-1", "trainmaster/template.json", "eu-west-1", "aws")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return Sources.here().document()


def body() -> str:
    found = BLOCK.search(MODULE)
    assert found is not None
    return found[1]


def test_the_module_passes_any_parameter_as_text(document):
    assert set(re.findall(r"^  (\w+) +=", body(), re.MULTILINE)) == ARGUMENTS
    assert "parameters   = var.parameters" in body()
    kinds = {one["Type"] for one in document["Parameters"].values()}
    assert kinds <= {"String", "Number", "CommaDelimitedList"}, "each has a text in CloudFormation's API"


def test_the_module_call_on_the_page_names_parameters_of_the_template(document):
    (block,) = re.findall(r"```hcl\n(.*?)```", (DOCS / "how-to" / "deploy.md").read_text(), re.DOTALL)
    names = re.findall(r"^    (\w+) +=", block, re.MULTILINE)
    assert {name for name, one in document["Parameters"].items() if "Default" not in one} < set(names)
    assert set(names) <= document["Parameters"].keys()
    assert set(re.findall(r"^  (\w+) +=", block, re.MULTILINE)) - {"source"} <= set(
        re.findall(r'variable "(\w+)"', MODULE)
    )


def test_given_parameters_become_defaults(document):
    made = with_defaults(document, {"Pools": "ml.g5.xlarge=1", "Runtime": "python3.13"})
    wanted = {name: dict(one) for name, one in document["Parameters"].items()}
    wanted["Pools"]["Default"], wanted["Runtime"]["Default"] = "ml.g5.xlarge=1", "python3.13"
    assert made == {**document, "Parameters": wanted}
    assert "Default" not in document["Parameters"]["Pools"]


def test_only_the_name_of_the_table_is_written_out_for_its_adoption(document):
    """CloudFormation imports no resource whose name is a function, and the rest of the template stays as it is."""
    made = with_table_name(document, "old-queue")
    assert document["Resources"]["QueueTable"]["Properties"]["TableName"] == {"Ref": "QueueName"}
    assert made["Resources"]["QueueTable"]["Properties"]["TableName"] == "old-queue"
    made["Resources"]["QueueTable"]["Properties"]["TableName"] = {"Ref": "QueueName"}
    assert made == document


def test_the_examples_read_outputs_that_the_template_has(document):
    named = re.findall(r'outputs\["(\w+)"\]', MODULE)
    assert named
    assert set(named) <= document["Outputs"].keys()


@pytest.mark.parametrize(("region", "partition"), [("eu-west-1", "aws"), ("cn-north-1", "aws-cn")])
def test_the_module_takes_the_address_that_deploy_prints(region, partition):
    (pattern,) = re.findall(r'regex\("(.*?)", var', MODULE)
    assert re.search(pattern.replace("\\\\", "\\"), url_of("bucket", "trainmaster/t.json", region, partition))


def test_the_parameters_of_the_cdk_example_suffice(document):
    given = json.loads((EXAMPLES / "cdk" / "parameters.json").read_text())
    check(document["Parameters"], given)
    assert missing(document["Parameters"], given, {}) == []


def test_the_cdk_example_includes_the_template_and_reads_its_context():
    calls = [node for node in ast.walk(ast.parse(APP)) if isinstance(node, ast.Call)]
    names = [ast.unparse(call.func) for call in calls]
    assert names.count("CfnInclude") == 1
    assert "queue.json" in APP


TERRAFORM = shutil.which("terraform")


@pytest.mark.skipif(TERRAFORM is None, reason="needs Terraform; its AWS provider is not needed")
def test_terraform_plans_the_module_over_a_resource_of_its_own(tmp_path):
    """The AWS provider is a download; a built-in resource takes the arguments instead, so all else is evaluated."""
    held = re.sub(r"  required_providers \{\n.*?\n  \}\n", "", MODULE, flags=re.DOTALL)
    held = BLOCK.sub(lambda found: f'resource "terraform_data" "queue" {{\n  input = {{\n{found[1]}\n  }}\n}}', held)
    (tmp_path / "main.tf").write_text(
        held.replace("aws_cloudformation_stack.queue.outputs", "terraform_data.queue.output")
    )
    given = {"Pools": "ml.p5.48xlarge=2", "AllowedRoles": "*"}

    def terraform(*arguments: str) -> subprocess.CompletedProcess[str]:
        home = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CHECKPOINT_DISABLE": "1"}
        command = [str(TERRAFORM), *arguments, "-no-color"]
        return subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, check=False, timeout=120)

    def plan(parameters: dict[str, str], url: str) -> subprocess.CompletedProcess[str]:
        values = {"parameters": parameters, "template_url": url}
        (tmp_path / "terraform.tfvars.json").write_text(json.dumps(values))
        return terraform("plan", "-input=false", "-out=plan")

    assert not terraform("fmt", "-check", str(EXAMPLES / "terraform")).stdout
    assert terraform("init").returncode == 0
    assert terraform("validate").returncode == 0
    assert (planned := plan(given, URL)).returncode == 0, planned.stderr
    (resource,) = json.loads(terraform("show", "-json", "plan").stdout)["planned_values"]["root_module"]["resources"]
    assert resource["values"]["input"] == {
        "name": "trainmaster",
        "template_url": URL,
        "parameters": given,
        "iam_role_arn": None,
        "tags": {},
        "capabilities": ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    }
    assert "Use the https address" in plan(given, "queue.json").stderr
