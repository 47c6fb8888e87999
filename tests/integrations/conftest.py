"""Real tools on a fake queue. This environment has the tools, and Trainmaster beside them."""

from __future__ import annotations

from cli_fixtures import client, run, world

__all__ = ["client", "run", "world"]
