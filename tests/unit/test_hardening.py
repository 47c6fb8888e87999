"""The hardened profile of template.yaml: each part is a parameter, and none is there by default."""

from __future__ import annotations

import json
import re

import pytest
from scripts.render_template import ACCOUNT, HARDENED, HARDENED_CORE, URL_SUFFIXES, Stack, hardened

from hardening_checks import BOUNDARY, check_hardened, check_lean, properties
from policy_evaluator import EVERYTHING, Request, allowed
from rendered import core_stack, policies_of

STACK = core_stack(**HARDENED_CORE)
KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"


def test_nothing_of_the_profile_is_there_by_default():
    check_lean(core_stack())
    assert core_stack().document["Parameters"]["RequestsPerSecond"]["Default"] == 50


def test_every_part_of_the_profile_reaches_everything_that_it_is_for():
    check_hardened(
        STACK,
        STACK.attribute("Key"),
        {"ApiFunction": "20", "ManagerFunction": "2", "PipelineFunction": "20", "TaskFunction": "20"},
    )
    assert STACK.exports["trainmaster:sagemaker-queue:KeyArn"] == STACK.attribute("Key")


def test_access_logs_are_written_with_the_role_of_the_account_which_stays():
    logs = STACK.resources["QueueApi"]["Properties"]["AccessLogSetting"]
    account = STACK.resources["ApiLogSetting"]["Properties"]
    assert logs["DestinationArn"] == STACK.attribute("AccessLogGroup")
    assert account == {"CloudWatchRoleArn": STACK.attribute("ApiLogRole")}
    written = STACK.document["Resources"]
    assert {written[name]["DeletionPolicy"] for name in ("ApiLogRole", "ApiLogSetting")} == {"Retain"}


@pytest.mark.parametrize(("logs", "creates"), [("true", "false"), ("false", "true"), ("false", "false")])
def test_a_setting_of_the_account_is_not_changed_unasked(logs, creates):
    stack = core_stack(ApiAccessLogs=logs, CreateApiLogRole=creates)
    assert not {"ApiLogRole", "ApiLogSetting"} & stack.resources.keys()
    assert ("AccessLogSetting" in stack.resources["QueueApi"]["Properties"]) == (logs == "true")
    if logs == "true":
        logged = stack.resources["QueueApi"]["Properties"]["AccessLogSetting"]["DestinationArn"]
        assert logged == stack.attribute("AccessLogGroup")


@pytest.mark.parametrize("name", hardened())
def test_checkov_sees_the_hardened_profile_without_conditions_and_functions(name):
    rendered = hardened()[name].template
    text = json.dumps(rendered)
    assert not re.search(r'"(Fn::\w+|Ref|Condition)": ("|\[)', text)
    skipped = set(re.findall(r'"id": "(CKV_AWS_\d+)"', text))
    assert not skipped & {"CKV_AWS_76", "CKV_AWS_115", "CKV_AWS_117"}
    assert rendered["Globals"]["Function"]["VpcConfig"]


def test_requests_are_limited_in_all():
    settings = STACK.resources["QueueApi"]["Properties"]["MethodSettings"][0]
    assert (settings["ThrottlingRateLimit"], settings["ThrottlingBurstLimit"]) == ("10", "10")


TOKEN = {"Name": "x-amz-security-token", "TextTransformations": [{"Priority": 0, "Type": "NONE"}]}
"""Header of SigV4 for temporary credentials; WAF requires a transformation."""
BY_ADDRESS = [("requests-of-address", "IP", None, "300")]
BY_SESSION = [
    ("requests-of-session", "CUSTOM_KEYS", [{"Header": TOKEN}], "60"),
    ("presigned-requests-of-session", "CUSTOM_KEYS", [{"QueryArgument": TOKEN}], "60"),
]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"RequestsPerMinuteOfAddress": "300"}, BY_ADDRESS),
        ({"RequestsPerMinuteOfCaller": "60"}, BY_SESSION),
        ({"RequestsPerMinuteOfAddress": "300", "RequestsPerMinuteOfCaller": "60"}, BY_ADDRESS + BY_SESSION),
    ],
)
def test_requests_are_limited_by_address_and_by_session(limits, expected):
    stack = core_stack(**limits)
    (firewall,) = properties(stack, "AWS::WAFv2::WebACL").values()
    rules = firewall["Rules"]
    told = [(each["Name"], each["Statement"]["RateBasedStatement"]) for each in rules]
    assert [(name, by["AggregateKeyType"], by.get("CustomKeys"), by["Limit"]) for name, by in told] == expected
    assert {by["EvaluationWindowSec"] for _, by in told} == {60}
    assert {each["Action"]["Block"]["CustomResponse"]["ResponseCode"] for each in rules} == {429}
    for names in ([each["Priority"] for each in rules], [each["VisibilityConfig"]["MetricName"] for each in rules]):
        assert len({*names}) == len(rules)
    assert "AWS::WAFv2::WebACLAssociation" in {each["Type"] for each in stack.resources.values()}


@pytest.mark.parametrize("name", ["RequestsPerMinuteOfAddress", "RequestsPerMinuteOfCaller"])
def test_a_limit_is_one_that_the_firewall_accepts(name):
    """It accepts 10 to 2,000,000,000 (RateBasedStatement)."""
    pattern = STACK.document["Parameters"][name]["AllowedPattern"]
    assert all(re.fullmatch(pattern, each) for each in ("0", "10", "300", "9999999"))
    assert not any(re.fullmatch(pattern, each) for each in ("", "1", "9", "01", "-10", "1e3", "10000000"))


@pytest.mark.parametrize(
    ("role", "function"),
    [
        ("ApiRole", "ApiFunction"),
        ("ManagerRole", "ManagerFunction"),
        ("TaskRole", "TaskFunction"),
        ("PipelineRole", "PipelineFunction"),
    ],
)
def test_lambda_may_manage_network_interfaces_and_the_functions_own_code_may_not(evaluator, role, function):
    policies = policies_of(role, STACK)
    source = {"lambda:SourceFunctionArn": STACK.attribute(function)}
    for action in ("CreateNetworkInterface", "DescribeNetworkInterfaces", "DeleteNetworkInterface"):
        described = action.startswith("Describe")
        resource = "*" if described else f"arn:aws:ec2:us-east-1:{ACCOUNT}:network-interface/eni-0123456789abcdef0"
        assert evaluator.allows(Request(f"ec2:{action}", resource), policies)
        assert not evaluator.allows(Request(f"ec2:{action}", resource, source), policies)
        assert not evaluator.allows(Request(f"ec2:{action}", resource), policies_of(role, core_stack()))


def test_a_boundary_limits_what_the_policies_of_a_role_allow(evaluator):
    assert STACK.resources["ManagerRole"]["Properties"]["PermissionsBoundary"] == BOUNDARY
    send = Request("sqs:SendMessage", STACK.attribute("WakeQueue"))
    nothing = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}}
    assert allowed(evaluator, send, policies_of("ManagerRole", STACK), boundary=EVERYTHING)
    assert not allowed(evaluator, send, policies_of("ManagerRole", STACK), boundary=nothing)


# ---------------------------------------------------------------- the key


def key_policy(stack: Stack = STACK) -> dict:
    return stack.resources["Key"]["Properties"]["KeyPolicy"]


def through(service: str, account: str = ACCOUNT) -> dict[str, str]:
    return {"kms:ViaService": f"{service}.us-east-1.amazonaws.com", "kms:CallerAccount": account}


@pytest.mark.parametrize("role", ["ApiRole", "ManagerRole", "PipelineRole", "TaskRole", "TickRole"])
def test_roles_use_the_key_through_tables_and_queues_alone(evaluator, role):
    def may(action: str, context: dict[str, str]) -> bool:
        request = Request(f"kms:{action}", KEY, context, STACK.attribute(role))
        return evaluator.allows(request, policies_of(role, STACK), resource_policy=key_policy())

    for service in ("dynamodb", "sqs"):
        assert all(may(action, through(service)) for action in ("Decrypt", "GenerateDataKey", "Encrypt"))
    assert not may("Decrypt", {})
    assert not may("Decrypt", through("s3"))
    assert not may("ScheduleKeyDeletion", through("sqs"))
    assert not may("PutKeyPolicy", through("dynamodb"))


def test_another_account_cannot_use_the_key(evaluator):
    stranger = "arn:aws:iam::999988887777:role/anybody"
    request = Request("kms:Decrypt", KEY, through("sqs", "999988887777"), stranger)
    assert not evaluator.allows(request, [EVERYTHING], resource_policy=key_policy())


def test_the_principal_of_logs_is_that_of_the_partition():
    (logs,) = [each for each in key_policy(core_stack("aws-cn", **HARDENED))["Statement"] if each["Sid"] == "Logs"]
    assert logs["Principal"] == {"Service": "logs.cn-north-1.amazonaws.com.cn"}


@pytest.mark.parametrize("partition", ["aws", "aws-us-gov"])  # The evaluator knows no services of China.
def test_the_logs_of_the_queue_are_encrypted_with_the_key_and_no_others(evaluator, partition):
    stack = core_stack(partition, **HARDENED)
    key = stack.arn("kms", "key/11111111-2222-3333-4444-555555555555")
    service = f"logs.{stack.region}.{URL_SUFFIXES[partition]}"

    # The evaluator knows no names of encryption contexts: here a global key stands for that of CloudWatch Logs.
    policy = json.loads(json.dumps(key_policy(stack)).replace("kms:EncryptionContext:aws:logs:arn", "aws:SourceArn"))
    assert policy != key_policy(stack)

    def encrypts(group: str) -> bool:
        context = {"aws:SourceArn": stack.arn("logs", f"log-group:{group}")}
        return evaluator.allows(Request("kms:Encrypt", key, context, service), [], resource_policy=policy)

    for group in properties(core_stack(ApiAccessLogs="true"), "AWS::Logs::LogGroup").values():
        assert encrypts(group["LogGroupName"])
    assert not encrypts("/aws/lambda/another-function")


def test_events_reach_an_encrypted_wake_queue(evaluator):
    request = Request("kms:GenerateDataKey", KEY, {}, "events.amazonaws.com")
    assert evaluator.allows(request, [], resource_policy=key_policy())
    other = Request("kms:GenerateDataKey", KEY, {}, "s3.amazonaws.com")
    assert not evaluator.allows(other, [], resource_policy=key_policy())
