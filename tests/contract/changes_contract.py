"""Contract of every store for the token of the queue's state, by which callers learn whether anything has changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from audit_contract import ENTRY

import builders as b
from trainmaster.domain.capacity.external import ExternalJob
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.plan import Cursors


def entry():
    """An audit entry of now, as each change of a caller has one."""
    return replace(ENTRY, at=datetime.now(UTC))


class ChangesContract:
    """A subclass gives `store`."""

    def test_reads_and_passes_of_an_empty_queue_leave_the_token(self, store):
        store.begin_pass()
        token = store.changes().token
        store.begin_pass()
        store.read_snapshot()
        store.settings()
        assert store.changes().token == token

    def test_every_change_of_a_caller_changes_it_at_once(self, store):
        tokens = [store.changes().token]
        job = b.a_job("job1")
        acts = [
            lambda: store.submit(job, b.a_request("job1"), audit=entry()),
            lambda: store.transition([(job, lifecycle.hold(job, b.NOW, "ann"))], audit=[entry()]),
            lambda: store.set_settings(pools=[b.a_pool(cap=3)], audit=[entry()]),
        ]
        for act in acts:
            act()
            tokens.append(store.changes().token)
        assert len(set(tokens)) == len(acts) + 1

    def test_an_entry_committed_after_one_with_a_later_time_changes_it(self, store):
        late, early = entry(), entry()
        store.submit(b.a_job("job1"), b.a_request("job1"), audit=late)
        token = store.changes().token
        store.submit(b.a_job("job2"), b.a_request("job2"), audit=replace(early, at=late.at - timedelta(seconds=1)))
        assert store.changes().token != token

    def test_a_fenced_change_changes_it_at_once(self, store):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        fence = store.begin_pass().pass_number
        token = store.changes().token
        started = lifecycle.start(job, {b.P5: 1}, (), b.NOW)
        assert store.transition([(job, started)], fence=fence, cursors=Cursors(last=b.P5))
        assert store.changes().token != token

    def test_other_changes_of_the_manager_change_it_with_the_next_pass(self, store):
        job = b.a_running_job("job1")
        store.submit(job, b.a_request("job1"))
        acts = [
            lambda: store.transition([(job, lifecycle.fail(job, b.NOW, "it broke"))]),
            lambda: store.update_external_jobs({"other": ExternalJob({b.P5: 1})}),
            lambda: store.set_settings(pools=[b.a_pool(cap=3)]),
            lambda: store.purge(store.find("job1")),
        ]
        store.begin_pass()
        for act in acts:
            token = store.changes().token
            act()
            store.begin_pass()
            assert store.changes().token != token
