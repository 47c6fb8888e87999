"""`python -m tests.images.simulation`: days of `tests.simulation` on which image jobs run beside training jobs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]

if __name__ == "__main__":
    # As pytest finds them: what tests share is in these folders.
    sys.path[:0] = map(str, (Path(__file__).parent, TESTS / "images", TESTS))
    from image_days import draw_images, play

    from simulation.command import main

    if "dynamodb" in sys.argv:
        argparse.ArgumentParser(prog="python -m tests.images.simulation").error("image jobs are played in memory")
    sys.exit(main(player=play, drawer=draw_images))
