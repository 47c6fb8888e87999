"""Fixtures of the tests of deployment: those of the command line."""

from cli_fixtures import client, run, world

__all__ = ["client", "run", "world"]
