"""Stories of days that found something once, at their shortest."""

from builders import P5
from simulation.acts import Reprioritise, Submit
from simulation.play import play
from simulation.story import Configuration, Pools, Story, draw


def test_a_warm_pool_that_describe_still_calls_available_is_not_given_twice():
    story = Story(
        seed=10080,
        hours=2.2,
        configuration=Configuration(pools=(Pools(P5, cap=1),), hostility=(("describe_lag", 120.0),)),
        acts=(
            Submit(at=4167.3, name="job2"),
            Submit(at=4269.7, name="job8"),
            Submit(at=4316.0, name="job0", priority=5, keep_alive=1800),
        ),
    )
    assert not play(story).findings


def test_a_stop_of_the_queue_that_was_accepted_between_calls_without_answers_is_its_own():
    assert not play(draw(30022)).findings


def test_a_warm_pool_whose_user_has_ended_is_not_given_twice():
    story = Story(
        seed=10080,
        hours=3.8,
        configuration=Configuration(
            pools=(Pools(name="ml.p5.48xlarge", cap=1),),
            settings=(("preemption", {"cooldownSeconds": 120, "minRuntimeSeconds": 300}),),
            hostility=(
                ("capacity_error_seconds", 60.0),
                ("capacity_errors", 0.03),
                ("clock_offset", -30.0),
                ("describe_lag", 120.0),
                ("failed_calls", 0.05),
                ("internal_errors", 0.05),
                ("late_creates", 0.02),
                ("list_lag", 120.0),
                ("lost_answers", 0.01),
                ("stuck_seconds", 180.0),
                ("stuck_stops", 0.1),
            ),
        ),
        acts=(
            Submit(at=1923.7, name="job4", seconds=1200, checkpoints=False, keep_alive=1800),
            Reprioritise(at=1930.4, name="job4", priority=3),
            Submit(at=2152.2, name="job7", seconds=300, internal_errors=1, keep_alive=600),
            Reprioritise(at=2152.5, name="job7", priority=3),
            Submit(at=2282.6, name="job3", seconds=1200, priority=10),
            Submit(at=3720.8, name="job6"),
            Submit(at=4002.5, name="job1", seconds=1200, priority=10, hook="members"),
            Submit(at=4052.1, name="job9", seconds=1200, priority=5),
            Submit(at=4316.0, name="job0", seconds=1200, priority=5, keep_alive=1800),
            Submit(at=9966.7, name="job5"),
        ),
    )
    assert not play(story).findings
