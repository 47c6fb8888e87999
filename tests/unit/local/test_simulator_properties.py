"""Invariants of an account's history, for any creations, stops, interruptions and shortages."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from simulated import QUICK, Account

from builders import G5, P5
from samples import examples
from trainmaster.local.simulator import Profile
from trainmaster.local.simulator.service.demand import Market

LIMITS = {P5: 3, G5: 4}
TERMINAL = {"Completed", "Failed", "Stopped"}
NAMES = st.sampled_from([f"job{number}" for number in range(12)])
TYPES = st.sampled_from([P5, G5])
SECONDS = st.floats(0, 400, allow_nan=False)

CONFIGS = st.one_of(
    st.builds(
        lambda kind, count, keep: {"InstanceType": kind, "InstanceCount": count, "KeepAlivePeriodInSeconds": keep},
        TYPES, st.integers(1, 3), st.sampled_from([0, 60, 600]),
    ),
    st.builds(
        lambda first, second: {"InstanceGroups": [
            {"InstanceType": P5, "InstanceCount": first, "InstanceGroupName": "a"},
            {"InstanceType": G5, "InstanceCount": second, "InstanceGroupName": "b"},
        ]},
        st.integers(1, 2), st.integers(1, 2),
    ),
    st.builds(
        lambda count: {"InstancePreferences": [{"InstanceType": P5}, {"InstanceType": G5}], "InstanceCount": count},
        st.integers(1, 2),
    ),
)  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES, CONFIGS),
        st.tuples(st.just("spot"), NAMES, TYPES),
        st.tuples(st.just("stop"), NAMES),
        st.tuples(st.just("keep_alive"), NAMES, st.sampled_from([0, 100])),
        st.tuples(st.just("interrupt"), NAMES),
        st.tuples(st.just("capacity"), TYPES, st.sampled_from([0, 1, 2, None]), st.booleans()),
        st.tuples(st.just("advance"), SECONDS),
    ),
    max_size=30,
)
PROFILES = st.builds(
    Profile,
    training_seconds=st.floats(0, 500),
    stopping_seconds=st.floats(0, 300),
    uploading_seconds=st.sampled_from([0, 10]),
    requesting_seconds=st.sampled_from([0, 1]),
    pending_seconds=st.sampled_from([0, 300]),
    outcome=st.sampled_from(list(type(QUICK.outcome))),
    internal_errors=st.sampled_from([0, 1]),
)


def do(account: Account, step: tuple[Any, ...]) -> None:
    """Do it; being refused is part of every history."""
    what, *args = step
    try:
        if what == "create":
            account.create(args[0], ResourceConfig={**args[1], "VolumeSizeInGB": 30})
        elif what == "spot":
            account.spot(args[0], instance_type=args[1], runtime=600, wait=900)
        elif what == "interrupt":
            account.simulator.interrupt(args[0])
        elif what == "capacity":
            account.simulator.set_capacity(args[0], args[1], spot=args[2])
        else:
            getattr(account, what)(*args)
    except (ClientError, ValueError, KeyError):
        pass


def used(account: Account) -> Counter[tuple[bool, str]]:
    """Instances of the account's limits that described jobs hold, found without the simulator's own counters."""
    total: Counter[tuple[bool, str]] = Counter()
    for summary in account.client.list_training_jobs(MaxResults=100)["TrainingJobSummaries"]:
        seen = account.describe(summary["TrainingJobName"])
        kept = seen.get("WarmPoolStatus", {}).get("Status") == "Available"
        if seen["TrainingJobStatus"] not in TERMINAL or kept:
            for kind, count in units(seen["ResourceConfig"]).items():
                total[seen["EnableManagedSpotTraining"], kind] += count
    return total


def units(config: dict[str, Any]) -> dict[str, int]:
    if "SelectedInstanceType" in config:
        return {config["SelectedInstanceType"]: config["SelectedInstanceCount"]}
    if "InstancePreferences" in config:
        return {each["InstanceType"]: config["InstanceCount"] for each in config["InstancePreferences"]}
    if "InstanceGroups" in config:
        return {each["InstanceType"]: each["InstanceCount"] for each in config["InstanceGroups"]}
    return {config["InstanceType"]: config["InstanceCount"]}


@examples(100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, profile=PROFILES)
def test_no_history_exceeds_a_limit_and_every_job_ends_once(steps, profile):
    account = Account(limits=LIMITS, profile=profile)
    for step in steps:
        do(account, step)
        found = used(account)
        for (spot, kind), count in found.items():
            assert count <= LIMITS[kind], f"{kind} is over its limit after {step}"
            assert count == account.simulator.quotas.used(kind, _market(spot=spot))
    account.simulator.run_until_idle()
    assert_ended_once(account)
    assert all(count == 0 for count in account.simulator.quotas._used.values())
    assert all(count == 0 for count in account.simulator._ec2._running.values())


def assert_ended_once(account: Account) -> None:
    told = defaultdict(list)
    for event in account.events:
        detail = event["detail"]
        told[detail["TrainingJobName"]].append((detail["TrainingJobStatus"], detail["SecondaryStatus"]))
    for name, statuses in told.items():
        assert [status for status, _ in statuses if status in TERMINAL] == [statuses[-1][0]], name
        assert account.status(name) == statuses[-1]
        assert all(before != after for before, after in pairwise(statuses)), name


def _market(*, spot: bool) -> Any:
    return Market.SPOT if spot else Market.ON_DEMAND


@examples(25, deadline=None)
@given(steps=STEPS, profile=PROFILES)
def test_the_same_history_gives_the_same_events(steps, profile):
    histories = []
    for _ in range(2):
        account = Account(limits=LIMITS, profile=profile)
        for step in steps:
            do(account, step)
        account.simulator.run_until_idle()
        histories.append(account.events)
    assert histories[0] == histories[1]


@examples(30, deadline=None)
@given(statuses=st.lists(st.booleans(), max_size=25), size=st.integers(1, 9))
def test_pages_together_hold_every_job_of_the_status_once(statuses, size):
    account = Account(limits={})
    for number, stopped in enumerate(statuses):
        account.create(f"job{number}")
        if stopped:
            account.stop(f"job{number}")
    answer = account.client.list_training_jobs(MaxResults=size, StatusEquals="Stopping")
    found = list(answer["TrainingJobSummaries"])
    while "NextToken" in answer:
        token = answer["NextToken"]
        answer = account.client.list_training_jobs(MaxResults=size, StatusEquals="Stopping", NextToken=token)
        found += answer["TrainingJobSummaries"]
    names = [each["TrainingJobName"] for each in found]
    assert sorted(names) == sorted(f"job{number}" for number, stopped in enumerate(statuses) if stopped)
