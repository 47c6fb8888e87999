"""A queue that is really deployed, for the SDKs' tests: its addresses come in `TRAINMASTER_E2E_*` variables.

Two say what the tests may take there: an instance type with a cap of one, and the simulator's speed. Each other one
carries a variable of a client's environment: `TRAINMASTER_E2E_AWS_ENDPOINT_URL` is `AWS_ENDPOINT_URL` there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PREFIX = "TRAINMASTER_E2E_"
COUNT_STEPS = Path(__file__).parents[3] / "examples" / "count_steps.py"
ROLE = "arn:aws:iam::000000000000:role/trainer"
INSTANCE = os.environ.get(f"{PREFIX}INSTANCE_TYPE", "")
SPEED = int(os.environ.get(f"{PREFIX}SPEED", "1"))


def is_there(environ: Mapping[str, str] = os.environ) -> bool:
    """Return True if this process was given a deployed queue."""
    return any(name.startswith(PREFIX) for name in environ)


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a client process, as `make stack` prints it."""
    handed = {name.removeprefix(PREFIX): value for name, value in environ.items() if name.startswith(PREFIX)}
    return {name: value for name, value in handed.items() if name not in ("INSTANCE_TYPE", "SPEED")}
