"""Elastic training script: resumes from its checkpoint in any world, with the same batches and the same result.

    python examples/elastic_ddp.py                             # one process, by hand
    torchrun --nproc-per-node=2 examples/elastic_ddp.py        # two processes on this machine
    ContainerEntrypoint: ["trainmaster-run"], ContainerArguments: ["elastic_ddp.py"]   # in a training job

It trains a small network on synthetic data, on CPU. Rank 0 prints one line of JSON for each step.
"""

import json
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from trainmaster.worker import training
from trainmaster.worker.batch import Order, part_of
from trainmaster.worker.checkpoints.checkpoints import CheckpointId, Checkpoints

STEPS = int(os.environ.get("SM_HP_STEPS", "200"))
BATCH = int(os.environ.get("SM_HP_BATCH", "30"))  # samples per step for the whole world, whatever its size
SAMPLES = int(os.environ.get("SM_HP_SAMPLES", "1000"))
SECONDS_PER_STEP = float(os.environ.get("SM_HP_SECONDS", "0"))  # for one process; several processes divide it
SAVE_EVERY = int(os.environ.get("SM_HP_SAVE_EVERY", "50"))
# A directory that all containers share, or s3://bucket/prefix. CheckpointConfig serves one container at a time.
CHECKPOINTS = os.environ.get("SM_HP_CHECKPOINTS")


def main() -> None:
    """Join the process group if torchrun started this process, then train."""
    if "RANK" in os.environ:
        dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    try:
        train()
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def train() -> None:
    """Resume from the newest checkpoint and train until all steps are done."""
    rank, world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    saved = training.checkpoints(CHECKPOINTS)
    inputs, targets = data()
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
    momenta = [torch.zeros_like(weights) for weights in net.parameters()]
    training.requests()  # enrolls: from now on a resize waits until this process has saved
    done = resume(saved, net, momenta)
    model = DistributedDataParallel(net) if dist.is_initialized() else net
    order, part = Order(samples=SAMPLES, batch=BATCH, seed=1), part_of(BATCH, world, rank)
    for step in range(done + 1, STEPS + 1):
        time.sleep(SECONDS_PER_STEP / world)
        mine = order.at(step - 1)[part.start : part.start + part.size]
        loss = torch.nn.functional.mse_loss(model(inputs[mine]), targets[mine]) * float(part.weight)
        net.zero_grad()
        loss.backward()
        descend(net, momenta)
        log_step(step, mean(loss), world, rank)
        training.progress(step)  # the queue learns how much faster the job is on more instances
        requested = training.checkpoint_requested()
        if requested or step == STEPS or step % SAVE_EVERY == 0:
            save(saved, step, net, momenta, rank)
        if requested:
            training.checkpoint_saved()  # the world changes now, and this script restarts in the next one


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same synthetic samples in every process."""
    numbers = torch.Generator().manual_seed(7)
    inputs = torch.randn(SAMPLES, 4, generator=numbers, dtype=torch.float64)
    return inputs, inputs.sin().sum(dim=1, keepdim=True)


def mean(loss: torch.Tensor) -> float:
    """Return the loss over the whole batch; the weights make the average of the ranks exact."""
    total = loss.detach().clone()
    if dist.is_initialized():
        dist.all_reduce(total)
        total /= dist.get_world_size()
    return float(total)


@torch.no_grad()
def descend(net: torch.nn.Module, momenta: list[torch.Tensor]) -> None:
    """Apply gradient descent with momentum, without torch.optim, whose import adds seconds to every restart."""
    for weights, momentum in zip(net.parameters(), momenta, strict=True):
        momentum.mul_(0.9).add_(weights.grad)
        weights.sub_(0.05 * momentum)


def resume(saved: Checkpoints, net: torch.nn.Module, momenta: list[torch.Tensor]) -> int:
    """Load the checkpoint that rank 0 finds, since others may not see it yet, and return the number of steps done."""
    checkpoint = saved.latest()
    if dist.is_initialized():
        values = torch.tensor([checkpoint.attempt, checkpoint.round, checkpoint.step] if checkpoint else [0, 0, 0])
        dist.broadcast(values, src=0)
        checkpoint = CheckpointId(*values.tolist()) if values[0] else None
    if checkpoint is None:
        return 0
    with saved.reading(checkpoint) as directory:
        state = torch.load(directory / "state.pt", weights_only=True)
    net.load_state_dict(state["net"])
    for here, there in zip(momenta, state["momenta"], strict=True):
        here.copy_(there)
    return checkpoint.step


def save(saved: Checkpoints, step: int, net: torch.nn.Module, momenta: list[torch.Tensor], rank: int) -> None:
    """Write the checkpoint on rank 0; the write fails if a newer world has formed meanwhile."""
    if rank == 0:
        with saved.writing(step) as directory:
            torch.save({"net": net.state_dict(), "momenta": momenta}, directory / "state.pt")


def log_step(step: int, loss: float, world: int, rank: int) -> None:
    """Print one line of JSON for a step, on rank 0."""
    if rank == 0:
        fields = {"job": os.environ.get("TRAINING_JOB_NAME"), "round": int(os.environ.get("TRAINMASTER_ROUND", "0"))}
        print(json.dumps({"step": step, "loss": round(loss, 9), "world": world, **fields}), flush=True)


if __name__ == "__main__":
    main()
