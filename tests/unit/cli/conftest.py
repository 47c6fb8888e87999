"""Fixtures of the command line's tests."""

from cli_fixtures import client, run, world

__all__ = ["client", "run", "world"]
