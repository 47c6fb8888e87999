"""`trainmaster submit`: puts a request into the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.elastic_options import elastic_options
from trainmaster.cli.common.options import Base, File, Instances, Json, Options, Priority, Resources
from trainmaster.cli.common.request import cautions, not_honoured, options_of, read_job, with_tags
from trainmaster.cli.common.waiting import (
    INTERVAL_SECONDS,
    Interval,
    Patience,
    Timeout,
    absence,
    entered,
    report,
    wait_for,
)
from trainmaster.cli.output.render import as_json, warn
from trainmaster.cli.output.times import with_moments
from trainmaster.client.sdk.elastic import ElasticOptions
from trainmaster.client.views.wording import sentence_of
from trainmaster.images.cli.requests import received_sentence, with_wishes
from trainmaster.images.domain.request import is_image_request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainmaster.cli.common.context import Tools
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.jobs import Submission
    from trainmaster.images.client.views import Received


@elastic_options
def submit(  # noqa: PLR0913 - an option each
    context: typer.Context,
    file: File,
    *,
    base: Base = None,
    priority: Priority = None,
    option: Options = None,
    resources: Resources = None,
    instances: Instances = None,
    elastic: ElasticOptions,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end; the exit code tells how it was.")] = False,
    interval: Interval = INTERVAL_SECONDS,
    timeout: Timeout = None,
    json: Json = False,
) -> None:
    """Put a training job, or an image job, into the queue.

    The same request again gives the same answer; another request under a name that is taken is refused.
    Tags of the command line replace those of the request. Of a HyperPodPyTorchJob manifest every field that cannot be
    honoured is named. A request in ModelRunner's form (imageUrls, imageProcessor) is for an image job; --priority and
    --option share=NAME are for those, too.
    """
    job = read_job(file, base)
    options = options_of(option or (), resources, instances, elastic)
    tools = tools_of(context)
    if is_image_request(job.request):
        wanted = with_wishes(job.request, priority, options)
        _submit_image(tools, wanted, Patience(interval, timeout) if wait else None, json=json)
        return
    request = with_tags(job.request, priority, options)
    warn(cautions(job))
    with tools.api() as api:
        submission = api.submit(request)
        if not json:
            typer.echo(_told(submission, tools.now()))
        warn(submission["warnings"])
        _finish(tools, api, submission, Patience(interval, timeout) if wait else None, not_honoured(job), json=json)


def _submit_image(tools: Tools, request: dict[str, Any], patience: Patience | None, *, json: bool) -> None:
    """Send it, and wait for its end where there is patience for that."""
    with tools.api() as api:
        before = "" if patience is None else absence(api, str(request.get("jobId")))
        received = api.submit_image(request)
        if not json:
            typer.echo(received_sentence(received))
        warn(received["warnings"])
        if patience is not None:
            entered(tools, api, received["jobName"], patience, before)
        _finish(tools, api, received, patience, {}, json=json)


def _finish(  # noqa: PLR0913 - what a submission leaves to be said
    tools: Tools,
    api: ApiClient,
    answer: Submission | Received,
    patience: Patience | None,
    beside: Mapping[str, object],
    *,
    json: bool,
) -> None:
    """Wait for the job's end where there is patience for that, and tell in JSON, with what is `beside`, or in words.

    Raises typer.Exit with the code that tells how the job ended.
    """
    if patience is None:
        if json:
            typer.echo(as_json({**answer, **beside}))
        return
    jobs, code = wait_for(tools, api, [answer["jobName"]], patience)
    if json:
        typer.echo(as_json({**jobs[0], **beside}))
    else:
        report(jobs)
    raise typer.Exit(code)


def _told(submission: Submission, now: datetime) -> str:
    return f"Submitted {submission['jobName']}: {with_moments(sentence_of(submission), now)}"
