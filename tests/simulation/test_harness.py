"""The harness itself: the oracle catches each kind of violation, days can be repeated, stories are shrunk."""

from datetime import UTC, datetime, timedelta

import pytest

from builders import G5, P5
from simulation.acts import ConsoleStop, External, Forge, Kill, Submit
from simulation.checks import LIST_PER_MINUTE, Oracle, Waiter
from simulation.play import play
from simulation.report import as_test
from simulation.shrink import shrink
from simulation.story import Configuration, Pools, Story, draw
from world import a_request

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
SOURCE = ("on-demand", P5)


class History:
    """A history written by hand, told to an oracle."""

    def __init__(self, *jobs, cap=2, counts=False, **options):
        self.oracle = Oracle("queue", **options)
        self.now = START
        self.oracle.set_pools(self.now, {SOURCE: (cap, counts)})
        self.requests = {}
        for name in jobs:
            self.submit(name)
        self.later(60)

    def submit(self, name, **fields):
        self.requests[name] = a_request(name, **fields)
        self.oracle.submit(START, name, self.requests[name], fields.get("priority", 0))

    def later(self, minutes):
        self.now += timedelta(minutes=minutes)
        return self

    def create(self, job, attempt=1, *, count=1, **changes):
        name = job if attempt == 1 else f"{job}-qstamp-{attempt}"
        tags = {"queue": "queue", "job": job, "attempt": str(attempt)}
        request = {**self.requests[job], "TrainingJobName": name, **changes}
        request["Tags"] = [{"Key": f"trainmaster:{key}", "Value": value} for key, value in tags.items()]
        self.oracle.sent(self.now, "CreateTrainingJob", request)
        self.tell(name, "InProgress", "Starting", count, {f"trainmaster:{key}": value for key, value in tags.items()})
        return name

    def tell(self, name, status, secondary="", count=1, tags=None):
        config = {"InstanceType": P5, "InstanceCount": count}
        detail = {"TrainingJobName": name, "TrainingJobStatus": status, "SecondaryStatus": secondary or status}
        self.oracle.status(self.now, {**detail, "ResourceConfig": config, "Tags": tags or {}})

    def kinds(self):
        return [finding.kind for finding in self.oracle.findings]


def test_a_good_history_has_no_findings():
    history = History("a", "b")
    for name in (history.create("a"), history.create("b")):
        history.tell(name, "Completed")
    history.oracle.check_orphans(history.now, frozenset(), {"a": None, "b": None})
    history.oracle.check_ends(history.now, {"a": ("completed", ""), "b": ("completed", "")})
    assert history.oracle.findings == []


def test_more_than_the_cap_is_found():
    history = History("a", "b", cap=1)
    history.create("a")
    history.create("b")
    assert history.kinds() == ["cap"]


def test_a_lowered_cap_lets_run_what_runs_and_no_more():
    history = History("a", "b", cap=2)
    history.create("a", count=2)
    history.oracle.set_pools(history.now, {SOURCE: (1, False)})
    history.later(11)
    assert history.kinds() == []
    history.create("b")
    assert history.kinds() == ["cap"]


def test_a_start_in_no_pool_is_found():
    history = History("a")
    history.create("a", ResourceConfig={"InstanceType": P5, "InstanceCount": 1, "TrainingPlanArn": "arn"})
    assert history.kinds() == ["request", "cap"]


def test_external_jobs_count_once_they_are_known():
    history = History("a", "b", cap=2, counts=True)
    history.tell("theirs", "InProgress", count=2)
    history.create("a")
    assert history.kinds() == [], "it had just begun"
    history.later(6)
    history.create("b")
    assert history.kinds() == ["external"]


def test_two_attempts_at_once_are_found():
    history = History("a")
    history.create("a", 1)
    history.create("a", 2)
    assert history.kinds() == ["double"]


def test_an_orphan_is_found_after_its_grace():
    history = History("a")
    name = history.create("a")
    history.oracle.check_orphans(history.now, frozenset(), {})
    assert history.kinds() == []
    history.later(16)
    history.oracle.check_orphans(history.now, frozenset(), {})
    assert history.kinds() == ["orphan"]
    history = History("a")
    history.create("a")
    history.oracle.check_orphans(history.now, frozenset({name}), {})
    history.later(16)
    history.oracle.check_orphans(history.now, frozenset({name}), {})
    assert history.kinds() == []


def test_a_training_job_that_outlives_its_job_is_found():
    history = History("a")
    history.create("a")
    history.oracle.check_orphans(history.now, frozenset(), {"a": history.now})
    history.later(16)
    history.oracle.check_orphans(history.now, frozenset(), {"a": history.now})
    assert history.kinds() == ["after the end"]


@pytest.mark.parametrize(
    ("priority", "count", "waits", "backs_off", "found"),
    [
        (5, 1, 10, False, True),
        (0, 1, 10, False, False),
        (5, 2, 10, False, False),
        (5, 1, 1, False, False),
        (5, 1, 10, True, False),
    ],
)
def test_a_start_in_front_of_a_higher_priority_that_fits_is_found(priority, count, waits, backs_off, found):
    history = History("a")
    since = history.now - timedelta(minutes=waits)
    first = Waiter("b", priority, (-priority, since, "b"), since, SOURCE, count, backs_off)
    history.oracle.waiting = lambda: [first]
    history.create("a")
    assert (history.kinds() == ["inversion"]) is found


def test_priorities_are_not_judged_right_after_trouble():
    history = History("a")
    history.oracle.waiting = lambda: [Waiter("b", 5, (-5, START, "b"), START, SOURCE, 1)]
    history.oracle.trouble(history.now)
    history.create("a")
    assert history.kinds() == []


def test_a_changed_request_is_found():
    history = History("a")
    history.create("a", CheckpointConfig={"S3Uri": "s3://bucket/other"})
    assert history.kinds() == ["request"]


def test_a_persons_stop_is_final():
    history = History("a")
    name = history.create("a")
    history.oracle.stopper = "person"
    history.tell(name, "Stopping")
    history.tell(name, "Stopped")
    history.create("a", 2)
    assert history.kinds() == ["resumed"]


@pytest.mark.parametrize(("minutes", "kinds"), [(1, []), (3, ["resumed"])])
def test_a_persons_stop_right_after_a_failed_one_of_the_queue_is_undecided(minutes, kinds):
    history = History("a")
    name = history.create("a")
    history.oracle.sent(history.now, "StopTrainingJob", {"TrainingJobName": name})
    history.later(minutes).oracle.stopper = "person"
    history.tell(name, "Stopping")
    history.tell(name, "Stopped")
    history.create("a", 2)
    assert history.kinds() == kinds


def test_a_stop_of_the_queue_comes_before_a_persons():
    history = History("a")
    name = history.create("a")
    history.oracle.stopper = "queue"
    history.tell(name, "Stopping")
    history.oracle.stopper = "person"
    history.tell(name, "Stopped")
    history.create("a", 2)
    assert history.kinds() == []


@pytest.mark.parametrize(
    ("status", "state", "kinds"),
    [
        ("Completed", "running", ["not drained"]),
        ("Completed", "stopped", ["lost"]),
        ("Stopped", "completed", ["lost"]),
        ("Stopped", "stopped", ["ended as stopped"]),
        ("Stopped", "failed", ["ended as failed"]),
        ("Failed", "failed", []),
    ],
)
def test_jobs_end_as_their_last_attempts_do(status, state, kinds):
    history = History("a")
    history.tell(history.create("a"), status)
    history.oracle.check_ends(history.now, {"a": (state, "")})
    assert history.kinds() == kinds


def test_a_job_that_is_gone_is_found():
    history = History("a", "b")
    history.oracle.check_ends(history.now, {"a": ("completed", ""), "b": ("cancelled", "")})
    assert history.kinds() == ["lost"]


def test_too_many_calls_are_found():
    history = History()
    for _ in range(LIST_PER_MINUTE + 2):
        history.oracle.sent(history.now, "ListTrainingJobs", {})
    assert history.kinds() == ["calls"]


@pytest.mark.parametrize("seed", [3, 11])
def test_the_same_seed_is_the_same_day(seed):
    first, second = play(draw(seed)), play(draw(seed))
    assert draw(seed) == draw(seed)
    assert first == second
    assert first.jobs


def test_a_story_prints_as_python():
    story = draw(5)
    names = {cls.__name__: cls for cls in (Story, Configuration, Pools, *{type(act) for act in story.acts})}
    assert eval(str(story), names) == story


def test_a_failing_story_is_printed_as_a_test():
    story = Story(seed=7, acts=(Submit(1.0, "a"), Kill(2.0, 3)))
    text = as_test(story, [])
    scope = {}
    exec(compile(text, "printed", "exec"), scope)
    scope["test_story_of_seed_7"]()


def test_a_story_is_shrunk_to_what_it_needs():
    story = draw(2)
    needle = (Submit(100.0, "needle", G5, options=(("preemptible", "false"),)), Forge(200.0, "needle"))
    long = Story(2, story.configuration, tuple(sorted((*story.acts, *needle), key=lambda act: act.at)), 8.0)

    def fails(each):
        names = {act.name for act in each.acts if isinstance(act, Submit | Forge)}
        return "needle" in names and any(isinstance(act, Forge) and act.name == "needle" for act in each.acts)

    short = shrink(long, fails)
    assert [type(act) for act in short.acts] == [Forge]
    assert short.hours < 1
    assert short.configuration == Configuration(pools=())


@pytest.mark.parametrize("tags", [{}, {"trainmaster:queue": "another", "trainmaster:job": "a"}])
def test_a_stop_of_a_strangers_training_job_is_found(tags):
    history = History("a")
    history.tell("a", "InProgress", tags=tags)
    history.oracle.sent(history.now, "StopTrainingJob", {"TrainingJobName": "a"})
    history.oracle.sent(history.now, "UpdateTrainingJob", {"TrainingJobName": "a"})
    assert history.kinds() == ["stranger", "stranger"]


def test_shrinking_ends_after_its_plays():
    story = draw(2)
    plays = []
    shrink(story, lambda each: bool(plays.append(each)), max_plays=7)
    assert len(plays) == 7


def test_a_quiet_day_is_played_to_its_end():
    story = Story(
        configuration=Configuration(pools=(Pools(P5, 1, True),)),
        acts=(
            External(0.0, "theirs", seconds=300),
            Submit(200.0, "a"),
            Submit(210.0, "b", priority=5),
            Submit(220.0, "c", seconds=7200),
            ConsoleStop(3000.0, "c"),
        ),
    )
    result = play(story)
    assert result.findings == []
    assert dict(result.states) == {"completed": 2, "stopped": 1}
