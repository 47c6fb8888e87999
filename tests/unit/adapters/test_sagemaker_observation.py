"""Translation of SageMaker's descriptions and events into observations; no input breaks the reader."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import G5, P5, at
from trainmaster.adapters.sagemaker.observation import observation_of_answer, observation_of_event, units_of_answer
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs.observation import Observation, Status, Warm
from trainmaster.domain.policy.settings import FailureClass

QUEUE = "research"
START, STOP = at(60), at(3600)


def ms(moment):
    return int(moment.timestamp() * 1000)


def a_detail(**members):
    return {
        "TrainingJobName": "job1",
        "TrainingJobArn": "arn:aws:sagemaker:us-east-1:111122223333:training-job/job1",
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Training",
        "HyperParameters": {"epochs": "3"},
        "ResourceConfig": {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 30},
        "CreationTime": ms(at(0)),
        "TrainingStartTime": ms(START),
        "LastModifiedTime": ms(START),
        "SecondaryStatusTransitions": [
            {"Status": "Starting", "StartTime": ms(at(0)), "EndTime": ms(START), "StatusMessage": "Preparing"},
            {"Status": "Training", "StartTime": ms(START), "StatusMessage": "Training in progress"},
        ],
        "Tags": {"trainmaster:queue": QUEUE, "trainmaster:job": "job1", "trainmaster:attempt": "1"},
        **members,
    }


def an_event(detail=None, **members):
    return {
        "version": "0",
        "id": "844e2571-85d4-695f-b930-0153b71dcb42",
        "detail-type": "SageMaker Training Job State Change",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "time": "2026-11-21T12:01:00Z",
        "region": "us-east-1",
        "resources": ["arn:aws:sagemaker:us-east-1:111122223333:training-job/job1"],
        "detail": a_detail() if detail is None else detail,
        **members,
    }


def seen(**members):
    return observation_of_event(an_event(a_detail(**members)), QUEUE)


def test_an_event_tells_name_job_status_and_start():
    assert seen() == Observation(
        training_job_name="job1",
        job_name="job1",
        created_at=at(0),
        status=Status.IN_PROGRESS,
        secondary="Training",
        started_at=START,
    )


def test_the_event_of_a_later_attempt_names_the_job_by_its_tag():
    tags = {"trainmaster:queue": QUEUE, "trainmaster:job": "job1", "trainmaster:attempt": "2"}
    report = seen(TrainingJobName="job1-qstamp-2", Tags=tags)
    assert (report.training_job_name, report.job_name) == ("job1-qstamp-2", "job1")


@pytest.mark.parametrize("tags", [{"trainmaster:queue": "another"}, {"team": "a"}])
def test_an_event_with_tags_that_are_not_ours_is_not_about_an_attempt_of_ours(tags):
    assert seen(Tags=tags) is None


@pytest.mark.parametrize("tags", [{}, None])
def test_an_event_without_tags_may_be_ours_and_names_no_job(tags):
    assert seen(Tags=tags).job_name is None


def test_a_queue_whose_name_no_tag_can_carry_knows_its_events_all_the_same():
    event = an_event(a_detail(Tags={"trainmaster:queue": "a_b", "trainmaster:job": "job1"}))
    assert observation_of_event(event, "a,b").job_name == "job1"


def test_a_failed_job_gives_its_reason():
    report = seen(TrainingJobStatus="Failed", SecondaryStatus="Failed", FailureReason="CapacityError: no room")
    assert report.failure_reason == "CapacityError: no room"
    assert report.failure_class is FailureClass.CAPACITY


def test_a_failure_reason_can_always_be_stored():
    report = seen(FailureReason="half \ud800" + "x" * 5000)
    assert len(report.failure_reason.encode()) == 1024
    assert seen(FailureReason="").failure_reason is None


@pytest.mark.parametrize(
    "value",
    [
        ms(START),
        str(ms(START)),
        float(ms(START)),
        f"{ms(START)}.0",
        START.isoformat(),
        START.strftime("%Y-%m-%dT%H:%M:%SZ"),
        START.replace(tzinfo=None).isoformat(),
        START.astimezone(timezone(timedelta(hours=5))).isoformat(),
    ],
)
def test_a_time_may_be_milliseconds_or_iso(value):
    report = seen(TrainingStartTime=value)
    assert report.started_at == START
    assert report.started_at.tzinfo is UTC


@pytest.fixture
def in_tokyo(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
def test_a_time_without_zone_is_utc_wherever_the_queue_runs():
    assert seen(TrainingStartTime=START.replace(tzinfo=None).isoformat()).started_at == START


def test_the_last_stop_counts():
    steps = [
        {"Status": "Stopping", "StartTime": ms(START)},
        {"Status": "Training", "StartTime": ms(START)},
        {"Status": "Stopping", "StartTime": str(ms(STOP))},
        {"Status": "Stopped", "StartTime": ms(at(4000))},
    ]
    assert seen(SecondaryStatusTransitions=steps).stopping_since == STOP
    assert seen(SecondaryStatusTransitions=steps[1:2]).stopping_since is None


def test_the_chosen_type_and_an_idle_warm_pool_are_told():
    config = {"InstancePreferences": [{"InstanceType": P5}, {"InstanceType": G5}], "InstanceCount": 1}
    assert seen(ResourceConfig=config).chosen_type is None
    assert seen(ResourceConfig={**config, "SelectedInstanceType": G5}).chosen_type == G5
    assert seen(TrainingJobStatus="Completed", WarmPoolStatus={"Status": "Available"}).warm_pool
    for status in ("InUse", "Reused", "Terminated"):
        assert not seen(TrainingJobStatus="Completed", WarmPoolStatus={"Status": status}).warm_pool


def test_a_warm_pool_ends_by_itself_when_its_time_has_passed():
    config = {"InstanceType": P5, "InstanceCount": 1, "KeepAlivePeriodInSeconds": 600}
    ended = {"TrainingJobStatus": "Completed", "TrainingEndTime": ms(STOP), "ResourceConfig": config}
    assert seen(**ended).warm_until == STOP + timedelta(seconds=600)
    assert seen(**ended).warm is None, "an event need not say"
    assert seen(ResourceConfig=config).warm_until is None
    assert seen(**ended | {"ResourceConfig": config | {"KeepAlivePeriodInSeconds": 0}}).warm_until is None
    assert seen(**ended | {"ResourceConfig": config | {"KeepAlivePeriodInSeconds": 10**12}}).warm_until == (
        STOP + timedelta(hours=6)
    )


@pytest.mark.parametrize("status", [None, 7, "Evaporated", {}])
def test_a_warm_pool_status_of_another_kind_tells_nothing(status):
    assert seen(WarmPoolStatus={"Status": status}).warm is None
    assert seen(WarmPoolStatus=status).warm is None


def test_interruptions_are_counted_from_the_list_of_steps():
    steps = [{"Status": status} for status in ("Starting", "Training", "Interrupted", "Starting", "Interrupted")]
    assert seen(SecondaryStatusTransitions=steps).interruptions == 2
    assert seen(SecondaryStatusTransitions=[], SecondaryStatus="Interrupted").interruptions == 1
    assert seen().interruptions == 0


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        "text",
        7,
        {},
        {"kind": "tick", "time": "2026-11-21T12:00:00Z"},
        an_event(**{"detail-type": "SageMaker Endpoint State Change"}),
        an_event(**{"detail-type": []}),
    ],
)
def test_events_of_other_kinds_are_ignored(event):
    assert observation_of_event(event, QUEUE) is None


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"TrainingJobName": None}, "detail.TrainingJobName"),
        ({"TrainingJobName": "a" * 64}, "detail.TrainingJobName"),
        ({"TrainingJobName": "a_b"}, "detail.TrainingJobName"),
        ({"TrainingJobName": 7}, "detail.TrainingJobName"),
        ({"TrainingJobStatus": "Resting"}, "detail.TrainingJobStatus"),
        ({"TrainingJobStatus": []}, "detail.TrainingJobStatus"),
        ({"TrainingJobStatus": None}, "detail.TrainingJobStatus"),
        ({"SecondaryStatus": 7}, "detail.SecondaryStatus"),
        ({"FailureReason": {}}, "detail.FailureReason"),
        ({"TrainingStartTime": "yesterday"}, "detail.TrainingStartTime"),
        ({"TrainingStartTime": True}, "detail.TrainingStartTime"),
        ({"TrainingStartTime": float("nan")}, "detail.TrainingStartTime"),
        ({"TrainingStartTime": 10**400}, "detail.TrainingStartTime"),
        ({"TrainingStartTime": "0001-01-01T00:00:00+23:59"}, "detail.TrainingStartTime"),
        (
            {"SecondaryStatusTransitions": [{"Status": "Stopping", "StartTime": []}]},
            "detail.SecondaryStatusTransitions[0].StartTime",
        ),
        ({"Tags": []}, "detail.Tags"),
        (
            {"Tags": {"trainmaster:queue": QUEUE, "trainmaster:job": "a b"}},
            "detail.Tags.trainmaster:job",
        ),
    ],
)
def test_a_malformed_event_names_the_field(members, field):
    with pytest.raises(InvalidRequest) as caught:
        seen(**members)
    assert caught.value.field == field
    assert caught.value.message.startswith(field)


def test_an_event_without_detail_names_it():
    with pytest.raises(InvalidRequest) as caught:
        observation_of_event(an_event(detail=[]), QUEUE)
    assert caught.value.field == "detail"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
MEMBERS = sorted({*a_detail(), "FailureReason", "WarmPoolStatus"})
STEP = st.fixed_dictionaries({}, optional={"Status": st.just("Stopping") | JSON, "StartTime": JSON})
DAMAGED = st.dictionaries(st.sampled_from(MEMBERS), JSON, max_size=4) | st.fixed_dictionaries(
    {"SecondaryStatusTransitions": st.lists(STEP | JSON, max_size=3)},
    optional={"TrainingStartTime": st.datetimes().map(str) | st.text("0123456789.-:TZ+", max_size=30)},
)
MOMENTS = st.none() | st.builds(
    lambda seconds: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds), st.integers(0, 10**8)
)


@settings(deadline=None)
@given(JSON | st.builds(an_event, JSON) | DAMAGED.map(lambda damage: an_event(a_detail(**damage))))
def test_any_json_is_an_observation_nothing_or_refused_with_its_field(event):
    before = repr(event)
    report, field = outcome_of(event)
    assert report is None or isinstance(report, Observation)
    assert field is None or field.startswith("detail")
    assert repr(event) == before


def outcome_of(event):
    try:
        return observation_of_event(event, QUEUE), None
    except InvalidRequest as refusal:
        return None, refusal.field


@settings(deadline=None)
@given(status=st.sampled_from(Status), started=MOMENTS, stopping=MOMENTS)
def test_an_event_and_a_describe_answer_say_the_same(status, started, stopping):
    def told(form):
        steps = [] if stopping is None else [{"Status": "Stopping", "StartTime": form(stopping)}]
        start = {} if started is None else {"TrainingStartTime": form(started)}
        detail = a_detail(TrainingJobStatus=status.value, SecondaryStatusTransitions=steps, Tags={})
        del detail["TrainingStartTime"]
        return {**detail, **start}

    event = observation_of_event(an_event(told(ms)), QUEUE)
    # An event need not have all members, so only an answer tells of the absence of a warm pool.
    assert replace(event, warm=Warm.NONE) == observation_of_answer(told(lambda moment: moment))


def an_answer(config, status="InProgress"):
    return {"TrainingJobName": "job1", "TrainingJobStatus": status, "ResourceConfig": config}


GROUPS = [
    {"InstanceGroupName": "a", "InstanceType": P5, "InstanceCount": 2},
    {"InstanceGroupName": "b", "InstanceType": G5, "InstanceCount": 1},
    {"InstanceGroupName": "c", "InstanceType": P5, "InstanceCount": 3},
]
EITHER = [{"InstanceType": P5, "InstanceCount": 2}, {"InstanceType": G5, "InstanceCount": 8}]


@pytest.mark.parametrize(
    ("config", "units"),
    [
        ({"InstanceType": P5, "InstanceCount": 4}, {P5: 4}),
        ({"InstanceGroups": GROUPS}, {P5: 5, G5: 1}),
        ({"InstancePreferences": EITHER}, {P5: 2, G5: 8}),
        (
            {"InstancePreferences": [{"InstanceType": P5}, {"InstanceType": G5}], "InstanceCount": 3},
            {P5: 3, G5: 3},
        ),
        (
            {"InstancePreferences": EITHER, "SelectedInstanceType": G5, "SelectedInstanceCount": 4},
            {G5: 4},
        ),
        ({"InstancePreferences": EITHER, "SelectedInstanceType": P5}, {P5: 2}),
        ({}, {}),
        ({"InstanceType": P5, "InstanceCount": 0}, {}),
        ({"InstanceType": P5}, {}),
    ],
)
def test_units_are_read_from_every_way_of_asking_for_instances(config, units):
    assert units_of_answer(an_answer(config)) == units
    assert units_of_answer(an_answer(config, "Stopping")) == units


@pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped", "Deleting"])
def test_an_ended_job_holds_nothing(status):
    assert units_of_answer(an_answer({"InstanceType": P5, "InstanceCount": 4}, status)) == {}


def test_a_serverless_job_holds_nothing():
    assert units_of_answer({"TrainingJobName": "job1", "TrainingJobStatus": "InProgress"}) == {}
