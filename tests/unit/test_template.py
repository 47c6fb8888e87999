"""template.yaml against the code that it deploys: names, routes, permissions, and the limits that hang together."""

import ast
import json
import re
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from botocore import xform_name
from cfnlint.api import lint_all

from permissions import actions, conditional_statements, listed, statements, template
from trainmaster import bootstrap
from trainmaster.adapters.eventbridge import SOURCE as SOURCE_OF_RESIZES
from trainmaster.bootstrap import Settings
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.policy.declaration import members_of
from trainmaster.domain.policy.settings import Policy
from trainmaster.handlers.api.app import OPERATIONS
from trainmaster.handlers.manager import consume
from trainmaster.images.domain.endpoint import Limits
from trainmaster.images.domain.limits import VARIABLES, limits_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "trainmaster"
TEMPLATE = template()
RESOURCES = TEMPLATE["Resources"]
PARAMETERS = TEMPLATE["Parameters"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SAMCONFIG = tomllib.loads((ROOT / "samconfig.toml").read_text())

WITHOUT_RESOURCE = {
    "cloudwatch:GetMetricData",
    "ec2:DescribeInstanceTypes",
    "pricing:GetProducts",
    "sagemaker:ListTrainingJobs",
    "servicequotas:ListServiceQuotas",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}
"""Actions for which IAM knows no resource (service authorization reference)."""
ANY_ARN = {"AllowedPrincipals", "ImageEndpointArns"}
"""Parameters in which a * alone is allowed."""
IMPLIED = {
    "sagemaker:AddTags",  # CreateTrainingJob with Tags
    "dynamodb:ConditionCheckItem",  # TransactWriteItems is allowed by the actions within
    "sqs:ReceiveMessage",  # Lambda's own polling of the wake queue
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "iam:PassRole",
}


def of_type(kind):
    return {name: each for name, each in RESOURCES.items() if each["Type"] == kind}


def sources_of(module):
    """Files of adapters, those of image jobs among them."""
    return [path for folder in ("adapters", "images/adapters") for path in (SOURCE / folder).glob(module)]


def calls_of(*modules):
    """AWS operations that adapters call, by the names of their client methods."""
    trees = [ast.parse(path.read_text()) for module in modules for path in sources_of(module)]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    methods = {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_client(node.value)}
    paged = {
        node.args[0].value
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_paginator"
    }
    return methods - {"get_paginator", "exceptions"} | paged


def is_client(node):
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.lstrip("_") in {"client", "iam"}


def as_methods(permitted):
    return {xform_name(action.split(":")[1]) for action in permitted - IMPLIED}


def test_cfn_lint_finds_nothing():
    found = lint_all((ROOT / "template.yaml").read_text())
    assert [str(match) for match in found if match.rule.severity != "informational"] == []


def test_the_functions_are_told_exactly_the_settings_that_the_code_reads():
    told = set(TEMPLATE["Globals"]["Function"]["Environment"]["Variables"])
    for resource in TEMPLATE["Resources"].values():
        told |= set(resource.get("Properties", {}).get("Environment", {}).get("Variables", {}))
    assert {name for name in told if name.startswith(bootstrap.PREFIX)} == {
        bootstrap.PREFIX + name for name in bootstrap.settings._READERS
    }


@pytest.mark.parametrize("name", ["QUEUE", "TABLE"])
def test_what_is_missing_is_said_to_be_an_output_that_has_it(name):
    given = {"TRAINMASTER_QUEUE": "q", "TRAINMASTER_TABLE": "t", f"TRAINMASTER_{name}": ""}
    with pytest.raises(InvalidRequest, match=f"TRAINMASTER_{name} is not set: .* the output") as refused:
        Settings.from_env(given)
    (output,) = re.findall(r"the output (\w+)", refused.value.message)
    told = TEMPLATE["Globals"]["Function"]["Environment"]["Variables"][f"TRAINMASTER_{name}"]
    assert TEMPLATE["Outputs"][output]["Value"] == told


def test_the_defaults_are_settings_that_the_code_accepts():
    environ = {
        "TRAINMASTER_QUEUE": PARAMETERS["QueueName"]["Default"],
        "TRAINMASTER_TABLE": PARAMETERS["QueueName"]["Default"],
        "TRAINMASTER_POOLS": "ml.p5.48xlarge=2,ml.g5.2xlarge=8",
        "TRAINMASTER_ROLE_MAPPING": PARAMETERS["RoleMapping"]["Default"],
        "TRAINMASTER_CHECK_PASS_ROLE": PARAMETERS["CheckPassRole"]["Default"],
        "TRAINMASTER_ALLOW_NON_PREEMPTIBLE": PARAMETERS["AllowNonPreemptible"]["Default"],
        "TRAINMASTER_RESERVATION_TIMEOUT_SECONDS": str(PARAMETERS["ReservationTimeoutSeconds"]["Default"]),
        "TRAINMASTER_LEARN_INSTANCE_TYPES": PARAMETERS["LearnInstanceTypes"]["Default"],
    }
    settings = bootstrap.Settings.from_env(environ)
    assert (settings.check_pass_role, settings.reservation_timeout_seconds, settings.learn_instance_types) == (
        True,
        3600,
        True,
    )
    assert re.fullmatch(PARAMETERS["Pools"]["AllowedPattern"], environ["TRAINMASTER_POOLS"])


def test_parameters_that_are_settings_have_their_default_and_bounds():
    mirrors = {member.name[0].upper() + member.name[1:]: member for member in members_of(Policy)}
    assert mirrors.keys() & PARAMETERS.keys() == {"ReservationTimeoutSeconds"}
    for name in mirrors.keys() & PARAMETERS.keys():
        parameter, member = PARAMETERS[name], mirrors[name]
        assert parameter["Default"] == member.default().total_seconds()
        assert parameter["MaxValue"] == member.setting.maximum
        assert member.setting.allows(parameter["MinValue"])


@pytest.mark.parametrize("name", VARIABLES)
def test_parameters_of_image_jobs_have_the_codes_defaults_and_take_what_it_takes(name):
    reference = TEMPLATE["Globals"]["Function"]["Environment"]["Variables"][name]
    parameter = PARAMETERS[reference["Ref"]]
    assert limits_of({name: str(parameter["Default"])}) == Limits()
    takes = [parameter[limit] for limit in ("MinValue", "MaxValue") if limit in parameter]
    takes += parameter.get("AllowedValues", [])
    for value in takes:
        limits_of({name: str(value)})
    if parameter["Type"] == "Number":
        assert {"MinValue", "MaxValue"} <= parameter.keys()
        with pytest.raises(InvalidRequest):
            limits_of({name: str(parameter["MinValue"] - 1)})


def test_whatever_the_pattern_of_a_regions_size_lets_in_the_code_reads():
    pattern = PARAMETERS["RegionSize"]["AllowedPattern"]
    for text in ("(10240, 10240)", "(256,512)", "(99999, 100)"):
        assert re.fullmatch(pattern, text)
        assert limits_of({"REGION_SIZE": text}) != Limits() or text == PARAMETERS["RegionSize"]["Default"]
    for text in ("(0, 0)", "(10, 10)", "10240", "(a, b)"):
        assert not re.fullmatch(pattern, text)


@pytest.mark.parametrize("function", ["ApiFunction", "ManagerFunction", "IntakeFunction", "RegionFunction"])
def test_each_handler_exists(function):
    module, _, name = RESOURCES[function]["Properties"]["Handler"].rpartition(".")
    assert callable(getattr(import_module(module), name))


def test_every_route_of_the_api_is_deployed_and_no_other():
    events = [event["Properties"] for event in RESOURCES["ApiFunction"]["Properties"]["Events"].values()]
    deployed = {(event["Method"].upper(), event["Path"]) for event in events}
    assert deployed == {(each.method, re.sub("<(.*?)>", r"{\1}", each.rule)) for _, each in OPERATIONS.values()}


def test_every_route_needs_a_signature():
    auth = RESOURCES["QueueApi"]["Properties"]["Auth"]
    assert (auth["DefaultAuthorizer"], auth["InvokeRole"]) == ("AWS_IAM", "NONE")
    events = RESOURCES["ApiFunction"]["Properties"]["Events"].values()
    assert not [event for event in events if "Auth" in event["Properties"]]


def test_the_api_may_not_call_sagemaker_nor_pass_roles():
    assert actions("ApiRole", "sagemaker") == set()
    assert "iam:PassRole" not in actions("ApiRole", "iam")


@pytest.mark.parametrize("role", of_type("AWS::IAM::Role"))
def test_no_permission_is_wide(role):
    assert list(statements(role))
    for each in statements(role):
        assert not [action for action in listed(each["Action"]) if "*" in action]
        if "*" in listed(each["Resource"]):
            assert set(listed(each["Action"])) <= WITHOUT_RESOURCE


def test_the_manager_may_call_of_sagemaker_what_the_code_calls():
    assert as_methods(actions("ManagerRole", "sagemaker")) == calls_of("sagemaker/*.py", "sagemaker*.py")


def test_the_manager_may_list_checkpoints_and_read_nothing():
    assert calls_of("s3.py") == {"list_objects_v2"}  # what IAM calls s3:ListBucket
    assert actions("ManagerRole", "s3") == {"s3:ListBucket"}
    assert actions("ApiRole", "s3") == set()


def test_plans_may_be_asked_about_and_used():
    (statement,) = [each for each in statements("ManagerRole") if each.get("Sid") == "TrainingPlans"]
    assert statement["Action"] == ["sagemaker:CreateTrainingJob", "sagemaker:DescribeTrainingPlan"]
    assert statement["Resource"] == {"Fn::Split": [",", {"Ref": "TrainingPlanArns"}]}


def test_both_functions_may_call_of_dynamodb_what_the_code_calls():
    called = calls_of("dynamodb/*.py", "*_rows.py", "refusals.py", "runs.py") - {"transact_write_items"}
    assert as_methods(actions("ManagerRole", "dynamodb")) == called
    # Only a pass is fenced; it counts itself, and those who work on images count regions.
    assert as_methods(actions("ApiRole", "dynamodb")) == called - {"condition_check_item", "update_item"}


def test_members_of_elastic_jobs_may_use_the_rows_of_rendezvous_alone():
    policy = RESOURCES["RendezvousPolicy"]["Properties"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    assert statement["Resource"] == {"Fn::GetAtt": ["QueueTable", "Arn"]}
    assert statement["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["rdzv#*"]}}
    assert not {"Roles", "Users", "Groups"} & policy.keys(), "who gets it is for whoever deploys to say"
    assert TEMPLATE["Outputs"]["RendezvousPolicyArn"]["Value"] == {"Ref": "RendezvousPolicy"}


def test_rows_of_rendezvous_runs_and_refusals_expire_and_no_others():
    table = RESOURCES["QueueTable"]["Properties"]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    sources = {path.stem: path.read_text() for path in [*sources_of("dynamodb/*.py"), *sources_of("*.py")]}
    written = {name for name, text in sources.items() if re.search(r"""["']expires["']|\bexpires=""", text)}
    assert {"refusals", "rendezvous", "runs"} <= written <= {"refusals", "rendezvous", "runs", "run_rows"}


def test_both_functions_may_send_what_the_code_sends():
    assert as_methods(actions("ApiRole", "sqs")) == calls_of("sqs.py")
    assert as_methods(actions("ManagerRole", "sqs")) == calls_of("sqs.py")


def test_the_api_may_ask_of_iam_what_the_code_asks():
    assert as_methods(actions("ApiRole", "iam")) == calls_of("iam.py")


def test_the_manager_alone_may_ask_about_instance_types_and_only_where_that_is_wanted():
    assert as_methods(actions("ManagerRole", "ec2")) == calls_of("catalogue/ec2.py")
    assert as_methods(actions("ManagerRole", "servicequotas")) == calls_of("catalogue/service_quotas.py")
    assert as_methods(actions("ManagerRole", "pricing")) == calls_of("catalogue/pricing.py")
    assert [actions("ApiRole", service) for service in ("ec2", "servicequotas", "pricing")] == [set()] * 3
    policies = RESOURCES["ManagerRole"]["Properties"]["Policies"]
    (wanted,) = [each["Fn::If"] for each in policies if "InstanceTypes" in str(each)]
    assert wanted[0] == "LearnsInstanceTypes"


def test_the_manager_alone_may_read_figures_of_endpoints_and_only_where_there_are_image_jobs():
    assert as_methods(actions("ManagerRole", "cloudwatch")) == calls_of("cloudwatch*.py")
    conditions = [condition for condition, each in conditional_statements("ManagerRole") if "cloudwatch" in str(each)]
    assert conditions == ["HasImageJobs"]
    assert [actions(role, "cloudwatch") for role in ("ApiRole", "IntakeRole", "RegionRole")] == [set()] * 3


def test_the_manager_alone_may_ask_others_to_resize_jobs_and_only_functions_that_were_named():
    assert calls_of("lambda_hook.py") == {"invoke"}  # what IAM calls lambda:InvokeFunction
    (statement,) = [each for each in statements("ManagerRole") if each.get("Sid") == "ResizeFunctions"]
    assert statement["Action"] == "lambda:InvokeFunction"
    assert statement["Resource"] == {"Fn::Split": [",", {"Ref": "ResizeFunctionArns"}]}
    assert as_methods(actions("ManagerRole", "events")) == calls_of("eventbridge.py")
    (events,) = [each for each in statements("ManagerRole") if each["Action"] == "events:PutEvents"]
    assert events["Condition"] == {"StringEquals": {"events:source": SOURCE_OF_RESIZES}}
    assert [actions("ApiRole", service) for service in ("lambda", "events")] == [set()] * 2


def test_roles_are_passed_to_sagemaker_alone_and_only_those_allowed():
    (statement,) = [each for each in statements("ManagerRole") if each["Action"] == "iam:PassRole"]
    assert statement["Resource"] == {"Ref": "AllowedRoles"}
    assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}


def test_the_manager_may_wake_itself_and_set_messages_aside():
    assert sent_to("ManagerRole") == ["WakeQueue", "WakeDeadLetterQueue", "RegionQueue", "ImageDeadLetterQueue"]


def sent_to(role):
    """The queues that a role may send to."""
    sends = [each["Resource"] for each in statements(role) if "sqs:SendMessage" in listed(each["Action"])]
    return [queue["Fn::GetAtt"][0] for queues in sends for queue in listed(queues)]


def test_those_who_open_images_may_send_to_whom_they_have_to_and_no_further():
    assert sent_to("IntakeRole") == ["WakeQueue", "ImageDeadLetterQueue"]
    assert sent_to("RegionRole") == ["RegionQueue", "WakeQueue"]
    for role in ("IntakeRole", "RegionRole"):
        assert as_methods(actions(role, "sqs")) == calls_of("sqs.py") == {"send_message"}


@pytest.mark.parametrize(
    ("role", "written"),
    [
        ("IntakeRole", {"dynamodb:PutItem": {"JOB#*", "WAIT", "endpoints", "refused#*"}}),
        ("RegionRole", {"dynamodb:PutItem": {"image#*", "endpoints"}, "dynamodb:UpdateItem": {"image#*"}}),
    ],
)
def test_those_who_open_images_may_read_the_table_and_write_their_own_rows(role, written):
    """That it is enough for them is proved in test_permissions.py."""
    found = {}
    for each in statements(role):
        of_table = [action for action in listed(each["Action"]) if action.startswith("dynamodb:")]
        if "Condition" not in each:
            assert set(of_table) <= {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"}
            continue
        for action in of_table:
            assert each["Condition"].keys() == {"ForAllValues:StringLike"}
            found.setdefault(action, set()).update(each["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"])
    assert found == written


def test_a_batch_is_hidden_longer_than_the_manager_may_take_but_not_for_long():
    timeout = RESOURCES["ManagerFunction"]["Properties"]["Timeout"]
    assert 2 * timeout <= RESOURCES["WakeQueue"]["Properties"]["VisibilityTimeout"] <= 180
    assert RESOURCES["ApiFunction"]["Properties"]["Timeout"] <= 29


@pytest.mark.parametrize(
    ("function", "event", "queue", "parameter"),
    [
        ("IntakeFunction", "Requests", "ImageQueue", "IntakeConcurrency"),
        ("RegionFunction", "Regions", "RegionQueue", "RegionConcurrency"),
    ],
)
def test_w20_functions_of_image_jobs_scale_with_their_queues_and_no_message_is_given_up_for_their_bound(
    function, event, queue, parameter
):
    """Nobody else scales them. Lambda takes 2 to 1,000.

    A message that shows again before its call has ended is counted as received in vain. AWS advises five deliveries at
    least ("Configuring maximum concurrency for Amazon SQS event sources").
    """
    source = RESOURCES[function]["Properties"]["Events"][event]["Properties"]
    assert source["Queue"] == {"Fn::GetAtt": [queue, "Arn"]}
    assert source["ScalingConfig"] == {"MaximumConcurrency": {"Ref": parameter}}
    assert (PARAMETERS[parameter]["MinValue"], PARAMETERS[parameter]["MaxValue"]) == (2, 1000)
    assert not [each for each in RESOURCES.values() if "AutoScaling" in each["Type"] or "::ECS::" in each["Type"]]
    properties = RESOURCES[queue]["Properties"]
    assert properties["VisibilityTimeout"] > RESOURCES[function]["Properties"]["Timeout"]
    assert properties["RedrivePolicy"]["maxReceiveCount"] >= 5


KMS = {"IntakeRole": {"kms:Decrypt"}, "RegionRole": {"kms:Decrypt", "kms:GenerateDataKey"}}
"""What S3 needs to read and to write under a key ("Protecting data with SSE-KMS")."""


@pytest.mark.parametrize("role", of_type("AWS::IAM::Role"))
def test_keys_of_images_open_to_those_who_read_and_write_them_through_s3_alone(role):
    found = [
        (condition, each)
        for condition, each in conditional_statements(role)
        if any(action in {"kms:Decrypt", "kms:GenerateDataKey"} for action in listed(each["Action"]))
    ]
    assert {action for _, each in found for action in listed(each["Action"])} == KMS.get(role, set())
    for condition, each in found:
        assert condition == "HasImageKmsKeys"
        assert each["Resource"] == {"Fn::Split": [",", {"Ref": "ImageKmsKeyArns"}]}
        assert each["Condition"] == {"StringLike": {"kms:ViaService": {"Fn::Sub": "s3.*.${AWS::URLSuffix}"}}}


PLATFORM = "platforms/${Runtime}-${Architecture}"
MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}


def test_parts_of_image_jobs_are_built_only_where_there_are_image_jobs():
    """SAM builds whatever stands in a template; it does resolve `ContextPath`, with the parameters that it is given."""
    layer = RESOURCES["ImagingLayer"]
    assert layer["Metadata"]["ContextPath"] == {"Fn::If": ["HasImageJobs", {"Fn::Sub": PLATFORM}, "platforms/none"]}
    # SAM's cache knows builds by what they are compatible with, not by where the Makefile is.
    assert layer["Properties"]["CompatibleRuntimes"]["Fn::If"][2] != [{"Ref": "Runtime"}]
    for name in of_type("AWS::Serverless::Function"):
        metadata = RESOURCES[name]["Metadata"]
        assert metadata["BuildMethod"] == "makefile"
        with_images = RESOURCES[name].get("Condition") == layer["Condition"]
        assert metadata["ContextPath"] == (layer["Metadata"]["ContextPath"] if with_images else {"Fn::Sub": PLATFORM})
    for name, folder in (("ImagingLayer", "layers/imaging"), ("IntakeFunction", "src")):
        assert "pip" not in made("platforms/none", name, folder)
        assert "bundle" not in made("platforms/none", name, folder)


def test_functions_and_layer_are_built_for_the_functions_platform():
    for runtime in PARAMETERS["Runtime"]["AllowedValues"]:
        for architecture in PARAMETERS["Architecture"]["AllowedValues"]:
            makefile = PLATFORM.replace("${Runtime}", runtime).replace("${Architecture}", architecture)
            version, machine = runtime.removeprefix("python"), MACHINES[architecture]
            assert asked_of_pip(made(makefile, "ImagingLayer", "layers/imaging")) == (version, machine)
            built = made(makefile, "ApiFunction", "src").split()
            assert built[1:] == [
                "build_bundle.py", "ApiFunction", "--python", version, "--machine", machine, "--into", '"/a"',
            ]  # fmt: skip


def made(makefile, part, folder):
    """What make would do for a part of the template, where SAM runs it."""
    command = ["make", "--dry-run", "--makefile", ROOT / makefile / "Makefile", f"build-{part}", "ARTIFACTS_DIR=/a"]
    return subprocess.run(command, cwd=ROOT / folder, check=True, capture_output=True, text=True).stdout


def asked_of_pip(said):
    """The Python version and the machine that wheels are taken for."""
    (version,) = re.findall(r"--python-version (\S+)", said)
    (machine,) = set(re.findall(r"--platform manylinux\d*(?:_2_28|2014)_(\S+)", said))
    return version, machine


def test_what_cannot_give_a_deduplication_id_does_not_need_to():
    assert RESOURCES["WakeQueue"]["Properties"]["ContentBasedDeduplication"] is True
    rule = RESOURCES["TrainingJobRule"]["Properties"]["Targets"][0]
    tick = RESOURCES["Tick"]["Properties"]["Target"]
    assert rule["SqsParameters"] == tick["SqsParameters"] == {"MessageGroupId": "manager"}


class Quiet:
    """An application whose manager is asked only what a message means to it."""

    def observation_of(self, event):
        raise AssertionError("a tick is no event")

    class Seen(Exception):
        pass

    settings = Settings(queue="sagemaker-queue", table="sagemaker-queue")

    @property
    def manager_context(self):
        raise self.Seen


def test_the_tick_is_a_message_that_makes_the_manager_run_a_pass():
    body = RESOURCES["Tick"]["Properties"]["Target"]["Input"]
    assert json.loads(body)["time"] == "<aws.scheduler.scheduled-time>"
    with pytest.raises(Quiet.Seen):
        consume(Quiet(), {"Records": [{"messageId": "1", "body": body}]}, None)


def test_the_rule_sees_a_job_start_and_end():
    pattern = RESOURCES["TrainingJobRule"]["Properties"]["EventPattern"]
    assert pattern["source"] == [{"Ref": "EventSource"}]
    assert PARAMETERS["EventSource"]["Default"] == "aws.sagemaker"
    assert {"InProgress", "Completed", "Failed", "Stopped"} <= set(pattern["detail"]["TrainingJobStatus"])


@pytest.mark.parametrize("queue", of_type("AWS::SQS::Queue"))
def test_queues_are_encrypted(queue):
    assert RESOURCES[queue]["Properties"]["SqsManagedSseEnabled"] is True


def test_the_table_outlives_the_stack():
    table = RESOURCES["QueueTable"]
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
    assert table["Properties"]["DeletionProtectionEnabled"] is True
    assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_every_dead_letter_and_every_function_has_an_alarm():
    watched = {
        (alarm["Properties"]["MetricName"], json.dumps(alarm["Properties"]["Dimensions"][0]["Value"]))
        for alarm in of_type("AWS::CloudWatch::Alarm").values()
        if "MetricName" in alarm["Properties"]
    }
    dead = [name for name in of_type("AWS::SQS::Queue") if "DeadLetter" in name]
    functions = list(of_type("AWS::Serverless::Function"))
    assert len(dead) == len(functions) == 4
    for queue in dead:
        arn = json.dumps({"Fn::GetAtt": [queue, "QueueName"]})
        assert ("ApproximateNumberOfMessagesVisible", arn) in watched
    for function in functions:
        assert ("Throttles", json.dumps({"Ref": function})) in watched
    assert ("Errors", json.dumps({"Ref": "ManagerFunction"})) in watched
    # The API's function answers its own failures, so only the API counts them.
    assert ("5XXError", json.dumps(RESOURCES["QueueApi"]["Properties"]["Name"])) in watched


def test_the_api_of_the_usual_queue_has_the_articles_name_and_no_other_shares_it():
    """API Gateway's metrics have the API's name and the stage as dimensions, and no id: of one name they add up."""
    assert TEMPLATE["Conditions"]["HasUsualName"] == {"Fn::Equals": [{"Ref": "QueueName"}, "sagemaker-queue"]}
    assert PARAMETERS["QueueName"]["Default"] == "sagemaker-queue"
    named = {"Fn::If": ["HasUsualName", "training-job-queue", {"Fn::Sub": "training-job-queue-${QueueName}"}]}
    alarm = RESOURCES["ApiErrorsAlarm"]["Properties"]["Dimensions"]
    assert RESOURCES["QueueApi"]["Properties"]["Name"] == alarm[0]["Value"] == named


def test_alarms_watch_what_is_of_their_own_queue_except_those_of_the_guide():
    """ModelRunner's guide gives its metrics names and dimensions that say nothing of the deployment."""
    shared = set()
    for name, alarm in of_type("AWS::CloudWatch::Alarm").items():
        watched = [alarm["Properties"], *(each["MetricStat"]["Metric"] for each in math_of(alarm))]
        for metric in watched:
            values = [each["Value"] for each in metric.get("Dimensions", [])]
            if values and not any(isinstance(value, dict) for value in values):
                shared.add((name, metric["Namespace"]))
    assert shared == {(f"Image{kind}Alarm", "OSML/ModelRunner") for kind in ("Throttles", "Errors", "Duration")}
    told = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    assert all(f"`{name}`" in told for name, _ in shared)


def math_of(alarm):
    """The metrics that an alarm compares with each other."""
    return [each for each in alarm["Properties"].get("Metrics", []) if "MetricStat" in each]


def test_alarms_need_no_metric_math_where_a_simulator_stands_in():
    """ministack knows none, and would refuse the template."""
    assert {"Fn::Equals": [{"Ref": "EventSource"}, "aws.sagemaker"]} in TEMPLATE["Conditions"]["WatchesImageShares"][
        "Fn::And"
    ]
    alarms = of_type("AWS::CloudWatch::Alarm").values()
    assert {alarm["Condition"] for alarm in alarms if "Metrics" in alarm["Properties"]} == {"WatchesImageShares"}


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_is_described_and_limited(name):
    parameter = PARAMETERS[name]
    assert parameter["Description"].endswith(".")
    limits = {"AllowedPattern", "AllowedValues", "MinValue"}
    assert limits & parameter.keys() or name in ANY_ARN, "any ARN pattern is one that IAM matches"


def test_every_parameter_stands_in_a_group():
    groups = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert sorted(name for group in groups for name in group["Parameters"]) == sorted(PARAMETERS)


def test_private_arm_and_the_newest_of_the_usual_runtimes_by_default():
    defaults = {name: PARAMETERS[name]["Default"] for name in ("EndpointType", "Architecture", "Runtime")}
    assert defaults == {"EndpointType": "PRIVATE", "Architecture": "arm64", "Runtime": "python3.13"}


def test_every_skipped_check_says_why():
    skipped = [
        skip for each in RESOURCES.values() for skip in each.get("Metadata", {}).get("checkov", {}).get("skip", [])
    ]
    assert skipped
    assert not [skip["id"] for skip in skipped if len(skip["comment"]) < 30]


def test_reasons_are_those_of_the_functions_that_they_stand_at():
    """Two of four fetch from any public address, and are bounded by their event sources alone."""
    for name, each in of_type("AWS::Serverless::Function").items():
        why = {skip["id"]: skip["comment"] for skip in each["Metadata"]["checkov"]["skip"]}
        bounded = [source for source in each["Properties"]["Events"].values() if source["Type"] == "SQS"]
        fetches = "Layers" in each["Properties"]
        assert ("AWS APIs only" in why["CKV_AWS_117"], "over HTTP" in why["CKV_AWS_117"]) == (not fetches, fetches), (
            name
        )
        assert ("MaximumConcurrency" in why["CKV_AWS_115"]) == fetches, name
        assert all("MaximumConcurrency" in source["Properties"]["ScalingConfig"] for source in bounded)
    assert "both functions" not in (ROOT / "template.yaml").read_text().lower()


def test_the_local_configuration_gives_parameters_that_the_template_accepts():
    given = dict(pair.split("=", 1) for pair in SAMCONFIG["local"]["deploy"]["parameters"]["parameter_overrides"])
    for name, value in given.items():
        parameter = PARAMETERS[name]
        assert value in [str(each) for each in parameter.get("AllowedValues", [value])]
        assert re.fullmatch(parameter.get("AllowedPattern", ".*"), value)
    needed = {name for name, parameter in PARAMETERS.items() if "Default" not in parameter}
    assert needed <= given.keys()
    assert not given["EventSource"].startswith("aws.")


def test_the_bundle_is_the_extra_that_the_project_names():
    lines = (ROOT / "src" / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == PROJECT["project"]["optional-dependencies"][
        "service"
    ]
