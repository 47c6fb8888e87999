"""A training script as small as one can be: it counts steps, and goes on from its checkpoint after an interruption.

It runs in a SageMaker container as well as under Trainmaster's simulator: both set these variables.
"""

import os
import signal
import sys
import time
from pathlib import Path

STEPS = int(os.environ.get("SM_HP_STEPS", "100"))
SECONDS_PER_STEP = float(os.environ.get("SM_HP_SECONDS", "0.2"))
# SageMaker brings this folder to the job's CheckpointConfig.S3Uri and back; the simulator keeps it by that address.
CHECKPOINT = Path(os.environ.get("SM_CHECKPOINT_DIR", "/opt/ml/checkpoints")) / "step"


def main() -> None:
    """Count from the checkpoint on, saving each step, until all are done, or SIGTERM comes in one of them."""
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    done = int(CHECKPOINT.read_text()) if CHECKPOINT.exists() else 0
    print(f"resumed after step {done}" if done else "started", flush=True)
    for step in range(done + 1, STEPS + 1):
        time.sleep(SECONDS_PER_STEP)
        save(step)
        print(f"step {step} of {STEPS}", flush=True)
        if told and step < STEPS:
            sys.exit("stopped; the checkpoint is saved")


def save(step: int) -> None:
    """Write beside the checkpoint and move it there: a stop in the middle leaves the older one whole."""
    written = CHECKPOINT.with_suffix(".new")
    written.write_text(str(step))
    written.replace(CHECKPOINT)


if __name__ == "__main__":
    main()
