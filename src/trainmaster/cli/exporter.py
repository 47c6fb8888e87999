"""`trainmaster exporter`: serves the queue's state to Prometheus."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.client.api.errors import NotConfigured

DEFAULT_PORT = 9877

_Port = Annotated[int, typer.Option(metavar="PORT", min=0, max=65_535, help="Port; 0 selects a free one.")]
_Address = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS", help="Address to listen on. Others than loopback have no protection: anyone may read."
    ),
]
_AllowedHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST", help="Further host name that scrapes name, with its port or without. May be repeated."
    ),
]
_Poll = Annotated[
    float, typer.Option(metavar="SECONDS", min=1, max=3600, help="Shortest time between two reads of the API.")
]
_Board = Annotated[bool, typer.Option("--board", help="Print the Grafana dashboard of these metrics (JSON), and end.")]


def exporter(  # noqa: PLR0913, PLR0917 -- one parameter for each option
    context: typer.Context,
    port: _Port = DEFAULT_PORT,
    address: _Address = "127.0.0.1",
    allowed_host: _AllowedHost = None,
    poll_seconds: _Poll = 30,
    board: _Board = False,
) -> None:
    """Serve the queue's state to Prometheus.

    The exporter runs on this machine until Ctrl-C. It reads the API with your own AWS credentials when Prometheus asks,
    and answers further scrapes from the same reading. It needs the permission to read the queue.
    """
    cli = cli_context(context)
    if board:
        typer.echo(files("trainmaster.exporter").joinpath("grafana.json").read_text(encoding="utf-8"), nl=False)
        return
    if not cli.is_installed("prometheus_client"):
        raise NotConfigured(
            "The exporter needs a package that is not installed (prometheus_client).",
            type="NotInstalled",
            hint='`pip install "trainmaster[exporter]"` installs it.',
        )
    with cli.api() as api:
        api.queue(limit=1)  # a wrong address, or missing credentials, are reported here rather than in each scrape
        from trainmaster.exporter.app import Exporter, QueueCollector

        collector = QueueCollector(api, poll_seconds=poll_seconds)
        try:
            found = Exporter(collector, port=port, address=address, allowed_hosts=frozenset(allowed_host or ()))
        except OSError as error:
            message = f"{address}:{port} cannot be used ({error.strerror})."
            raise NotConfigured(message, hint="Choose another --port, or 0 for a free one.") from error
        typer.echo(f"Metrics are at {found.url}")
        typer.echo("Ctrl-C ends the exporter.")
        try:
            found.serve()
        except KeyboardInterrupt:
            typer.echo("The exporter has ended.")
