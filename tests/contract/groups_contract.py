"""Contract of every implementation of `ports.RendezvousControl`.

A subclass gives `groups`, `written(run, text)`, which writes as nodes do, and `asked(run)`, which reads the control.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from trainmaster.domain.elastic.rendezvous import Control, Node, RendezvousState, Role, Run, SpeedReport
from trainmaster.domain.errors import UnreadableRendezvous
from trainmaster.worker.rendezvous import run as worker

ROLE = "arn:aws:iam::111122223333:role/training"
BERT, OTHER = Run("bert", ROLE), Run("bert-qstamp-2", ROLE)
KEY = "secret"
CONTROL = Control(epoch=1, min_nodes=2, max_nodes=8, sizes=(2, 4, 8), drain=("bert-qstamp-1-m2",), grace=90.0)


def of_nodes(run):
    """The same run as its nodes know it."""
    return worker.Run(run.name, KEY, run.role)


def a_state(**members):
    """The state of two nodes, of which one waits, as nodes of version 1 write it."""
    nodes = {
        "bert-qstamp-1-m1/algo-1#b2": {"addr": "10.0.0.2", "slots": 1, "role": "waiting", "rank": None},
        "bert/algo-1#a1": {"addr": "10.0.0.1", "slots": 8, "role": "member", "rank": 0},
    }
    state = {"v": 1, "round": 2, "complete": True, "closed": False, "reason": "", "nodes": nodes, "charged": 1}
    return json.dumps(state | members)


class GroupsContract:
    def test_a_run_to_which_no_node_has_come_has_no_group(self, groups):
        assert groups.get(BERT) is None

    def test_setting_the_control_creates_no_rendezvous(self, groups):
        groups.set(BERT, CONTROL)
        assert groups.get(BERT) is None

    def test_a_group_is_as_its_nodes_have_written_it(self, groups, written):
        written(BERT, a_state())
        assert groups.get(BERT) == RendezvousState(
            round=2,
            complete=True,
            nodes=(
                Node(training_job_name="bert", host="algo-1", role=Role.MEMBER, rank=0),
                Node(training_job_name="bert-qstamp-1-m1", host="algo-1", role=Role.WAITING),
            ),
            restarts=1,
        )

    def test_asking_changes_nothing_of_the_group_and_the_group_nothing_of_what_is_asked(self, groups, written, asked):
        written(BERT, a_state())
        groups.set(BERT, CONTROL)
        assert groups.get(BERT).round == 2
        written(BERT, a_state(round=3))
        assert groups.get(BERT).round == 3
        assert asked(BERT) == CONTROL

    def test_the_last_word_counts_and_saying_it_again_changes_nothing(self, groups, asked):
        later = replace(CONTROL, epoch=2, drain=())
        for control in (CONTROL, later, later):
            groups.set(BERT, control)
        assert asked(BERT) == later

    def test_runs_have_nothing_to_do_with_each_other(self, groups, written, asked):
        written(BERT, a_state())
        groups.set(BERT, CONTROL)
        assert groups.get(OTHER) is None
        assert asked(OTHER) is None

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": 3}', "\x80\x04cbuiltins\nexec"])
    def test_malformed_state_is_reported_as_unreadable(self, groups, written, text):
        written(BERT, text)
        with pytest.raises(UnreadableRendezvous):
            groups.get(BERT)


class SpeedsContract:
    """A subclass gives `groups`, and `reported(run, text)`, which writes a speed as nodes do."""

    def test_nodes_that_report_nothing_have_no_speed(self, groups):
        assert groups.speed(BERT) is None

    def test_a_speed_is_as_the_nodes_of_its_run_have_written_it(self, groups, reported):
        reported(BERT, '{"instances":4,"perSecond":12.5}')
        assert groups.speed(BERT) == SpeedReport(4, 12.5)
        assert groups.speed(OTHER) is None
        reported(BERT, '{"instances":8,"perSecond":20,"later":"member"}')
        assert groups.speed(BERT) == SpeedReport(8, 20.0)
        reported(BERT, '{"instances":8,"perSecond":20,"at":1795862400}')
        assert groups.speed(BERT) == SpeedReport(8, 20.0, 1_795_862_400.0)

    def test_a_speed_is_no_rendezvous(self, groups, reported):
        reported(BERT, '{"instances":4,"perSecond":12.5}')
        assert groups.get(BERT) is None

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{}",
            "[]",
            "4",
            '{"instances":4}',
            '{"instances":4,"perSecond":"fast"}',
            '{"instances":4,"perSecond":true}',
            '{"instances":4,"perSecond":0}',
            '{"instances":4,"perSecond":-1}',
            '{"instances":4,"perSecond":NaN}',
            '{"instances":4,"perSecond":Infinity}',
            '{"instances":-4,"perSecond":1}',
            '{"instances":4,"perSecond":1,"at":"noon"}',
            '{"instances":4,"perSecond":1,"at":-1}',
            '{"instances":4,"perSecond":1,"at":NaN}',
            '{"instances":4.5,"perSecond":1}',
            '{"instances":10000000000000,"perSecond":1}',
            '{"instances":4,"perSecond":1,"x":"' + "x" * 1_000 + '"}',
            "[" * 900,
        ],
    )
    def test_a_malformed_speed_is_refused(self, groups, reported, text):
        reported(BERT, text)
        with pytest.raises(UnreadableRendezvous):
            groups.speed(BERT)
