"""Views of a rendezvous in a few words, for tests of operators and actions."""

from __future__ import annotations

import random

from trainmaster.worker.rendezvous.control import Control
from trainmaster.worker.rendezvous.executor import Clocks, Executor
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import Node, Role, RoundReason, State
from trainmaster.worker.rendezvous.view import View
from trainmaster.worker.rendezvous.watching.liveness import Timer
from trainmaster.worker.rendezvous.watching.presence import Presence, Want, decode_presence
from trainmaster.worker.rendezvous.world import Identity

MEMBER, WAITING, SPARE, LEAVING = Role.MEMBER, Role.WAITING, Role.SPARE, Role.LEAVING
SETTINGS = Settings(
    min_nodes=2,
    max_nodes=4,
    keep_alive_interval=2.0,
    keep_alive_max_attempt=4,
    join_poll_interval=0.3,
    last_call_timeout=5.0,
    scale_up_delay=3.0,
    faulty_scale_down_timeout=30.0,
    straggler_timeout=60.0,
    max_backoff=2.0,
)


def identity(job):
    return Identity(training_job_name=job, host="algo-1", incarnation="x", addr=f"10.0.0.{job}")


def key(job):
    return identity(job).name


def node(role=MEMBER, rank=None, since=1):
    return Node(addr="10.0.0.9", slots=1, role=role, rank=rank, since=since)


def working(*jobs, round_=3, others=None, **values):
    """A complete round of these jobs, in the order of their ranks; and others, by job, in their roles."""
    nodes = {key(job): node(MEMBER, rank, since=rank + 1) for rank, job in enumerate(jobs)}
    nodes |= {key(job): node(role, since=10 + place) for place, (job, role) in enumerate((others or {}).items())}
    given = {"size": len(jobs), "arrivals": 20, "why": (RoundReason.START,), **values}
    return State(round=round_, complete=True, nodes=nodes, **given)


def forming(come=(), missing=(), *, round_=4, ranks=None, **values):
    """A round that is being formed: jobs that have come, and those of the world before that have not."""
    ranks = ranks or {}
    nodes = {key(job): node(MEMBER, ranks.get(job, place), since=place + 1) for place, job in enumerate(missing)}
    nodes |= {key(job): node(WAITING, ranks.get(job), since=10 + place) for place, job in enumerate(come)}
    return State(round=round_, nodes=nodes, arrivals=20, **values)


def view(
    state,
    me="a",
    *,
    min_nodes=2,
    max_nodes=4,
    sizes=(),
    drain=(),
    dead_nodes=(),
    now=100.0,
    seen=0,
    endpoint=None,
    leads=True,
    follows=False,
    requests=(),
    **elapsed,
):
    """Return the view of the job `me`; elapsed: seconds for which each timer's condition has held."""
    marks = dict.fromkeys(Timer, 0.0) | {Timer[name.upper()]: seconds for name, seconds in elapsed.items()}
    return View(
        identity=identity(me),
        state=state,
        control=Control(epoch=1, min_nodes=min_nodes, max_nodes=max_nodes, sizes=sizes, drain=drain),
        settings=SETTINGS,
        now=now,
        epoch=1_800_000_000.5,
        dead_nodes=frozenset(key(job) for job in dead_nodes),
        highest_round=max(seen, state.round),
        endpoint=endpoint,
        leads=leads,
        follows=follows,
        requests=requests,
        elapsed=marks,
    )


def presence(job, want=Want.WORK, *, after=0, beat=1, **values):
    """The announcement of a follower of this job."""
    return Presence(name=key(job), addr=f"10.0.0.{job}", slots=1, beat=beat, want=want, after=after, **values)


class Row:
    """A table that answers at once; implements `state.GroupStore`. Errors meet the calls of its state only.

    `answering` is called while an answer is on its way; with `conflicts`, each write finds that another came first.
    """

    def __init__(self):
        self.data, self.token, self.control, self.endpoint = None, 0, None, None
        self.calls, self.errors = [], []
        self.answering, self.conflicts = lambda: None, False
        self.announced = {}

    def announcements(self, shard):
        return dict(self.announced.get(shard, {}))

    def announce(self, shard, name, text):
        self.announced.setdefault(shard, {})[name] = text

    def withdraw(self, shard, name):
        self.announced.get(shard, {}).pop(name, None)

    def publish(self, endpoint, round_):
        self.endpoint = endpoint

    def beats(self):
        """Heartbeat counts by node."""
        rows = {name: text for shard in self.announced.values() for name, text in shard.items()}
        return {name: decode_presence(name, text).beat for name, text in rows.items()}

    def get_state(self, *, consistent=True):
        self._called("get")
        answer = None if self.data is None else (self.data, self.token)
        self.answering()
        return answer

    def set_state(self, state, token=None):
        self._called("set")
        self.answering()
        won = (token or 0) == self.token and not self.conflicts
        if won:
            self.data, self.token = state, self.token + 1
        return None if self.data is None else (self.data, self.token, won)

    def _called(self, what):
        self.calls.append(what)
        if self.errors:
            error = self.errors.pop(0)
            if error is not None:
                raise error


class Ticking:
    """A clock that is set by hand, and moved by sleeping on it."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


def executor(row, clock, job="a", settings=SETTINGS):
    clocks = Clocks(monotonic=clock, wall=lambda: 1.8e9, rng=random.Random(1))
    return Executor(row, identity(job), settings, clocks)
