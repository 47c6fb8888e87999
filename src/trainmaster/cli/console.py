"""`trainmaster console`: serves the queue's console on this machine."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from typing import Annotated

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.client.api.errors import NotConfigured
from trainmaster.console.app import Console, Options

_Port = Annotated[
    int,
    typer.Option(metavar="PORT", min=0, max=65_535, help="Port on 127.0.0.1. Default: a free one.", show_default=False),
]
_NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address.")]
_ReadOnly = Annotated[bool, typer.Option("--read-only", help="Refuse all changes.")]
_AllowedHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST",
        help="Further host name, with its port or without, under which a tunnel or proxy shows the console. "
        "May be repeated.",
    ),
]


def console(
    context: typer.Context,
    port: _Port = 0,
    no_browser: _NoBrowser = False,
    read_only: _ReadOnly = False,
    allowed_host: _AllowedHost = None,
) -> None:
    """Open the queue's console in the browser.

    The console runs on this machine until Ctrl-C. It calls the API with your own AWS credentials, so every action is
    yours. The printed address signs one browser in; when it has been used, the address for another one is printed.
    Over SSH no browser is opened.
    """
    cli = cli_context(context)
    options = Options(port=port, allowed_hosts=frozenset(allowed_host or ()), read_only=read_only)
    with cli.api() as api:
        api.queue(limit=1)  # a wrong address, or missing credentials, are reported here rather than on the page
        found = _listening(lambda: Console(api, options, on_sign_in=_print_next), port)
        typer.echo(f"The console runs at {found.url}")
        typer.echo(
            f"From another machine: ssh -L {found.port}:127.0.0.1:{found.port} THIS_HOST, then open the address."
        )
        typer.echo("Ctrl-C ends it.")
        if not no_browser and "SSH_CONNECTION" not in cli.environ:
            webbrowser.open(found.url)
        try:
            found.serve()
        except KeyboardInterrupt:
            typer.echo("The console has ended.")


def _listening(start: Callable[[], Console], port: int) -> Console:
    """Return a console that listens. Raises NotConfigured if the port is in use."""
    try:
        return start()
    except OSError as error:
        raise NotConfigured(
            f"Port {port} cannot be used ({error.strerror}).", hint="Choose another --port, or none for a free one."
        ) from error


def _print_next(url: str) -> None:
    typer.echo(f"A browser has signed in. For another one: {url}")
