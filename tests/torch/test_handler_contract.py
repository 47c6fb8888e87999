"""Torch's requirements for a handler: the behaviors in the tests of its own handlers, as agents see them."""

from __future__ import annotations

import gc
import json
import logging
import sys
import threading
import time

import pytest
from agents import PATIENCE, RUN, Agents, eventually, worlds
from botocore.exceptions import ConnectTimeoutError
from tests import containers
from torch.distributed.elastic import events
from torch.distributed.elastic.events import handlers as event_handlers
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousParameters,
    RendezvousStateError,
)
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from trainmaster.worker.rendezvous.state import DONE, Role

FAILURE = {0: ProcessFailure(local_rank=0, pid=1, exitcode=1, error_file="none")}


@pytest.fixture
def agents(client, table):
    agents = Agents(client, table)
    yield agents
    agents.close()


class Line:
    """A client that stands between a node and the table; it counts calls, and can be cut."""

    def __init__(self, client):
        self._client, self.is_cut, self.calls = client, threading.Event(), []

    def __getattr__(self, name):
        def call(**request):
            self.calls.append(name)
            if self.is_cut.is_set():
                raise ConnectTimeoutError(endpoint_url="http://table")
            return getattr(self._client, name)(**request)

        return call


# ---------------------------------------------------------------- shutdown


def test_an_agent_that_fails_without_an_exception_does_not_end_the_job_as_done(agents, groups):
    failing, other = agents.open(1, 2, 2), agents.open(2, 2, 2)
    worlds(failing, other)
    failing.fails_for_good()
    assert failing.ends() is None
    group = groups.get(containers.RUN)
    assert group.closed
    assert "was shut down before its script had ended" in group.reason
    assert isinstance(other.ends(), RendezvousClosedError)


def throw(error):
    raise error


def while_handling(error, call):
    """Return the result of a call inside of an `except` block for this error."""
    try:
        throw(error)
    except type(error):
        return call()


def launched(agents, finishes):
    """One agent that runs to its end in this thread, as launch_agent runs it."""
    handler = agents.handler(1, 1, 1)
    info = handler.next_rendezvous()
    if finishes:
        agents.pass_exit_barrier(info)
    return handler


def test_an_error_of_an_earlier_run_is_not_the_cause_of_this_ones_end(agents, groups):
    assert while_handling(ChildFailedError("another run", FAILURE), lambda: launched(agents, finishes=True).shutdown())
    assert (groups.get(containers.RUN).closed, groups.get(containers.RUN).reason) == (True, DONE)


def test_an_earlier_runs_error_is_not_taken_for_this_ones_failure(agents, groups):
    assert while_handling(ChildFailedError("another run", FAILURE), lambda: launched(agents, finishes=False).shutdown())
    assert "another run" not in groups.get(containers.RUN).reason


def test_an_unrelated_error_after_the_end_leaves_the_run_done(agents, groups):
    handler = launched(agents, finishes=True)
    assert while_handling(OSError("no space left on device"), handler.shutdown)
    assert groups.get(containers.RUN).reason == DONE


def test_an_unrelated_error_before_the_end_closes_nothing(agents, groups):
    handler = launched(agents, finishes=False)
    assert while_handling(OSError("no space left on device"), handler.shutdown)
    assert (groups.get(containers.RUN).closed, groups.get(containers.RUN).nodes) == (False, ())


def test_a_failed_script_closes_the_run_with_its_error(agents, groups):
    handler = launched(agents, finishes=False)
    assert while_handling(ChildFailedError("train.py", FAILURE), handler.shutdown)
    assert groups.get(containers.RUN).reason.startswith("the script failed on 127.0.0.1: ")


def test_a_handler_can_be_shut_down_twice_and_without_a_world(agents):
    handler = launched(agents, finishes=True)
    assert (handler.shutdown(), handler.shutdown()) == (True, True)
    assert agents.handler(2, 1, 1).shutdown()


def test_shutdown_says_whether_it_could_close(agents, client):
    line = Line(client)
    handler = agents.handler(1, 1, 1, client=line, close_timeout=1.0)
    agents.pass_exit_barrier(handler.next_rendezvous())
    line.is_cut.set()
    assert not handler.shutdown()


# ---------------------------------------------------------------- closing


def test_a_run_that_is_closed_while_its_agents_wait_for_each_other_ends_them(agents):
    """The second node is in the world, but its agent never comes to the world's store."""
    silent = agents.handler(2, 2, 2)
    joining = threading.Thread(target=silent._engine.join, daemon=True)
    joining.start()
    first = agents.open(1, 2, 2)
    joining.join(PATIENCE)
    silent._engine.start_keep_alive()
    time.sleep(1.0)
    assert (first.world, first.ended) == (None, None)
    silent.set_closed()
    began = time.monotonic()
    assert isinstance(first.ends(), RendezvousClosedError)
    assert time.monotonic() - began < 5


def test_one_can_close_more_than_once_and_sees_it_closed_at_once(agents):
    first, second = agents.handler(1, 1, 1), agents.handler(2, 1, 1)
    assert not second.is_closed()
    first.set_closed()
    first.set_closed()
    assert second.is_closed()
    with pytest.raises(RendezvousClosedError):
        second.next_rendezvous()


def test_without_a_table_closing_raises_torchs_error_within_its_limit(agents, client):
    line = Line(client)
    handler = agents.handler(1, 1, 1, client=line, close_timeout=1.0)
    line.is_cut.set()
    began = time.monotonic()
    with pytest.raises(RendezvousConnectionError):
        handler.set_closed()
    assert time.monotonic() - began < 3
    with pytest.raises(RendezvousConnectionError):
        handler.is_closed()


def test_a_corrupt_row_is_torchs_state_error(agents, client, table):
    key = {"pk": {"S": containers.RUN_OF_NODES.partition}, "sk": {"S": "state"}}
    client.put_item(TableName=table, Item=key | {"st": {"S": "text"}, "rev": {"N": "1"}})
    handler = agents.handler(1, 1, 1, close_timeout=0.5, join_timeout=0.5)
    for call in (handler.is_closed, handler.set_closed, handler.next_rendezvous):
        with pytest.raises(RendezvousStateError):
            call()
    assert handler.num_nodes_waiting() == 0


def test_a_table_that_does_not_exist_is_reported_at_once(agents):
    agents.table = "no-such-table"
    began = time.monotonic()
    with pytest.raises(RendezvousConnectionError, match="ResourceNotFound"):
        agents.handler(1, 1, 1, join_timeout=600.0).next_rendezvous()
    assert time.monotonic() - began < 10


# ---------------------------------------------------------------- nodes that wait


def test_the_nodes_that_wait_are_counted_and_a_spare_is_not(agents, groups):
    first = agents.open(1, 1, 2, scale_up_delay=2.0)
    worlds(first)
    assert first.handler.num_nodes_waiting() == 0
    second = agents.open(2, 1, 2, scale_up_delay=2.0)
    worlds(first, second)
    agents.open(3, 1, 2)
    eventually(lambda: [node.role for node in groups.get(containers.RUN).nodes].count(Role.SPARE) == 1)
    time.sleep(0.5)
    assert (first.handler.num_nodes_waiting(), second.handler.num_nodes_waiting()) == (0, 0)


def test_a_corrupt_row_disturbs_no_world_and_is_read_once_a_second(agents, client, table):
    line = Line(client)
    only = agents.handler(1, 1, 1, client=line, poll_interval=1.0)
    only.next_rendezvous()
    key = {"pk": {"S": containers.RUN_OF_NODES.partition}, "sk": {"S": "state"}}
    mac = containers.RUN_OF_NODES.sign_state(b"nonsense", 9)
    client.put_item(TableName=table, Item=key | {"st": {"B": b"nonsense"}, "rev": {"N": "9"}, "mac": {"B": mac}})
    only._engine.stop_keep_alive()
    time.sleep(1.1)
    line.calls.clear()
    for _ in range(20):
        assert only.num_nodes_waiting() == 0
        time.sleep(0.1)
    assert line.calls.count("get_item") <= 3


# ---------------------------------------------------------------- handlers that are forgotten


def beats():
    return [thread for thread in threading.enumerate() if thread.name == "trainmaster-keep-alive"]


def test_heartbeats_begin_with_the_first_world_and_end_with_shutdown(agents):
    before = len(beats())
    handler = agents.handler(1, 1, 1)
    assert len(beats()) == before
    handler.next_rendezvous()
    assert len(beats()) == before + 1
    handler.shutdown()
    eventually(lambda: len(beats()) == before)


def test_a_handler_that_is_dropped_leaves(agents, groups):
    handler = agents.handler(1, 1, 1)
    handler.next_rendezvous()
    assert len(groups.get(containers.RUN).nodes) == 1
    del handler
    gc.collect()
    eventually(lambda: groups.get(containers.RUN).nodes == ())
    assert not groups.get(containers.RUN).closed


def test_a_launch_after_one_that_was_interrupted_does_not_wait_for_its_ghost(groups, table, engine, monkeypatch):
    environ = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{engine._port}", "TRAINMASTER_RENDEZVOUS_ROLE": containers.ROLE}
    environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    environ |= {"TRAINMASTER_RENDEZVOUS_KEY": containers.KEY}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    quick = {"last_call_timeout": "0", "job": "bert-m1"}
    parameters = RendezvousParameters("dynamodb", f"us-east-1/{table}", RUN, 1, 1, "127.0.0.1", **quick)
    kept = get_rendezvous_handler(parameters)  # as the traceback of an interrupted launch keeps it
    first = kept.next_rendezvous()
    began = time.monotonic()
    again = get_rendezvous_handler(parameters)
    second = again.next_rendezvous()
    assert time.monotonic() - began < 4, "it waited until the other looked dead"
    assert (second.rank, second.world_size, first.rank) == (0, 1, 0)
    assert len(groups.get(containers.RUN).nodes) == 1
    again.shutdown()
    kept.shutdown()


def test_an_interrupted_wait_for_a_world_leaves(agents, groups):
    handler = agents.handler(1, 2, 2)

    def interrupt(_):
        if groups.get(containers.RUN) is not None and groups.get(containers.RUN).nodes:
            handler._engine._sleep = time.sleep
            raise KeyboardInterrupt

    handler._engine._sleep = interrupt
    with pytest.raises(KeyboardInterrupt):
        handler.next_rendezvous()
    assert groups.get(containers.RUN).nodes == ()


# ---------------------------------------------------------------- events


class Kept(logging.Handler):
    """Keeps the events that torch writes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def emit(self, record):
        self.found.append(json.loads(record.getMessage()))


@pytest.fixture
def recorded(monkeypatch):
    kept = Kept()
    monkeypatch.setitem(event_handlers._log_handlers, "dynamic_rendezvous", kept)
    monkeypatch.delitem(events._events_loggers, "dynamic_rendezvous", raising=False)
    logging.getLogger("torchelastic-events-dynamic_rendezvous").handlers.clear()
    yield kept.found
    logging.getLogger("torchelastic-events-dynamic_rendezvous").handlers.clear()
    events._events_loggers.pop("dynamic_rendezvous", None)


def told(recorded):
    return [(each["name"].rpartition(".")[2], each["node_state"]) for each in recorded]


def test_joining_and_closing_are_recorded_as_torchs_events(agents, recorded):
    handler = launched(agents, finishes=True)
    handler.shutdown()
    assert told(recorded) == [
        ("next_rendezvous", "RUNNING"),
        ("next_rendezvous", "RUNNING"),
        ("shutdown", "SUCCEEDED"),
    ]
    assert {(each["run_id"], each["hostname"]) for each in recorded} == {(RUN, "127.0.0.1")}
    assert [each["rank"] for each in recorded] == [None, 0, None]


def test_errors_are_recorded_as_torchs_events(agents, client, recorded):
    line = Line(client)
    handler = agents.handler(1, 1, 1, client=line, close_timeout=0.3, join_timeout=0.3)
    line.is_cut.set()
    for call in (handler.is_closed, handler.set_closed, handler.next_rendezvous):
        with pytest.raises(RendezvousError):
            call()
    failed = [name for name, state in told(recorded) if state == "FAILED"]
    assert failed == ["is_closed", "set_closed", "next_rendezvous"]
    assert sys.exc_info()[1] is None
