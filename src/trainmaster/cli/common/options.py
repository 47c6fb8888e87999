"""Options and arguments that several commands share, worded once.

It must not do anything: typer reads these.
"""

from __future__ import annotations

from typing import Annotated

import typer

from trainmaster.domain.jobs.job import PRIORITY_LIMIT

Json = Annotated[bool, typer.Option("--json", help="Print the API's answer as JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The job's name.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME", help="The jobs' names.")]
File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A CreateTrainingJob request in JSON, a HyperPodPyTorchJob manifest in YAML or JSON, or (for submit) a "
        "request for an image job in JSON; - reads standard input.",
    ),
]
Base = Annotated[
    str | None,
    typer.Option(
        "--with",
        metavar="FILE",
        help="What a manifest does not say: a part of a CreateTrainingJob request in JSON, for example RoleArn and "
        "OutputDataConfig. It goes before the manifest.",
    ),
]
Priority = Annotated[
    int | None,
    typer.Option(
        "--priority",
        metavar="INTEGER",
        min=-PRIORITY_LIMIT,
        max=PRIORITY_LIMIT,
        help="Set the request's `priority` tag; higher runs first, without one it is 0.",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Set the tag `trainmaster:NAME`, for example preemptible=false; may be repeated.",
    ),
]
Resources = Annotated[
    str | None,
    typer.Option(
        "--resources",
        metavar="MEMBERS",
        help="Ask for instances that have this, whatever their type: accelerators=8,vcpus=96,memory_gib=768; "
        "sets the tag `trainmaster:resources`.",
    ),
]
Instances = Annotated[
    int | None,
    typer.Option("--instances", metavar="N", min=1, help="How many of them; sets the tag `trainmaster:instances`."),
]
