"""Elastic training script for JAX: the same batches and the same result in any world, without torch.

    python examples/elastic_jax.py                             # one process, by hand
    ContainerEntrypoint: ["trainmaster-run"],
    ContainerArguments: ["--launcher", "none", "elastic_jax.py"]   # in a training job with members

JAX processes cannot change their world, and end with the process of rank 0. So each node runs this script in two roles:
the owner takes part in the rendezvous and never imports JAX; for each world, the owner starts a process that trains.
The script fits a line to synthetic data, on CPU. Rank 0 prints one line of JSON for each step.
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
from trainmaster.worker.checkpoints.checkpoints import CheckpointId
from trainmaster.worker.checkpoints.notices import Notices, Reason
from trainmaster.worker.checkpoints.stop_grace import StopGrace
from trainmaster.worker.container.processes import die_with_parent
from trainmaster.worker.container.restart_budget import RestartBudget
from trainmaster.worker.rendezvous.errors import Closed, Drained
from trainmaster.worker.rendezvous.state import DONE

STEPS = int(os.environ.get("SM_HP_STEPS", "200"))
BATCH = int(os.environ.get("SM_HP_BATCH", "30"))  # samples per step for the whole world, whatever its size
SAMPLES = int(os.environ.get("SM_HP_SAMPLES", "1000"))
SECONDS_PER_STEP = float(os.environ.get("SM_HP_SECONDS", "0"))
SAVE_EVERY = int(os.environ.get("SM_HP_SAVE_EVERY", "50"))
# A directory that all containers share, or s3://bucket/prefix. CheckpointConfig serves one container at a time.
CHECKPOINTS = os.environ.get("SM_HP_CHECKPOINTS")


def main() -> int:
    """Train; or, as the first process on a node of an elastic job, own that node."""
    if os.environ.get("TRAINMASTER_RUN") and "COORDINATOR" not in os.environ:
        return own_node()
    train()
    return 0


# ---------------------------------------------------------------- the owner of a node


def own_node() -> int:
    """Join one world after another, run a training process in each, and return the exit code of this node."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    notices, budget = (
        Notices.from_environment(os.environ) or Notices.create(),
        RestartBudget.from_environment(os.environ),
    )
    with Rendezvous.from_environment() as rendezvous:  # leaves at the end; the other nodes continue
        try:
            while True:
                world = rendezvous.next()
                reason = budget.exhausted_reason(rendezvous.engine.state, time.time())
                if reason is not None:
                    notices.fail_job(reason)
                    rendezvous.close(reason)
                    return 1
                grace = StopGrace(notices, time.monotonic)
                code = run(world, notices, lambda grace=grace: should_end(rendezvous, grace))
                if code == 0:
                    rendezvous.close()
                if code == 0 or grace.container_stop_expired() is not None:
                    return 0
        except Drained:
            return 0
        except Closed as closed:
            if closed.reason == DONE:
                return 0
            notices.fail_job(closed.reason)
            return 1


def run(world: World, notices: Notices, is_over: Callable[[], bool]) -> int:
    """Train in this world until the process or the world ends; return 0 once all steps are done."""
    host, port = world.coordinator
    variables = {
        "COORDINATOR": f"{host}:{port}",
        "RANK": str(world.rank),
        "WORLD_SIZE": str(world.size),
        "TRAINMASTER_ROUND": str(world.round),
        "TRAINMASTER_NOTICES": str(notices.directory),
    }
    process = subprocess.Popen([sys.executable, __file__], env={**os.environ, **variables})  # noqa: S603  # itself
    try:
        while process.poll() is None and not is_over():
            time.sleep(0.1)
    finally:
        # Not SIGTERM: JAX intercepts it. The checkpoint is already saved.
        process.kill()
        process.wait()
    return process.returncode


def should_end(rendezvous: Rendezvous, grace: StopGrace) -> bool:
    """Return True to end the process: at once if its world is lost; before a resize or a stop, once it has saved."""
    stopped = grace.container_stop_expired()
    if stopped is not None:
        return stopped
    status = rendezvous.status()
    if status.closed is not None:
        return status.closed != DONE
    if status.drain or status.resize:
        return grace.expired(Reason.DRAIN if status.drain else Reason.RESIZE, status.grace)
    return status.rejoin


# ---------------------------------------------------------------- the process that trains


def train() -> None:
    """Join the world, if there is one, and train from the newest checkpoint until all steps are done."""
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    rank, world = meet(jax)
    saved = training.checkpoints(CHECKPOINTS)
    training.requests()  # enrolls: from now on a resize waits until this process has saved
    checkpoint = saved.latest()
    # All ranks use the checkpoint that rank 0 finds, since not all ranks may see it yet.
    values = np.array([checkpoint.attempt, checkpoint.round, checkpoint.step] if checkpoint else [0, 0, 0])
    checkpoint = CheckpointId(*multihost_utils.broadcast_one_to_all(values).tolist())
    weights = np.zeros(5)
    if checkpoint.attempt:
        with saved.reading(checkpoint) as directory:
            weights = np.load(directory / "weights.npy")
    inputs, targets = data(np)
    gradient, total = jax.jit(jax.value_and_grad(squares)), summed(jax, np)
    order, part = Order(samples=SAMPLES, batch=BATCH, seed=1), part_of(BATCH, world, rank)
    for step in range(checkpoint.step + 1, STEPS + 1):
        time.sleep(SECONDS_PER_STEP / world)
        mine = order.at(step - 1)[part.start : part.start + part.size]
        loss, slope = gradient(weights, inputs[mine], targets[mine])
        loss, *slope = total(np.array([loss, *slope])) / BATCH
        weights = weights - 0.1 * np.array(slope)
        log_step(step, float(loss), world, rank)
        training.progress(step, instances=world)  # the queue learns how much faster the job is on more instances
        requested = training.checkpoint_requested()
        if rank == 0 and (requested or step == STEPS or step % SAVE_EVERY == 0):
            with saved.writing(step) as directory:  # fails if a newer world has formed meanwhile
                np.save(directory / "weights.npy", weights)
        if requested:
            training.checkpoint_saved()  # the world changes now, and this script restarts in the next one
    multihost_utils.sync_global_devices("done")  # one process that ends stops all others: wait until all have saved
    jax.distributed.shutdown()


def meet(jax: Any) -> tuple[int, int]:
    """Join the world of this node's owner, and return the rank and the world size."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)  # noqa: FBT003  # the signature of JAX
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
        shutdown_timeout_seconds=10,  # a failed process must not wait long for the others
    )
    return rank, world


def data(np: Any) -> tuple[Any, Any]:
    """Return the same synthetic samples in every process."""
    numbers = np.random.default_rng(7)
    inputs = numbers.normal(size=(SAMPLES, 5))
    return inputs, inputs @ np.arange(1.0, 6.0) + numbers.normal(scale=0.1, size=SAMPLES)


def squares(weights: Any, inputs: Any, targets: Any) -> Any:
    """Return the squared error as a sum, so that parts of a batch may differ in size."""
    return ((inputs @ weights - targets) ** 2).sum()


def summed(jax: Any, np: Any) -> Callable[[Any], Any]:
    """Return a function that sums a vector over all processes with an all-reduce."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("nodes",))
    rows, same = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(axis)) for axis in ("nodes", None))
    total = jax.jit(lambda vectors: vectors.sum(axis=0), out_shardings=same)
    return lambda mine: np.asarray(total(jax.make_array_from_process_local_data(rows, mine[None])))


def log_step(step: int, loss: float, world: int, rank: int) -> None:
    """Print one line of JSON for a step, on rank 0."""
    if rank == 0:
        fields = {"job": os.environ.get("TRAINING_JOB_NAME"), "round": int(os.environ.get("TRAINMASTER_ROUND", "0"))}
        print(json.dumps({"step": step, "loss": round(loss, 9), "world": world, **fields}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
