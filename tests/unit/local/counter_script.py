"""A training script that counts steps, keeps its count as a checkpoint and goes on from there."""

import os
import pathlib
import signal
import sys
import threading

say = print  # its output is what the tests read
told = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: told.set())
checkpoint = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"]) / "step"
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
say(f"from {step}", flush=True)
while step < int(os.environ["SM_HP_STEPS"]):
    if told.is_set():
        say(f"told at {step}", flush=True)
        sys.exit(0)
    step += 1
    checkpoint.write_text(str(step))
    say(f"step {step}", flush=True)
    told.wait(float(os.environ.get("PAUSE", "0")))
pathlib.Path(os.environ["SM_MODEL_DIR"], "model.txt").write_text(str(step))
