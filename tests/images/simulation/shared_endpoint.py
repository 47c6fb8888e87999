"""An endpoint over a day: updates, rollbacks, times out of service, calls of another queue, and what AWS tells."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta

from trainmaster.images.domain.capacity import METRIC_WINDOW
from trainmaster.images.domain.endpoint import Endpoint, Variant
from world import EPOCH

DONE, ROLLED_BACK, BROKEN = "done", "rolled back", "broken"
"""Ends of an update."""
IN_SERVICE, UPDATING, ROLLING_BACK, OUT = "InService", "Updating", "RollingBack", "OutOfService"
EACH = 2
"""Requests that an instance takes at once (the default of `osml:instance-concurrency`)."""
Phase = tuple[datetime, str, int]


class SharedEndpoint:
    """The endpoint `ships` with its variant `blue`; implements `images.ports.Endpoints` and `Concurrency`.

    Args:
        takes: requests that it takes at once.
        now: the time.
        has_instances: whether it has instances, whose requests CloudWatch measures, or is serverless.
    """

    def __init__(self, takes: int, now: Callable[[], datetime], *, has_instances: bool) -> None:
        self._now, self._has_instances = now, has_instances
        self._phases: list[Phase] = [(EPOCH, IN_SERVICE, takes)]
        self._calls: list[tuple[datetime, datetime, int]] = []
        self._samples: list[tuple[datetime, int]] = []

    # -- what happens to it ---------------------------------------------------------------------------------------
    def scale(self, count: int) -> None:
        """Take another number of requests, unless an update is under way."""
        if self._phase(self._now())[1] == IN_SERVICE:
            self._phases.append((self._now(), IN_SERVICE, count))

    def update(self, count: int, seconds: float, ends: str) -> None:
        """Be updated; SageMaker refuses a second update meanwhile."""
        _, status, before = self._phase(self._now())
        if status != IN_SERVICE:
            return
        after = count if ends == DONE else before
        middle = (0.5, OUT, before) if ends == BROKEN else (0.5, UPDATING, count)
        back = [(0.75, ROLLING_BACK, count)] if ends == ROLLED_BACK else []
        steps = [(0.0, UPDATING, before), middle, *back, (1.0, IN_SERVICE, after)]
        self._phases += [(self._now() + timedelta(seconds=seconds * part), *rest) for part, *rest in steps]

    def call(self, count: int, seconds: float) -> None:
        """Be called by another queue."""
        self._calls.append((self._now(), self._now() + timedelta(seconds=seconds), count))

    def rest(self, count: int) -> None:
        """Be in service without others from now on."""
        now = self._now()
        self._phases = [*(each for each in self._phases if each[0] < now), (now, IN_SERVICE, count)]
        self._calls = [(begin, min(end, now), calls) for begin, end, calls in self._calls]

    def sample(self, ours: int) -> None:
        """Remember how many requests it has at this time."""
        self._samples.append((self._now(), ours + self.others()))

    # -- how it is --------------------------------------------------------------------------------------------------
    def takes_now(self) -> int:
        """Return the requests that it takes at once."""
        return self._phase(self._now())[2]

    def serves(self) -> bool:
        """Return whether it answers requests."""
        return self._phase(self._now())[1] != OUT

    def others(self, at: datetime | None = None) -> int:
        """Return the requests of other queues."""
        at = at or self._now()
        return sum(count for begin, end, count in self._calls if begin <= at < end)

    def max_others(self, window: timedelta) -> int:
        """Return the most requests of other queues in the last minutes."""
        since, now = self._now() - window, self._now()
        begun = [begin for begin, _, _ in self._calls if since < begin <= now]
        return max(map(self.others, [since, *begun]))

    def max_taken(self, window: timedelta) -> int:
        """Return the largest number of requests that it took in the last minutes."""
        return max(taken for _, _, taken in self._recent(window))

    def has_changed(self, window: timedelta) -> bool:
        """Return whether the number of its instances was another in the last minutes."""
        return len({taken for _, _, taken in self._recent(window)}) > 1

    def is_long_out(self, at: datetime, noticed_after: timedelta) -> bool:
        """Return whether it has been out of service since so long before that time."""
        phase = self._phase(at)
        return phase[1] == OUT and at - phase[0] > noticed_after

    def _recent(self, window: timedelta) -> list[Phase]:
        since, now = self._now() - window, self._now()
        return [self._phase(since), *(each for each in self._phases if since < each[0] <= now)]

    def _phase(self, at: datetime) -> Phase:
        ordered = sorted(self._phases, key=lambda phase: phase[0])
        return ordered[max(0, bisect_right([begin for begin, _, _ in ordered], at) - 1)]

    # -- what AWS says of it ------------------------------------------------------------------------------------------
    def describe(self, key: str, *, role: str | None = None) -> Endpoint:
        """Return its description, with the status that it has now."""
        _, status, takes = self._phase(self._now())
        counted = {"instances": takes // EACH} if self._has_instances else {"max_concurrency": takes}
        return Endpoint(key=key, variants=(Variant(name="blue", **counted),), status=status, role=role)

    def min_requests(
        self, asked: Collection[tuple[str, str]], now: datetime, *, role: str | None = None
    ) -> Mapping[tuple[str, str], float]:
        """Return the minimum of requests per instance in the last minutes, as CloudWatch has it."""
        since = now - METRIC_WINDOW
        seen = [count for at, count in self._samples if since <= at <= now]
        return dict.fromkeys(asked, min(seen) * EACH / self.takes_now()) if seen and role is None else {}
