"""Stories: a configuration and a list of timed acts, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from builders import G5, P5
from simulation import acts
from simulation.acts import G6, PLAN, SPOT, TYPES, Act, Printed

ORDERS = ("fifo", "backfill", "gittins", "fair")
HOOKS = ("restart", "members", "custom")
STATUSES = ("Completed", "Stopped", "Stopping", "Failed")
STORE_FAULTS = ("throttled", "unavailable", "lost")
VERBS = (
    ("CreateTrainingJob", 5),
    ("StopTrainingJob", 4),
    ("DescribeTrainingJob", 3),
    ("ListTrainingJobs", 1),
    ("ListTags", 1),
)
CODES = ("ThrottlingException", "InternalFailure", "ServiceUnavailable")


@dataclass(frozen=True, repr=False)
class Pools(Printed):
    """A pool of a story: its cap, and whether it counts external training jobs."""

    name: str
    cap: int
    count_external: bool = False


@dataclass(frozen=True, repr=False)
class Configuration(Printed):
    """Conditions at the start of a day.

    Attributes:
        pools: named by type, by type and `.spot`, or `plan`.
        settings: a settings document.
        quotas: of the account by type, at times below the caps.
        capacity: of EC2 by type.
        hostility: arguments of the simulator's `Hostility`.
        lost, doubled, late: shares of events that the queue gets never, twice, or up to ten minutes later.
        lost_ticks: share of ticks that do not come.
    """

    pools: tuple[Pools, ...] = (Pools(P5, 4),)
    settings: tuple[tuple[str, Any], ...] = ()
    quotas: tuple[tuple[str, int], ...] = ()
    capacity: tuple[tuple[str, int], ...] = ()
    hostility: tuple[tuple[str, Any], ...] = ()
    lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    lost_ticks: float = 0.0


@dataclass(frozen=True)
class Story:
    """A day: a configuration, and acts in the order of their times; hostility ends after the given hours."""

    seed: int = 0
    configuration: Configuration = field(default_factory=Configuration)
    acts: tuple[Act, ...] = ()
    hours: float = 8.0

    def __str__(self) -> str:
        """Return Python that builds the story."""
        lines = "".join(f"        {act!r},\n" for act in self.acts)
        settings = (f.name for f in fields(Configuration) if getattr(self.configuration, f.name) != f.default)
        inner = "".join(f"        {name}={getattr(self.configuration, name)!r},\n" for name in settings)
        return (
            f"Story(\n    seed={self.seed},\n    hours={self.hours!r},\n"
            f"    configuration=Configuration(\n{inner}    ),\n    acts=(\n{lines}    ),\n)"
        )


_STRANGERS = 0.2
"""Share of the days on which training jobs of other people have the names of jobs."""


def draw(seed: int) -> Story:
    """Return the story of a seed: one in ten of each plain kind, so that some rules do not depend on luck."""
    teller = _Teller(seed)
    plain = {7: teller.strays, 8: teller.forgeries, 9: teller.contention}
    return plain.get(seed % 10, teller.story)()


class _Teller:
    """Draws one story."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rng = random.Random(seed)
        self._end = self._rng.choice((4, 6, 8)) * 3600.0
        self._names: dict[str, float] = {}
        self._bursts = [self._when(0.0, 0.6) for _ in range(3)]

    def story(self) -> Story:
        """Return the story: jobs first, since people and faults are about them."""
        configuration = self._configuration()
        told: list[Act] = [self._submit(number, configuration) for number in range(self._rng.randint(8, 18))]
        if self._chance(0.4):
            told += self._rush(configuration)
        told += self._people() + self._admins(configuration) + self._others(configuration) + self._faults()
        told += self._strangers()
        told += self._scales(told)
        return Story(self._seed, configuration, tuple(sorted(told, key=lambda act: act.at)), self._end / 3600)

    # -- plain days ------------------------------------------------------------------------------------------------
    def contention(
        self,
        *,
        quota: int = 0,
        more: Callable[[list[acts.Submit]], list[Act]] | None = None,
    ) -> Story:
        """Return a story of one pool in which many jobs contend and nothing goes wrong but what is given."""
        rng, cap = self._rng, self._rng.choice((2, 3, 4))
        jobs = [
            acts.Submit(
                self._when(0.0, 0.3),
                f"job{number}",
                count=rng.choice((1, 1, 1, 2)),
                seconds=rng.choice((300, 900, 1800)),
                priority=rng.choice((-2, 0, 0, 1, 5, 10)),
            )
            for number in range(14)
        ]
        told = sorted([*jobs, *(more(jobs) if more else ())], key=lambda act: act.at)
        quotas = ((P5, quota),) if quota else ()
        settings = (("order", rng.choice(("fifo", "backfill"))),)
        configuration = Configuration(pools=(Pools(P5, cap),), settings=settings, quotas=quotas)
        return Story(self._seed, configuration, tuple(told), self._end / 3600)

    def forgeries(self) -> Story:
        """Return a story with forged reports of each job."""
        return self.contention(
            more=lambda jobs: [acts.Forge(self._soon(job.at), job.name, status) for job in jobs for status in STATUSES]
        )

    def strays(self) -> Story:
        """Return a story in which a quota below the cap refuses starts, one of which takes effect when it rises."""
        rises = self._when(0.1, 0.3)
        return self.contention(
            quota=1,
            more=lambda jobs: [acts.Quota(rises, P5, 50), *(acts.Stray(rises, job.name) for job in jobs)],
        )

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _when(self, start: float = 0.0, end: float = 0.9) -> float:
        return round(self._rng.uniform(start, end) * self._end, 1)

    def _overtake(self) -> Act:
        """Return a manager overtaken early in its pass, mostly just as others submit."""
        call = self._rng.choice((1, 2, 3, self._rng.randint(1, 15)))
        return acts.Overtake(self._fault_time(), call, self._rng.choice((0, 60, 240, 600)))

    def _busy_time(self) -> float:
        """Return a time that is often within minutes of others, so that jobs and faults meet."""
        if self._chance(0.3):
            return self._when(0.0, 0.75)
        return round(self._rng.choice(self._bursts) + self._rng.uniform(0, 900), 1)

    def _soon(self, at: float) -> float:
        """Return a time after this one: seconds, minutes or an hour later."""
        return round(at + self._rng.uniform(0, self._rng.choice((10, 300, 3600))), 1)

    # -- how the day begins ----------------------------------------------------------------------------------------
    def _configuration(self) -> Configuration:
        rng = self._rng
        types = rng.sample(TYPES, rng.randint(1, 3))
        counts = self._chance(0.4)
        pools = [Pools(name, rng.choice((1, 2, 2, 3, 4, 6)), counts) for name in types]
        if self._chance(0.3):
            pools.append(Pools(types[0] + SPOT, rng.randint(1, 4)))
        if self._chance(0.15):
            pools.append(Pools(PLAN, rng.randint(1, 3)))
        quotas = tuple((pool.name, max(1, pool.cap - rng.randint(0, 2))) for pool in pools[:1] if self._chance(0.25))
        capacity = tuple((pool.name, rng.randint(0, pool.cap)) for pool in pools[:1] if self._chance(0.2))
        calm_events = self._chance(0.4)
        return Configuration(
            pools=tuple(pools),
            settings=tuple(sorted(self._settings(types).items())),
            quotas=quotas,
            capacity=capacity,
            hostility=self._hostility(),
            lost=0.0 if calm_events else rng.choice((0.02, 0.1, 0.3)),
            doubled=0.0 if calm_events else rng.choice((0.0, 0.1)),
            late=0.0 if calm_events else rng.choice((0.0, 0.1, 0.3)),
            lost_ticks=0.0 if calm_events else rng.choice((0.0, 0.02)),
        )

    def _settings(self, types: list[str]) -> dict[str, Any]:
        rng = self._rng
        settings: dict[str, Any] = {"order": rng.choice(ORDERS)}
        if self._chance(0.5):
            settings["preemption"] = {
                "cooldownSeconds": rng.choice((0, 120, 600)),
                "minRuntimeSeconds": rng.choice((0, 0, 300)),
            }
        settings["reservationTimeoutSeconds"] = rng.choice((600, 1200, 3600))
        if self._chance(0.3):
            settings["reservations"] = rng.choice((0, 2, 5))
        if self._chance(0.2):
            settings["patienceSeconds"] = rng.choice((1800, 7200))
        if self._chance(0.25):
            lending = rng.choice(("reserve", "lend", "lend-and-borrow"))
            settings["shares"] = {"vision": {"nominal": {types[0]: 1}, "lending": lending}}
        if self._chance(0.3):
            settings["resizes"] = {"payback": rng.choice((0.0, 0.01, 2.0)), "shrinkEquals": self._chance(0.5)}
        if self._chance(0.1):
            settings["expansion"] = {"enabled": True, "types": ["ml.g5.*"], "maxPerType": 3, "retireAfterSeconds": 900}
        return settings

    def _hostility(self) -> tuple[tuple[str, Any], ...]:
        """Return what the simulator's `Hostility` gets: nothing, a few kinds, or all of them."""
        rng = self._rng
        kinds: dict[str, dict[str, Any]] = {
            "describe": {"describe_lag": rng.choice((5.0, 30.0, 120.0))},
            "list": {"list_lag": rng.choice((5.0, 30.0, 120.0))},
            "tags": {"tags_lag": rng.choice((5.0, 30.0))},
            "failed": {"failed_calls": rng.choice((0.01, 0.05, 0.2))},
            "lost": {"lost_answers": rng.choice((0.01, 0.05))},
            "late": {"late_creates": rng.choice((0.02, 0.2)), "late_seconds": rng.choice((20.0, 90.0))},
            "capacity": {
                "capacity_errors": rng.choice((0.03, 0.2)),
                "capacity_error_seconds": rng.choice((60.0, 300.0)),
            },
            "internal": {"internal_errors": 0.05},
            "stuck": {"stuck_stops": 0.1, "stuck_seconds": rng.choice((180.0, 900.0))},
            "repeated": {"refuse_repeated_stops": 0.5},
            "spot": {"spot_interruptions": 1.0},
            "clock": {"clock_offset": rng.choice((-30.0, -10.0, 10.0, 30.0))},
            "rates": {"rates": {"CreateTrainingJob": 1.0, "DescribeTrainingJob": 5.0, "StopTrainingJob": 1.0}},
        }
        if self._chance(0.3):
            return ()
        drawn = rng.sample(sorted(kinds), rng.randint(1, 3)) if self._chance(0.6) else kinds
        return tuple(sorted((name, value) for kind in drawn for name, value in kinds[kind].items()))

    # -- users -----------------------------------------------------------------------------------------------------
    def _submit(self, number: int, configuration: Configuration) -> acts.Submit:
        rng = self._rng
        types = [pool.name for pool in configuration.pools if pool.name in TYPES]
        name = f"job{number}"
        fields: dict[str, Any] = {
            "at": self._busy_time(),
            "name": name,
            "instance_type": rng.choice(types),
            "count": rng.choice((1, 1, 1, 2, 2, 3)),
            "seconds": rng.choice((60, 300, 600, 1200, 2400, 4800)),
            "priority": rng.choice((0, 0, 0, -2, 1, 5, 10)),
            "checkpoints": self._chance(0.75),
        }
        fields["count"] = min(fields["count"], *(pool.cap for pool in configuration.pools if pool.name in types))
        fields |= self._shape(fields["instance_type"], types, {pool.name for pool in configuration.pools})
        fields |= self._luck(fields["at"])
        options = self._options(configuration)
        self._names[name] = fields["at"]
        return acts.Submit(**fields, options=tuple(sorted(options.items())))

    def _rush(self, configuration: Configuration) -> list[Act]:
        """Return two jobs for the same units; the second comes while a manager hangs before the first starts."""
        pool = self._rng.choice([pool for pool in configuration.pools if pool.name in TYPES])
        start, count = self._when(0.0, 0.8), min(pool.cap, 3)
        self._names |= {"early": start, "late": start + 30.0}
        return [
            acts.Overtake(round(start - 0.1, 1) if start else 0.0, 1, 60),
            acts.Submit(start, "early", pool.name, count, 1200),
            acts.Submit(round(start + 30.0, 1), "late", pool.name, count, 1200, priority=5),
        ]

    def _shape(self, kind: str, types: list[str], pools: set[str]) -> dict[str, Any]:
        """Return the members of one of the kinds of requests, as far as the pools have it."""
        rng = self._rng
        others = tuple(each for each in types if each != kind)
        first = types[0] if types[0] + SPOT in pools else kind
        shapes: list[tuple[float, bool, dict[str, Any]]] = [
            (0.12, True, {"hook": rng.choice(HOOKS), "most": rng.randint(2, 4), "count": 1, "checkpoints": True}),
            (0.10, first + SPOT in pools, {"spot": True, "instance_type": first}),
            (0.08, True, {"keep_alive": rng.choice((600, 1800))}),
            (0.06, bool(others), {"groups": tuple((each, 1) for each in others[:1])}),
            (0.08, bool(others), {"preferences": others}),
            (0.08, PLAN in pools, {"plan": True, "instance_type": types[0], "count": 1}),
        ]
        drawn = rng.random()
        for share, there, members in shapes:
            if drawn < share:
                return members if there else {}
            drawn -= share
        return {}

    def _luck(self, at: float) -> dict[str, Any]:
        """Return how the script ends, and limits of its times."""
        rng = self._rng
        found: dict[str, Any] = {}
        if self._chance(0.08):
            found["outcome"] = "failed"
        if self._chance(0.08):
            found["internal_errors"] = rng.randint(1, 2)
        if self._chance(0.08):
            found["max_pending"] = 7200
        if self._chance(0.1):
            found["not_before"] = int(at) + rng.choice((300, 1800))
        return found

    def _options(self, configuration: Configuration) -> dict[str, str]:
        rng = self._rng
        options: dict[str, str] = {}
        if self._names and self._chance(0.1):
            options["after"] = rng.choice(list(self._names))
            options["after-failure"] = rng.choice(("cancel", "fail", "run"))
        if self._chance(0.06):
            options |= {"group": "pair", "max-concurrent": "1"}
        if self._chance(0.08):
            options["preemptible"] = "false"
        if self._chance(0.08):
            options["retry-algorithm"] = "1"
        if self._chance(0.1):
            options["min-runtime"] = "5m"
        if "shares" in dict(configuration.settings) and self._chance(0.4):
            options["share"] = "vision"
        return options

    def _people(self) -> list[Act]:
        rng, told = self._rng, list[Act]()
        for name, at in self._names.items():
            if self._chance(0.1):
                told.append(acts.Cancel(self._soon(at), name))
            if self._chance(0.12):
                told.append(acts.ConsoleStop(self._soon(at), name))
            if self._chance(0.1):
                told.append(acts.Reprioritize(self._soon(at), name, rng.choice((-5, 3, 20))))
            if self._chance(0.05):
                start = self._soon(at)
                told += [acts.Hold(start, name), acts.Hold(start + rng.choice((60.0, 1800.0)), name, hold=False)]
        return told

    def _scales(self, told: Iterable[Act]) -> list[Act]:
        """Return changes of the bounds of elastic jobs, while they wait, run or are resized."""
        rng, found = self._rng, list[Act]()
        for act in told:
            for _ in range(rng.choice((0, 1, 2))) if isinstance(act, acts.Submit) and act.hook else ():
                least, most = sorted((rng.randint(1, 4), rng.randint(1, 4)))
                found.append(acts.Scale(self._soon(act.at), act.name, least, most))
        return found

    def _admins(self, configuration: Configuration) -> list[Act]:
        rng, told = self._rng, list[Act]()
        pools = configuration.pools
        if self._chance(0.3):
            pool = rng.choice(pools)
            told.append(acts.ChangePool(self._when(), pool.name, cap=max(1, pool.cap + rng.choice((-2, -1, 1, 2)))))
        if self._chance(0.12):
            pool, start = rng.choice(pools), self._when(0.1, 0.6)
            told += [
                acts.ChangePool(start, pool.name, draining=True),
                acts.ChangePool(start + 1800.0, pool.name, draining=False),
            ]
        if self._chance(0.08):
            pool, start = rng.choice(pools), self._when(0.1, 0.6)
            told += [acts.RemovePool(start, pool.name, force=True), acts.AddPool(start + 2400.0, pool.name, pool.cap)]
        if self._chance(0.15):
            told.append(acts.ChangeSettings(self._when(), (("order", rng.choice(ORDERS)),)))
        if self._chance(0.1):
            told.append(acts.Redeploy(self._when(), f"{P5}=2"))
        return told

    # -- AWS and others --------------------------------------------------------------------------------------------
    def _others(self, configuration: Configuration) -> list[Act]:
        rng, told = self._rng, list[Act]()
        types = [pool.name for pool in configuration.pools if pool.name in TYPES]
        for number in range(rng.choice((0, 0, 1, 3))):
            queue = rng.choice(("", "", "other-queue"))
            name = f"their{number}" + (f"-qstamp-{rng.randint(2, 3)}" if queue and self._chance(0.7) else "")
            kind, count = rng.choice(types), rng.randint(1, 2)
            told.append(acts.External(self._when(), name, kind, count, rng.choice((600, 3600)), queue))
        for _ in range(rng.choice((0, 0, 1, 2))):
            start, kind = self._when(), rng.choice(types)
            told += [acts.Capacity(start, kind, rng.randint(0, 2)), acts.Capacity(start + 1500.0, kind)]
        if self._chance(0.15):
            kind = rng.choice(types)
            start = self._when(0.1, 0.6)
            told += [acts.Quota(start, kind, rng.randint(1, 2)), acts.Quota(start + 3600.0, kind, 50)]
        if any(pool.name.endswith(SPOT) for pool in configuration.pools):
            told += [acts.Interrupt(self._when()) for _ in range(rng.randint(0, 2))]
        return told

    def _strangers(self) -> list[Act]:
        """Return training jobs of other people with the names of jobs, on one day in five.

        Drawn apart, so that the other days of known seeds stay as they are.
        """
        rng = random.Random(f"{self._seed} strangers")
        if rng.random() > _STRANGERS:
            return []
        names = rng.sample(sorted(self._names), min(2, len(self._names)))
        told: list[Act] = []
        for name in names:
            at = max(0.0, self._names[name] + rng.choice((-30.0, -600.0, 5.0)))
            told.append(acts.External(round(at, 1), name, count=1, seconds=rng.choice((600, 3600))))
            told.append(acts.Cancel(round(self._names[name] + rng.choice((20.0, 90.0, 900.0)), 1), name))
        return told

    def _fault_time(self) -> float:
        """Return a time just before or after something happens to a job."""
        at = self._rng.choice(list(self._names.values()))
        return round(max(0.0, at + self._rng.choice((-0.1, 0.0, 60.0, 600.0, 1800.0)) + self._rng.uniform(0, 60)), 1)

    def _faults(self) -> list[Act]:
        rng, told = self._rng, list[Act]()
        if self._chance(0.25):
            return told
        for _ in range(rng.randint(0, 6)):
            told.append(acts.Kill(self._fault_time(), rng.randint(1, 15), rng.choice((0, 0, 30, 60))))
        for _ in range(rng.randint(0, 6)):
            told.append(self._overtake())
        for _ in range(rng.randint(0, 10)):
            told.append(acts.StoreFault(self._fault_time(), rng.randint(1, 12), rng.choice(STORE_FAULTS)))
        verbs, weights = zip(*VERBS, strict=True)
        for _ in range(rng.randint(0, 10)):
            verb = rng.choices(verbs, weights)[0]
            told.append(acts.CallFault(self._fault_time(), verb, rng.choice(CODES), lost=self._chance(0.4)))
        for _ in range(rng.choice((0, 0, 1, 2))):
            told.append(acts.Forge(self._fault_time(), rng.choice(list(self._names)), rng.choice(STATUSES)))
        if self._chance(0.2):
            told.append(acts.BadMessage(self._fault_time(), rng.choice(("{}", "no JSON", '{"kind": "nothing"}', "[]"))))
        return told


__all__ = ["G5", "G6", "P5", "Configuration", "Pools", "Story", "draw"]
