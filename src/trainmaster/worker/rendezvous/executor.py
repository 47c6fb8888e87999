"""Executor of operators: reads the state, calls the operator, writes its action by compare-and-set, and repeats.

A node that watches acts so. A node that follows announces what it wants in a row of its own instead, and reads the rows
of the watchers; it reads the state if there is a world that it does not know (`watching.presence`).

A step is one read or write and one call, and never waits; it returns the pause before the next step. The executor
therefore runs in threads as well as in a simulation with virtual time. If the table does not respond, the step returns
when to retry. A write whose response was lost may have taken effect, so it is not repeated: the operator decides again
on what is stored.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from trainmaster.worker.rendezvous.actions import CHANGES, Action, Payload, apply
from trainmaster.worker.rendezvous.control import Control, read_control
from trainmaster.worker.rendezvous.errors import (
    Closed,
    Corrupt,
    Drained,
    RendezvousError,
    RoundLost,
    TableMissing,
    TimedOut,
    Unreachable,
)
from trainmaster.worker.rendezvous.operators import Operator
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import Endpoint, GroupStore, Role, State, Token, decode, encode
from trainmaster.worker.rendezvous.view import View, needs_change, time_conditions
from trainmaster.worker.rendezvous.watching.liveness import NO_ROW, LivenessMonitor
from trainmaster.worker.rendezvous.watching.presence import (
    WATCHERS_SHARD,
    Presence,
    Summary,
    Want,
    decode_endpoint,
    decode_presence,
    encode_endpoint,
    encode_presence,
    newest_summary,
    projected,
    shard_of,
    summary_of,
    tag,
    watchers_of,
)
from trainmaster.worker.rendezvous.world import Identity

_INITIAL_BACKOFF = 0.2
_MAX_CONSECUTIVE_CONFLICTS = 2
"""Writes that may fail in a row before the node pauses: a failed write returns the current state for another try."""
_INITIAL_CONFLICT_BACKOFF = 0.05
_MIN_PAUSE = 0.02
"""Minimum pause between two reads, since clocks differ in the last digits, and responses take unequally long."""
_LEAD_SECONDS = 0.7
"""The second watcher acts once the first has changed nothing for this long, the third after twice as long."""
_LEADER_POLL_FACTOR, _FOLLOWER_POLL_FACTOR = 2.5, 5.0
"""Reads of a large group while a world forms, in `join_poll_interval`."""
_SMALL_GROUP_POLL_FACTOR = 0.5
"""Reads of a small group at rest, in `poll_interval`: a heartbeat is seen half an interval late at most."""
_STATE_READS_PER_SECOND = 1_000.0
"""Reads of the state of a large group by all followers together: of the 3,000 units a second of a partition, each
takes two to three with a thousand nodes."""
_WISHES = {
    Action.ADD_TO_PARTICIPANTS: Want.JOIN,
    Action.ADD_TO_WAIT_LIST: Want.JOIN,
    Action.ADD_TO_SPARES: Want.JOIN,
    Action.OPEN_ROUND: Want.JOIN,
    Action.REMOVE_FROM_PARTICIPANTS: Want.LEAVE,
    Action.REMOVE_FROM_WAIT_LIST: Want.LEAVE,
}
"""Requests that a follower announces instead of an action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """A node's sources of time and randomness.

    Attributes:
        monotonic: seconds; only differences count, and never against another node's clock.
        wall: seconds since 1970; recorded only.
        rng: randomizes pauses; seed it differently on each node.
    """

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    rng: random.Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Result of one step.

    Attributes:
        action: the operator's action; the next step writes its change. None if the table did not respond.
        pause: seconds to wait before the next step.
        view: the view that the operator was given; None if the table did not respond.
        error: the reason for which it did not.
    """

    action: Action | None
    pause: float
    view: View | None = None
    error: Unreachable | None = None


class Executor:
    """One node's access to the shared state.

    Several threads may use it: a step is atomic, and operators tolerate changes between steps.

    Args:
        store: store of the run.
        identity: the node.
        settings: timeouts and intervals.
        clocks: time and randomness.
    """

    def __init__(self, store: GroupStore, identity: Identity, settings: Settings, clocks: Clocks) -> None:
        self.identity = identity
        self.settings = settings
        self.clocks = clocks
        self._store = store
        self._monitor = LivenessMonitor(interval=settings.keep_alive_interval, timeout=settings.keep_alive_timeout)
        self._lock = threading.Lock()
        self._state = State()
        self._token: Token | None = None
        self._last_row: tuple[bytes, Token] | None = None
        self._changed_at = 0.0
        self._dirty: State | None = None
        self._read_at: float | None = None
        self._control: tuple[str | None, Control] = None, settings.default_control()
        self._highest_round = 0
        self._failures = 0
        self._conflicts = 0
        self._conflicted = False
        # What this node announces, and where.
        self._want: Want | None = None
        self._after = 0
        self._closing: str | None = None
        self._beat = 0
        self._announced: tuple[float, object] | None = None
        self._shard = WATCHERS_SHARD
        # What the others announce.
        self._follows = False
        self._summary: Summary | None = None
        self._asking: dict[str, Presence] = {}
        self._rows: list[tuple[int, str]] = []
        self._endpoint: Endpoint | None = None
        self._state_due: float | None = None
        self._is_stale = False

    @property
    def state(self) -> State:
        """The state as last read or written; a follower adds what the watchers have seen since."""
        return projected(self._state, self._summary) if self._follows and self._summary is not None else self._state

    @property
    def next_read_at(self) -> float:
        """This node's clock at which to read again while nothing changes: earlier if a node can be found dead then."""
        return -inf if self._read_at is None else self._read_at + self._read_interval

    @property
    def _read_interval(self) -> float:
        left = self._monitor.seconds_to_next_death(tag(self.identity.name))
        interval = self.settings.poll_interval * (1.0 if self.state.shards else _SMALL_GROUP_POLL_FACTOR)
        return min(interval, max(left, _MIN_PAUSE))

    def declare(self, want: Want | None, after: int) -> None:
        """Set what this node announces with its next step.

        Args:
            want: what it asks for; None if it takes no part.
            after: round of its world, or of its last world.
        """
        with self._lock:
            self._want, self._after, self._closing = want, after, None

    def withdraw(self) -> None:
        """Delete this node's announcement, and announce nothing more; the watchers delete what a dead node leaves."""
        self.declare(None, self._after)
        announced, self._announced = self._announced, None
        if announced is not None:
            with suppress(Unreachable):
                self._store.withdraw(self._shard, self.identity.name)

    def read_state(self) -> State:
        """Return the stored state, read now.

        Raises:
            Unreachable: the table does not respond.
            Corrupt: the stored row is not valid.
        """
        with self._lock:
            self._load(self._store.get_state())
            return self._state

    def step(self, operator: Operator, *, cached: bool = False) -> Step:
        """Read or write the state, call the operator once, and prepare its change.

        Args:
            operator: the goal.
            cached: read nothing before `next_read_at`.

        Raises:
            Corrupt: the stored row is not valid.
        """
        with self._lock:
            try:
                self._sync(cached=cached)
                view = self._view()
                action = operator(view)
                if action is Action.PUBLISH_ENDPOINT:
                    self._publish(operator.payload.endpoint)
            except Unreachable as error:
                return Step(action=None, pause=self._backoff_pause(), error=error)
            if action in CHANGES:
                return self._prepare(action, view, operator.payload)
            return Step(action=action, pause=self._poll_pause(view) if action is Action.SYNC else 0.0, view=view)

    def _prepare(self, action: Action, view: View, payload: Payload) -> Step:
        """Return the step of an action that changes the state: write it next, announce it, or wait after conflicts."""
        if view.follows:
            self._want = _WISHES.get(action, self._want)
            if action is Action.MARK_RENDEZVOUS_CLOSED:
                self._want, self._closing = self._want or Want.WORK, payload.reason
            return Step(action=Action.SYNC, pause=self._poll_pause(view), view=view)
        if self._conflicted and self._conflicts >= _MAX_CONSECUTIVE_CONFLICTS:
            return Step(action=Action.SYNC, pause=self._conflict_pause(), view=view)
        self._dirty = apply(action, view, payload)
        return Step(action=action, pause=0.0, view=view)

    def run(
        self,
        operator: Operator,
        *,
        timeout: float,
        deadline: float = inf,
        cached: bool = False,
        observe: Callable[[Step], object] = lambda _: None,
    ) -> Generator[float, None, View]:
        """Step until the operator finishes; yield the seconds to wait between steps, and return the last view.

        Args:
            operator: the goal.
            timeout: seconds without any response of the table before this gives up.
            deadline: this node's clock at which it gives up without a response in any case.
            cached: as for `step`, for the first step.
            observe: called with each step after which this waits.

        Raises:
            Unreachable: the table has not responded for `timeout` seconds, or there never was one.
            Closed: the operator has returned this error; likewise `Drained`, `TimedOut` and `RoundLost`.
            Corrupt: the stored row is not valid.
        """
        responded_at = self.clocks.monotonic()
        while True:
            step, cached = self.step(operator, cached=cached), False
            if step.view is None:
                until = min(responded_at + timeout, deadline)
                is_hopeless = isinstance(step.error, TableMissing) and self._read_at is None
                if step.error is not None and (is_hopeless or self.clocks.monotonic() + step.pause > until):
                    raise step.error
            else:
                responded_at = self.clocks.monotonic()
                if step.action is Action.FINISH:
                    return step.view
                if step.action in _ERRORS:
                    raise _ERRORS[step.action](step.view)
            observe(step)
            yield step.pause

    def _sync(self, *, cached: bool) -> None:
        """Write the pending change, or read; and announce this node."""
        dirty, self._dirty = self._dirty, None
        if dirty is None and cached and self.clocks.monotonic() < self.next_read_at:
            return
        self._conflicted = False
        if dirty is not None:
            self._load(self._write(dirty))
        else:
            # Heartbeats before reads: nodes that do both at the same time otherwise see each other's an interval late.
            if self._read_at is not None:
                self._announce()
            self._read()
        self._announce()

    def _write(self, dirty: State) -> tuple[bytes, Token] | None:
        result = self._store.set_state(encode(dirty), self._token)
        self._conflicted = result is None or not result[2]
        self._conflicts = self._conflicts + 1 if self._conflicted else 0
        return None if result is None else result[:2]

    def _read(self) -> None:
        """Read the watchers' announcements, then what this node's part requires; then record the heartbeats."""
        began, self._rows = self.clocks.monotonic(), []
        presences = self._presences_in(WATCHERS_SHARD)
        self._endpoint = _read_endpoint(self._store.endpoint)
        self._summary = newest_summary((*(each.sees for each in presences.values()), self._summary))
        self._asking, self._follows = {}, not self._must_watch(self._summary)
        if self._follows and self._summary is not None:
            self._follow(self._summary)
        else:
            self._load(self._store.get_state())
            for shard in range(1, self._state.shards + 1):
                self._asking |= self._presences_in(shard)
        # A process that is suspended during the read must read again at once when it goes on.
        self._failures, self._read_at = 0, began
        self._monitor.observe(self._counts([*presences.values(), *self._asking.values()]), self.clocks.monotonic())
        self._forget_dead()

    def _presences_in(self, shard: int) -> dict[str, Presence]:
        """Return the announcements that can be read: nodes of another version, or an attacker, can write others."""
        found = {}
        for name, text in self._store.announcements(shard).items():
            self._rows.append((shard, name))
            with suppress(Corrupt):
                found[name] = decode_presence(name, text)
        return found

    def _must_watch(self, summary: Summary | None) -> bool:
        """Return whether this node watches: in a small group, as one of the first, or because those are all dead."""
        return summary is None or summary.shards == 0 or tag(self.identity.name) in self._watched(summary)[-1]

    def _watched(self, summary: Summary) -> list[tuple[str, ...]]:
        """Return the tags of the watchers; while all of them are dead, of those that follow them too, and so on."""
        dead, groups, known = self._monitor.dead_nodes(), [summary.watchers], set(summary.watchers)
        while known <= dead:
            groups.append(tuple(tag(name) for name in watchers_of(self._state, without=known)))
            if not groups[-1]:  # a node that has read no state yet
                return [*groups[:-1], (tag(self.identity.name),)]
            known |= set(groups[-1])
        return groups

    def _follow(self, summary: Summary) -> None:
        """Read the state if it has news for a follower: not all at once, because all followers need it together."""
        known, epoch = self._state, self._control[1].epoch
        has_world = summary.complete and (known.round, known.complete) != (summary.round, True)
        leaves = self._want is Want.LEAVE and (known.round, self._token) != (summary.round, summary.revision)
        if not (has_world or leaves or summary.epoch > epoch or (summary.closed and not known.closed)):
            self._state_due, self._is_stale = None, False
            return
        now = self.clocks.monotonic()
        if self._state_due is None:
            self._state_due = now + self.clocks.rng.uniform(0.0, summary.nodes / _STATE_READS_PER_SECOND)
        if now >= self._state_due:
            # A cheap read can be older than the summary; the next step then reads consistently.
            row = self._store.get_state(consistent=self._is_stale)
            if self._is_stale or (row is not None and row[1] >= summary.revision):
                self._load(row)
            self._is_stale = True

    def _load(self, row: tuple[bytes, Token] | None) -> None:
        """Load the stored row. If a known row is gone, it has expired; rounds continue from the highest known."""
        if row != self._last_row:
            self._changed_at = self.clocks.monotonic()
        if row is None:
            self._state, self._token = State(round=self._highest_round + 1), None
        elif row != self._last_row:
            self._state, self._token = decode(row[0]), row[1]
        self._last_row = row

    def _counts(self, presences: list[Presence]) -> dict[str, int]:
        """Return the heartbeat counts of the nodes whose death this one has to notice, by tag."""
        counts: dict[str, int] = {}
        for each in presences:  # a node that has just begun to watch may have two rows
            counts[tag(each.name)] = max(each.beat, counts.get(tag(each.name), NO_ROW))
        if self._follows and self._summary is not None:
            expected = [each for group in self._watched(self._summary) for each in group]
            return {each: counts.get(each, NO_ROW) for each in expected}
        return {tag(name): counts.get(tag(name), NO_ROW) for name in self._state.nodes} | counts

    def _forget_dead(self) -> None:
        """Delete the announcements of dead nodes that the group does not contain."""
        dead = self._monitor.dead_nodes() - {tag(self.identity.name)}
        if self._follows or not dead or not self._leads(dead):
            return
        for shard, name in self._rows:
            if tag(name) in dead and name not in self._state.nodes:
                self._store.withdraw(shard, name)

    def _announce(self) -> None:
        """Write this node's row if its heartbeat is due, or what it says has changed."""
        if self._want is None:
            return
        now, sees = self.clocks.monotonic(), None
        if not self._follows:
            sees = summary_of(self._state, self._token or 0, self._control[1].epoch)
        shards = self._summary.shards if self._follows and self._summary is not None else 0
        shard = shard_of(self.identity.name, shards) if shards else WATCHERS_SHARD
        # Small groups read the state itself, so a change of it is no reason to announce.
        news = (shard, self._want, self._after, self._closing, sees if sees is not None and sees.shards else None)
        joins = self._follows and self._want is Want.JOIN and not self._waits_beside_world(self.state)
        interval = self.settings.keep_alive_interval / (2 if joins else 1)
        # A heartbeat that waits for the next of two reads would come late each time.
        if self._announced is not None and self._announced[1] == news and now - self._announced[0] < 0.9 * interval:
            return
        self._beat += 1
        self._store.announce(shard, self.identity.name, encode_presence(self._presence(sees)))
        if self._announced is not None and shard != self._shard:
            self._store.withdraw(self._shard, self.identity.name)
        self._announced, self._shard = (now, news), shard

    def _presence(self, sees: Summary | None) -> Presence:
        return Presence(
            name=self.identity.name,
            addr=self.identity.addr,
            slots=self.identity.slots,
            beat=self._beat,
            want=self._want or Want.WORK,
            after=self._after,
            closing=self._closing,
            sees=sees,
        )

    def _publish(self, endpoint: Endpoint | None) -> None:
        if endpoint is not None:
            self._store.publish(encode_endpoint(endpoint), endpoint.round)
            self._endpoint = endpoint

    def _leads(self, dead: frozenset[str]) -> bool:
        """Return whether this node acts for the group now: always in a small one, else in the order of the watchers."""
        if self._state.shards == 0:
            return True
        watchers = watchers_of(self._state, without=dead)
        if self.identity.name not in watchers:
            return False
        patience = watchers.index(self.identity.name) * _LEAD_SECONDS
        return self.clocks.monotonic() - self._changed_at >= patience

    def _newer_control(self, text: str | None) -> Control:
        """Return the control in this text, or the known one if that is newer: someone has put an old one back."""
        read = self.settings.default_control() if text is None else read_control(text)
        return read if read.epoch >= self._control[1].epoch else self._control[1]

    def _view(self) -> View:
        text = self._store.control
        if text != self._control[0]:
            self._control = text, self._newer_control(text)
        state, dead = self.state, self._monitor.dead_nodes() - {tag(self.identity.name)}
        view = View(
            identity=self.identity,
            state=state,
            control=self._control[1],
            settings=self.settings,
            now=self.clocks.monotonic(),
            epoch=self.clocks.wall(),
            dead_nodes=frozenset() if self._follows else frozenset(name for name in state.nodes if tag(name) in dead),
            highest_round=max(self._highest_round, state.round),
            endpoint=self._endpoint,
            leads=not self._follows and self._leads(dead),
            follows=self._follows,
        )
        if view.leads:
            asking = (presence for name, presence in self._asking.items() if tag(name) not in dead)
            view.requests = tuple(each for each in asking if needs_change(view, each, self._monitor))
        time_conditions(view, self._monitor)
        self._highest_round = view.highest_round if self._token is not None else self._highest_round
        return view

    def _poll_pause(self, view: View) -> float:
        """Return the seconds until news can be expected: short while a round is forming, longer beside a working world.

        A timer of this node ends the pause early.
        """
        interval = self.settings.join_poll_interval
        if view.state.shards:
            interval *= _LEADER_POLL_FACTOR if view.leads else _FOLLOWER_POLL_FACTOR
        at_rest = self._read_interval
        interval = at_rest if self._waits_beside_world(view.state) else min(interval, at_rest)
        due = self._state_due - view.now if self._state_due is not None else view.seconds_to_next_timeout
        return min(interval, max(min(due, view.seconds_to_next_timeout), _MIN_PAUSE))

    def _waits_beside_world(self, state: State) -> bool:
        node = state.nodes.get(self.identity.name)
        return state.complete and node is not None and node.role is not Role.MEMBER

    def _backoff_pause(self) -> float:
        self._failures += 1
        max_pause = min(_INITIAL_BACKOFF * 2.0 ** min(self._failures, 30), self.settings.max_backoff)
        return self.clocks.rng.uniform(max_pause / 2, max_pause)

    def _conflict_pause(self) -> float:
        """Return the seconds to wait after conflicts: nodes that arrive together would otherwise block each other."""
        pause = _INITIAL_CONFLICT_BACKOFF * 2.0 ** min(self._conflicts, 30)
        return self.clocks.rng.uniform(0.0, min(pause, self.settings.cas_backoff_max_seconds))


def _read_endpoint(text: str | None) -> Endpoint | None:
    with suppress(Corrupt):
        return None if text is None else decode_endpoint(text)
    return None


_ERRORS: dict[Action | None, Callable[[View], RendezvousError]] = {
    Action.ERROR_CLOSED: lambda view: Closed(view.state.reason),
    Action.ERROR_DRAINED: lambda view: Drained(f"{view.identity.training_job_name} was requested to leave"),
    Action.ERROR_TIMEOUT: lambda view: TimedOut(
        f"timed out in round {view.state.round}" + ("" if view.state.complete else f", waiting for {view.missing}")
    ),
    Action.ERROR_LOST: lambda view: RoundLost(f"round {view.state.round} has begun"),
}
