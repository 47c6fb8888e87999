"""Makes the containers of a job: their files from S3, the Python environment, the command under `/opt/ml`."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainmaster.local.simulator.containers import script_mode
from trainmaster.local.simulator.containers.hosts import host_names
from trainmaster.local.simulator.containers.interpreters import Choice, Interpreters
from trainmaster.local.simulator.containers.launchers import launcher_of, why_not_launched
from trainmaster.local.simulator.containers.layout import Container, InstanceSlot, build_container, input_mode
from trainmaster.local.simulator.containers.opt_ml import command_in, copy_files
from trainmaster.local.simulator.containers.pipes import Pipe
from trainmaster.local.simulator.containers.transfer import ObjectStore, download_channel, upload_artifacts
from trainmaster.local.simulator.service.job import TrainingJob

_CODE_FILES = frozenset({".py", ".sh"})
"""Files of input channels in which `/opt/ml` is replaced if it cannot be mounted."""
_OPT_ML = re.compile(r"/opt/ml(?![\w.-])")
_ROOT = {"USER": "root", "LOGNAME": "root"}
"""Some scripts of the SDK call sudo for other users."""


@dataclass(frozen=True, slots=True)
class ContainerFactory:
    """Makes the containers of jobs under a folder.

    Attributes:
        root: folder for the directories and checkpoints of jobs.
        inherited: environment of every script; the request's `Environment` takes precedence.
        store: S3, for input channels and artifacts; None leaves channels empty and writes nothing.
        interpreters: Python environments for scripts; without one, scripts find the `PATH` that they inherit.
        mounts: whether each container's directory is mounted as `/opt/ml`; otherwise that path is replaced in the
            command, the environment, the hyperparameters and the code of input channels.
    """

    root: Path
    inherited: Mapping[str, str] = field(default_factory=dict)
    store: ObjectStore | None = None
    interpreters: Interpreters = field(default_factory=Interpreters)
    mounts: bool = False
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def runs(self, job: TrainingJob) -> bool:
        """Return whether a job runs as processes: it has a command, or a program and a machine with its framework."""
        if job.argv:
            return True
        if self.store is None or not script_mode.uses_script_mode(job):
            return False
        choice = self.interpreters.choose(job)
        return choice is not None and not choice.missing

    def build(self, job: TrainingJob, slots: Sequence[InstanceSlot], say: Callable[[str], None]) -> list[Container]:
        """Create the container of each instance. `say` gets lines for the job's log. Raises TransferFailed, OSError."""
        containers = [self._with_files(job, slot) for slot in slots]
        launcher = launcher_of(containers[0])
        choice = self.interpreters.choose(job, launcher.packages if launcher else ())
        if choice is not None and choice.missing:
            say(_missing_packages(job, choice))
        containers = [self._with_python(job, each, choice) for each in containers]
        path = containers[0].environment.get("PATH", os.defpath)
        lacking = (
            why_not_launched(launcher, path, choice.interpreter.packages if choice else None) if launcher else None
        )
        if lacking is not None:
            raise OSError(lacking)
        if self.mounts:
            return [self._mounted(each, slot) for each, slot in zip(containers, slots, strict=True)]
        return [_rewritten(each, job) for each in containers]

    def collect(self, job: TrainingJob, containers: Sequence[Container], *, failed: bool) -> None:
        """Write the artifacts and checkpoints of a run to S3. Raises TransferFailed."""
        if self.store is None:
            return
        if job.checkpoint_uri is not None:
            self.store.upload_folder(containers[0].checkpoints, job.checkpoint_uri)
        upload_artifacts(self.store, job.request, [each.base for each in containers], failed=failed)

    def _with_files(self, job: TrainingJob, slot: InstanceSlot) -> Container:
        """Create a container with its input from S3."""
        container = build_container(self.root, job, slot, self.inherited)
        container.failure.unlink(missing_ok=True)
        if self.store is not None:
            container = replace(container, pipes=tuple(self._download(self.store, job, slot, container)))
        if job.argv:
            return replace(container, argv=tuple(job.argv))
        command = script_mode.command(job, host_names(slot.hosts), slot.host.name)
        more = script_mode.variables(job, container.base)
        return replace(container, environment={**container.environment, **more}, argv=tuple(command))

    def _with_python(self, job: TrainingJob, container: Container, choice: Choice | None) -> Container:
        """Have `python` and the programs beside it be those of a new overlay, unless the request sets its own path."""
        if choice is None or "PATH" in job.request.get("Environment", {}):
            return container
        programs = choice.interpreter.overlay(self.root / "environments" / str(next(self._numbers)))
        path = ":".join([str(programs), str(choice.interpreter.scripts_in), self.inherited.get("PATH", os.defpath)])
        return replace(
            container, environment={**container.environment, "PATH": path, "VIRTUAL_ENV": str(programs.parent)}
        )

    def _download(
        self, store: ObjectStore, job: TrainingJob, slot: InstanceSlot, container: Container
    ) -> Iterator[Pipe]:
        """Write the input to the container's folders; yield the pipes of channels that flow."""
        for channel in job.request.get("InputDataConfig", []):
            folder = container.channel(channel["ChannelName"])
            if input_mode(job, channel) == "Pipe":
                hidden = self.root / "pipes" / str(next(self._numbers))
                download_channel(store, channel, slot.hosts, slot.host, hidden)
                yield Pipe(folder, tuple(sorted(path for path in hidden.rglob("*") if path.is_file())))
            else:
                download_channel(store, channel, slot.hosts, slot.host, folder)
        if job.checkpoint_uri is not None and not any(container.checkpoints.iterdir()):
            store.download_folder(job.checkpoint_uri, container.checkpoints)
        if not job.argv:
            script_mode.unpack(job, store, container.directory)

    def _mounted(self, container: Container, slot: InstanceSlot) -> Container:
        files = self.root / "etc" / str(next(self._numbers))
        names = [f"{address} {host.name}" for host, address in zip(slot.hosts, slot.addresses, strict=True)]
        copy_files(files, names)
        return replace(container, argv=tuple(command_in(container.base, files, slot.host.name, list(container.argv))))


def _missing_packages(job: TrainingJob, choice: Choice) -> str:
    image = job.request["AlgorithmSpecification"].get("TrainingImage", "")
    return (
        f"Local stack: {choice.interpreter.python} runs this job. It lacks {', '.join(choice.missing)}, unlike the "
        f"image {image.rpartition('/')[2]}; `make stack ARGS='--python PATH'` names an environment that has more."
    )


def _rewritten(container: Container, job: TrainingJob) -> Container:
    """Replace `/opt/ml` wherever the simulator can see it."""
    for channel in job.request.get("InputDataConfig", []):
        for path in container.channel(channel["ChannelName"]).rglob("*"):
            if path.suffix in _CODE_FILES and path.is_file():
                _rewrite_file(path, container.base)
    _rewrite_file(container.base / "input" / "config" / "hyperparameters.json", container.base)
    return replace(
        container,
        environment={name: _replaced(text, container.base) for name, text in container.environment.items()} | _ROOT,
        argv=tuple(_replaced(text, container.base) for text in container.argv),
    )


def _rewrite_file(path: Path, base: Path) -> None:
    """Replace `/opt/ml` in a text file."""
    text = path.read_bytes().decode(errors="surrogateescape")
    path.write_bytes(_replaced(text, base).encode(errors="surrogateescape"))


def _replaced(text: str, base: Path) -> str:
    return _OPT_ML.sub(lambda _: str(base), text)
