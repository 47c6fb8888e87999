"""What can be said of pools on the command line, worded once.

It must not do anything: typer reads these.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from trainmaster.domain.capacity.units import Kind

PoolNames = Annotated[list[str], typer.Argument(metavar="POOL", help="The pools' names.")]
Caps = Annotated[
    list[str], typer.Argument(metavar="POOL=CAP", help="Pools, by instance type or name, and how many instances.")
]
Type = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="The instance type of pools that have another name.")
]


class Settable(StrEnum):
    """The kinds of pools that people set; those of endpoints follow from the endpoints."""

    ON_DEMAND = Kind.ON_DEMAND.value
    SPOT = Kind.SPOT.value
    TRAINING_PLAN = Kind.TRAINING_PLAN.value


TheKind = Annotated[Settable | None, typer.Option("--kind", help="How SageMaker gives the instances.")]
Plan = Annotated[
    str | None, typer.Option("--plan", metavar="ARN", help="The training plan; makes it a pool of that kind.")
]
Price = Annotated[float | None, typer.Option("--price", metavar="DOLLARS", min=0, help="For an hour of one instance.")]
VCpus = Annotated[
    int | None, typer.Option("--vcpus", metavar="N", min=0, help="Of one instance; 0: as known of the type.")
]
Memory = Annotated[
    float | None,
    typer.Option("--memory-gib", metavar="GIB", min=0, help="Of one instance; 0: as known of the type."),
]
Accelerators = Annotated[
    int | None, typer.Option("--accelerators", metavar="N", min=0, help="Of one instance; 0: as known of the type.")
]
Maker = Annotated[
    str | None, typer.Option("--accelerator", metavar="MAKER", help="Who makes them, such as nvidia or aws.")
]
AcceleratorMemory = Annotated[
    float | None,
    typer.Option(
        "--accelerator-memory-gib",
        metavar="GIB",
        min=0,
        help="Of all accelerators of one instance; 0: as known of the type.",
    ),
]
CountForeign = Annotated[
    bool | None,
    typer.Option(
        "--count-foreign/--no-count-foreign",
        help="Whether training jobs that did not come from the queue count; without it as before.",
        show_default=False,
    ),
]
