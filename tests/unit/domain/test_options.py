"""The `trainmaster:` options: how each is read, what is refused with its field, and what a queue grants."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_request
from trainmaster.domain.errors import InvalidRequest, UnknownOption
from trainmaster.domain.jobs.job import ParentRule
from trainmaster.domain.policy.settings import FailureClass, Limits, Policy, Preemption, PreemptionOverrides
from trainmaster.domain.requests.option_rules import limit_problems, option_problems
from trainmaster.domain.requests.options import OPTIONS, Options
from trainmaster.domain.requests.tags import options_of, tag_problems
from trainmaster.domain.requests.values import MAX_DURATION, duration, moment

EIGHT = datetime(2026, 11, 22, 8, tzinfo=UTC)


def read(**texts: str) -> Options:
    return options_of(a_request(options=named(texts)))


def named(texts: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in texts.items()}


def refusal(**texts: str) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refused:
        options_of(a_request(options={"preemptible": "true", **named(texts)}))
    return refused.value


def clashes(**texts: str) -> list[tuple[str, str]]:
    request = a_request("job1", options=named(texts))
    return [(problem.field, problem.message) for problem in option_problems(request, options_of(request))]


def beyond(policy: Policy, **texts: str) -> list[tuple[str, str, str]]:
    request = a_request("job1", options=named(texts))
    found = limit_problems(request, options_of(request), policy)
    return [(problem.field, problem.message, problem.hint) for problem in found]


class TestReading:
    def test_every_option_at_once(self) -> None:
        options = read(
            share="vision",
            min_runtime="30m",
            cooldown="900",
            preemption_delay="1m30s",
            max_preemptions="3",
            not_before="2026-11-22T08:00:00Z",
            deadline="2026-11-23T09:00+01:00",
            after="prepare tokenise+clean",
            after_failure="run",
            group="sweep-1",
            max_concurrent="20",
            retry_capacity="9",
            retry_service="4",
            retry_spot="5",
            retry_algorithm="2",
        )
        assert options == Options(
            share="vision",
            min_runtime=timedelta(minutes=30),
            cooldown=timedelta(minutes=15),
            preemption_delay=timedelta(seconds=90),
            max_preemptions=3,
            not_before=EIGHT,
            deadline=EIGHT + timedelta(days=1),
            after=("prepare", "tokenise", "clean"),
            after_failure=ParentRule.RUN,
            group="sweep-1",
            max_concurrent=20,
            retries={
                FailureClass.CAPACITY: 9,
                FailureClass.SERVICE: 4,
                FailureClass.SPOT: 5,
                FailureClass.ALGORITHM: 2,
            },
        )

    def test_wishes_are_those_of_the_tags(self) -> None:
        assert read().preemption_overrides == PreemptionOverrides()
        preemption_overrides = read(
            min_runtime="1h", cooldown="2h", preemption_delay="3h", max_preemptions="4"
        ).preemption_overrides
        assert preemption_overrides == PreemptionOverrides(
            min_runtime=hours(1), cooldown=hours(2), delay=hours(3), max_preemptions=4
        )

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("0", 0), ("1800", 1800), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1d", 86_400), ("28d", 2_419_200)],
    )
    def test_durations(self, text: str, seconds: int) -> None:
        assert duration(text) == timedelta(seconds=seconds)

    @given(st.integers(0, int(MAX_DURATION.total_seconds())))
    def test_seconds_and_units_are_two_ways_to_say_it(self, seconds: int) -> None:
        hours_, rest = divmod(seconds, 3600)
        assert duration(str(seconds)) == duration(f"{hours_}h{rest // 60}m{rest % 60}s") == timedelta(seconds=seconds)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2026-11-22T08:00:00Z", EIGHT),
            ("2026-11-22T08:00Z", EIGHT),
            ("2026-11-22T09:30:00+01:30", EIGHT),
            ("2026-11-22T08:00:00.25Z", EIGHT + timedelta(milliseconds=250)),
        ],
    )
    def test_moments_are_utc(self, text: str, expected: datetime) -> None:
        assert moment(text) == expected
        assert expected.tzinfo is UTC

    @given(st.text())
    def test_no_text_breaks_a_reader(self, text: str) -> None:
        for option in OPTIONS.values():
            option.read(text)

    def test_pools_keep_their_order_and_are_named_once(self) -> None:
        assert read(pools="plan-a+p5.spot  ml.p5.48xlarge plan-a").pools == ("plan-a", "p5.spot", "ml.p5.48xlarge")

    def test_a_parent_is_named_once(self) -> None:
        assert read(after=" a b++a ").after == ("a", "b")


REFUSED: dict[str, list[str]] = {
    "share": ["", "a/b", "a@b", "a b", "-a", "a" * 64, "é", "a+b", "a,b", "a~1", "a|b", "a#b"],
    "group": ["", "a@b"],
    "pools": ["", " ", "+", "a,b", "a/b", "-a", "a" * 64, "a|b", " ".join(f"p{n}" for n in range(9))],
    "instances": ["0", "", "-1", "two"],
    "min-runtime": ["", "-5", "1.5h", "30 m", "30M", "m", "5x", "30m2h", "29d", "99999999", "1h1h", "\u0663"],
    "cooldown": ["soon"],
    "preemption-delay": ["1w"],
    "max-preemptions": ["", "-1", "1.0", "100001", "many"],
    "not-before": ["tomorrow", "2026-11-22", "2026-11-22T08:00:00", "2026-13-22T08:00:00Z", "2026-11-22 08:00:00Z"],
    "deadline": ["", "20261122T080000Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-11-22T24:00Z"],
    "after": ["", " ", "+", "a_b", "a-", "a" * 64, "a,b", "job-qstamp-2", " ".join(f"j{n}" for n in range(17))],
    "after-failure": ["", "stop", "Cancel"],
    "max-concurrent": ["0", "", "-2"],
    "retry-capacity": ["", "-1"],
    "retry-service": ["x"],
    "retry-spot": ["1e3"],
    "retry-algorithm": ["100001"],
    "preemptible": ["yes"],
    "min-instances": ["0", "-1", "two"],
    "max-instances": ["0", "1.5", "100001"],
    "instance-step": ["0", "-2"],
    "resize-by": ["", "Restart", "stop"],
    "resize-target": ["", "Event", "my-function", "arn:aws:sns:us-east-1:111122223333:topic", "https://example.com"],
    "scaling-timeout": ["-1", "soon"],
    "graceful-shutdown-timeout": ["-60"],
    "faulty-scale-down-timeout": ["-0"],
    "scale-up-snooze": ["29d"],
    "max-restarts": ["-1"],
    "eval-period": ["0", "-1", "0m"],
    "max-total-restarts": ["-1"],
    "restarts-before-full": ["0"],
    "max-full-restarts": ["-1"],
}


class TestRefusing:
    def test_every_option_is_tried(self) -> None:
        # These say more: test_resources_option.py, test_elastic_options.py, and below.
        assert {*REFUSED, "resources", "instance-values", "notify"} == set(OPTIONS)

    @pytest.mark.parametrize(
        ("text", "message", "hint"),
        [
            ("", "it names no change", "The words are start, preempted"),
            ("+", "it names no change", "join them with '+'"),
            ("start+preemted", "'preemted' is no change", "Did you mean 'preempted'?"),
            ("END", "'END' is no change", "The words are"),
        ],
    )
    def test_words_of_notifications(self, text: str, message: str, hint: str) -> None:
        refused = refusal(notify=text)
        assert message in refused.message
        assert hint in str(refused.hint)
        assert refused.field == "Tags[1].Value"
        assert options_of(a_request(options={"notify": "end+start end"})).notify == ("end", "start")

    @pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in REFUSED.items() for text in texts])
    def test_with_the_field_and_what_it_takes(self, name: str, text: str) -> None:
        request = a_request(priority=1)
        request["Tags"].append({"Key": f"trainmaster:{name}", "Value": text})
        (problem,) = tag_problems(request)
        assert problem.field == "Tags[1].Value"
        assert problem.hint == f"It must be {OPTIONS[name].takes}."
        assert len(problem.message) < 150

    @pytest.mark.parametrize(
        ("wrong", "right"),
        [("not_befor", "not-before"), ("dead_line", "deadline"), ("retry_algoritm", "retry-algorithm")],
    )
    def test_an_unknown_one_with_its_likely_meaning(self, wrong: str, right: str) -> None:
        refused = refusal(**{wrong: "1"})
        assert isinstance(refused, UnknownOption)
        assert (refused.field, f"Did you mean 'trainmaster:{right}'?" in str(refused.hint)) == ("Tags[1].Key", True)


class TestClashes:
    def test_options_that_go_together(self) -> None:
        assert clashes(after="other", after_failure="fail", group="g", max_concurrent="2") == []
        assert clashes(not_before="2026-11-22T08:00Z", deadline="2026-11-22T08:01Z") == []

    def test_a_job_cannot_wait_for_itself(self) -> None:
        assert clashes(after="other job1") == [("Tags[0].Value", "The job would wait for itself.")]

    @pytest.mark.parametrize(
        ("name", "text", "other"),
        [("after_failure", "run", "after"), ("max_concurrent", "5", "group"), ("instances", "2", "resources")],
    )
    def test_an_option_without_the_one_that_it_is_about(self, name: str, text: str, other: str) -> None:
        ((field, message),) = clashes(**{name: text})
        assert (field, f"no effect without 'trainmaster:{other}'" in message) == ("Tags[0].Value", True)

    def test_a_deadline_before_the_job_may_begin(self) -> None:
        ((field, message),) = clashes(not_before="2026-11-22T08:00Z", deadline="2026-11-22T08:00Z")
        assert (field, "not after not-before, 2026-11-22T08:00:00Z" in message) == ("Tags[1].Value", True)


class TestLimits:
    @pytest.mark.parametrize(
        ("name", "granted", "asked", "said"),
        [
            ("min_runtime", "4h", "4h1s", "at most 4h"),
            ("cooldown", "4h", "1d", "at most 4h"),
            ("preemption_delay", "90", "1m29s", "at least 1m30s"),
            ("max_preemptions", "3", "2", "at least 3"),
        ],
    )
    def test_what_the_queue_grants(self, name: str, granted: str, asked: str, said: str) -> None:
        policy = Policy(limits=Limits(min_max_preemptions=3), preemption=Preemption(delay=timedelta(seconds=90)))
        assert beyond(policy, **{name: granted}) == []
        ((field, _, hint),) = beyond(policy, **{name: asked})
        assert (field, said in hint.replace("Give ", "")) == ("Tags[0].Value", True)

    def test_absent_options_violate_no_limit(self) -> None:
        strict = Policy(
            limits=Limits(timedelta(0), timedelta(0), min_max_preemptions=50), preemption=Preemption(delay=hours(9))
        )
        assert beyond(strict) == []
        assert all("0s" in hint for _, _, hint in beyond(strict, min_runtime="1", cooldown="1"))


def hours(number: int) -> timedelta:
    return timedelta(hours=number)


def test_tag_values_match_sagemakers_pattern() -> None:
    """Every example in a hint can be written into a tag (SageMaker API reference, `Tag`, its pattern)."""
    allowed = set("+-=._:/@ ")
    for text in ("1h30m", "2026-11-22T08:00:00Z", "2026-11-22T09:00:00+01:00", "a+b c", "sweep-1.x_y"):
        assert all(sign.isalnum() or sign in allowed for sign in text)


def test_an_option_has_the_name_of_its_member() -> None:
    """An option's name is the member's, so that adding one is one entry and one member."""
    members = set(Options.__slots__)
    assert {name.replace("-", "_") for name in OPTIONS if not name.startswith("retry-")} <= members


DOCS = Path(__file__).parents[3] / "docs"


def test_every_option_that_the_docs_use_can_be_read() -> None:
    pages = [*DOCS.rglob("*.md")]
    used = [found for page in pages for found in re.findall(r"--option ([a-z-]+)=(\S+)", page.read_text())]
    assert {name for name, _ in used} >= {"not-before", "deadline", "after", "after-failure", "group", "retry-capacity"}
    for name, text in used:
        assert OPTIONS[name].read(text.rstrip("`.,;")) is not None, f"--option {name}={text}"
