"""`trainmaster demo`: replaces itself with the demo, whose packages only the extra `local` installs."""

from __future__ import annotations

import sys

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.client.api.errors import NotConfigured

MODULE = "trainmaster.local.demo"
_NEEDS = ("moto", "aws_lambda_powertools", "pydantic")


def demo(context: typer.Context) -> None:
    """Run a demo of the queue on this machine.

    The demo deploys the queue into an emulator of AWS, submits the article's four jobs (see the README), and shows the
    article's tables as they happen. It needs no AWS account, but a checkout of the project, in which `make demo`
    installs the dependencies. With --elastic, one job of real torch processes grows, makes room and grows back (`make
    demo-elastic`); --picture FILE draws that as a PNG. Ctrl-C leaves nothing running.
    """
    cli = cli_context(context)
    if not cli.is_installed("tomllib"):
        raise NotConfigured(
            "The demo needs Python 3.11 or newer.",
            type="NotInstalled",
            hint="Make an environment of a newer Python; `make demo PYTHON=python3.13` in a checkout makes one.",
        )
    missing = [module for module in _NEEDS if not cli.is_installed(module)]
    if missing:
        raise NotConfigured(
            f"The demo needs packages that are not installed ({', '.join(missing)}).",
            type="NotInstalled",
            hint="Run `make demo` in a checkout of the project, which installs them.",
        )
    cli.exec_program([sys.executable, "-m", MODULE, *context.args])
