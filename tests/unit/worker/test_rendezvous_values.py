"""State, control, settings, identities: what is read is what was written, and nothing else is believed."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
import zlib

import pytest
from views import SPARE, key, working

from trainmaster.domain.document import document
from trainmaster.domain.elastic.rendezvous import Control as QueueControl
from trainmaster.domain.elastic.rendezvous import Role, group_of
from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.rendezvous.control import Control, read_control
from trainmaster.worker.rendezvous.errors import Corrupt
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import RoundReason, RoundRecord, State, decode, encode
from trainmaster.worker.rendezvous.world import Identity, host_of, new_incarnation, training_job_name_of

FULL = working(
    "a",
    "b",
    others={"c": SPARE},
    restarts=(RoundRecord(round=3, why=RoundReason.LOSS, charged=True, at=1_800_000_000),),
    charged=4,
)


def changed(**values):
    return json.dumps({**json.loads(zlib.decompress(encode(FULL))), **values}).encode()


def with_node(**values):
    raw = json.loads(zlib.decompress(encode(FULL)))
    raw["nodes"][key("a")].update(values)
    return json.dumps(raw).encode()


class Harmful:
    def __reduce__(self):
        return (sys.exit, (99,))


class TestState:
    def test_what_is_written_is_read(self):
        assert decode(encode(FULL)) == FULL
        assert decode(encode(State())) == State()

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b"[" * 100_000,
            b"\xff\xfe",
            pickle.dumps(Harmful()),
            changed(v=1),
            changed(v=3),
            encode(FULL)[:-1],
            zlib.compress(b" " * 10_000_000),
            changed(v=None),
            changed(extra=1),
            changed(round="3"),
            changed(round=True),
            changed(round=-1),
            changed(complete=1),
            changed(why=["whim"]),
            changed(nodes=[]),
            changed(endpoint=None),
            changed(shards=-1),
            changed(restarts=[{"round": 1}]),
            changed(size=3),
            with_node(role="boss"),
            with_node(rank=1),
            with_node(beat=1),
            with_node(addr=None),
            with_node(more=1),
        ],
    )
    def test_anything_else_is_refused_and_never_run(self, data):
        with pytest.raises(Corrupt):
            decode(data)

    def test_a_state_of_another_release_is_refused_with_what_to_do(self):
        with pytest.raises(Corrupt, match=r"of version 2, but 3.*the same version of trainmaster-worker"):
            decode(changed(v=3))

    def test_the_queue_reads_it(self):
        group = group_of(encode(FULL))
        assert (group.round, group.complete, group.restarts) == (3, True, 4)
        assert [(node.training_job_name, node.host, node.role, node.rank) for node in group.nodes] == [
            ("a", "algo-1", Role.MEMBER, 0),
            ("b", "algo-1", Role.MEMBER, 1),
            ("c", "algo-1", Role.SPARE, None),
        ]

    def test_a_thousand_nodes_are_far_below_what_an_item_holds(self):
        names = [f"job-with-a-rather-long-name-of-forty-letter-m{number}" for number in range(1024)]
        state = working(*names)
        assert len(encode(state)) < 25_000
        assert decode(encode(state)) == state


class TestControl:
    def test_what_the_queue_writes_is_read(self):
        asked = QueueControl(
            epoch=3, min_nodes=2, max_nodes=8, sizes=(2, 4, 8), drain=("job-qstamp-1-m2",), grace=120.0
        )
        read = read_control(json.dumps(document(asked)))
        assert read == Control(
            epoch=3, min_nodes=2, max_nodes=8, sizes=(2, 4, 8), drain=("job-qstamp-1-m2",), grace=120.0
        )

    def test_keys_of_a_later_queue_are_left_alone(self):
        text = json.dumps(
            {"epoch": 2, "minNodes": 1, "maxNodes": 4, "sizes": [4, 2, 1], "drain": ["x"], "grace": 9, "new": 1}
        )
        assert read_control(text) == Control(
            epoch=2, min_nodes=1, max_nodes=4, sizes=(1, 2, 4), drain=("x",), grace=9.0
        )

    @pytest.mark.parametrize(
        "values",
        [
            {"maxNodes": 0},
            {"minNodes": 0},
            {"minNodes": 5},
            {"sizes": [8]},
            {"sizes": ["2"]},
            {"drain": [1]},
            {"grace": -1},
            {"grace": float("nan")},
            {"grace": float("inf")},
            {"grace": 10**400},
            {"epoch": None},
        ],
    )
    def test_what_no_world_can_meet_is_refused(self, values):
        with pytest.raises(Corrupt):
            read_control(json.dumps({"epoch": 1, "minNodes": 2, "maxNodes": 4, **values}))

    @pytest.mark.parametrize("text", ["", "[]", "7", '"x"', "[" * 100_000])
    def test_what_is_no_control_is_refused(self, text):
        with pytest.raises(Corrupt):
            read_control(text)

    @pytest.mark.parametrize(
        ("sizes", "nodes", "size"),
        [((), 1, 0), ((), 3, 3), ((), 9, 6), ((2, 4, 8), 3, 2), ((2, 4, 8), 9, 4), ((2, 4, 8), 1, 0)],
    )
    def test_a_world_has_the_largest_legal_size(self, sizes, nodes, size):
        assert Control(min_nodes=2, max_nodes=6, sizes=sizes).largest_size(nodes) == size


class TestSettings:
    def test_the_queues_variables_are_read(self):
        environ = {
            "TRAINMASTER_MIN": "2",
            "TRAINMASTER_MAX": "8",
            "TRAINMASTER_SIZES": "8,2,4",
            "TRAINMASTER_GRACE": "120",
            "TRAINMASTER_FAULTY_WAIT": "30",
        }
        read = Settings.from_environment(environ)
        assert (read.min_nodes, read.max_nodes, read.sizes, read.grace, read.faulty_scale_down_timeout) == (
            2,
            8,
            (2, 4, 8),
            120.0,
            30.0,
        )
        assert read.straggler_timeout > read.grace

    def test_without_any_there_is_one_node(self):
        read = Settings.from_environment({})
        assert (read.min_nodes, read.max_nodes, read.sizes, read.faulty_scale_down_timeout) == (1, 1, (), 0.0)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("TRAINMASTER_MIN", "two"),
            ("TRAINMASTER_SIZES", "2;4"),
            ("TRAINMASTER_GRACE", "-1"),
            ("TRAINMASTER_MIN", "0"),
        ],
    )
    def test_wrong_ones_are_refused(self, name, value):
        with pytest.raises(InvalidRequest):
            Settings.from_environment({name: value})

    @pytest.mark.parametrize(
        "values",
        [
            {"min_nodes": 3, "max_nodes": 2},
            {"sizes": (8,)},
            {"keep_alive_interval": 0.0},
            {"keep_alive_max_attempt": 1},
            {"poll_interval": 0.0},
        ],
    )
    def test_settings_that_cannot_work_are_refused(self, values):
        with pytest.raises(InvalidRequest):
            Settings(**{"min_nodes": 1, "max_nodes": 4, **values})


def test_two_lives_of_one_container_are_two_nodes():
    def life(seed):
        random_part = new_incarnation(random.Random(seed))
        return Identity(training_job_name="job", host="algo-1", incarnation=random_part, addr="10.0.0.1").name

    assert life(1) != life(2)
    assert life(1) == life(1)
    assert (training_job_name_of(life(1)), host_of(life(1))) == ("job", "algo-1")


def test_importing_the_package_imports_neither_boto3_nor_torch():
    code = (
        "import sys, trainmaster.worker; from trainmaster.worker import Rendezvous, World; "
        "sys.exit(bool({'boto3', 'botocore', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
