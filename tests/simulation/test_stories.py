"""Stories of days that found something once, at their shortest."""

import pytest

from builders import G5, P5
from simulation.acts import Cancel, ConsoleStop, External, Kill, Quota, RemovePool, Reprioritize, Submit
from simulation.play import play
from simulation.story import Configuration, Pools, Story, draw

STORIES = {
    "a warm pool that describe still calls available is not given twice": Story(
        seed=10080,
        hours=2.2,
        configuration=Configuration(pools=(Pools(P5, cap=1),), hostility=(("describe_lag", 120.0),)),
        acts=(
            Submit(at=4167.3, name="job2"),
            Submit(at=4269.7, name="job8"),
            Submit(at=4316.0, name="job0", priority=5, keep_alive=1800),
        ),
    ),
    "a stop of the queue that was accepted between calls without answers is its own": draw(30022),
    "a start that is refused in doubt ends before its pool is long gone": Story(
        seed=3000725,
        hours=1.5,
        configuration=Configuration(
            pools=(Pools(name=G5, cap=2),),
            hostility=(("late_creates", 0.2), ("list_lag", 5.0), ("lost_answers", 0.01)),
        ),
        acts=(
            Quota(at=1579.9, instance_type=G5),
            Kill(at=2328.0, call=2),
            Submit(at=2382.0, name="job9", instance_type=G5, count=2),
            RemovePool(at=4191.7, pool=G5, force=True),
            Quota(at=5179.9, instance_type=G5, limit=50),
        ),
    ),
    "a member that became the base may not be visible yet": Story(
        seed=1004243,
        hours=2.3,
        configuration=Configuration(
            pools=(Pools(name=G5, cap=2, count_external=True),), hostility=(("describe_lag", 120.0),)
        ),
        acts=(Submit(at=4655.1, name="job9", instance_type=G5, internal_errors=2, hook="members", most=2),),
    ),
    "a persons stop before the queue could call is the persons": Story(
        seed=1004260,
        hours=1.3,
        configuration=Configuration(pools=(Pools(name=G5, cap=2, count_external=True),)),
        acts=(
            Submit(at=3212.1, name="job11", instance_type=G5, seconds=1200),
            Submit(at=3670.0, name="job12", instance_type=G5, count=2),
            Submit(at=4140.3, name="job1", instance_type=G5, priority=-2, hook="custom"),
            Kill(at=4294.3, call=7),
            ConsoleStop(at=4438.0, name="job1"),
        ),
    ),
    "a persons stop that describe does not show yet is the persons": Story(
        seed=1001141,
        hours=1.2,
        configuration=Configuration(
            pools=(Pools(name="ml.g6.12xlarge", cap=2), Pools(name=G5, cap=1)), hostility=(("describe_lag", 120.0),)
        ),
        acts=(
            Submit(at=3814.4, name="job6", instance_type="ml.g6.12xlarge", groups=((G5, 1),)),
            ConsoleStop(at=3819.9, name="job6"),
            Submit(at=3847.1, name="job2", instance_type=G5, priority=5, hook="members"),
        ),
    ),
    "a warm pool whose user has ended is not given twice": Story(
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
            Reprioritize(at=1930.4, name="job4", priority=3),
            Submit(at=2152.2, name="job7", seconds=300, internal_errors=1, keep_alive=600),
            Reprioritize(at=2152.5, name="job7", priority=3),
            Submit(at=2282.6, name="job3", seconds=1200, priority=10),
            Submit(at=3720.8, name="job6"),
            Submit(at=4002.5, name="job1", seconds=1200, priority=10, hook="members"),
            Submit(at=4052.1, name="job9", seconds=1200, priority=5),
            Submit(at=4316.0, name="job0", seconds=1200, priority=5, keep_alive=1800),
            Submit(at=9966.7, name="job5"),
        ),
    ),
}
"""Stories by the rule that they broke once."""


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_a_rule_that_a_story_broke_once_holds(story):
    assert not play(story).findings


@pytest.mark.parametrize("tags_lag", [0.0, 300.0])
def test_a_strangers_training_job_of_the_same_name_is_left_alone(tags_lag):
    hostility = (("tags_lag", tags_lag),) if tags_lag else ()
    story = Story(
        hours=1.5,
        configuration=Configuration(pools=(Pools(P5, cap=1),), hostility=hostility),
        acts=(External(10.0, "a", seconds=3600), Submit(60.0, "a"), Cancel(90.0, "a"), Submit(100.0, "b")),
    )
    result = play(story)
    assert not result.findings
    assert dict(result.states) == {"stopped": 1, "completed": 1}
