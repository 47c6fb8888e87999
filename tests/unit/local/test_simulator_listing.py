"""ListTrainingJobs: pages, filters, order, summaries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from simulated import Account, refusal

from builders import P5


def with_jobs(count: int, **settings) -> Account:
    """So many jobs, one second apart, job00 first."""
    account = Account(limits={}, **settings)
    for number in range(count):
        account.create(f"job{number:02}")
        account.advance(1)
    return account


def names(answer: dict) -> list[str]:
    return [each["TrainingJobName"] for each in answer["TrainingJobSummaries"]]


def every_page(account: Account, **query) -> list[list[str]]:
    answer = account.client.list_training_jobs(**query)
    pages = [names(answer)]
    while "NextToken" in answer:
        answer = account.client.list_training_jobs(NextToken=answer["NextToken"], **query)
        pages.append(names(answer))
    return pages


def test_a_page_holds_ten_jobs_where_nothing_else_is_asked():
    account = with_jobs(12)
    assert [len(page) for page in every_page(account)] == [10, 2]


def test_the_newest_come_first_where_nothing_else_is_asked():
    account = with_jobs(3)
    assert every_page(account) == [["job02", "job01", "job00"]]


def test_the_page_is_cut_before_the_status_filter_so_pages_may_be_empty_and_go_on():
    account = with_jobs(5)
    account.stop("job00")
    pages = every_page(account, MaxResults=2, StatusEquals="Stopping")
    assert pages == [[], [], ["job00"]]


def test_the_last_page_has_no_token_even_when_it_is_full():
    account = with_jobs(4)
    assert [len(page) for page in every_page(account, MaxResults=2)] == [2, 2]


def test_a_token_goes_on_where_the_page_ended_although_jobs_were_created_meanwhile():
    account = with_jobs(4)
    first = account.client.list_training_jobs(MaxResults=2)
    account.create("later")
    second = account.client.list_training_jobs(MaxResults=2, NextToken=first["NextToken"])
    assert names(second) == ["job01", "job00"]


def test_a_token_that_is_not_one_of_ours_is_refused():
    account = with_jobs(1)
    for token in ("xyz", "e30=", "WzEsMl0="):
        assert refusal(account.client.list_training_jobs, NextToken=token)[0] == "ValidationException"


@pytest.mark.parametrize("size", [0, 101])
def test_a_page_holds_one_to_a_hundred(size):
    account = with_jobs(1).unvalidated()
    assert refusal(account.client.list_training_jobs, MaxResults=size)[0] == "ValidationException"


def test_creation_time_bounds_are_exclusive():
    account = with_jobs(5)
    after = account.start + timedelta(seconds=1)
    before = account.start + timedelta(seconds=4)
    assert every_page(account, CreationTimeAfter=after, CreationTimeBefore=before) == [["job03", "job02"]]


def test_last_modified_time_follows_the_status():
    account = with_jobs(2)
    account.advance(4)
    since = account.simulator.now()
    account.advance(1)
    account.stop("job00")
    assert every_page(account, LastModifiedTimeAfter=since) == [["job00"]]
    assert every_page(account, LastModifiedTimeBefore=since) == [["job01"]]


def test_names_can_be_searched():
    account = with_jobs(12)
    assert every_page(account, NameContains="b1") == [["job11", "job10"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"SortBy": "Name", "SortOrder": "Ascending"}, ["job00", "job01", "job02"]),
        ({"SortBy": "Name", "SortOrder": "Descending"}, ["job02", "job01", "job00"]),
        ({"SortBy": "Status", "SortOrder": "Ascending"}, ["job00", "job02", "job01"]),
        ({"SortBy": "CreationTime", "SortOrder": "Ascending"}, ["job00", "job01", "job02"]),
        ({"SortBy": "CreationTime"}, ["job02", "job01", "job00"]),
    ],
    ids=str,
)
def test_jobs_are_sorted_as_asked(query, expected):
    account = with_jobs(3)
    account.stop("job01")
    assert every_page(account, **query) == [expected]
    assert [page[0] for page in every_page(account, MaxResults=1, **query)] == expected


def test_a_summary_has_the_real_members():
    account = Account()
    account.warm("job1", 600)
    account.advance(130)
    summary = account.client.list_training_jobs()["TrainingJobSummaries"][0]
    assert set(summary) == {
        "TrainingJobName", "TrainingJobArn", "CreationTime", "TrainingEndTime", "LastModifiedTime",
        "TrainingJobStatus", "SecondaryStatus", "WarmPoolStatus",
    }  # fmt: skip
    assert summary["TrainingJobArn"] == "arn:aws:sagemaker:us-east-1:111122223333:training-job/job1"


def test_warm_pools_can_be_searched_by_their_status():
    account = Account(limits={P5: 9})
    account.warm("job1", 600)
    account.create("job2")
    account.advance(130)
    assert every_page(account, WarmPoolStatusEquals="Available") == [["job1"]]
    assert every_page(account, WarmPoolStatusEquals="InUse") == [[]]


def test_two_list_calls_a_second_are_answered_and_the_third_is_throttled():
    account = Account(rates=None)
    for _ in range(2):
        account.client.list_training_jobs()
    code, text = refusal(account.client.list_training_jobs)
    assert (code, text) == ("ThrottlingException", "Rate exceeded")
    account.advance(0.5)
    account.client.list_training_jobs()
    assert refusal(account.client.list_training_jobs)[0] == "ThrottlingException"


def test_the_rate_of_any_operation_can_be_set():
    account = Account(rates={"CreateTrainingJob": 1})
    account.create("job1")
    assert refusal(account.create, "job2")[0] == "ThrottlingException"
    account.advance(1)
    account.create("job2")
