"""`version` shows a pause of the manager, as `why` does."""

from cli_terminal import Terminal
from fake_api import ANN, FakeApi


def test_version_shows_the_pause(world: FakeApi, run: Terminal) -> None:
    assert "paused" not in run("version").stdout
    world.manager["pause"] = {"reason": "upgrade", "by": ANN, "at": "2026-11-20T12:30:00Z"}
    last = run("version").stdout.splitlines()[-1]
    assert last.startswith("The manager is paused since 2026-11-20 12:30:00 UTC (30 minutes ago) by ")
    assert "upgrade" in last
    assert "`trainmaster resume`" in last
