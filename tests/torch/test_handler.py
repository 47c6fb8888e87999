"""Our handler, as agents drive it, over a DynamoDB engine: joins, growth, drains, losses, outages, the end."""

from __future__ import annotations

import json
import threading
import time
import zlib
from importlib.metadata import entry_points

import pytest
from agents import QUICK, RUN, Agents, eventually, worlds
from botocore.exceptions import ConnectTimeoutError
from tests import containers
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousParameters,
    RendezvousTimeoutError,
)
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from trainmaster.domain.elastic.rendezvous import Control, Role
from trainmaster.worker.checkpoints.notices import Notices, Reason
from trainmaster.worker.container.restart_budget import RestartBudget


@pytest.fixture
def agents(client, table):
    agents = Agents(client, table)
    yield agents
    agents.close()


def test_all_that_come_at_once_are_one_world_in_one_store(agents):
    first, *others = [agents.open(number, 2, 4) for number in (1, 2, 3, 4)]
    worlds(first, *others)
    first.info.store.set("greeting", "hello")
    assert {bytes(each.info.store.get("greeting")) for each in others} == {b"hello"}
    assert {each.info.bootstrap_store_info.master_addr for each in (first, *others)} == {
        each.address for each in (first, *others) if each.info.rank == 0
    }


def test_a_newcomer_is_taken_in_behind_those_that_are_there_and_finds_an_empty_store(agents):
    first, second = agents.open(8, 1, 3), agents.open(9, 1, 3)
    process_group = worlds(first, second)
    first.info.store.set("old", "key")
    third = agents.open(1, 1, 3)
    assert worlds(first, second, third) == [*process_group, 2]
    assert not third.info.store.check(["old"])


def test_a_node_is_told_of_its_round_for_its_workers(agents):
    environ = {}
    only = agents.open(1, 1, 1, environ=environ)
    worlds(only)
    first = int(environ["TRAINMASTER_ROUND"])
    only.fails()
    eventually(lambda: only.rounds == 2)
    assert int(environ["TRAINMASTER_ROUND"]) > first


def test_the_first_worker_opens_the_store_where_the_environment_says_so(agents):
    environ = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    first, second = (agents.open(number, 1, 2, environ=dict(environ)) for number in (1, 2))
    worlds(first, second)
    assert not first.handler.use_agent_store
    told = {
        (each.info.bootstrap_store_info.master_addr, each.info.bootstrap_store_info.master_port)
        for each in (first, second)
    }
    assert len(told) == 1
    assert told.pop()[1] != first.info.store.port


def test_draining_the_first_rank_ends_it_with_code_0_and_charges_no_restart(agents, groups):
    some = [agents.open(n, 1, 3, job=f"bert-m{n}") for n in (1, 2, 3)]
    worlds(*some)
    drained = next(agent for agent in some if agent.info.rank == 0)
    job = f"bert-m{drained.address[-1]}"
    groups.set(containers.RUN, Control(epoch=1, min_nodes=1, max_nodes=2, drain=(job,), grace=5.0))
    stay = [agent for agent in some if agent is not drained]
    assert drained.ends() == 0
    assert sorted(worlds(*stay)) == [0, 1]
    group = groups.get(containers.RUN)
    assert not group.holds(job)
    assert (group.closed, group.restarts) == (False, 0)


def test_a_node_that_is_lost_is_missed_and_the_others_go_on_without_it(agents, groups):
    some = [agents.open(number, 1, 3) for number in (1, 2, 3)]
    worlds(*some)
    lost = next(agent for agent in some if agent.info.rank == 0)
    lost.dies()
    worlds(*(agent for agent in some if agent is not lost))
    assert groups.get(containers.RUN).restarts == 1


def test_a_spare_waits_and_takes_the_place_of_a_node_that_is_lost(agents, groups):
    first, second = agents.open(1, 2, 2), agents.open(2, 2, 2)
    worlds(first, second)
    spare = agents.open(3, 2, 2)
    eventually(lambda: [node.role for node in groups.get(containers.RUN).nodes].count(Role.SPARE) == 1)
    assert (first.handler.num_nodes_waiting(), spare.world) == (0, None)
    second.dies()
    worlds(first, spare)


def test_failed_workers_of_one_node_start_a_new_round_for_all_which_is_charged_once(agents, groups):
    some = [agents.open(number, 1, 3) for number in (1, 2, 3)]
    before = worlds(*some)
    some[0].fails()
    eventually(lambda: all(agent.rounds == 2 for agent in some))
    assert worlds(*some) == before
    assert groups.get(containers.RUN).restarts == 1


def test_a_job_that_has_used_up_its_restarts_ends_everywhere_with_the_reason(agents, groups, tmp_path):
    budget, notices = RestartBudget(max_restarts=1), []
    for number in (1, 2):
        (tmp_path / f"{number}").mkdir(mode=0o700)
        notices.append(Notices(tmp_path / f"{number}"))
    some = [agents.open(number, 1, 2, budget=budget, notices=notices[number - 1]) for number in (1, 2)]
    worlds(*some)
    for rounds in (1, 2):
        eventually(lambda rounds=rounds: all(agent.rounds == rounds for agent in some))
        some[0].fails()
    assert all(isinstance(agent.ends(), RendezvousClosedError) for agent in some)
    reason = groups.get(containers.RUN).reason
    assert reason.startswith("trainmaster: restart budget spent")
    assert [each.job_failure() for each in notices] == [reason, reason]


def test_the_job_is_over_once_the_script_has_ended_on_all_nodes_and_a_spare_ends_in_peace(agents, groups):
    first, second = agents.open(1, 2, 2), agents.open(2, 2, 2)
    worlds(first, second)
    spare = agents.open(3, 2, 2)
    eventually(lambda: len(groups.get(containers.RUN).nodes) == 3)
    first.finishes()
    time.sleep(1.0)
    assert not groups.get(containers.RUN).closed, "the other one is still at work"
    second.finishes()
    assert (first.ends(), second.ends(), spare.ends()) == (None, None, 0)
    assert (groups.get(containers.RUN).closed, groups.get(containers.RUN).reason) == (True, "done")


def test_too_few_nodes_are_told_so_and_close_nothing(agents, groups):
    only = agents.open(1, 2, 2, join_timeout=0.5)
    assert isinstance(only.ends(), RendezvousTimeoutError)
    group = groups.get(containers.RUN)
    assert (group.closed, group.nodes) == (False, ())


class Answering(Notices):
    """Notices whose workers answer when the test says so."""

    saved = 0

    def is_answered(self, number):
        return number <= self.saved


def test_before_a_resize_workers_are_asked_to_save_and_waited_for(agents, tmp_path):
    tmp_path.chmod(0o700)
    notices = Answering(tmp_path)
    first = agents.open(1, 1, 2, notices=notices)
    worlds(first)
    second = agents.open(2, 1, 2)
    asked = eventually(notices.last)
    assert asked.reason is Reason.RESIZE
    time.sleep(1.0)
    assert (first.rounds, second.world) == (1, None), "a node was stopped before it had saved"
    notices.saved = asked.number
    worlds(first, second)


def test_each_world_is_announced_to_the_container_and_none_while_a_node_waits(agents, tmp_path):
    """`trainmaster-run` tells by it whether this node reports the job's speed, and at which size."""
    notices = []
    for number in (1, 2, 3):
        (tmp_path / f"{number}").mkdir(mode=0o700)
        notices.append(Notices(tmp_path / f"{number}"))
    some = [agents.open(number, 2, 2, notices=notices[number - 1]) for number in (1, 2)]
    worlds(*some)
    seen = [each.world() for each in notices]
    assert {(each.rank, each.size) for each in seen[:2]} == {(0, 2), (1, 2)}
    agents.open(3, 2, 2, notices=notices[2])
    time.sleep(1.0)
    assert notices[2].world() is None, "a spare is in no world"
    some[0].dies()
    eventually(lambda: notices[1].world() not in (None, seen[1]))
    assert {notices[place].world().rank for place in (1, 2) if eventually(notices[place].world)} == {0, 1}
    assert notices[1].world().round > seen[1].round


def test_workers_that_never_answer_are_waited_for_no_longer_than_the_grace(agents, groups, tmp_path):
    tmp_path.chmod(0o700)
    groups.set(containers.RUN, Control(epoch=1, min_nodes=1, max_nodes=2, grace=1.0))
    first = agents.open(1, 1, 2, notices=Answering(tmp_path))
    worlds(first)
    began = time.monotonic()
    second = agents.open(2, 1, 2)
    worlds(first, second)
    assert time.monotonic() - began >= 1.0


def test_a_container_that_is_being_stopped_leaves_once_its_workers_have_saved(agents, groups, tmp_path):
    tmp_path.chmod(0o700)
    notices = Answering(tmp_path)
    stopped, other = agents.open(1, 1, 2, notices=notices), agents.open(2, 1, 2)
    worlds(stopped, other)
    number = notices.request_checkpoint(Reason.STOP)
    notices.announce_leave(time.monotonic() + 60)
    time.sleep(0.5)
    assert stopped.rounds == 1
    notices.saved = number
    assert stopped.ends() == 0
    worlds(other)
    assert not groups.get(containers.RUN).closed


class Outage:
    """A client that stands between a node and the table, until it does not."""

    def __init__(self, client):
        self._client, self.out = client, threading.Event()

    def __getattr__(self, name):
        def call(**request):
            if self.out.is_set():
                raise ConnectTimeoutError(endpoint_url="http://table")
            return getattr(self._client, name)(**request)

        return call


def test_an_outage_longer_than_the_expiry_costs_nothing_where_all_have_it(agents, groups, client):
    between = Outage(client)
    some = [agents.open(number, 1, 2, client=between) for number in (1, 2)]
    worlds(*some)
    between.out.set()
    time.sleep(1.5 * QUICK["keep_alive_interval"] * QUICK["keep_alive_max_attempt"])
    between.out.clear()
    time.sleep(1.5 * QUICK["keep_alive_interval"] * QUICK["keep_alive_max_attempt"])
    assert len(groups.get(containers.RUN).nodes) == 2
    assert [agent.rounds for agent in some] == [1, 1]


def test_a_node_that_alone_is_cut_off_is_replaced_and_comes_back_into_a_later_world(agents, groups, client):
    between = Outage(client)
    first, second, third = agents.open(1, 2, 3), agents.open(2, 2, 3), agents.open(3, 2, 3, client=between)
    worlds(first, second, third)
    between.out.set()
    worlds(first, second)
    assert third.rounds == 1, "it works on, and learns of nothing"
    between.out.clear()
    worlds(first, second, third)
    assert len(groups.get(containers.RUN).nodes) == 3


def test_torch_finds_the_handler_by_its_name(table, engine, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{engine._port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "TRAINMASTER_RENDEZVOUS_KEY"):
        monkeypatch.setenv(name, "test")
    assert [each.value for each in entry_points(group="torchrun.handlers", name="dynamodb")] == [
        "trainmaster.worker.torch.entry:creator"
    ]
    quick = {"keep_alive_interval": "1", "last_call_timeout": "0", "timeout": 900, "job": "bert-m1"}
    parameters = RendezvousParameters("dynamodb", f"us-east-1/{table}", RUN, 1, 1, "127.0.0.1", **quick)
    handler = get_rendezvous_handler(parameters)
    assert (handler.get_backend(), handler.get_run_id(), handler.use_agent_store) == ("dynamodb", RUN, True)
    info = handler.next_rendezvous()
    assert (info.rank, info.world_size, info.bootstrap_store_info.master_addr) == (0, 1, "127.0.0.1")
    assert handler.num_nodes_waiting() == 0
    assert handler.shutdown()
    assert handler.is_closed()


def test_the_row_contains_json_and_no_pickle(agents, client, table):
    worlds(agents.open(1, 1, 1))
    row = client.get_item(TableName=table, Key={"pk": {"S": containers.RUN_OF_NODES.partition}, "sk": {"S": "state"}})[
        "Item"
    ]
    assert json.loads(zlib.decompress(row["st"]["B"]))["round"] == 1
    assert int(row["expires"]["N"]) > time.time()
