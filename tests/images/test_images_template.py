"""images/template.yaml against the code that it deploys, and against the stack of template.yaml that it adds to."""

import json
import re
from dataclasses import replace
from importlib import import_module

import pytest

from permissions import actions, conditional_statements, images_template, listed, statements, template
from template_checks import (
    PLATFORM,
    ROOT,
    SOURCE,
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
    made,
    methods_of,
    of_type,
    platforms_of,
    sent_to,
)
from trainmaster import bootstrap
from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.endpoint import Limits
from trainmaster.images.domain.limits import VARIABLES, limits_of
from trainmaster.images.settings import ImageSettings, split_environment

TEMPLATE = images_template()
CORE = template()
RESOURCES = TEMPLATE["Resources"]
PARAMETERS = TEMPLATE["Parameters"]
VARIABLES_OF_FUNCTIONS = TEMPLATE["Globals"]["Function"]["Environment"]["Variables"]
ADAPTERS = ("adapters", "images/adapters")
OURS = ("IntakeRole", "RegionRole")
QUEUES_FUNCTIONS = ("ApiRole", "ManagerRole")


def test_cfn_lint_finds_nothing():
    assert lint("images/template.yaml") == []


def test_the_functions_are_told_settings_that_the_code_reads():
    told = set(VARIABLES_OF_FUNCTIONS)
    for resource in RESOURCES.values():
        told |= set(resource.get("Properties", {}).get("Environment", {}).get("Variables", {}))
    names = {"QUEUE", "TABLE", "WAKE_QUEUE_URL", "REGION_SENDERS"}
    names |= {"IMAGE_QUEUE_URL", "IMAGE_DEAD_LETTER_QUEUE_URL", "REGION_QUEUE_URL", "API_ROLE_ID"}
    names |= {"MODEL_HOSTS", "IMAGE_ACCESS", "IMAGE_SENDERS", "AUDIT_RETENTION_DAYS", "SENSOR_MODELS", "ELEVATION"}
    assert {name for name in told if name.startswith(bootstrap.PREFIX)} == {bootstrap.PREFIX + name for name in names}


def test_the_queues_functions_have_the_same_settings_as_those_of_image_jobs():
    """By the output JobKindSettings, which is the value of the queue's parameter of that name."""
    text = TEMPLATE["Outputs"]["JobKindSettings"]["Value"]["Fn::Sub"]
    assert re.fullmatch(CORE["Parameters"]["JobKindSettings"]["AllowedPattern"], text)
    (settings,) = json.loads(text).values()
    queues = {name for name in VARIABLES_OF_FUNCTIONS if name.startswith(bootstrap.PREFIX) and "IMAGE" in name}
    queues |= {f"{bootstrap.PREFIX}REGION_QUEUE_URL"}
    assert len(queues) == 4
    queues |= {f"{bootstrap.PREFIX}MODEL_HOSTS"}
    assert settings.pop("STATUS_TOPIC") == "${ImageStatusTopicArn}"
    assert settings.pop("REPORTERS") == ",".join(f"${{{role}.RoleId}}" for role in OURS)
    assert settings == {
        name.removeprefix(bootstrap.PREFIX): f"${{{VARIABLES_OF_FUNCTIONS[name]['Ref']}}}"
        for name in {*queues, *VARIABLES}
    }


def test_the_code_reads_the_same_settings_of_image_jobs_in_both_stacks():
    text = TEMPLATE["Outputs"]["JobKindSettings"]["Value"]["Fn::Sub"]
    values = {name: str(each["Default"]) for name, each in PARAMETERS.items() if "Default" in each}
    values |= {name: f"https://sqs/111122223333/{name}" for name in of_type(TEMPLATE, "AWS::SQS::Queue")}
    values |= {"RegionSize": "(512, 256)", "RegionAttempts": "7", "WatchOtherCallers": "False"}
    kinds = re.sub(r"\$\{(\w+)\.RoleId\}", r"\1", text)
    kinds = re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], kinds)
    references = {name: each.get("Ref") for name, each in VARIABLES_OF_FUNCTIONS.items() if isinstance(each, dict)}
    own = {name: values[reference] for name, reference in references.items() if reference in values}
    common = {f"{bootstrap.PREFIX}QUEUE": "q", f"{bootstrap.PREFIX}TABLE": "t"}
    wake = own[f"{bootstrap.PREFIX}WAKE_QUEUE_URL"]
    queue = bootstrap.Settings.from_env(common | {f"{bootstrap.PREFIX}JOB_KINDS": kinds})
    of_queue = ImageSettings.of_values(queue.job_kinds["image"])
    values_of_images, rest = split_environment(own | common)
    assert of_queue.reporters == OURS
    assert ImageSettings.of_values(values_of_images) == replace(of_queue, reporters=())
    assert wake == values["ProgressQueue"]
    days = {f"{bootstrap.PREFIX}AUDIT_RETENTION_DAYS": values["AuditRetentionDays"]}
    assert rest == common | days | {"LOG_LEVEL": values["LogLevel"], f"{bootstrap.PREFIX}WAKE_QUEUE_URL": wake}
    assert PARAMETERS["AuditRetentionDays"] == CORE["Parameters"]["AuditRetentionDays"]
    assert (of_queue.limits.region_size, of_queue.limits.attempts) == ((512, 256), 7)
    assert of_queue.region_queue_url == "https://sqs/111122223333/RegionQueue"


@pytest.mark.parametrize("text", ["{", "[]", '{"image": 1}'])
def test_settings_of_kinds_that_cannot_be_read_are_refused_by_name(text):
    with pytest.raises(InvalidRequest, match="TRAINMASTER_JOB_KINDS is wrong"):
        bootstrap.Settings.from_env(
            {f"{bootstrap.PREFIX}QUEUE": "q", f"{bootstrap.PREFIX}TABLE": "t", f"{bootstrap.PREFIX}JOB_KINDS": text}
        )


def test_the_names_that_both_stacks_use_are_those_of_one_queue():
    for name in ("QueueName", "Runtime", "Architecture", "LogLevel", "LogRetentionDays", "AlarmTopicArn"):
        assert {**PARAMETERS[name], "Description": ""} == {**CORE["Parameters"][name], "Description": ""}
    source = PARAMETERS["EventSource"]
    assert {**source, "Description": ""} == {**CORE["Parameters"]["EventSource"], "Description": ""}
    assert VARIABLES_OF_FUNCTIONS["TRAINMASTER_QUEUE"] == {"Ref": "QueueName"}
    of_core = CORE["Globals"]["Function"]["Environment"]["Variables"]
    assert VARIABLES_OF_FUNCTIONS["TRAINMASTER_TABLE"] == of_core["TRAINMASTER_TABLE"]
    assert not RESOURCES.keys() & CORE["Resources"].keys()


@pytest.mark.parametrize("name", VARIABLES)
def test_parameters_of_image_jobs_have_the_codes_defaults_and_take_what_it_takes(name):
    reference = VARIABLES_OF_FUNCTIONS[name]
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


@pytest.mark.parametrize("function", ["IntakeFunction", "RegionFunction"])
def test_each_handler_exists(function):
    module, _, name = RESOURCES[function]["Properties"]["Handler"].rpartition(".")
    assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize("role", [*OURS, *QUEUES_FUNCTIONS])
def test_no_permission_is_wide(role):
    check_permissions(role, images=True)


def test_policies_attached_to_the_queues_roles_are_those_of_image_jobs():
    attached = {name: each["Properties"]["Roles"] for name, each in of_type(TEMPLATE, "AWS::IAM::Policy").items()}
    assert attached == {
        "ApiPolicy": [{"Ref": "ApiRole"}],
        "ManagerPolicy": [{"Ref": "ManagerRole"}],
        "ManagerImageRolesPolicy": [{"Ref": "ManagerRole"}],
        "StatusTopicPolicy": [{"Ref": "ManagerRole"}],
    }
    (own,) = [each for each in statements("ApiRole", images=True) if each not in list(statements("ApiRole"))]
    assert own["Resource"] == {"Fn::GetAtt": ["ImageQueue", "Arn"]}
    assert list(of_type(TEMPLATE, "AWS::IAM::Role")) == list(OURS)


def test_the_api_may_not_call_sagemaker_nor_pass_roles():
    assert actions("ApiRole", "sagemaker", images=True) == set()
    assert "iam:PassRole" not in actions("ApiRole", "iam", images=True)


def test_the_manager_may_call_of_sagemaker_what_the_code_calls():
    of_pipelines = {"describe_pipeline", "describe_pipeline_execution", "get_role"}
    called = calls_of("sagemaker/*.py", "sagemaker*.py", folders=ADAPTERS) - of_pipelines
    assert methods_of("ManagerRole", "sagemaker", images=True) == called


def test_the_queues_functions_may_call_of_dynamodb_what_the_code_calls():
    modules = ("dynamodb/*.py", "*_rows.py", "refusals.py", "runs.py")
    called = calls_of(*modules, folders=ADAPTERS) - {"transact_write_items"}
    assert methods_of("ManagerRole", "dynamodb", images=True) == called
    # Only a pass is fenced; it counts itself, and the workers count regions.
    assert methods_of("ApiRole", "dynamodb", images=True) == called - {"condition_check_item"}


def test_rows_of_runs_and_refusals_expire_and_no_others():
    sources = {path.stem: path.read_text() for path in (SOURCE / "images" / "adapters").glob("*.py")}
    written = {name for name, text in sources.items() if re.search(r"""["']expires["']|\bexpires=""", text)}
    assert {"refusals", "runs"} <= written <= {"refusals", "runs", "run_rows"}


@pytest.mark.parametrize("role", QUEUES_FUNCTIONS)
def test_the_queues_functions_may_send_what_the_code_sends(role):
    assert methods_of(role, "sqs", images=True) == calls_of("sqs.py", folders=ADAPTERS)


def test_the_manager_alone_may_read_figures_of_endpoints_and_only_where_there_are_image_jobs():
    assert methods_of("ManagerRole", "cloudwatch", images=True) == calls_of("cloudwatch*.py", folders=ADAPTERS)
    assert actions("ManagerRole", "cloudwatch") == set()
    others = ("ApiRole", "IntakeRole", "RegionRole")
    assert [actions(role, "cloudwatch", images=True) for role in others] == [set()] * 3


def test_the_manager_may_wake_itself_dispatch_regions_and_set_messages_aside():
    expected = ["WakeQueue", "WakeDeadLetterQueue", "RegionQueue", "ImageDeadLetterQueue"]
    assert sent_to("ManagerRole", images=True) == expected
    assert sent_to("ApiRole", images=True) == ["WakeQueue", "ImageQueue"]


def test_image_functions_may_send_only_to_their_queues():
    assert sent_to("IntakeRole") == ["ProgressQueue", "ImageDeadLetterQueue"]
    assert sent_to("RegionRole") == ["RegionQueue", "ProgressQueue"]
    for role in OURS:
        assert as_methods(actions(role, "sqs")) == calls_of("sqs.py", folders=ADAPTERS) == {"send_message"}


@pytest.mark.parametrize(
    ("role", "written"),
    [
        ("IntakeRole", {"dynamodb:PutItem": {"endpoints", "refused#*"}}),
        ("RegionRole", {"dynamodb:PutItem": {"image#*", "endpoints"}, "dynamodb:UpdateItem": {"image#*"}}),
    ],
)
def test_image_functions_may_read_the_table_and_write_their_own_rows(role, written):
    """Prove the lower bound; test_permissions.py proves that the permissions suffice."""
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
    """Their scaling is bounded by this alone. Lambda takes 2 to 1,000.

    A message that shows again before its call has ended counts as another receive. AWS advises five deliveries at
    least ("Configuring maximum concurrency for Amazon SQS event sources").
    """
    source = RESOURCES[function]["Properties"]["Events"][event]["Properties"]
    assert source["Queue"] == {"Fn::GetAtt": [queue, "Arn"]}
    assert source["ScalingConfig"] == {"MaximumConcurrency": {"Ref": parameter}}
    assert (PARAMETERS[parameter]["MinValue"], PARAMETERS[parameter]["MaxValue"]) == (2, 1000)
    deployed = [*RESOURCES.values(), *CORE["Resources"].values()]
    assert not [each for each in deployed if "AutoScaling" in each["Type"] or "::ECS::" in each["Type"]]
    properties = RESOURCES[queue]["Properties"]
    assert properties["VisibilityTimeout"] > RESOURCES[function]["Properties"]["Timeout"]
    assert properties["RedrivePolicy"]["maxReceiveCount"] >= 5


KMS = {"IntakeRole": {"kms:Decrypt"}, "RegionRole": {"kms:Decrypt", "kms:GenerateDataKey"}}
"""Actions that S3 needs to read and to write under a key ("Protecting data with SSE-KMS"), and Kinesis to write."""
VIA = {"kms:Decrypt": {"s3"}, "kms:GenerateDataKey": {"s3", "kinesis"}}


@pytest.mark.parametrize("role", [*OURS, *of_type(CORE, "AWS::IAM::Role")])
def test_image_functions_may_use_kms_keys_only_through_the_services_of_images_and_results(role):
    found = [
        (condition, each)
        for condition, each in conditional_statements(role, images=True)
        if any(action in {"kms:Decrypt", "kms:GenerateDataKey"} for action in listed(each["Action"]))
    ]
    assert {action for _, each in found for action in listed(each["Action"])} == KMS.get(role, set())
    for condition, each in found:
        assert condition == "HasImageKmsKeys"
        assert each["Resource"] == {"Fn::Split": [",", {"Ref": "ImageKmsKeyArns"}]}
        through = each["Condition"]["StringLike"]["kms:ViaService"]
        services = {one["Fn::Sub"] for one in (through if isinstance(through, list) else [through])}
        (action,) = listed(each["Action"])
        assert services == {f"{service}.*.${{AWS::URLSuffix}}" for service in VIA[action]}


@pytest.mark.parametrize("platform", platforms_of(TEMPLATE))
def test_functions_and_layer_are_built_for_the_functions_platform(platform):
    # SAM's cache knows builds of a layer by what they are compatible with, not by where the Makefile is.
    assert RESOURCES["ImagingLayer"]["Properties"]["CompatibleRuntimes"] == [{"Ref": "Runtime"}]
    functions = of_type(TEMPLATE, "AWS::Serverless::Function")
    for name in (*functions, "ImagingLayer"):
        metadata = RESOURCES[name]["Metadata"]
        assert (metadata["BuildMethod"], metadata["ContextPath"]) == ("makefile", {"Fn::Sub": f"../{PLATFORM}"})
    makefile, version, machine = platform
    assert made(makefile, "ImagingLayer", "images/layer").split() == [
        "python3", "locked_packages.py", "ImagingLayer", "--python", version, "--machine", machine, "--locks", "locks",
        "--into", '"/a"',
    ]  # fmt: skip
    for name in functions:
        check_bundle_is_built_for(name, platform)


@pytest.mark.parametrize("queue", of_type(TEMPLATE, "AWS::SQS::Queue"))
def test_queues_are_encrypted(queue):
    properties = RESOURCES[queue]["Properties"]
    managed, own = properties["SqsManagedSseEnabled"]["Fn::If"], properties["KmsMasterKeyId"]["Fn::If"]
    assert (managed[0], managed[2]) == (own[0], True) == ("HasOwnKey", True)


def test_every_dead_letter_and_every_function_has_an_alarm():
    check_alarms_of_queues_and_functions(TEMPLATE, queues=3, functions=2)


def test_alarms_watch_what_is_of_their_own_queue_except_those_of_the_guide():
    """ModelRunner's guide gives its metrics names and dimensions that say nothing of the deployment."""
    shared = alarms_on_shared_metrics(TEMPLATE)
    assert shared == {(f"Image{kind}Alarm", "OSML/ModelRunner") for kind in ("Throttles", "Errors", "Duration")}
    told = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    assert all(f"`{name}`" in told for name, _ in shared)


def test_alarms_need_no_metric_math_where_a_simulator_stands_in():
    """ministack knows none, and would refuse the template."""
    expected = {"Fn::Equals": [{"Ref": "EventSource"}, "aws.sagemaker"]}
    assert TEMPLATE["Conditions"]["HasMetricMathAlarms"] == expected
    alarms = of_type(TEMPLATE, "AWS::CloudWatch::Alarm").values()
    assert {alarm["Condition"] for alarm in alarms if "Metrics" in alarm["Properties"]} == {"HasMetricMathAlarms"}


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_is_described_and_limited_and_stands_in_a_group(name):
    check_parameter(TEMPLATE, name, {"ImageEndpointArns"})


def test_every_skipped_check_says_why():
    check_skipped(TEMPLATE)


def test_queues_invoke_functions_within_a_limit():
    check_event_sources_are_bounded(TEMPLATE)


def test_the_local_configuration_gives_parameters_that_the_template_accepts():
    check_samconfig(TEMPLATE, "images")
