"""A manifest's command below real torchrun: the launch script lets the processes of two hosts find each other."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.client.hyperpod.manifest import convert_manifest

BASE = {"RoleArn": "r", "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"}}
HOSTS = ("127.0.0.1", "localhost")
TRAIN = """
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
# In one call, since both processes of a host write to one pipe.
os.write(1, f"result {dist.get_rank()} {dist.get_world_size()} {int(total)}\\n".encode())
dist.destroy_process_group()
"""


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def start(home: Path, host: str, uploads: dict[str, str], environment: dict[str, str]) -> subprocess.Popen[str]:
    channel = home / "input/data/trainmaster-command"
    channel.mkdir(parents=True)
    (home / "input/config").mkdir()
    config = {"current_host": host, "hosts": HOSTS, "network_interface_name": "lo"}
    (home / "input/config/resourceconfig.json").write_text(json.dumps(config))
    for uri, text in uploads.items():
        (channel / uri.rpartition("/")[2]).write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"PATH": path, "TRAINING_JOB_NAME": "llama", "OMP_NUM_THREADS": "1"}
    command = ["/bin/sh", str(channel / "run.sh")]
    return subprocess.Popen(command, env=own | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize(
    "launcher",
    [pytest.param("torchrun", marks=pytest.mark.slow), "hyperpodrun --server-log-level warning --inprocess-restart"],
)
def test_processes_of_all_hosts_form_one_world(tmp_path, launcher):
    (tmp_path / "train.py").write_text(TRAIN)
    container = {
        "image": "image:1",
        "command": ["/bin/sh", "-c", f"{launcher} --nproc_per_node=2 --nnodes=$NNODES {tmp_path}/train.py"],
        "env": [{"name": "MASTER_PORT", "value": str(free_port())}],
    }
    specs = [{"replicas": 2, "template": {"spec": {"containers": [container]}}}]
    job = {"apiVersion": "sagemaker.amazonaws.com/v1", "kind": "HyperPodPytorchJob", "metadata": {"name": "llama"}}
    made = convert_manifest(job | {"spec": {"replicaSpecs": specs}}, BASE)
    started = [start(tmp_path / host, host, dict(made.uploads), made.request["Environment"]) for host in HOSTS]
    outputs = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], outputs
    found = [sorted(line for line in output.splitlines() if line.startswith("result")) for output in outputs]
    assert found == [["result 0 4 10", "result 1 4 10"], ["result 2 4 10", "result 3 4 10"]]
