"""`python -m trainmaster.local.demo`: runs the article's example on a local stack.

`--elastic` runs an elastic job instead. The demo fails with the reason if the queue does not reach an expected state.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from trainmaster.local.demo.display import Display
from trainmaster.local.demo.elastic_requests import INSTANCES as ELASTIC_INSTANCES
from trainmaster.local.demo.elastic_requests import Requests
from trainmaster.local.demo.elastic_scenario import ElasticScenario
from trainmaster.local.demo.picture import draw
from trainmaster.local.demo.queue import Queue, Row
from trainmaster.local.demo.scenario import INSTANCES, SCENES, Scene, UnexpectedState
from trainmaster.local.demo.submitter import Submitter
from trainmaster.local.stack import Checkout, LocalStack, SetupMissing, StartFailed

_PROFILE = {
    "requesting_seconds": 0.2,
    "starting_seconds": 0.5,
    "downloading_seconds": 0.2,
    "uploading_seconds": 0.3,
}
"""Steps that take SageMaker minutes take less than a second here; the training scripts are real."""
_SCENE_SECONDS = 90.0
_USUAL_IMPORT_SECONDS = 4.0
"""The import of the SDK takes less on a machine that is free. A busy one submits more slowly, and needs longer jobs."""
_POLL_SECONDS = 0.3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return the exit code: 0 if every scene succeeded, 1 if not, 130 after Ctrl-C."""
    options = _options(arguments)
    try:
        with Display() as display:
            if options.elastic:
                _play_elastic(display, options.picture)
            else:
                _play(display)
    except (StartFailed, SetupMissing, UnexpectedState) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. All processes have ended.\n")
        return 130
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="trainmaster demo", description=__doc__)
    parser.add_argument("--elastic", action="store_true", help="run one elastic job that scales up and down")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="with --elastic: draw the run as a PNG")
    options = parser.parse_args(arguments)
    if options.picture is not None and not options.elastic:
        parser.error("--picture needs --elastic")
    return options


def _play_elastic(display: Display, picture: Path | None) -> None:
    checkout = Checkout.here()
    _install(checkout, display, "install-demo-elastic", lambda: checkout.torch_run)
    stack = LocalStack(
        label="demo-elastic", limits=ELASTIC_INSTANCES, simulator=_profile_arguments(), on_step=display.step
    )
    with stack as address, tempfile.TemporaryDirectory(prefix="trainmaster-") as directory:
        requests = Requests(checkout, Path(directory), next(iter(ELASTIC_INSTANCES)))
        story = ElasticScenario(Queue(address), requests)
        display.step("Waiting for the queue")
        for caption in story.run():
            display.show_text(caption)
        record = story.record()
        display.training_jobs(
            "All training jobs in SageMaker", [(job.name, job.instances, job.status) for job in record.training_jobs]
        )
        pauses = ", ".join(f"{pause:.1f}" for pause in record.pauses)
        display.show_text(f"\nSteps lost: {record.lost}. Seconds without a step at each resize: {pauses}")
        if picture is not None:
            draw(record, picture)
        display.step("Shutting down")


def _play(display: Display) -> None:
    checkout = Checkout.here()
    _install(checkout, display, "install-demo", lambda: checkout.sdk2_python)
    stack = LocalStack(
        label="demo", limits=INSTANCES, simulator=_profile_arguments(), on_step=display.step, checkout=checkout
    )
    with stack as address, Submitter(checkout, address, stack.logs) as submitter:
        queue = Queue(address)
        display.step("Importing the SageMaker SDK")
        slowness = max(1.0, submitter.wait_until_ready() / _USUAL_IMPORT_SECONDS)
        for scene in SCENES:
            _play_scene(scene, slowness, queue, submitter, display)
        display.attempts("All attempts, and the steps that each counted", _attempts(queue))
        display.step("Shutting down")


def _profile_arguments() -> tuple[str, ...]:
    return tuple(part for name, value in _PROFILE.items() for part in ("--profile", f"{name}={value}"))


def _install(checkout: Checkout, display: Display, target: str, needed: Callable[[], Path]) -> None:
    """Run the `make` target that installs missing parts; its output shows the progress."""
    try:
        _ = checkout.ministack, checkout.sam, needed()
    except SetupMissing:
        display.step("Installing the environments of the demo")
        made = subprocess.run(["make", "-C", str(checkout.root), target], stdout=sys.stderr, check=False)
        if made.returncode:
            raise SetupMissing(f"`make {target}` failed") from None


def _play_scene(scene: Scene, slowness: float, queue: Queue, submitter: Submitter, display: Display) -> None:
    for job in scene.slowed(slowness).submitted:
        display.step(f"Submitting {job.name}, priority {job.priority}, through the SageMaker SDK")
        submitter.submit(job)
    display.step("Waiting for the queue")
    display.queue(scene.caption, _wait_for(scene, _SCENE_SECONDS * slowness, queue, display))


def _wait_for(scene: Scene, seconds: float, queue: Queue, display: Display) -> list[Row]:
    deadline = time.monotonic() + seconds
    while True:
        jobs = queue.jobs()
        states = {job["jobName"]: job["jobState"] for job in jobs}
        if states == scene.states:
            return jobs
        if time.monotonic() > deadline:
            raise UnexpectedState(f"expected {dict(scene.states)}, but the queue has {states}")
        display.states(jobs)
        time.sleep(_POLL_SECONDS)


def _attempts(queue: Queue) -> list[list[object]]:
    names = [job.name for scene in SCENES for job in scene.submitted]
    return [
        [name, attempt["number"], attempt["trainingJobName"], attempt["outcome"], _span(queue, attempt)]
        for name in names
        for attempt in queue.job(name)["attempts"]
    ]


def _span(queue: Queue, attempt: Row) -> str:
    steps = queue.steps(attempt["trainingJobName"])
    return f"{steps[0]} to {steps[1]}" if steps else "none"


if __name__ == "__main__":
    sys.exit(main())
