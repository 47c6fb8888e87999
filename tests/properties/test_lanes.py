"""Names of lanes carry all of the lane, and nothing of another."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import builders as b
from other_kind import a_batch
from trainmaster.domain.jobs.lane import LaneParts, lane_name, lane_parts

labels = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,5}", fullmatch=True)
numbers = st.integers(0, 40)
# Such as URLs have, with all that stands between the parts of a name; and whatever else.
pools = st.one_of(st.text("a1~+^@/-%#\n", max_size=12), st.text(max_size=12), labels)
days = st.one_of(st.just(""), st.dates().map(str))
DEADLINE = datetime(2031, 2, 3, tzinfo=UTC)
lanes = st.builds(LaneParts, labels, pools, numbers, numbers, days, st.one_of(st.just(""), labels))


@given(lanes)
@example(LaneParts("team", "endpoint/https://host/~me/a+1^2030-01-01@x", 3, 2, "2031-02-03", "group"))
@example(LaneParts("team", "endpoint/https://host/a~3"))
@example(LaneParts("team", "endpoint/https://host/a", 3))
@example(LaneParts("team", "endpoint/https://host/a@group"))
def test_a_lanes_name_says_what_it_is_made_of_so_that_no_two_have_one(parts):
    assert lane_parts(lane_name(parts)) == parts


@given(labels, pools, st.integers(1, 1000), st.one_of(st.none(), labels))
def test_the_lane_of_a_job_of_another_kind_says_its_pool(share, service, calls, group):
    job = replace(a_batch("batch", calls, service=service, share=share, group=group), deadline=DEADLINE)
    size = calls.bit_length() - 1
    assert lane_parts(job.lane) == LaneParts(share, f"batch/{service}", size, 0, "2031-02-03", group or "")


def test_names_are_as_tables_have_them():
    """A name that changes would leave those who wait in a lane of the old one."""
    assert b.a_job("job").lane == f"default/{b.P5}"
    parts = LaneParts("team", "endpoint/ships/blue", 3, 2, "2031-02-03", "group")
    assert lane_name(parts) == "team/endpoint/ships/blue~3+2^2031-02-03@group"


@pytest.mark.parametrize("text", ["", "team", "team/pool@", "team/pool+x"])
def test_an_invalid_lane_name_has_no_parts(text):
    assert lane_parts(text) is None
