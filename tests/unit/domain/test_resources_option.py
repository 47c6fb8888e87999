"""The option `trainmaster:resources`: every valid form, every mistake, and the request that SageMaker gets."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_request
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.requests.resource_text import (
    MAX_ACCELERATORS,
    MAX_VCPUS,
    resources_in,
    sendable,
    shortfalls,
    wrong_with,
)
from trainmaster.domain.requests.tags import options_of

LARGE = Resources(accelerators=8, accelerator_memory_gib=640, vcpus=96, memory_gib=768, accelerator="nvidia")
GIB = st.integers(0, 999_999).map(lambda tenths: tenths / 10)
ANY = st.builds(
    Resources,
    accelerators=st.integers(0, MAX_ACCELERATORS),
    accelerator_memory_gib=GIB,
    vcpus=st.integers(0, MAX_VCPUS),
    memory_gib=GIB,
    accelerator=st.sampled_from(["", "nvidia", "aws", "amd", "habana"]),
)


def refusal(text: str) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refused:
        options_of(a_request(priority=1, options={"share": "a", "resources": text}))
    return refused.value


class TestReading:
    @pytest.mark.parametrize("between", [",", " ", "+", ", ", " + "])
    def test_members_have_commas_spaces_or_plus_signs_between_them(self, between):
        assert resources_in(str(LARGE).replace(",", between)) == LARGE

    def test_members_come_in_any_order_and_the_maker_in_any_case(self):
        assert resources_in("accelerator=NVIDIA+vcpus=4") == Resources(vcpus=4, accelerator="nvidia")

    def test_memory_may_have_one_decimal(self):
        assert resources_in("memory_gib=1.5") == Resources(memory_gib=1.5)

    def test_a_zero_asks_for_nothing_of_that_member(self):
        assert resources_in("accelerators=0,vcpus=4") == Resources(vcpus=4)

    @given(ANY.filter(lambda asked: asked != Resources()), st.sampled_from(",+ "))
    def test_formatted_resources_are_parsed_back(self, asked, between):
        assert resources_in(str(asked).replace(",", between)) == asked

    @given(st.text())
    def test_a_text_is_either_read_or_told_what_is_wrong_with_it(self, text):
        assert (resources_in(text) is None) == (wrong_with(text) != ("", ""))


class TestRefusing:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "no resource is requested"),
            (" + ", "no resource is requested"),
            ("accelerators=0+memory_gib=0.0", "no resource is requested"),
            ("vcpu=4", "no member 'vcpu'"),
            ("8", "no member '8'"),
            ("vcpus", "vcpus has no value"),
            ("vcpus=", "vcpus is ''"),
            ("vcpus=-4", "vcpus is '-4'"),
            ("vcpus=4.5", "vcpus is '4.5'"),
            ("vcpus=10001", "vcpus is '10001'"),
            ("vcpus=4,vcpus=8", "vcpus is specified twice"),
            ("vcpus=4=5", "vcpus is '4=5'"),
            ("vcpus=\u0664", "vcpus is"),
            ("accelerators=1001", "accelerators is '1001'"),
            ("memory_gib=-1", "memory_gib is '-1'"),
            ("memory_gib=1e9", "memory_gib is '1e9'"),
            ("memory_gib=inf", "memory_gib is 'inf'"),
            ("memory_gib=nan", "memory_gib is 'nan'"),
            ("memory_gib=100000", "memory_gib is '100000'"),
            ("memory_gib=1.25", "memory_gib is '1.25'"),
            ("accelerator=8", "accelerator is '8'"),
            ("accelerator_memory_gib=" + "9" * 90, "accelerator_memory_gib is '999"),
        ],
    )
    def test_names_the_field_and_what_is_wrong(self, text, said):
        refused = refusal(text)
        assert (refused.field, said in refused.message, len(refused.message) < 150) == ("Tags[1].Value", True, True)
        assert refused.hint

    @pytest.mark.parametrize(
        ("wrong", "right"), [("vcpu", "vcpus"), ("Memory_GiB", "memory_gib"), ("gpu_accelerators", "accelerators")]
    )
    def test_suggests_the_member_that_was_probably_meant(self, wrong, right):
        assert f"Did you mean '{right}'?" in str(refusal(f"{wrong}=4").hint)

    def test_every_member_says_what_it_takes(self):
        for each in fields(Resources):
            assert str(refusal(f"{each.name}=!").hint).startswith("It must be ")


class TestSending:
    def test_commas_become_plus_signs_so_that_sagemaker_takes_the_tag(self):
        request = a_request(priority=5, options={"resources": str(LARGE)})
        before = repr(request)
        assert [each.field for each in problems(request)] == ["Tags[0].Value"]
        assert problems(sendable(request)) == []
        assert options_of(sendable(request)) == options_of(request)
        assert repr(request) == before

    def test_nothing_else_changes(self):
        request = a_request(options={"resources": "vcpus=4+memory_gib=8"}, Environment={"A": "a,b"})
        assert sendable(request) is request
        asking = a_request(options={"resources": "vcpus=4,memory_gib=8"}, Environment={"A": "a,b"})
        assert sendable(asking) == request

    @given(
        st.recursive(
            st.none() | st.text() | st.integers(),
            lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["Tags", "Key", "Value", "x"]), inner),
        )
    )
    def test_no_tags_break_it(self, value):
        odd = {"Key": "trainmaster:resources", "Value": "a,b"}
        assert sendable({"Tags": [value, odd]})["Tags"][0] == value
        sendable({"Tags": value})


def test_shortfalls_say_what_an_instance_has_too_little_of():
    kind = InstanceType(name="x", accelerators=4, accelerator="aws", vcpus=96, memory_gib=512.5)
    assert list(shortfalls(LARGE, kind)) == [
        "accelerators=4",
        "accelerator_memory_gib=0",
        "memory_gib=512.5",
        "accelerator=aws",
    ]
    assert list(shortfalls(Resources(vcpus=96), kind)) == []
