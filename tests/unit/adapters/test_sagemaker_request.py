"""An attempt's request: whose it is, what it may run on, and nothing else changed."""

from __future__ import annotations

import copy
from functools import cache

import pytest
from botocore.loaders import create_loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import G5, P5, a_job, a_request, an_attempt
from trainmaster.adapters.sagemaker.request import attempt_request, own_tags, tag_value
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.domain.errors import RequestRefused
from trainmaster.domain.jobs.names import attempt_name
from trainmaster.domain.requests.tags import MAX_TAGS

QUEUE = "research"
P4 = "ml.p4d.24xlarge"


def tags_of(request):
    return {tag["Key"]: tag["Value"] for tag in request["Tags"]}


def preferring(*types, **members):
    entries = [{"InstanceType": name} for name in types]
    return {"InstancePreferences": entries, "InstanceCount": 2, "VolumeSizeInGB": 30, **members}


def test_it_has_the_attempts_name_and_says_whose_it_is():
    attempt = an_attempt(3, training_job_name="job1-qstamp-3")
    made = attempt_request(a_job("job1"), attempt, a_request("job1", priority=7), QUEUE)
    assert made["TrainingJobName"] == "job1-qstamp-3"
    assert tags_of(made) == {
        "priority": "7",
        "trainmaster:queue": "research",
        "trainmaster:job": "job1",
        "trainmaster:attempt": "3",
        "trainmaster:start": attempt.start_id,
        "trainmaster:share": "default",
    }


def test_it_names_the_submitter_in_a_valid_value():
    job = a_job("job1", submitted_by="arn:aws:sts::111122223333:assumed-role/team=a,b@c")
    tags = tags_of(attempt_request(job, an_attempt(), a_request("job1"), QUEUE))
    assert tags["trainmaster:submitted-by"] == "arn:aws:sts::111122223333:assumed-role/team=a_b@c"


def test_the_submitter_does_not_decide_whose_a_training_job_is():
    job = a_job("job1", submitted_by="arn:aws:iam::111122223333:user/ada")
    assert "trainmaster:submitted-by" not in own_tags(job, an_attempt(), QUEUE)


def test_a_request_without_tags_gets_ours():
    request = a_request()
    del request["Tags"]
    own = own_tags(a_job(), an_attempt(), QUEUE)
    assert tags_of(attempt_request(a_job(), an_attempt(), request, QUEUE)) == own | {"trainmaster:share": "default"}


def test_the_share_of_the_request_is_there_once():
    request = a_request(Tags=[{"Key": "trainmaster:share", "Value": "vision"}])
    made = attempt_request(a_job(share="vision"), an_attempt(), request, QUEUE)
    assert [tag["Value"] for tag in made["Tags"] if tag["Key"] == "trainmaster:share"] == ["vision"]


def test_a_job_of_an_earlier_release_with_45_tags_starts_without_its_share():
    request = a_request(Tags=[{"Key": f"k{number}", "Value": "v"} for number in range(45)])
    job = a_job(submitted_by="arn:aws:iam::111122223333:user/ada")
    tags = tags_of(attempt_request(job, an_attempt(), request, QUEUE))
    assert (len(tags), "trainmaster:share" in tags) == (50, False)


def test_a_users_tag_under_our_name_gives_way():
    request = a_request(Tags=[{"Key": "trainmaster:job", "Value": "another"}, {"Key": "team", "Value": "a"}])
    made = attempt_request(a_job("job1"), an_attempt(), request, QUEUE)
    assert [tag["Key"] for tag in made["Tags"]].count("trainmaster:job") == 1
    assert tags_of(made)["trainmaster:job"] == "job1"
    assert tags_of(made)["team"] == "a"


def test_preferences_are_narrowed_to_the_attempts_choices_in_their_order():
    request = a_request(ResourceConfig=preferring(P5, P4, G5))
    made = attempt_request(a_job(), an_attempt(choices=(G5, P5)), request, QUEUE)
    assert made["ResourceConfig"] == preferring(G5, P5)


def test_an_entry_keeps_its_own_count_and_plans():
    plan = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/p"
    entry = {"InstanceType": P5, "InstanceCount": 4, "TrainingPlanArns": [plan]}
    config = {
        "InstancePreferences": [entry, {"InstanceType": G5, "InstanceCount": 8}],
        "VolumeSizeInGB": 30,
    }
    made = attempt_request(a_job(), an_attempt(choices=(P5,)), a_request(ResourceConfig=config), QUEUE)
    assert made["ResourceConfig"]["InstancePreferences"] == [entry]


def test_without_choices_preferences_stay_as_they_are():
    request = a_request(ResourceConfig=preferring(P5))
    assert attempt_request(a_job(), an_attempt(), request, QUEUE)["ResourceConfig"] == preferring(P5)


def test_choices_mean_nothing_without_preferences():
    request = a_request()
    made = attempt_request(a_job(), an_attempt(choices=(P5,)), request, QUEUE)
    assert made["ResourceConfig"] == request["ResourceConfig"]


def test_a_choice_that_the_request_does_not_have_is_refused_rather_than_run_elsewhere():
    request = a_request(ResourceConfig=preferring(P5, P4))
    with pytest.raises(RequestRefused, match=r"ml\.g5\.2xlarge"):
        attempt_request(a_job(), an_attempt(choices=(P5, G5)), request, QUEUE)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain-1", "plain-1"),
        ("a_b.c:d/e=f+g-h@i", "a_b.c:d/e=f+g-h@i"),
        ("größe 7 測試", "größe 7 測試"),
        ("a,b(c)\n", "a_b_c__"),
        ("x" * 300, "x" * 256),
        ("", ""),
    ],
)
def test_tag_values_are_cut_to_what_sagemaker_takes(text, value):
    assert tag_value(text) == value


NAMES = st.from_regex(r"[a-zA-Z0-9](-?[a-zA-Z0-9]){0,30}", fullmatch=True)
WORDS = st.text("abcXYZ019 _.:/=+-@", min_size=1, max_size=40)
TAGS = st.dictionaries(WORDS.map(lambda key: "u" + key), WORDS, max_size=MAX_TAGS - 6).map(
    lambda tags: [{"Key": key, "Value": value} for key, value in tags.items()]
)
OPTIONAL = {
    "HyperParameters": st.dictionaries(WORDS, WORDS, max_size=5),
    "Environment": st.just({"A": "b"}),
    "EnableManagedSpotTraining": st.booleans(),
    "EnableNetworkIsolation": st.booleans(),
    "RetryStrategy": st.just({"MaximumRetryAttempts": 3}),
    "VpcConfig": st.just({"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}),
    "RemoteDebugConfig": st.just({"EnableRemoteDebug": True}),
    "InputDataConfig": st.just(
        [
            {
                "ChannelName": "a",
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/a"}},
            }
        ]
    ),
}


@cache
def shape():
    return ServiceModel(create_loader().load_service_model("sagemaker", "service-2")).shape_for(
        "CreateTrainingJobRequest"
    )


@st.composite
def cases(draw):
    name = draw(NAMES)
    request = a_request(name, Tags=draw(TAGS), **draw(st.fixed_dictionaries({}, optional=OPTIONAL)))
    choices = ()
    if draw(st.booleans()):
        listed = draw(st.permutations([P5, P4, G5]))
        request["ResourceConfig"] = preferring(*listed)
        choices = tuple(draw(st.lists(st.sampled_from(listed), unique=True, max_size=3)))
    number = draw(st.integers(1, 10_000))
    attempt = an_attempt(number, training_job_name=attempt_name(name, number), choices=choices)
    return a_job(name), attempt, request, draw(st.text(min_size=1, max_size=300))


@settings(deadline=None)
@given(cases())
def test_no_member_is_lost_none_is_changed_but_ours_and_sagemaker_takes_it(case):
    job, attempt, request, queue = case
    before = copy.deepcopy(request)
    made = attempt_request(job, attempt, request, queue)
    assert request == before
    assert made.keys() == before.keys()
    ours = {"TrainingJobName", "Tags", *(["ResourceConfig"] if attempt.choices else [])}
    assert all(made[key] == before[key] for key in before if key not in ours)
    assert made["Tags"][: len(before["Tags"])] == before["Tags"]
    assert len(made["Tags"]) == len(before["Tags"]) + 5 <= 50
    assert problems(made) == []
    assert not ParamValidator().validate(made, shape()).has_errors()
