"""Who a node is: its training job, its host there, and which life of its process.

All instances are called `algo-1` in their own training job, addresses are given again, and process ids repeat in
containers; so an identity has the training job's name, and a random part that a new process has anew.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One life of one container.

    Attributes:
        training_job_name: the training job that it is of.
        host: its name there, such as `algo-1`.
        incarnation: random; another one after the container's program has been started anew.
        addr: where the other nodes reach it; an IP address, never a host's name.
        slots: worker processes that it runs.
    """

    training_job_name: str
    host: str
    incarnation: str
    addr: str
    slots: int = 1

    @property
    def name(self) -> str:
        """Its key in the state: `<training job>/<host>#<incarnation>`."""
        return f"{self.training_job_name}/{self.host}#{self.incarnation}"


def incarnation(rng: random.Random) -> str:
    """A random part for an identity; 40 bits, so that two processes never have the same in practice."""
    return "".join(rng.choice(_LETTERS) for _ in range(8))


def training_job_of(name: str) -> str:
    """The training job of the node of this key."""
    return name.split("/", 1)[0]


def host_of(name: str) -> str:
    """The host of the node of this key."""
    return name.split("/", 1)[-1].split("#", 1)[0]
