"""Control characters in untrusted text never reach the terminal."""

from __future__ import annotations

import re
from typing import Any

import typer

from trainmaster.cli.output.progress import job_line
from trainmaster.cli.output.render import as_json, coloured, facts_table, history_table, reason_text

WORDS = "HTTP status 400: \x1b[2J\x1b]0;owned\x07\nFAKE  pending  \u202eall is well\x9b2J"


def test_tables_and_facts_show_strangers_words_on_one_line_and_keep_our_colours() -> None:
    reason: Any = {"type": "ImageFailed", "message": WORDS}
    entry: Any = {"at": "2026-11-22T08:00:00Z", "to": "failed", "attempt": "a", "reason": reason}
    table = history_table([entry], coloured)
    assert len(table.splitlines()) == 3
    assert typer.style("failed", fg="red") in table
    assert re.sub(r"\x1b\[\d+m|\n", "", table).isprintable()
    assert reason_text(WORDS).isprintable()
    assert facts_table([("Reason", WORDS)]).isprintable()


def test_sentences_and_json_have_no_controls_either() -> None:
    job: Any = {"jobName": "a", "jobState": "failed", "reason": {"type": "X", "message": WORDS}, "attempts": []}
    assert job_line(job).isprintable()
    assert as_json(job).replace("\n", "").isprintable()
