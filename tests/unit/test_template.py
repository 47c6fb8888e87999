"""template.yaml against the code that it deploys: names, routes, permissions, and the limits that hang together."""

import json
import re
import tomllib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from doc_pages import DOCS
from permissions import actions, statements, template
from rendered import core_stack
from template_checks import (
    PLATFORM,
    alarms_on_shared_metrics,
    as_methods,
    calls_of,
    check_alarms_of_queues_and_functions,
    check_bundle_is_built_for,
    check_event_sources_are_bounded,
    check_parameter,
    check_permissions,
    check_samconfig,
    check_skipped,
    lint,
    of_type,
    platforms_of,
    sent_to,
    watched_by,
)
from trainmaster import bootstrap
from trainmaster.adapters.eventbridge import SOURCE as SOURCE_OF_RESIZES
from trainmaster.bootstrap import Settings
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.request_policy import RequestPolicy
from trainmaster.domain.access.rules import Action
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.events.types import EventType, event_types
from trainmaster.domain.policy.declaration import members_of
from trainmaster.domain.policy.roles import may_pass
from trainmaster.domain.policy.settings import Policy
from trainmaster.handlers.api.app import OPERATIONS
from trainmaster.handlers.manager import consume

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "trainmaster"
TEMPLATE = template()
RESOURCES = TEMPLATE["Resources"]
PARAMETERS = TEMPLATE["Parameters"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

ANY_ARN = {"AllowedPrincipals"}
"""Parameters in which a * alone is allowed."""


@pytest.mark.slow  # half a minute, and `make check` lints both templates
def test_cfn_lint_finds_nothing():
    assert lint("template.yaml") == []


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
        "TRAINMASTER_CHECK_CREATE_TRAINING_JOB": PARAMETERS["CheckCreateTrainingJob"]["Default"],
        "TRAINMASTER_TRAINING_JOBS": "arn:aws-us-gov:sagemaker:us-gov-west-1:111122223333:training-job/",
        "TRAINMASTER_REQUEST_POLICY": PARAMETERS["RequestPolicy"]["Default"],
        "TRAINMASTER_ADMINS": PARAMETERS["Admins"]["Default"],
        "TRAINMASTER_VIEWERS": PARAMETERS["Viewers"]["Default"],
        "TRAINMASTER_CEILINGS": PARAMETERS["Ceilings"]["Default"],
        "TRAINMASTER_ALLOW_NON_PREEMPTIBLE": PARAMETERS["AllowNonPreemptible"]["Default"],
        "TRAINMASTER_RESERVATION_TIMEOUT_SECONDS": str(PARAMETERS["ReservationTimeoutSeconds"]["Default"]),
        "TRAINMASTER_LEARN_INSTANCE_TYPES": PARAMETERS["LearnInstanceTypes"]["Default"],
        "TRAINMASTER_JOB_RETENTION_DAYS": str(PARAMETERS["JobRetentionDays"]["Default"]),
        "TRAINMASTER_AUDIT_RETENTION_DAYS": str(PARAMETERS["AuditRetentionDays"]["Default"]),
        "TRAINMASTER_EVENTS": PARAMETERS["Events"]["Default"],
        "TRAINMASTER_EVENT_BUS": PARAMETERS["EventBusName"]["Default"],
        "TRAINMASTER_NOTIFICATION_TOPIC": PARAMETERS["NotificationTopicArn"]["Default"],
        "TRAINMASTER_STEP_FUNCTIONS": PARAMETERS["StepFunctions"]["Default"],
        "TRAINMASTER_PIPELINES": PARAMETERS["SageMakerPipelines"]["Default"],
        "TRAINMASTER_POOL_METRICS": PARAMETERS["PoolMetrics"]["Default"],
        "TRAINMASTER_JOB_KINDS": PARAMETERS["JobKindSettings"]["Default"],
    }
    settings = bootstrap.Settings.from_env(environ)
    assert (settings.check_pass_role, settings.reservation_timeout_seconds, settings.learn_instance_types) == (
        True,
        3600,
        True,
    )
    assert settings.job_retention_days == Settings(queue="q", table="t").job_retention_days
    assert settings.audit_retention_days == Settings(queue="q", table="t").audit_retention_days
    assert (settings.check_create_training_job, settings.request_policy) == (True, RequestPolicy())
    assert re.fullmatch(PARAMETERS["Pools"]["AllowedPattern"], environ["TRAINMASTER_POOLS"])


@pytest.mark.parametrize("bound", ["MinValue", "MaxValue"])
def test_audit_entries_are_kept_for_as_long_as_the_template_allows(bound):
    given = {"TRAINMASTER_QUEUE": "q", "TRAINMASTER_TABLE": "t"}
    limit = PARAMETERS["AuditRetentionDays"][bound]
    beyond = limit + (1 if bound == "MaxValue" else -1)
    assert Settings.from_env({**given, "TRAINMASTER_AUDIT_RETENTION_DAYS": str(limit)}).audit_retention_days == limit
    with pytest.raises(InvalidRequest, match="out of range"):
        Settings.from_env({**given, "TRAINMASTER_AUDIT_RETENTION_DAYS": str(beyond)})


@pytest.mark.parametrize("parameter", ["Admins", "Viewers"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "arn:aws:iam::111122223333:role/ml-platform-*",
        "arn:aws:sts::111122223333:assumed-role/ops,arn:aws-us-gov:iam::*:user/team/ada@example.com",
    ],
)
def test_the_callers_that_the_code_accepts_pass_the_templates_pattern(parameter, text):
    assert re.fullmatch(PARAMETERS[parameter]["AllowedPattern"], text)
    given = {"TRAINMASTER_QUEUE": "q", "TRAINMASTER_TABLE": "t", f"TRAINMASTER_{parameter.upper()}": text}
    read = getattr(Settings.from_env(given), parameter.lower())
    assert ",".join(read) == text


@pytest.mark.parametrize("name", ["ADMINS", "VIEWERS", "ROLE_MAPPING"])
def test_a_pattern_that_can_match_no_caller_stops_the_function_at_its_start(name):
    pattern = "arn:aws:iam::111122223333:assumed-role/ops"
    text = f'{{"{pattern}": ["*"]}}' if name == "ROLE_MAPPING" else pattern
    with pytest.raises(InvalidRequest, match=f"TRAINMASTER_{name} is wrong: '{pattern}' matches no caller"):
        Settings.from_env({"TRAINMASTER_QUEUE": "q", "TRAINMASTER_TABLE": "t", f"TRAINMASTER_{name}": text})


def test_the_role_mapping_of_the_page_is_for_callers_as_api_gateway_names_them():
    (example,) = re.findall(r"\| `RoleMapping` \|.*?`(\{\".*?\})`", (DOCS / "how-to" / "deploy.md").read_text())
    given = {"TRAINMASTER_QUEUE": "q", "TRAINMASTER_TABLE": "t", "TRAINMASTER_ROLE_MAPPING": example}
    mapping = Settings.from_env(given).role_mapping
    role = "arn:aws:iam::111122223333:role/vision-training"
    for name, allowed in (("vision-research", True), ("speech", False)):
        caller = Caller(f"arn:aws:sts::111122223333:assumed-role/{name}/ada@example.com")
        assert may_pass(caller.principal, role, ("*",), mapping) is allowed


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, []),
        ({"VpcEndpointIds": ""}, ["VpcEndpointIds"]),
        ({"VpcEndpointIds": "", "EndpointType": "REGIONAL"}, []),
        ({"SubnetIds": "subnet-0123456789abcdef0"}, ["SecurityGroupIds"]),
        ({"CheckPassRole": "false"}, ["Admins"]),
        ({"CheckPassRole": "false", "Admins": "arn:aws:iam::111122223333:role/ops"}, []),
        ({"CheckPassRole": "true", "CheckCreateTrainingJob": "false"}, []),
    ],
)
def test_parameters_that_cannot_work_together_are_refused_with_what_to_set(given, named):
    objections = core_stack(**given).objections
    assert len(objections) == len(named)
    assert all(name in text for name, text in zip(named, objections, strict=True))


@pytest.mark.parametrize(
    ("admins", "asks", "there_is_one"), [("", "true", True), ("", "false", False), ("*", "false", True)]
)
def test_the_refused_combination_is_the_one_without_a_queue_admin(admins, asks, there_is_one):
    """As the API decides about a caller with every IAM permission."""
    settings = Settings.from_env({
        "TRAINMASTER_QUEUE": "q",
        "TRAINMASTER_TABLE": "t",
        "TRAINMASTER_STACK": "arn:aws:cloudformation:us-east-1:111122223333:stack/trainmaster/1",
        "TRAINMASTER_ADMINS": admins,
        "TRAINMASTER_CHECK_PASS_ROLE": asks,
    })  # fmt: skip
    application = bootstrap.Application(settings)
    application.__dict__["permissions"] = SimpleNamespace(allows=lambda *_: True)
    admin = Caller("arn:aws:sts::111122223333:assumed-role/ops/ada")
    assert application.access.may(admin, Action.ADMINISTER, Policy) is there_is_one
    assert bool(core_stack(Admins=admins, CheckPassRole=asks).objections) is not there_is_one


def test_parameters_that_are_settings_have_their_default_and_bounds():
    mirrors = {member.name[0].upper() + member.name[1:]: member for member in members_of(Policy)}
    assert mirrors.keys() & PARAMETERS.keys() == {"ReservationTimeoutSeconds"}
    for name in mirrors.keys() & PARAMETERS.keys():
        parameter, member = PARAMETERS[name], mirrors[name]
        assert parameter["Default"] == member.default().total_seconds()
        assert parameter["MaxValue"] == member.setting.maximum
        assert member.setting.allows(parameter["MinValue"])


@pytest.mark.parametrize("function", of_type(TEMPLATE, "AWS::Serverless::Function"))
def test_each_handler_exists(function):
    module, _, name = RESOURCES[function]["Properties"]["Handler"].rpartition(".")
    assert callable(getattr(import_module(module), name))


def test_every_route_of_the_api_is_deployed_and_no_other():
    events = [event["Properties"] for event in RESOURCES["ApiFunction"]["Properties"]["Events"].values()]
    deployed = {(event["Method"].upper(), event["Path"]) for event in events}
    routes = {(each.method, re.sub("<(.*?)>", r"{\1}", each.rule)) for _, each in OPERATIONS.values()}
    assert routes <= deployed
    assert deployed - routes == {("POST", "/{kind}")}, "the routes of further kinds of jobs"


def test_every_route_needs_a_signature():
    auth = RESOURCES["QueueApi"]["Properties"]["Auth"]
    assert (auth["DefaultAuthorizer"], auth["InvokeRole"]) == ("AWS_IAM", "NONE")
    events = RESOURCES["ApiFunction"]["Properties"]["Events"].values()
    assert not [event for event in events if "Auth" in event["Properties"]]


def test_the_api_may_not_call_sagemaker_nor_pass_roles():
    assert actions("ApiRole", "sagemaker") == set()
    assert "iam:PassRole" not in actions("ApiRole", "iam")


def test_the_role_of_the_accounts_logs_is_the_only_one_without_a_policy_of_the_template():
    without = {
        name: each["Properties"].get("ManagedPolicyArns")
        for name, each in of_type(TEMPLATE, "AWS::IAM::Role").items()
        if "Policies" not in each["Properties"]
    }
    policy = "arn:${AWS::Partition}:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"
    assert without == {"ApiLogRole": [{"Fn::Sub": policy}]}


@pytest.mark.parametrize("role", sorted(of_type(TEMPLATE, "AWS::IAM::Role").keys() - {"ApiLogRole"}))
def test_no_permission_is_wide(role):
    check_permissions(role)


def test_the_manager_may_call_of_sagemaker_what_the_code_calls():
    called = calls_of("sagemaker/*.py", "sagemaker*.py")
    proves = {"describe_pipeline", "describe_pipeline_execution"}
    assert as_methods(actions("ManagerRole", "sagemaker")) | {"get_role"} == called - proves
    assert as_methods(actions("PipelineRole", "sagemaker")) & called >= proves


def test_the_manager_may_list_checkpoints_and_read_nothing():
    assert calls_of("s3.py") == {"list_objects_v2"}  # what IAM calls s3:ListBucket
    assert actions("ManagerRole", "s3") == {"s3:ListBucket"}
    assert actions("ApiRole", "s3") == set()


def test_plans_may_be_asked_about_and_used():
    found = {each["Sid"]: each for each in statements("ManagerRole") if "TrainingPlans" in each.get("Sid", "")}
    assert {sid: each["Action"] for sid, each in found.items()} == {
        "TrainingPlans": "sagemaker:DescribeTrainingPlan",
        "UseTrainingPlans": "sagemaker:CreateTrainingJob",
    }
    for statement in found.values():
        assert statement["Resource"] == {"Fn::Split": [",", {"Ref": "TrainingPlanArns"}]}


def test_both_functions_may_call_of_dynamodb_what_the_code_calls():
    called = calls_of("dynamodb/*.py") - {"transact_write_items"}
    assert as_methods(actions("ManagerRole", "dynamodb")) == called
    # Only a pass is fenced.
    assert as_methods(actions("ApiRole", "dynamodb")) == called - {"condition_check_item"}


def test_members_of_elastic_jobs_may_use_the_rows_of_rendezvous_alone():
    policy = RESOURCES["RendezvousPolicy"]["Properties"]
    granted = {
        tuple(each["Action"]): each["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
        for each in policy["PolicyDocument"]["Statement"]
    }
    assert granted == {
        ("dynamodb:GetItem", "dynamodb:UpdateItem"): ["${aws:PrincipalArn}#*"],
        ("dynamodb:DeleteItem", "dynamodb:Query"): ["${aws:PrincipalArn}#*#live#*"],
    }
    for statement in policy["PolicyDocument"]["Statement"]:
        assert statement["Resource"] == {"Fn::GetAtt": ["RendezvousTable", "Arn"]}
        assert statement["Condition"]["Null"] == {"dynamodb:LeadingKeys": "false"}
    assert not {"Roles", "Users", "Groups"} & policy.keys(), "the deployer decides on its principals"
    assert TEMPLATE["Outputs"]["RendezvousPolicyArn"]["Value"] == {"Ref": "RendezvousPolicy"}


def test_the_functions_have_of_the_table_of_rendezvous_what_they_call():
    granted = {
        role: [each["Action"] for each in statements(role) if each.get("Sid") == "Rendezvous"]
        for role in ("ApiRole", "ManagerRole")
    }
    assert granted == {
        "ApiRole": ["dynamodb:GetItem"],
        "ManagerRole": [["dynamodb:GetItem", "dynamodb:UpdateItem"]],
    }


def test_rows_of_rendezvous_are_apart_and_expire():
    table, queue = (RESOURCES[name]["Properties"] for name in ("RendezvousTable", "QueueTable"))
    assert table.keys() & {"GlobalSecondaryIndexes", "LocalSecondaryIndexes", "StreamSpecification"} == set()
    assert (table["BillingMode"], table["SSESpecification"]) == ("PAY_PER_REQUEST", queue["SSESpecification"])
    assert table["TableName"] != queue["TableName"]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert TEMPLATE["Outputs"]["RendezvousTableName"]["Value"] == {"Ref": "RendezvousTable"}
    told = TEMPLATE["Globals"]["Function"]["Environment"]["Variables"]
    assert told["TRAINMASTER_RENDEZVOUS_TABLE"] == {"Ref": "RendezvousTable"}
    sources = {path.stem: path.read_text() for path in (SOURCE / "adapters").rglob("*.py")}
    written = {name for name, text in sources.items() if re.search(r"""["']expires["']|\bexpires=""", text)}
    assert written == {"audit", "control"}, "no row of a job ever expires"


def test_both_functions_may_send_what_the_code_sends():
    assert as_methods(actions("ApiRole", "sqs")) == calls_of("sqs.py")
    assert as_methods(actions("ManagerRole", "sqs")) == calls_of("sqs.py")


def test_both_functions_may_ask_of_iam_what_the_code_asks():
    assert as_methods(actions("ApiRole", "iam")) == calls_of("iam.py")
    assert as_methods(actions("ManagerRole", "iam") - {"iam:PassRole"}) == calls_of("iam.py")


def test_the_manager_alone_may_ask_about_instance_types_and_only_where_that_is_wanted():
    assert as_methods(actions("ManagerRole", "ec2")) == calls_of("catalogue/ec2.py")
    assert as_methods(actions("ApiRole", "ec2")) == set()
    assert as_methods(actions("ManagerRole", "servicequotas")) == calls_of("catalogue/service_quotas.py")
    assert as_methods(actions("ManagerRole", "pricing")) == calls_of("catalogue/pricing.py")
    assert [actions("ApiRole", service) for service in ("servicequotas", "pricing")] == [set()] * 2
    policies = RESOURCES["ManagerRole"]["Properties"]["Policies"]
    (wanted,) = [each["Fn::If"] for each in policies if "InstanceTypes" in str(each)]
    assert wanted[0] == "LearnsInstanceTypes"


def test_the_manager_alone_may_ask_others_to_resize_jobs_and_only_functions_that_were_named():
    assert calls_of("lambda_hook.py") == {"invoke"}  # what IAM calls lambda:InvokeFunction
    (statement,) = [each for each in statements("ManagerRole") if each.get("Sid") == "ResizeFunctions"]
    assert statement["Action"] == "lambda:InvokeFunction"
    assert statement["Resource"] == {"Fn::Split": [",", {"Ref": "ResizeFunctionArns"}]}
    assert as_methods(actions("ManagerRole", "events")) == calls_of("eventbridge.py")
    condition = {"ForAllValues:StringEquals": {"events:source": SOURCE_OF_RESIZES}, "Null": {"events:source": "false"}}
    events = [each for each in statements("ManagerRole") if each["Action"] == "events:PutEvents"]
    assert [each["Condition"] for each in events] == [condition] * 2, "the default bus, and the one that is named"
    assert [actions("ApiRole", service) for service in ("lambda", "events")] == [set()] * 2


def test_the_manager_alone_may_publish_and_only_to_the_topic_of_notifications():
    assert as_methods(actions("ManagerRole", "sns")) == calls_of("sns.py") == {"publish"}
    assert actions("ApiRole", "sns") == set()
    (publish,) = [each for each in statements("ManagerRole") if each["Action"] == "sns:Publish"]
    assert publish["Resource"] == {"Ref": "NotificationTopicArn"}


@pytest.mark.parametrize("text", ["all", "none", "ended, preempted", *EventType])
def test_each_word_for_events_passes_the_template(text):
    assert re.fullmatch(PARAMETERS["Events"]["AllowedPattern"], text)
    assert isinstance(event_types(text), frozenset)


def test_roles_are_passed_to_sagemaker_alone_and_only_those_allowed():
    (statement,) = [each for each in statements("ManagerRole") if each["Action"] == "iam:PassRole"]
    assert statement["Resource"] == {"Ref": "AllowedRoles"}
    assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}


def test_the_manager_may_wake_itself_and_set_messages_aside():
    assert sent_to("ManagerRole") == ["WakeQueue", "WakeDeadLetterQueue"]


def test_a_batch_is_hidden_longer_than_the_manager_may_take_but_not_for_long():
    timeout = RESOURCES["ManagerFunction"]["Properties"]["Timeout"]
    assert 2 * timeout <= RESOURCES["WakeQueue"]["Properties"]["VisibilityTimeout"] <= 180
    assert RESOURCES["ApiFunction"]["Properties"]["Timeout"] <= 29


@pytest.mark.parametrize("platform", platforms_of(TEMPLATE))
def test_functions_are_built_for_their_platform(platform):
    for name, function in of_type(TEMPLATE, "AWS::Serverless::Function").items():
        metadata = function["Metadata"]
        assert (metadata["BuildMethod"], metadata["ContextPath"]) == ("makefile", {"Fn::Sub": PLATFORM})
        check_bundle_is_built_for(name, platform)


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


@pytest.mark.parametrize("queue", of_type(TEMPLATE, "AWS::SQS::Queue"))
def test_queues_are_encrypted(queue):
    properties = RESOURCES[queue]["Properties"]
    managed, own = properties["SqsManagedSseEnabled"]["Fn::If"], properties["KmsMasterKeyId"]["Fn::If"]
    assert (managed[0], managed[2]) == (own[0], True) == ("HasOwnKey", True)


def test_the_table_outlives_the_stack():
    table = RESOURCES["QueueTable"]
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
    assert table["Properties"]["DeletionProtectionEnabled"] is True
    assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_every_dead_letter_and_every_function_has_an_alarm():
    check_alarms_of_queues_and_functions(TEMPLATE, queues=3, functions=4)
    watched = watched_by(TEMPLATE)
    assert ("Errors", json.dumps({"Ref": "TaskFunction"})) in watched
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


def test_alarms_watch_what_is_of_their_own_queue():
    assert alarms_on_shared_metrics(TEMPLATE) == set()


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_is_described_and_limited_and_stands_in_a_group(name):
    check_parameter(TEMPLATE, name, ANY_ARN)


def test_private_arm_and_the_newest_of_the_usual_runtimes_by_default():
    defaults = {name: PARAMETERS[name]["Default"] for name in ("EndpointType", "Architecture", "Runtime")}
    assert defaults == {"EndpointType": "PRIVATE", "Architecture": "arm64", "Runtime": "python3.13"}


def test_every_skipped_check_says_why():
    check_skipped(TEMPLATE)


def test_queues_invoke_functions_within_a_limit():
    check_event_sources_are_bounded(TEMPLATE)
    assert "both functions" not in (ROOT / "template.yaml").read_text().lower()


def test_the_local_configuration_gives_parameters_that_the_template_accepts():
    check_samconfig(TEMPLATE, "")


def test_the_core_names_no_image_jobs():
    """Image jobs are deployed beside it, from `images/template.yaml`."""
    names = [*PARAMETERS, *RESOURCES, *TEMPLATE["Conditions"], *TEMPLATE["Outputs"]]
    assert not [name for name in names if re.search("Image|Region|Intake", name)]
    words = re.sub(r"--?image-jobs|images/template\.yaml", "", (ROOT / "template.yaml").read_text())
    assert not re.search(r"image", words, re.IGNORECASE)


def test_no_export_changes_with_a_parameter_but_the_queues_name():
    """CloudFormation refuses to change an export that another stack imports."""
    exported = {name: output["Value"] for name, output in TEMPLATE["Outputs"].items() if "Export" in output}
    assert exported.keys() == {
        "TableName", "TableArn", "ApiRoleName", "ApiRoleId", "ManagerRoleName", "ManagerRoleId", "ManagerFunctionName",
        "KeyArn",
    }  # fmt: skip
    for name, value in exported.items():
        assert (value.get("Ref") or value["Fn::GetAtt"][0]) in RESOURCES
        export = TEMPLATE["Outputs"][name]["Export"]["Name"]
        assert export == {"Fn::Sub": f"trainmaster:${{QueueName}}:{name}"}


def test_the_bundle_is_the_extra_that_the_project_names():
    lines = (ROOT / "src" / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == PROJECT["project"]["optional-dependencies"][
        "service"
    ]
