"""Builds the command of a training job: in the request if SageMaker accepts it there, otherwise in a launch script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.client.hyperpod.environment import Environment, note_unresolved, with_first_host
from trainmaster.client.hyperpod.expansion import MARK, expand
from trainmaster.client.hyperpod.kinds import Layout
from trainmaster.client.hyperpod.placeholders import is_shell, shell_names
from trainmaster.client.hyperpod.yaml_reader import ManifestReader, invalid_field

MAX_WORDS = 100
"""Entries of ContainerEntrypoint and of ContainerArguments (API model, TrainingContainerEntrypoint)."""
MAX_WORD_LENGTH = 256
"""Characters of an entry (TrainingContainerEntrypointString); none may be a line break, by the pattern `.*`."""
MAX_VARIABLES = 80
"""SageMaker takes 100 variables (TrainingEnvironmentMap); the queue adds its own."""
MAX_VARIABLE_LENGTH = 512
"""Characters of a variable's value (TrainingEnvironmentValue)."""
_LINE_BREAKS = frozenset("\n\r\x85\u2028\u2029")
_RUNNER = "hyperpodrun"
_WRAPPER = "trainmaster-run"
_REPLACED = (
    "torchrun runs instead, because hyperpodrun needs HyperPod's operator: in-process restarts and its health checks "
    "do not apply"
)


@dataclass(frozen=True, slots=True)
class Command:
    """The command of a container.

    Attributes:
        wrapper: program of the base request that starts the command; () if it has none.
        command, args: `command` and `args` as in a manifest; texts can refer to variables of the container.
    """

    wrapper: tuple[str, ...]
    command: tuple[str, ...]
    args: tuple[str, ...]

    @property
    def argv(self) -> tuple[str, ...]:
        """All words, without the wrapper."""
        return (*self.command, *self.args)

    @property
    def is_worker(self) -> bool:
        """True if the queue's own launcher is the command: it finds the other instances itself."""
        return bool(self.command) and _is_worker(self.command[0])

    @property
    def uses_hyperpodrun(self) -> bool:
        """True if the command mentions HyperPod's launcher."""
        return any(_RUNNER in word for word in self.argv)

    @property
    def fits(self) -> bool:
        """True if a request can contain the command as it is."""
        return _fits((*self.wrapper, *self.command)) and _fits(self.args)


def read_command(
    reader: ManifestReader, layout: Layout, environment: Environment, algorithm: Mapping[str, Any]
) -> Command:
    """Return the command of a manifest with the entry point and the arguments of the base request.

    `algorithm` is the AlgorithmSpecification of the base request.

    Raises Refused if both have a command, because one of them would be lost.
    """
    command, args = (_words(reader, layout, environment, name) for name in ("command", "args"))
    base_entry, base_args = (_strings(algorithm.get(name)) for name in ("ContainerEntrypoint", "ContainerArguments"))
    if args and base_args:
        raise _both(layout, "args", "ContainerArguments")
    if command and base_entry and not _is_worker(base_entry[0]):
        raise _both(layout, "command", "ContainerEntrypoint")
    if command and base_entry:
        return Command(base_entry, _with_runner(command), args or base_args)
    return Command((), _with_runner(command) or base_entry, args or base_args)


def oversized(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a request cannot contain: too long, too many, or known only in the container."""
    if len(values) > MAX_VARIABLES:
        return dict(values)
    is_name = {name: name.isascii() and name.isidentifier() for name in values}
    return {
        name: text
        for name, text in values.items()
        if len(text) > MAX_VARIABLE_LENGTH or MARK in text or not is_name[name]
    }


def has_reference(texts: Sequence[str]) -> bool:
    """Return whether a text refers to a variable of the container."""
    return any(MARK in text for text in texts)


def _both(layout: Layout, name: str, member: str) -> Exception:
    return invalid_field(
        (*layout.container, name),
        f"and AlgorithmSpecification.{member} of --with are both set, and only one can run",
        f"Remove one of them. The entry point {_WRAPPER} can stay: it starts the manifest's command.",
    )


def _is_worker(program: str) -> bool:
    return program.rpartition("/")[2] == _WRAPPER


def _with_runner(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command with HyperPod's launcher without its directory, so that the launch script replaces it."""
    is_runner = bool(command) and command[0].endswith(f"/{_RUNNER}")
    return (_RUNNER, *command[1:]) if is_runner else command


def _words(reader: ManifestReader, layout: Layout, environment: Environment, name: str) -> tuple[str, ...]:
    """Return the expanded texts of `command` or `args`, and note what will not work as on the cluster."""
    texts = [reader.take(str, *layout.container, name, index) for index in range(_length(reader, layout, name))]
    program = reader.peek(*layout.container, "command", 0) or reader.peek(*layout.container, "args", 0)
    in_shell = isinstance(program, str) and is_shell(program)
    for index, text in enumerate(text or "" for text in texts):
        path = (*layout.container, name, index)
        note_unresolved(reader, text, environment, path)
        if _RUNNER in text:
            reader.note(_REPLACED, *path)
        elif not in_shell and (names := shell_names(text)):
            reader.note(f"${names[0]} stays as it is: only a shell expands it", *path)
    return tuple(
        expand(with_first_host(text, layout, environment), environment.known) for text in texts if text is not None
    )


def _length(reader: ManifestReader, layout: Layout, name: str) -> int:
    return len(reader.items(*layout.container, name))


def _strings(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _fits(words: Sequence[str]) -> bool:
    return len(words) <= MAX_WORDS and all(
        len(word) <= MAX_WORD_LENGTH and not _LINE_BREAKS.intersection(word) for word in words
    )
