"""`trainmaster demo`: runs the article's four jobs through a queue on this machine.

It must not import the demo, which needs packages that only the extra `local` installs: it becomes that program.
"""

from __future__ import annotations

import sys

import typer

from trainmaster.cli.common.context import tools_of
from trainmaster.client.api.errors import NotConfigured

MODULE = "trainmaster.local.demo"
_NEEDS = ("moto", "aws_lambda_powertools", "pydantic")


def demo(context: typer.Context) -> None:
    """Run the queue on this machine.

    It is deployed into a stand-in for AWS, gets the article's four jobs, and shows the article's tables as they
    happen. That needs no AWS account, but a checkout of the project, in which `make demo` installs all that it takes.
    With --elastic it is one job of real torch processes that grows, makes room and grows back (`make demo-elastic`);
    --picture FILE draws that as a PNG. Ctrl-C leaves nothing running.
    """
    tools = tools_of(context)
    missing = [module for module in _NEEDS if not tools.installed(module)]
    if missing:
        raise NotConfigured(
            f"The demo needs packages that are not installed ({', '.join(missing)}).",
            type="NotInstalled",
            hint='`make demo` in a checkout of the project installs them, or `pip install "trainmaster[local]"`.',
        )
    tools.become([sys.executable, "-m", MODULE, *context.args])
