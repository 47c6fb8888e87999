"""Fixtures of the tests of sweeps: a fake API, and a client of it."""

from cli_fixtures import client, run, world

__all__ = ["client", "run", "world"]
