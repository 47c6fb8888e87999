"""Minimal training script: counts steps, and resumes from its checkpoint after an interruption.

It runs in a SageMaker container and under Trainmaster's simulator: both set these variables.
"""

import os
import signal
import sys
import time
from pathlib import Path

STEPS = int(os.environ.get("SM_HP_STEPS", "100"))
SECONDS_PER_STEP = float(os.environ.get("SM_HP_SECONDS", "0.2"))
# SageMaker syncs this folder with the job's CheckpointConfig.S3Uri; the simulator stores one folder for each such URI.
CHECKPOINT = Path(os.environ.get("SM_CHECKPOINT_DIR", "/opt/ml/checkpoints")) / "step"


def main() -> None:
    """Count from the checkpoint and save each step, until all steps are done or SIGTERM arrives."""
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    done = int(CHECKPOINT.read_text()) if CHECKPOINT.exists() else 0
    print(f"resumed after step {done}" if done else "started", flush=True)
    for step in range(done + 1, STEPS + 1):
        time.sleep(SECONDS_PER_STEP)
        save(step)
        print(f"step {step} of {STEPS}", flush=True)
        if signals and step < STEPS:
            sys.exit("stopped; the checkpoint is saved")


def save(step: int) -> None:
    """Replace the checkpoint atomically, so that a stop during the write keeps the previous one."""
    written = CHECKPOINT.with_suffix(".new")
    written.write_text(str(step))
    written.replace(CHECKPOINT)


if __name__ == "__main__":
    main()
