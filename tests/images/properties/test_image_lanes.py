"""The names of image jobs' lanes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from image_builders import an_image_job
from trainmaster.domain.jobs.lane import LaneParts, lane_parts
from trainmaster.images.domain.endpoint import pool_name

labels = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,5}", fullmatch=True)
# Such as URLs have, with all that stands between the parts of a name; and whatever else.
pools = st.one_of(st.text("a1~+^@/-%#\n", max_size=12), st.text(max_size=12), labels)


@given(labels, pools, st.integers(1, 1000), st.one_of(st.none(), labels))
def test_an_image_jobs_lane_says_its_pool(share, url, load, group):
    url = f"https://host/{url}"
    job = an_image_job("image", load, endpoint=url, variant="", share=share, group=group)
    job = replace(job, deadline=datetime(2031, 2, 3, tzinfo=UTC))
    size = load.bit_length() - 1
    assert lane_parts(job.lane) == LaneParts(share, pool_name(url, ""), size, 0, "2031-02-03", group or "")
