"""A worker whose first rank saves one checkpoint after the other, and reports whether each was published or fenced."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from trainmaster.worker.checkpoints.checkpoints import Fenced
from trainmaster.worker.training import checkpoints

PAUSE = 0.02


def main(folder: str) -> None:
    """Save until the end, if this is the first rank."""
    ours, step = checkpoints(folder), 0
    while True:
        step += 1
        time.sleep(PAUSE)
        if os.environ["RANK"] == "0":
            save(ours, step, Path(f"{folder}-{os.getpid()}"))


def save(ours, step: int, report: Path) -> None:
    """Save one checkpoint."""
    try:
        with ours.writing(step, keep=1_000_000) as draft:
            (draft / "weights").write_text(str(step))
        fenced = False
    except Fenced:
        fenced = True
    line = {"step": step, "round": int(os.environ["TRAINMASTER_ROUND"]), "fenced": fenced}
    with report.open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
