"""The randomness of a pass, which explanations of the next pass share."""

from __future__ import annotations

import random

from trainmaster.domain.plan import Snapshot


def pass_rng(snapshot: Snapshot) -> random.Random:
    """Return the source of randomness of the pass that decides on this snapshot, seeded by the pass number."""
    return random.Random(snapshot.pass_number)  # noqa: S311 -- spreads choices, guards nothing
