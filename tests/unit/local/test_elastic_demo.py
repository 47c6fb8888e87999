"""The elastic story without a stack: what it makes of what it sees, and that it fails where that is not the story."""

from __future__ import annotations

import json

import pytest

from trainmaster.local.demo.__main__ import main
from trainmaster.local.demo.elastic_requests import ELASTIC, IMMEDIATE_GROWTH, OTHERS, STEPS, URGENT, Requests
from trainmaster.local.demo.elastic_scenario import ElasticScenario, Record, Step, TrainingJobRecord
from trainmaster.local.demo.picture import draw
from trainmaster.local.demo.scenario import UnexpectedState
from trainmaster.local.stack import Checkout


class SeenQueue:
    """A queue in which everything is in one state, and whose elastic job has printed these steps."""

    def __init__(self, state="running", steps=()):
        self.state = state
        self.steps = steps
        self.submitted = []
        self.settings = []

    def job(self, name):
        return {"jobName": name, "jobState": self.state}

    def lines(self, prefix):
        said = [(step.at, json.dumps({"step": step.step, "loss": 1.0, "world": step.world, "round": step.round}))
                for step in self.steps]  # fmt: skip
        return [(0.0, "a warning of torch's"), *said] if prefix == ELASTIC else []

    def submit(self, request):
        self.submitted.append(request)

    def change_settings(self, settings):
        self.settings.append(settings)


def steps(*worlds, first=1):
    """A step a second, of worlds of these sizes; each change is a new round."""
    made, round_, before = [], 0, None
    for number, world in enumerate(worlds):
        round_ += world != before
        made.append(Step(float(number), first + number, 1.0 / (number + 1), world, round_))
        before = world
    return tuple(made)


@pytest.fixture
def requests(tmp_path):
    return Requests(Checkout.here(), tmp_path, "ml.g5.12xlarge")


def test_a_record_tells_worlds_pauses_and_lost_steps():
    one, three = steps(1, 1, 1), (Step(9.5, 3, 0.1, 3, 2), Step(9.6, 4, 0.1, 3, 2))
    record = Record((*one, *three), (), ("running",), {})
    assert record.worlds == (1, 3)
    assert record.pauses == (7.5,)
    assert record.lost == 1, "step 3 was taken twice"


def test_the_story_goes_on_as_soon_as_the_elastic_job_has_trained_enough_in_its_world(requests):
    queue = SeenQueue(steps=steps(*[1] * 25))
    story = ElasticScenario(queue, requests)
    assert next(story.run()) == f"{ELASTIC} has started with the one free instance"
    assert [request["TrainingJobName"] for request in queue.submitted] == [*OTHERS, ELASTIC]
    assert queue.settings == [IMMEDIATE_GROWTH]


def test_a_world_of_another_size_is_not_the_story_and_the_other_jobs_are_let_go(requests, tmp_path):
    story = ElasticScenario(SeenQueue(steps=steps(1, 2)), requests)
    with pytest.raises(UnexpectedState, match=r"in worlds of \(1, 2\), not of \(1,\)"):
        next(story.run())
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}-may-end" for name in (*OTHERS, URGENT)}


def test_an_elastic_job_that_ends_too_early_is_not_the_story(requests):
    queue = SeenQueue(steps=steps(*[1] * 5))
    queue.job = lambda name: {"jobName": name, "jobState": "failed" if name == ELASTIC else "running"}
    with pytest.raises(UnexpectedState, match="ended too early"):
        next(ElasticScenario(queue, requests).run())


def test_the_elastic_request_asks_for_checkpoints_at_resizes_alone(requests):
    request = requests.elastic()
    assert int(request["HyperParameters"]["save_every"]) > STEPS
    assert "CheckpointConfig" not in request


def test_a_record_is_drawn_as_a_png(tmp_path):
    held = (
        TrainingJobRecord(OTHERS[0], "Completed", 1, 0.0, 3.0),
        TrainingJobRecord(ELASTIC, "Completed", 1, 1.0, 9.0),
        TrainingJobRecord(f"{ELASTIC}-qstamp-1-m1", "Completed", 1, 3.0, 9.0),
        TrainingJobRecord(URGENT, "Completed", 2, 5.0, 6.0),
    )
    draw(Record(steps(1, 1, 3, 3, 1), held, ("running",), {}), tmp_path / "story.png")
    assert (tmp_path / "story.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_is_of_the_elastic_story_only(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--picture", "story.png"])
    assert ended.value.code == 2
    assert "--picture needs --elastic" in capsys.readouterr().err
