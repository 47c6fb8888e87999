"""An elastic training script for JAX: the same batches and the same result in any world, without torch.

    python examples/elastic_jax.py                             # one process, by hand
    ContainerEntrypoint: ["trainmaster-run"],
    ContainerArguments: ["--launcher", "none", "elastic_jax.py"]   # in a training job with members

JAX's processes cannot change their world, and end with the process of rank 0. So this script starts twice on each node:
as the node's owner, which is in the rendezvous and never imports JAX, and, once for each world, as the process that
trains. It fits a line to made-up numbers, on CPU. Every step is one line of JSON on standard output, by rank 0.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from trainmaster.worker import Rendezvous, World, training
from trainmaster.worker.batch import Order, part_of
from trainmaster.worker.budget import Budget
from trainmaster.worker.checkpoints import Mark
from trainmaster.worker.errors import Closed, Drained
from trainmaster.worker.notices import Notices, Reason
from trainmaster.worker.processes import die_with_parent
from trainmaster.worker.reprieve import Reprieve
from trainmaster.worker.state import DONE

STEPS = int(os.environ.get("SM_HP_STEPS", "200"))
BATCH = int(os.environ.get("SM_HP_BATCH", "30"))  # samples a step, of the whole world, whatever its size
SAMPLES = int(os.environ.get("SM_HP_SAMPLES", "1000"))
SECONDS_PER_STEP = float(os.environ.get("SM_HP_SECONDS", "0"))
SAVE_EVERY = int(os.environ.get("SM_HP_SAVE_EVERY", "50"))
# A directory that all containers see, or s3://bucket/prefix. SageMaker's own is for jobs of one container at a time.
CHECKPOINTS = os.environ.get("SM_HP_CHECKPOINTS")


def main() -> int:
    """By hand, and as a process of a world: train. As the first process on a node of an elastic job: own that node."""
    if os.environ.get("TRAINMASTER_RUN") and "COORDINATOR" not in os.environ:
        return own()
    train()
    return 0


# ---------------------------------------------------------------- the owner of a node


def own() -> int:
    """Be in one world after another, with a process that trains in each; the exit code of this node."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    notices, budget = Notices.of(os.environ) or Notices.create(), Budget.of(os.environ)
    with Rendezvous.from_environment() as rendezvous:  # leaves at the end; the others go on
        try:
            while True:
                world = rendezvous.next()
                reason = budget.overdrawn(rendezvous.engine.state, time.time())
                if reason is not None:
                    notices.end(reason)
                    rendezvous.close(reason)
                    return 1
                reprieve = Reprieve(notices, time.monotonic)
                code = run(world, notices, lambda reprieve=reprieve: over(rendezvous, reprieve))
                if code == 0:
                    rendezvous.close()
                if code == 0 or reprieve.stopped() is not None:
                    return 0
        except Drained:
            return 0
        except Closed as closed:
            if closed.reason == DONE:
                return 0
            notices.end(closed.reason)
            return 1


def run(world: World, notices: Notices, is_over: Callable[[], bool]) -> int:
    """Train in this world until the process ends or the world is over; 0 once all steps are done."""
    host, port = world.coordinator
    about = {
        "COORDINATOR": f"{host}:{port}",
        "RANK": str(world.rank),
        "WORLD_SIZE": str(world.size),
        "TRAINMASTER_ROUND": str(world.round),
        "TRAINMASTER_NOTICES": str(notices.directory),
    }
    process = subprocess.Popen([sys.executable, __file__], env={**os.environ, **about})  # noqa: S603  # itself
    try:
        while process.poll() is None and not is_over():
            time.sleep(0.1)
    finally:
        # Not SIGTERM: JAX keeps that to itself. What was to be saved is saved by now.
        process.kill()
        process.wait()
    return process.returncode


def over(rendezvous: Rendezvous, reprieve: Reprieve) -> bool:
    """Whether to end the process: at once where its world is lost, before a resize or a stop once it has saved."""
    stopped = reprieve.stopped()
    if stopped is not None:
        return stopped
    asked = rendezvous.asked()
    if asked.closed is not None:
        return asked.closed != DONE
    if asked.drain or asked.resize:
        return reprieve.over(Reason.DRAIN if asked.drain else Reason.RESIZE, asked.grace)
    return asked.rejoin


# ---------------------------------------------------------------- the process that trains


def train() -> None:
    """Meet the others, if there are any; go on from the newest checkpoint until all steps are done."""
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    rank, world = meet(jax)
    saved = training.checkpoints(CHECKPOINTS)
    training.requests()  # from here on a resize waits until this process has saved
    mark = saved.latest()
    # What rank 0 finds, in all: one may see a checkpoint that another does not see yet.
    told = np.array([mark.attempt, mark.round, mark.step] if mark else [0, 0, 0])
    mark = Mark(*multihost_utils.broadcast_one_to_all(told).tolist())
    weights = np.zeros(5)
    if mark.attempt:
        with saved.reading(mark) as directory:
            weights = np.load(directory / "weights.npy")
    inputs, targets = data(np)
    gradient, total = jax.jit(jax.value_and_grad(squares)), summed(jax, np)
    order, part = Order(samples=SAMPLES, batch=BATCH, seed=1), part_of(BATCH, world, rank)
    for step in range(mark.step + 1, STEPS + 1):
        time.sleep(SECONDS_PER_STEP / world)
        mine = order.at(step - 1)[part.start : part.start + part.size]
        loss, slope = gradient(weights, inputs[mine], targets[mine])
        loss, *slope = total(np.array([loss, *slope])) / BATCH
        weights = weights - 0.1 * np.array(slope)
        tell(step, float(loss), world, rank)
        asked = training.checkpoint_requested()
        if rank == 0 and (asked or step == STEPS or step % SAVE_EVERY == 0):
            with saved.writing(step) as directory:  # refused if a newer world has taken over meanwhile
                np.save(directory / "weights.npy", weights)
        if asked:
            training.checkpoint_saved()  # the world changes about now; in a new one this script starts anew
    multihost_utils.sync_global_devices("done")  # whoever ends says so for all, so all is saved before
    jax.distributed.shutdown()


def meet(jax: Any) -> tuple[int, int]:
    """Be in the world that the owner of this node is in; rank and size."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)  # noqa: FBT003  # JAX has it so
    if "COORDINATOR" not in os.environ:
        return 0, 1
    die_with_parent()
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    where, rank, world = os.environ["COORDINATOR"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    jax.distributed.initialize(
        coordinator_address=where,
        num_processes=world,
        process_id=rank,
        coordinator_bind_address=where if rank == 0 else None,
        shutdown_timeout_seconds=10,  # one that has failed must not wait long for the others
    )
    return rank, world


def data(np: Any) -> tuple[Any, Any]:
    """The same made-up numbers in every process."""
    numbers = np.random.default_rng(7)
    inputs = numbers.normal(size=(SAMPLES, 5))
    return inputs, inputs @ np.arange(1.0, 6.0) + numbers.normal(scale=0.1, size=SAMPLES)


def squares(weights: Any, inputs: Any, targets: Any) -> Any:
    """What is to become small: a sum, so that parts of a batch may be of any size."""
    return ((inputs @ weights - targets) ** 2).sum()


def summed(jax: Any, np: Any) -> Callable[[Any], Any]:
    """The sum of a vector over all processes: an all-reduce, where there are several."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("nodes",))
    rows, same = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(axis)) for axis in ("nodes", None))
    total = jax.jit(lambda vectors: vectors.sum(axis=0), out_shardings=same)
    return lambda mine: np.asarray(total(jax.make_array_from_process_local_data(rows, mine[None])))


def tell(step: int, loss: float, world: int, rank: int) -> None:
    """One line for each step of the job."""
    if rank == 0:
        about = {"job": os.environ.get("TRAINING_JOB_NAME"), "round": int(os.environ.get("TRAINMASTER_ROUND", "0"))}
        print(json.dumps({"step": step, "loss": round(loss, 9), "world": world, **about}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
