"""Mishaps that SageMaker inflicts on training jobs: lost capacity, internal errors, stuck stops, spot interruptions.

A mishap is drawn when a job reaches the stage that it may strike. One that has begun, such as a stuck stop, takes its
course although the settings change.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from functools import partial

from trainmaster.local.simulator.hostility.hostility import Hostility
from trainmaster.local.simulator.hostility.watched_engine import Mark
from trainmaster.local.simulator.service import interruptions, lifecycle
from trainmaster.local.simulator.service.demand import Market
from trainmaster.local.simulator.service.ending import finish, script_stopped
from trainmaster.local.simulator.service.job import STOPPING, Stage, TrainingJob
from trainmaster.local.simulator.service.state import AccountState, SignalContainer

HOUR = 3600
MAX_RUN_SECONDS = 30 * 24 * HOUR
"""Maximum time of a training job on instances (30 days, service model); later interruptions meet none."""
COMMAND_SECONDS = 60.0
"""Time within which an internal error strikes a command, whose duration is unknown."""


class Mishaps:
    """Draws mishaps, and schedules them with the timers of the state.

    Attributes:
        hostility: the current settings.
        counts: mishaps and misbehaviors so far, by the name of the setting.
    """

    def __init__(self, state: AccountState, rng: random.Random, counts: Counter[str]) -> None:
        self.hostility = Hostility()
        self.counts = counts
        self._state = state
        self._rng = rng

    def draw(self, job: TrainingJob, before: Mark | None, now: datetime) -> None:
        """Draw the mishaps of a training job that has changed; `before` is None if it is new."""
        if before is None:
            self._on_creation(job, now)
        elif job.status == STOPPING != before.status:
            self._on_stop(job, now)
        elif job.stage is not before.stage and job.stage is Stage.DOWNLOADING:
            self._on_instances(job, now)
        elif job.stage is not before.stage and job.stage is Stage.TRAINING:
            self._on_training(job, now)

    def happens(self, setting: str) -> bool:
        """Return True with the probability that a setting has, and count it; 0 draws nothing."""
        probability: float = getattr(self.hostility, setting)
        happens = probability > 0 and self._rng.random() < probability
        self.counts[setting] += happens
        return happens

    def _on_creation(self, job: TrainingJob, now: datetime) -> None:
        """Perhaps give a new job no instances until it fails."""
        needs_instances = job.stage is Stage.REQUESTING and any(job.alternatives) and job.market in tuple(Market)
        if not needs_instances or not self.happens("capacity_errors"):
            return
        requesting, seconds = job.profile.requesting_seconds, self.hostility.capacity_error_seconds
        fail = partial(lifecycle.give_up, self._state, job, lifecycle.NO_CAPACITY)
        self._state.enter_stage(job, Stage.REQUESTING)
        if seconds <= requesting:
            self._state.schedule(job, seconds, fail, now)
            return

        def wait(time: datetime) -> None:
            lifecycle.wait_for_capacity(self._state, job, time)
            self._state.waiting.pop(job.name, None)
            self._state.schedule(job, seconds - requesting, fail, time)

        self._state.schedule(job, requesting, wait, now)

    def _on_stop(self, job: TrainingJob, now: datetime) -> None:
        """Perhaps delay the end of a stopping job; a command's own end is not delayed."""
        if not self.happens("stuck_stops"):
            return
        if job.stage is Stage.TERMINATING and self._state.runs_commands(job):
            return
        stop = script_stopped if job.stage is Stage.TERMINATING else finish
        self._state.enter_stage(job, job.stage)
        seconds = max(self.hostility.stuck_seconds, job.profile.stopping_seconds)
        self._state.schedule(job, seconds, partial(stop, self._state, job), now)

    def _on_instances(self, job: TrainingJob, now: datetime) -> None:
        """Schedule the next interruption of a spot job."""
        if job.market != Market.SPOT or not self.hostility.spot_interruptions:
            return
        run_since = job.run_since

        def interrupt(time: datetime) -> None:
            still = job.run_since == run_since and job.stage in interruptions.INTERRUPTIBLE
            if still and self.hostility.spot_interruptions:
                self.counts["spot_interruptions"] += 1
                interruptions.interrupt(self._state, job, time)

        seconds = self._rng.expovariate(self.hostility.spot_interruptions / HOUR)
        if seconds < MAX_RUN_SECONDS:
            self._state.timers.at(now + timedelta(seconds=seconds), interrupt)

    def _on_training(self, job: TrainingJob, now: datetime) -> None:
        """Perhaps end this run of the script with an internal error, at a time within its remaining work."""
        if not self.happens("internal_errors"):
            return
        run = job.run

        def fail(time: datetime) -> None:
            if job.run == run and job.stage is Stage.TRAINING and self.hostility.internal_errors:
                if self._state.runs_commands(job):
                    self._state.outbox.append(SignalContainer(job.name, run, kill=True))
                lifecycle.internal_error(self._state, job, time)

        longest = COMMAND_SECONDS if self._state.runs_commands(job) else max(0.0, job.work_left) / job.pace
        self._state.timers.at(now + timedelta(seconds=self._rng.uniform(0, longest)), fail)
