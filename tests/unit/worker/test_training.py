"""Requests for checkpoints as scripts see them: agreed on by all ranks, answered once all have saved."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace

import pytest

from trainmaster.worker.checkpoints.notices import Notices, Reason
from trainmaster.worker.training import (
    CheckpointRequests,
    SingleProcess,
    TorchProcessGroup,
    checkpoints,
    latest_round_reader,
)


class Rank:
    """One of several ranks in threads; `max` and `barrier` wait for all."""

    def __init__(self, world):
        self.gate = threading.Barrier(world, timeout=10)
        self.values = []

    def max(self, value):
        self.values.append(value)
        self.gate.wait()
        found = max(self.values)
        self.gate.wait()
        self.values.clear()
        self.gate.wait()
        return found

    def barrier(self):
        self.max(0)


class Ticking:
    """A clock that sleeping moves."""

    def __init__(self):
        self.now, self.during = 0.0, lambda: None

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.during()


@pytest.fixture
def notices(tmp_path):
    directory = tmp_path / "notices"
    directory.mkdir(mode=0o700)
    return Notices(directory)


def requested_of(notices, clock=None):
    clock = clock or Ticking()
    return CheckpointRequests(notices.register(os.getpid()), SingleProcess, clock=clock, sleep=clock.sleep)


def ask(notices, number, reason=Reason.RESIZE):
    """As `Notices.request_checkpoint`, without the signal, which would hit the test itself."""
    notices._write("notice.json", {"number": number, "reason": reason})


def test_nothing_is_requested_of_a_script_that_was_started_by_hand():
    requests = CheckpointRequests(None, SingleProcess)
    assert not requests.requested()
    requests.saved()


def test_a_notice_is_seen_after_its_signal_until_it_is_answered(notices):
    requests = requested_of(notices)
    assert not requests.requested()
    ask(notices, 1)
    requests.on_signal()
    assert requests.requested()
    assert requests.requested()
    requests.saved(wait=0)
    assert notices.is_answered(1)
    assert not requests.requested()


def test_one_asked_for_while_the_process_enrolled_is_not_lost(notices):
    requests = requested_of(notices)
    ask(notices, 1)
    assert requests.requested()


def test_saving_without_a_request_answers_nothing(notices):
    requests = requested_of(notices)
    ask(notices, 1)
    requests.saved(wait=0)
    assert not notices.is_answered(1)


def test_it_waits_to_be_ended_and_answers_what_is_asked_meanwhile(notices):
    """The agents of several nodes hear of one change at different times; one checkpoint serves them all."""
    clock = Ticking()
    requests = requested_of(notices, clock)
    ask(notices, 1)
    assert requests.requested()
    clock.during = lambda: ask(notices, 2) if clock.now > 3 else None
    requests.saved(wait=10)
    assert clock.now == pytest.approx(10, abs=0.2)
    assert notices.is_answered(2)
    assert not requests.requested()


def test_others_are_asked_at_every_so_many_calls_only(notices):
    requests = requested_of(notices)
    ask(notices, 1)
    assert [requests.requested(every=3) for _ in range(6)] == [False, False, True] * 2


def test_all_ranks_see_a_request_at_the_same_step_though_one_alone_was_told(tmp_path):
    world, seen = 3, {}
    group = Rank(world)
    places = []
    for rank in range(world):
        directory = tmp_path / str(rank)
        directory.mkdir(mode=0o700)
        places.append(Notices(directory))

    def train(rank):
        requests = CheckpointRequests(places[rank].register(os.getpid()), lambda: group)
        for step in range(1, 100):
            if rank == 1 and step == 40:
                ask(places[1], 1)
                requests.on_signal()
            if requests.requested():
                seen[rank] = step
                requests.saved(wait=0)
                return

    threads = [threading.Thread(target=train, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert seen == {0: 40, 1: 40, 2: 40}
    assert places[1].is_answered(1)


def test_checkpoints_are_named_after_attempt_and_round(tmp_path):
    given = {"TRAINMASTER_RUN": "bert-qstamp-2", "TRAINMASTER_ROUND": "7"}
    saved = checkpoints(tmp_path, given)
    with saved.writing(3) as directory:
        (directory / "x").write_text("x")
    assert saved.latest().name == "a0002-r000007-s000000000003"


def test_the_attempts_of_a_job_count_on_from_those_of_another(tmp_path):
    for run, step in (("bert-qstamp-3", 10), ("bert-2-qstamp-2", 20), ("bert-2-qstamp-3", 30)):
        with checkpoints(tmp_path, {"TRAINMASTER_RUN": run}).writing(step) as directory:
            (directory / "x").write_text("x")
    assert checkpoints(tmp_path, {}).latest().name == "a0006-r000000-s000000000030"


def test_s3_is_asked_in_the_region_of_the_job_where_boto3_knows_none(monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    given = {"TRAINING_JOB_ARN": "arn:aws-cn:sagemaker:cn-north-1:111122223333:training-job/bert"}
    client = checkpoints("s3://bucket/bert", given)._store._client
    assert client.meta.endpoint_url == "https://s3.cn-north-1.amazonaws.com.cn"


@pytest.mark.parametrize(("hook", "where", "warned"), [("members", "", 1), ("members", "all", 0), ("restart", "", 0)])
def test_members_hear_that_they_do_not_share_sagemakers_directory(tmp_path, caplog, hook, where, warned):
    checkpoints(where and tmp_path, {"SM_CHECKPOINT_DIR": str(tmp_path), "TRAINMASTER_HOOK": hook})
    assert [f"its own {tmp_path}" in text for text in caplog.messages] == [True] * warned


class Gpus:
    """The backend and the devices of a rank."""

    def __init__(self, current, count, backend="nccl"):
        self.cuda = SimpleNamespace(current_device=lambda: current, device_count=lambda: count)
        self.int32, self.used, self.ReduceOp = None, [], SimpleNamespace(MAX=None)
        self.get_backend = lambda: backend

    def tensor(self, values, *, device, **_):
        self.used.append(device)
        return SimpleNamespace(item=lambda: values[0])

    def all_reduce(self, tensor, **_):
        pass


@pytest.mark.parametrize(
    ("current", "count", "local", "used"),
    [(0, 8, "3", "cuda:3"), (5, 8, "3", "cuda"), (0, 1, "3", "cuda"), (0, 8, "0", "cuda:0"), (0, 1, "", "cuda:0")],
)
def test_ranks_agree_on_devices_of_their_own(monkeypatch, current, count, local, used):
    monkeypatch.setenv("LOCAL_RANK", local)
    torch = Gpus(current, count)
    assert TorchProcessGroup(torch, torch).max(1) == 1
    assert torch.used == [used]


def test_ranks_without_nccl_agree_on_the_cpu():
    torch = Gpus(0, 8, backend="gloo")
    TorchProcessGroup(torch, torch).barrier()
    assert torch.used == ["cpu"]


def test_sagemakers_directory_is_where_they_are_unless_the_script_says_otherwise(tmp_path):
    saved = checkpoints(environ={"SM_CHECKPOINT_DIR": str(tmp_path / "kept")})
    assert saved.latest() is None
    assert (tmp_path / "kept").is_dir()


@pytest.mark.parametrize("missing", ["TRAINMASTER_ROUND", "TRAINMASTER_RUN", "TRAINMASTER_RENDEZVOUS_TABLE"])
def test_without_a_rendezvous_no_writer_is_fenced(missing):
    given = {"TRAINMASTER_ROUND": "1", "TRAINMASTER_RUN": "bert", "TRAINMASTER_RENDEZVOUS_TABLE": "queue"}
    assert latest_round_reader({name: text for name, text in given.items() if name != missing})() is None
