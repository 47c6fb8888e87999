"""Serves a console over a queue with image jobs; a program as tests/browser/world_server.py, which has it run."""

from __future__ import annotations

from world_server import main

from image_runs_world import ImageRunsWorld

JOBS = (
    ("harbour-7", 24, "vision", 20),
    ("coast-north", 9, "survey", 10),
    ("fields-2026", 40, "survey", 0),
    ("glacier-front", 6, "vision", 5),
)


class Imaging:
    """A queue with one endpoint: a job runs with a broken region, three wait."""

    def __init__(self) -> None:
        self.world = ImageRunsWorld(takes=8, seconds=150, fails=lambda claim: claim.number == 3)
        for name, regions, share, priority in JOBS:
            self.world.enter(name, regions, share=share, priority=priority)
        self.run(600)

    def run(self, seconds: float) -> None:
        self.world.run(seconds, step=30)


if __name__ == "__main__":
    main(Imaging)
