"""Rules on the models, roles, images and outputs of each caller."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from image_world import an_image_request
from trainmaster.domain.access.caller import UNKNOWN, Caller
from trainmaster.domain.errors import AccessDenied, InvalidRequest
from trainmaster.images.handlers.models import read_request
from trainmaster.images.service.resource_access import EVERYTHING, parse_access, resources_of

VISION = Caller("arn:aws:sts::111122223333:assumed-role/vision/ann")
OTHER = Caller("arn:aws:sts::111122223333:assumed-role/other/vision")
ROLE = "arn:aws:iam::222222222222:role/images/reader"
OTHER_ROLE = "arn:aws:iam::222222222222:role/admin"
STREAM = "arn:aws:kinesis:us-east-1:111122223333:stream/"
STREAMED = {"type": "Kinesis", "stream": "ships-1"}
RULES = parse_access(
    "arn:aws:iam::111122223333:role/vision model:ships-* model:https://models.example.com/ships* "
    "role:arn:aws:iam::222222222222:role/images/* image:s3://scenes/vision/* image:https://images.example.com/vision/*;"
    " arn:aws:sts::111122223333:assumed-role/vision output:s3://results/vision/* output:kinesis://ships-* "
    f"output:{STREAM}ships-*"
)


def a_request(image: str = "s3://scenes/vision/a.tif", **members: Any) -> dict[str, Any]:
    outputs = [{"type": "S3", "bucket": "results", "prefix": "vision/ships"}]
    usual = {"imageProcessor": {"name": "ships-1"}, "imageUrls": [image], "outputs": outputs}
    body = an_image_request(**(usual | members))
    read_request(body)
    return body


def an_output(bucket: str, prefix: str | None, **members: Any) -> list[dict[str, Any]]:
    given = {} if prefix is None else {"prefix": prefix}
    return [{"type": "S3", "bucket": bucket, **given, **members}]


ALLOWED = [
    {},
    {"imageReadRole": ROLE},
    {"imageProcessor": {"name": "ships-1", "assumedRole": ROLE}},
    {"imageProcessor": {"name": "https://user:s3cr3t@models.example.com/ships?key=1"}},
    {"image": "https://images.example.com/vision/a.tif?X-Amz-Signature=1"},
    {"outputs": an_output("results", "/vision/")},
    {"outputs": an_output("results", "/vision/", role=ROLE)},
    {"outputs": [*an_output("results", "vision"), STREAMED | {"assumedRole": ROLE}]},
    {"outputs": [*an_output("results", "vision"), {"type": "Kinesis", "stream": f"{STREAM}ships-1"}]},
]
REFUSED = [
    ("imageProcessor.name", {"imageProcessor": {"name": "planes"}}),
    ("imageProcessor.name", {"imageProcessor": {"name": "https://models.example.com/planes"}}),
    ("imageProcessor.name", {"imageProcessor": {"name": "https://models.example.com/ships/../planes"}}),
    ("imageProcessor.assumedRole", {"imageProcessor": {"name": "ships-1", "assumedRole": f"{ROLE[:31]}admin"}}),
    ("imageReadRole", {"imageReadRole": "arn:aws:iam::222222222222:role/admin"}),
    ("imageUrls[0]", {"image": "s3://scenes/salaries/a.tif"}),
    ("imageUrls[0]", {"image": "s3://scenes/vision/../salaries/a.tif"}),
    ("imageUrls[0]", {"image": "s3://scenes/vision/%2e%2e/salaries/a.tif"}),
    ("imageUrls[0]", {"image": "https://images.example.com.evil.example/vision/a.tif"}),
    ("imageUrls[0]", {"image": "https://images.example.com@evil.example/vision/a.tif"}),
    ("outputs[0]", {"outputs": an_output("results", None)}),
    ("outputs[0]", {"outputs": an_output("results", "visionary")}),
    ("outputs[0]", {"outputs": an_output("results", "vision/../other")}),
    ("outputs[0]", {"outputs": an_output("scenes", "vision")}),
    ("outputs[1]", {"outputs": [*an_output("results", "vision"), {"type": "Kinesis", "stream": "planes"}]}),
    ("outputs[1]", {"outputs": [*an_output("results", "vision"), {"type": "Kinesis", "stream": f"{STREAM}planes"}]}),
    ("outputs[1].assumedRole", {"outputs": [*an_output("results", "vision"), STREAMED | {"assumedRole": OTHER_ROLE}]}),
    ("outputs[0].role", {"outputs": an_output("results", "vision", role=OTHER_ROLE)}),
    ("outputs[1]", {"outputs": [*an_output("results", "vision"), *an_output("results", "other")]}),
]  # fmt: skip


@pytest.mark.parametrize("members", ALLOWED)
def test_a_caller_may_use_what_a_rule_names(members: dict[str, Any]) -> None:
    RULES.check(a_request(**members), VISION)


@pytest.mark.parametrize(("path", "members"), REFUSED)
def test_a_caller_may_use_nothing_else_and_the_field_is_named(path: str, members: dict[str, Any]) -> None:
    with pytest.raises(AccessDenied) as caught:
        RULES.check(a_request(**members), VISION)
    assert (caught.value.field, "ImageAccess" in caught.value.hint) == (path, True)


@pytest.mark.parametrize("members", ALLOWED)
@pytest.mark.parametrize("caller", [OTHER, UNKNOWN, Caller("vision"), Caller(ROLE)])
def test_other_callers_may_use_nothing_of_it(members: dict[str, Any], caller: Caller) -> None:
    with pytest.raises(AccessDenied) as caught:
        RULES.check(a_request(**members), caller)
    assert "s3cr3t" not in caught.value.message


def test_without_rules_every_caller_may_use_what_the_deployment_lists() -> None:
    for caller in (VISION, UNKNOWN):
        EVERYTHING.check(a_request(), caller)
    assert parse_access(" ; ") == EVERYTHING


def test_a_rule_for_everyone_is_for_unknown_senders_too() -> None:
    rules = parse_access("* model:ships-* image:* output:s3://results/*")
    rules.check(a_request(), UNKNOWN)
    with pytest.raises(AccessDenied):
        rules.check(a_request(imageReadRole=ROLE), UNKNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "vision model:ships",
        "arn:aws:sts::111122223333:assumed-role/vision/ann model:ships",
        "arn:aws:iam::111122223333:role/vision ships",
        "arn:aws:iam::111122223333:role/vision bucket:s3://scenes/*",
    ],
)
def test_a_rule_that_can_match_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_access(text)
    assert caught.value.field == "IMAGE_ACCESS"


@pytest.mark.parametrize("name", [None, "imageProcessor", "imageUrls", "outputs", "imageReadRole", "outputBucket"])
@given(value=st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2)))
def test_a_body_that_is_no_request_is_refused_and_nothing_else_is_raised(name: str | None, value: Any) -> None:
    body = value if name is None else a_request() | {name: value}
    with suppress(AccessDenied, InvalidRequest):
        RULES.check(body, VISION)


def test_every_resource_that_a_request_names_is_read_from_its_body() -> None:
    body = a_request(
        imageProcessor={"name": "ships-1", "assumedRole": ROLE},
        imageReadRole=ROLE,
        outputs=an_output("results", "/a/", role=ROLE),
    )
    request = read_request(body).request
    assert [(each.kind, each.name) for each in resources_of(body)] == [
        ("model", request.processor.name),
        ("role", request.processor.assumed_role),
        ("role", request.image_read_role),
        ("image", request.image_url),
        ("output", f"s3://{request.outputs[0].bucket}/a/"),
        ("role", request.outputs[0].role),
    ]


@pytest.mark.parametrize("prefix", ["vision", None, ""])
@pytest.mark.parametrize("outputs", [None, []])
def test_an_output_of_the_older_form_is_one(outputs: list[Any] | None, prefix: str | None) -> None:
    body = a_request(outputs=outputs, outputBucket="results", outputPrefix=prefix)
    (output,) = read_request(body).request.outputs
    place = f"s3://{output.bucket}/{output.prefix}/" if output.prefix else f"s3://{output.bucket}/"
    assert [each.name for each in resources_of(body) if each.kind == "output"] == [place]


@given(st.text(st.sampled_from("visonater./%2eE\\@:"), max_size=24))
def test_no_spelling_of_a_key_leaves_the_callers_prefix(key: str) -> None:
    try:
        request = a_request(f"s3://scenes/{key}")
        RULES.check(request, VISION)
    except (AccessDenied, InvalidRequest):
        return
    assert key.startswith("vision/")
    assert ".." not in key.lower().replace("%2e", ".").replace("\\", "/").split("/")
