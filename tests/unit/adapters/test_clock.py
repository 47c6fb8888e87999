"""The system clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from trainmaster.adapters.clock import SystemClock


def test_now_is_the_time_in_utc():
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert before <= now <= datetime.now(UTC)
    assert now.tzinfo is UTC


def test_sleep_lets_time_pass_and_never_fails_for_a_time_that_has_passed():
    clock = SystemClock()
    before = time.monotonic()
    clock.sleep(0.01)
    assert time.monotonic() - before >= 0.01
    clock.sleep(-1)
