"""Rows and keys of image jobs: whatever goes in comes out."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from any_jobs import ATTEMPT, JOB, keys, names
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import builders as b
from trainmaster.adapters.dynamodb.rows import (
    history_of,
    history_row,
    job_of,
    lane_end,
    lane_key,
    lane_of,
    place,
    row_of,
)
from trainmaster.domain.errors import TooLarge
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.listing import Cursor
from trainmaster.images.domain.tiling import Cut, Window
from trainmaster.images.domain.work import ImageWork, run_name

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

pixels = st.tuples(st.integers(1, 100_000), st.integers(1, 100_000))
IMAGE_WORK = dict[str, st.SearchStrategy[Any]](
    endpoint=keys,
    variant=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    part=st.builds(Window, *[st.integers(0, 100_000)] * 4),
    cut=st.builds(Cut, region=pixels, tile=pixels, overlap=pixels),
    regions=st.integers(0, 10_000),
    tiles=st.integers(0, 10**9),
    workers=st.integers(1, 64),
    load=st.integers(0, 640_000),
    left=st.integers(0, 640_000),
    done=st.integers(0, 10_000),
    failed=st.integers(0, 10_000),
)

runs = names.map(run_name) | st.sampled_from(["image:job1", "image:job1-qstamp-2"])
attempts = st.builds(Attempt, **ATTEMPT | {"training_job_name": runs})
IMAGE_JOB = JOB | {
    "attempt": st.none() | attempts,
    "past": st.lists(attempts, max_size=2).map(tuple),
    "work": st.builds(ImageWork, **IMAGE_WORK),
}
image_jobs = st.builds(Job, **IMAGE_JOB)


def test_any_image_job_has_every_member_that_its_work_can_have():
    assert IMAGE_WORK.keys() == {each.name for each in fields(ImageWork)}


@unhurried
@given(image_jobs)
def test_any_image_job_comes_back_from_its_row_as_it_was(job):
    assert job_of(row_of(job)) == job


@unhurried
@given(image_jobs)
def test_an_image_jobs_history_kept_apart_comes_back_as_it_was(job):
    row = history_row(job, 0, job.history)
    assert history_of(row, b.at(1e6)) == job.history
    del row["entryTime"]
    assert history_of(row, job.entry_time) == job.history


@unhurried
@given(image_jobs)
def test_a_cursor_behind_any_image_job_comes_back_as_it_was(job):
    cursor = Cursor.behind(job)
    assert Cursor.read(cursor.text()) == cursor


@unhurried
@given(image_jobs, image_jobs)
def test_an_image_jobs_lane_lies_between_its_ends_and_no_other_lane_does(one, other):
    one, other = replace(one, state=JobState.PENDING), replace(other, state=JobState.PENDING)
    lane = lane_key(one.lane)
    inside = lane < place(other)[1] < lane_end(lane)
    assert inside == (one.lane == other.lane)
    assert lane_of(row_of(other)) == lane_key(other.lane)


def test_a_models_url_too_long_for_a_key_is_refused_by_the_field_that_names_it():
    with pytest.raises(TooLarge) as caught:
        place(b.a_job(units={f"endpoint/https://models.example/{'m' * 700}": 1}))
    assert caught.value.field == "imageProcessor.name"
