"""The benchmark of real torchrun: what is made of the workers' words, the wire, the verdicts. It needs no torch."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from benchmarks.rendezvous.__main__ import _options, schedule
from benchmarks.rendezvous.cases import CASES, CHAINS, DRAIN, HOST, KILL
from benchmarks.rendezvous.pauses import longest_gap, overlapped, pause, worlds_with_steps
from benchmarks.rendezvous.proxy import Operations, Proxy
from benchmarks.rendezvous.systems import C10D, C10D_EQUAL, C10D_OWN, PRELOADED, TRAINMASTER, Place, command, environ
from benchmarks.rendezvous.tables import make_tables

from trainmaster.worker.warm import start

# -- what workers say ------------------------------------------------------------------------------------------------


def world(number, size, *, started=0.0, imported=1.0):
    return {"what": "world", "world": number, "size": size, "started": started, "imported": imported}


def step(number, at):
    return {"what": "step", "world": number, "at": at}


BEFORE = [world(1, 3), step(1, 9.9), step(1, 10.0)]
AFTER = [world(2, 2, started=12.0, imported=13.0), world(2, 2, started=12.5, imported=15.0)]


def test_a_pause_is_from_the_event_to_the_first_step_of_the_next_world_of_that_size():
    assert pause([*BEFORE, *AFTER], 9.95, 2, {1}) is None, "nothing was trained yet"
    found = pause([*BEFORE, *AFTER, step(2, 15.5), step(2, 15.6)], 9.95, 2, {1})
    assert found.figures() == pytest.approx(
        {"took": 5.55, "still": 5.5, "imports": 2.5, "meets": 0.5, "without_import": 3.05}
    )


def test_worlds_that_were_there_and_worlds_of_another_size_are_not_the_one_that_is_waited_for():
    lines = [*BEFORE, *AFTER, step(2, 15.5)]
    assert worlds_with_steps(lines) == {1, 2}
    assert pause(lines, 9.95, 2, {1, 2}) is None
    assert pause(lines, 9.95, 3, {1}) is None


def test_training_that_goes_on_until_the_new_world_stands_still_for_less_than_the_resize_took():
    found = pause([*BEFORE, step(1, 14.0), *AFTER, step(2, 15.5)], 9.95, 2, {1})
    assert (found.took, found.still) == (pytest.approx(5.55), pytest.approx(1.5))


def test_gaps_count_from_the_beginning_and_to_the_end():
    lines = [step(1, 2.0), step(1, 3.0), step(1, 9.0)]
    assert longest_gap(lines, 0.0, 4.0) == 2.0
    assert longest_gap(lines, 2.5, 10.0) == 6.0
    assert longest_gap([], 1.0, 4.0) == 3.0


def test_two_worlds_that_work_at_the_same_time_are_seen():
    assert not overlapped([step(1, 1.0), step(1, 2.0), step(2, 3.0)])
    assert overlapped([step(1, 1.0), step(2, 2.0), step(1, 3.0)])


# -- the wire --------------------------------------------------------------------------------------------------------


def test_operations_are_counted_in_whatever_pieces_they_come():
    stream = b"POST / HTTP/1.1\r\nX-Amz-Target: DynamoDB_20120810.GetItem\r\nHost: x\r\n\r\n{}"
    stream += stream.replace(b"GetItem", b"UpdateItem")
    for size in (1, 7, 50, len(stream)):
        operations = Operations()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [name for piece in pieces for name in operations.names_in(piece)] == ["GetItem", "UpdateItem"]


@pytest.fixture
def server():
    """Answers every message with itself."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            connection, _ = listening.accept()
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data)

        thread = threading.Thread(target=answer)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(5)


def test_a_wire_that_is_cut_carries_nothing_until_it_is_mended(server):
    with Proxy(server, 0.01) as proxy, socket.create_connection(("127.0.0.1", proxy.port)) as client:
        began = time.monotonic()
        client.sendall(b"one")
        assert (client.recv(10), time.monotonic() - began >= 0.01) == (b"one", True)
        proxy.cut()
        client.sendall(b"two")
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.recv(10)
        proxy.restore()
        client.settimeout(5)
        assert client.recv(10) == b"two"


# -- what is run -----------------------------------------------------------------------------------------------------

PLACE = Place(run="r", min_nodes=1, max_nodes=3, table="t", dynamodb=1, host=2, store=3, proxy=4)


def test_only_the_host_opens_c10ds_store_and_the_others_reach_it_over_the_wire():
    host, other = command(C10D, PLACE, 2), command(C10D, PLACE, 3)
    assert {"--rdzv-endpoint=127.0.0.1:3", "--rdzv-conf=is_host=1"} <= set(host)
    assert {"--rdzv-endpoint=127.0.0.1:4", "--rdzv-conf=is_host=0", "--local-addr=127.0.0.3"} <= set(other)


def test_defaults_are_each_engines_own_and_equal_settings_are_ours(tmp_path):
    (ours,) = [option for option in command(TRAINMASTER, PLACE, 2) if "rdzv-conf" in option]
    (equal,) = [option for option in command(C10D_EQUAL, PLACE, 2) if "rdzv-conf" in option]
    assert ours == "--rdzv-conf=job=r-m2,host=algo-1"
    assert "keep_alive_interval=1,keep_alive_max_attempt=5,last_call_timeout=5" in equal
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" not in environ(C10D, PLACE, tmp_path, tmp_path)
    assert environ(C10D_OWN, PLACE, tmp_path, tmp_path)["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"


def test_preloaded_workers_are_started_by_their_launcher_and_are_otherwise_the_same(tmp_path):
    plain, preloaded = command(TRAINMASTER, PLACE, 2), command(PRELOADED, PLACE, 2)
    assert [argument for argument in preloaded if argument != start.__file__] == plain
    assert preloaded[-2] == start.__file__
    assert environ(PRELOADED, PLACE, tmp_path, tmp_path) == {
        **environ(TRAINMASTER, PLACE, tmp_path, tmp_path),
        "TRAINMASTER_PRELOAD": "torch",
    }


def test_the_engines_take_turns_and_each_is_first_as_often():
    options = _options(["--only", "host,term"])
    order = list(schedule(options.only, options.system, 3))
    assert [name for _, name, _ in order[:7]] == ["host"] * 5 + ["term"] * 2
    assert [system.name for _, _, system in order[::10]] == [TRAINMASTER.name, PRELOADED.name, C10D.name]
    assert {name for _, name, _ in schedule(list(CHAINS), [TRAINMASTER.name], 1)} == set(CHAINS)


# -- the verdicts ----------------------------------------------------------------------------------------------------


def went_on(case, system, took, **more):
    figures = {"took": took, "without_import": took - 2.0, "still": took, "charged": 1}
    return {"case": case, "system": system.name, "split": False, "outcome": "went on"} | figures | more


def ended(case, system, outcome):
    return {"case": case, "system": system.name, "split": False, "outcome": outcome, "after": 90.0}


def verdicts(*runs):
    return {row[0]: row[-2:] for row in make_tables({"runs": list(runs)})[0].rows}


def test_the_worst_case_decides_and_the_better_store_is_compared():
    runs = [went_on(KILL, TRAINMASTER, 10.0), went_on(KILL, C10D, 42.0), went_on(KILL, C10D_OWN, 29.0)]
    found = verdicts(*runs, went_on(DRAIN, TRAINMASTER, 4.0, exit=0, charged=0), went_on(DRAIN, C10D, 3.0))
    assert found["no slower than c10d anywhere, default settings of each"] == (f"0.50 x ({DRAIN})", "NO")
    assert found["faster on loss at default settings, import included"] == (f"2.90 x ({KILL})", "NO")
    assert found["a drained node exits cleanly, and no restart is charged"] == ("exit 0, 0 charged", "yes")
    preloaded = verdicts(*runs, went_on(KILL, PRELOADED, 9.0))
    assert preloaded["faster on loss at default settings, import included"] == (f"2.90 x ({KILL})", "NO")
    assert preloaded["faster on loss at default settings, import included, torch preloaded"] == (
        f"3.22 x ({KILL})",
        "yes",
    )


def test_only_engines_with_figures_have_a_column():
    columns = make_tables({"runs": [went_on(KILL, TRAINMASTER, 10.0), went_on(KILL, C10D, 42.0)]})[1].columns
    assert columns[1:3] == (TRAINMASTER.name, C10D.name)
    assert PRELOADED.name not in columns


def test_no_median_without_completed_runs():
    host = [went_on(HOST, TRAINMASTER, 10.0), ended(HOST, C10D, "died"), went_on(HOST, C10D, 5.0)]
    found = verdicts(*host)
    assert found["alive after the store's host is lost"] == ("trainmaster: went on; c10d: died, went on", "yes")
    assert "no slower than c10d anywhere, default settings of each" not in found
    row = dict(zip(make_tables({"runs": host})[1].columns, make_tables({"runs": host})[1].rows[0], strict=True))
    assert (row["c10d"], row["c10d at default settings"]) == ("5.0 (3.0); died", "")


def test_one_of_ours_that_never_went_on_is_a_goal_missed():
    assert verdicts(ended(KILL, TRAINMASTER, "never"))["trainmaster continues in every case"] == (KILL, "NO")
    assert set(CASES) >= {KILL, HOST, DRAIN}
