"""The base class of reasons for waiting, and the registry of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

REASONS: dict[str, type[Reason]] = {}
"""Every reason for waiting by the name of its class, which is its `type` on the wire."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Base class of the reasons for which a job waits.

    A subclass declares everything about one reason. Its docstring is its meaning in the API reference, the text in
    the annotation of each member its description in the OpenAPI document, and the class variables its words in the CLI.

    Attributes:
        brief: The reason in a few words, for tables. Members stand in braces; `{missing}` is `needed` less `free`.
        subject: Subject that turns the message into a sentence.
        outside_queue: Whether the job enters the queue by itself once the reason has passed.
    """

    brief: ClassVar[str]
    subject: ClassVar[str] = "it "
    outside_queue: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        REASONS[cls.__name__] = cls

    def message(self) -> str:
        """Return the reason as a predicate, or as a sentence of its own if `subject` is empty."""
        raise NotImplementedError
