"""The table of `audit` on terminals and on a pipe."""

from datetime import UTC, datetime

import pytest

from cli_terminal import Terminal
from fake_api import an_entry
from trainmaster.cli.queue.audit import audit_table

NOW = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
ARN = "arn:aws:sts::000000000000:assumed-role/AmazonSageMaker-ExecutionRole/a-long-name-of-a-session"
ENTRIES = [an_entry(job="train-resnet-50-imagenet-sweep-lr-232", arn=ARN), an_entry("settings", job=None)]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_on_a_terminal_lines_fit_and_keep_the_change(width: int) -> None:
    lines = audit_table(ENTRIES, NOW, width).splitlines()
    assert max(map(len, lines)) <= width
    assert "priority: 1" in lines[2]
    assert "From" not in lines[0]


def test_on_a_pipe_and_a_wide_terminal_nothing_is_shortened() -> None:
    whole = audit_table(ENTRIES, NOW, None)
    assert audit_table(ENTRIES, NOW, 400) == whole
    assert "train-resnet-50-imagenet-sweep-lr-232" in whole
    assert "a-long-name-of-a-session" in whole
    assert "198.51.100.7" in whole


def test_no_changes_are_told_beside_the_table(run: Terminal) -> None:
    result = run("audit")
    assert (len(result.stdout.splitlines()), result.stderr) == (2, "No changes.\n")
