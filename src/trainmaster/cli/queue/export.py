"""`trainmaster export` and `trainmaster import`: settings, pools and waiting jobs as one document."""

from __future__ import annotations

import json as json_format
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.exit_codes import ExitCode
from trainmaster.cli.common.options import Json
from trainmaster.cli.common.request import read_object
from trainmaster.cli.output.render import as_json, table
from trainmaster.client.api.errors import Refused
from trainmaster.domain.release import EXPORT_VERSION
from trainmaster.domain.text import one_line, sanitize

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import ImportReportView

_HINT = "Use a file that `trainmaster export` has written."
_HEAD = ("trainmasterExport", "release", "queue", "at", "settings", "pools")
_PARTS: Mapping[str, type] = {"settings": dict, "pools": list, "jobs": list}
_MAX_JOBS = 25
_MAX_CHARACTERS = 2_000_000
"""Characters of jobs in one request; API Gateway and Lambda take 6 MB."""
_FITS = ("new", "unchanged")


def export(
    context: typer.Context,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE", help="File to write, for its owner alone.")
    ] = None,
) -> None:
    """Write settings, pools, and waiting and held jobs as a JSON document.

    It contains the whole requests, with their secrets. Pause the manager first, so that no job starts meanwhile.
    """
    cli = cli_context(context)
    with cli.api() as api, _bar(cli, "Exporting", None) as advance:
        document = _exported(api, advance)
    text = as_json(document)
    if output is None:
        typer.echo(text)
    else:
        with open(output, "w", encoding="utf-8", opener=_private) as file:
            file.write(text + "\n")
        typer.echo(f"{_jobs(len(document['jobs']))} and {len(document['pools'])} pools are in {output}.", err=True)
    if document["skipped"]:
        typer.echo(f"Not exported, of other kinds or damaged: {_jobs(len(document['skipped']))}.", err=True)


def import_(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="An export (- reads standard input).")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check it.")] = False,
    jobs_only: Annotated[bool, typer.Option("--jobs-only", help="Leave settings and pools as they are.")] = False,
    json: Json = False,
) -> None:
    """Import settings, pools and jobs from an export.

    Jobs keep their priorities, entry times, submitters and holds. All are checked first: if the name of one belongs to
    another job, or one is refused, nothing changes. The same import again changes nothing.
    """
    document = _checked(read_object(file, "export", _HINT))
    head = {"trainmasterExport": document["trainmasterExport"]}
    if not jobs_only:
        head |= {"settings": document["settings"], "pools": document["pools"]}
    parts = [{**head, **part} for part in _batches(document["jobs"])]
    cli = cli_context(context)
    with cli.api() as api:
        report = _sent(cli, api, [part | {"dryRun": True} for part in parts], "Checking")
        sending = not dry_run and _fits(report)
        if sending:
            found = _sent(cli, api, parts, "Importing")
            # Settings and pools differ only until the first part has changed them.
            report = {**found, "settingsChange": report["settingsChange"], "poolsChange": report["poolsChange"]}
    _print(report, json=json)
    if not sending:
        typer.echo("Nothing was changed.", err=True)
    if not _fits(report):
        raise typer.Exit(ExitCode.CONFLICT)


def _exported(api: ApiClient, advance: Callable[[int], None]) -> dict[str, Any]:
    """Return the whole export."""
    page = api.export_page()
    document: dict[str, Any] = {name: value for name, value in page.items() if name in _HEAD}
    jobs, skipped = list(page["jobs"]), list(page["skipped"])
    advance(len(jobs))
    while page["nextCursor"] is not None:
        page = api.export_page(cursor=page["nextCursor"])
        jobs += page["jobs"]
        skipped += page["skipped"]
        advance(len(page["jobs"]))
    return document | {"jobs": jobs, "skipped": skipped}


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner may read, also if it was there before; devices stay as they are."""
    found = os.open(path, flags, 0o600)
    if hasattr(os, "fchmod") and stat.S_ISREG(os.fstat(found).st_mode):
        os.fchmod(found, 0o600)
    return found


def _checked(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an export that this client can read. Raises Refused, which names the field."""
    version = document.get("trainmasterExport")
    if type(version) is not int or version < 1:
        raise _wrong("The file is no export", "trainmasterExport", _HINT)
    if version > EXPORT_VERSION:
        newer = f"The export has version {version}; this client reads versions up to {EXPORT_VERSION}"
        raise _wrong(newer, "trainmasterExport", "Update it: pip install --upgrade trainmaster")
    for name, kind in _PARTS.items():
        if not isinstance(document.get(name), kind):
            raise _wrong(f"The export has no {name}, or they have a wrong form", name, _HINT)
    _check_jobs(document["jobs"])
    return document


def _check_jobs(jobs: Sequence[Any]) -> None:
    names = []
    for index, job in enumerate(jobs):
        if not isinstance(job, dict) or not isinstance(job.get("request"), dict):
            raise _wrong("A job of the export has no request", f"jobs[{index}].request", _HINT)
        names.append(str(job["request"].get("TrainingJobName")))
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        field = f"jobs[{names.index(twice[0])}].request.TrainingJobName"
        raise _wrong(f"The export has more than one job of the name {twice[0]}", field, "Remove all but one of them.")


def _wrong(message: str, field: str, hint: str) -> Refused:
    return Refused(message + ".", type="InvalidFile", field=field, hint=hint)


def _batches(jobs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the jobs in parts that fit into requests, each with the names of parents in other parts; one at least."""
    names = {job["request"].get("TrainingJobName") for job in jobs}
    batch: list[Mapping[str, Any]] = []
    size = 0
    for job in jobs:
        length = len(json_format.dumps(job))
        if batch and (len(batch) == _MAX_JOBS or size + length > _MAX_CHARACTERS):
            yield {"jobs": batch, "parents": _parents(batch, names)}
            batch, size = [], 0
        batch.append(job)
        size += length
    yield {"jobs": batch, "parents": _parents(batch, names)}


def _parents(batch: Iterable[Mapping[str, Any]], names: set[Any]) -> list[str]:
    after = (job.get("after") for job in batch)
    return sorted({name for each in after if isinstance(each, list) for name in each if name in names})


def _sent(cli: CliContext, api: ApiClient, parts: Sequence[Mapping[str, Any]], label: str) -> ImportReportView:
    """Send the parts one by one, to the first that changes nothing although it should; return all results as one."""
    whole: ImportReportView = {"jobs": [], "settingsChange": False, "poolsChange": False, "done": True}
    with _bar(cli, label, sum(len(part["jobs"]) for part in parts)) as advance:
        for part in parts:
            report = api.import_part(part)
            whole["jobs"] += report["jobs"]
            whole["settingsChange"] |= report["settingsChange"]
            whole["poolsChange"] |= report["poolsChange"]
            whole["done"] &= report["done"]
            advance(len(part["jobs"]))
            if not report["done"] and not part.get("dryRun"):
                break
    return whole


@contextmanager
def _bar(cli: CliContext, label: str, length: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a progress bar on a terminal, and does nothing elsewhere."""
    if not cli.is_terminal(sys.stderr):
        yield lambda _: None
        return
    with typer.progressbar(length=length or 0, label=label, file=sys.stderr) as bar:
        yield bar.update


def _fits(report: ImportReportView) -> bool:
    return all(job["outcome"] in _FITS for job in report["jobs"])


def _print(report: ImportReportView, *, json: bool) -> None:
    if json:
        typer.echo(as_json(report))
        return
    wrong = [job for job in report["jobs"] if job["outcome"] not in _FITS]
    if wrong:
        rows = [(job["jobName"], job["outcome"], job["message"]) for job in sanitize(wrong)]
        typer.echo(table(rows, ("Job", "Outcome", "Why")))
    counts = Counter(one_line(job["outcome"]) for job in report["jobs"])
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    changes = ["settings"] * report["settingsChange"] + ["pools"] * report["poolsChange"]
    changed = f" Other {' and '.join(changes)}." if changes else " Settings and pools are the same."
    typer.echo(f"{_jobs(len(report['jobs']))}{': ' + outcomes if outcomes else ''}.{changed}")


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
