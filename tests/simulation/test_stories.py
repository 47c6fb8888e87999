"""Stories of days that found something once, at their shortest."""

from builders import P5
from simulation.acts import Submit
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
