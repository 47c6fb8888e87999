"""Replays a trace under a policy by its name: a shipped order with the shipped queue, or a reference policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainmaster.domain.policy.settings import Gittins, Order, Policy
from trainmaster.local.replay.forecasts import StartEstimate, eta_figures
from trainmaster.local.replay.queue import Progress, Replay, ReplaySettings
from trainmaster.local.replay.reference_policies import REFERENCE_POLICIES, run_reference
from trainmaster.local.replay.report.figures import figures
from trainmaster.local.replay.report.results import JobResult
from trainmaster.local.replay.trace.trace import TraceJob
from trainmaster.local.replay.virtual_queue import RESTART_SECONDS
from trainmaster.local.simulator.clock import EPOCH

POLICIES: tuple[str, ...] = (*(order.value for order in Order), *REFERENCE_POLICIES)
REFERENCE = "baseline-skip"
"""Reference of a comparison: the behavior of most queues."""
RATIOS = ("avg_jct_s", "p99_jct_s", "avg_wait_s", "avg_wait_large_s", "p99_wait_large_s", "worst5_wait_large_s")
"""Figures that a comparison divides by the reference's."""


@dataclass(frozen=True, slots=True)
class Run:
    """The replay of a trace under one policy.

    Attributes:
        wall: wall time of the replay in seconds.
        estimates: estimated starts, if they were recorded.
    """

    policy: str
    cap: int
    results: Sequence[JobResult]
    wall: float
    estimates: Mapping[int, StartEstimate] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        """Return the figures that `--json` prints."""
        names = {"policy": self.policy, "cap": self.cap}
        found = names | figures(self.results, self.cap) | {"wall_s": round(self.wall, 3)}
        return found | (eta_figures(self.results, self.estimates, EPOCH) if self.estimates else {})


def run_replay(  # noqa: PLR0913 -- the parameters of a run
    policy: str,
    jobs: Sequence[TraceJob],
    cap: int,
    restart_cost: float = RESTART_SECONDS,
    *,
    questions: int = 0,
    lane: float = 0.0,
    on_progress: Progress = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Run:
    """Replay the jobs under a policy.

    Args:
        policy: one of `POLICIES`.
        jobs: in order of submission, none larger than the pool.
        cap: units of the pool.
        restart_cost: seconds that each resume costs.
        questions: maximum number of jobs, evenly spaced, whose estimated start is recorded.
        lane: part of the units that `gittins` guarantees to wide jobs.
        on_progress: called with the number of ended jobs.
        clock: returns seconds of wall time.

    Raises `ReplayFailed`.
    """
    began = clock()
    if policy in REFERENCE_POLICIES:
        return Run(policy, cap, run_reference(policy, jobs, cap, restart_cost), clock() - began)
    rules = Policy(order=Order(policy), gittins=Gittins(guaranteed_lane=lane))
    settings = ReplaySettings(cap=cap, policy=rules, restart_cost=restart_cost, questions=questions)
    replay = Replay(jobs, settings, on_progress)
    results = replay.run()
    return Run(policy, cap, results, clock() - began, replay.estimates)


def ratios(figures_of: dict[str, Any], reference: dict[str, Any]) -> dict[str, float | None]:
    """Return each figure of `RATIOS` divided by the reference's; None without one."""
    return {name: _ratio(figures_of[name], reference[name]) for name in RATIOS}


def _ratio(value: float | None, reference: float | None) -> float | None:
    return round(value / reference, 4) if value is not None and reference else None
