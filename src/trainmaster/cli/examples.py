"""Examples of each command, which its help ends with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "submit": (
        "submit job.json --priority 5",
        "submit job.json --option share=vision --option deadline=2030-01-31T12:00:00Z --wait",
        "submit job.yaml --with defaults.json",
        "submit job.json --resources accelerators=8 --instances 2",
    ),
    "ls": (
        "ls --mine",
        "ls --prefix bert- --all",
        "ls --state running,starting --pool ml.p5.48xlarge",
        "ls --all --since 2d -o csv",
    ),
    "show": ("show job1", "show job1 -o yaml"),
    "why": ("why job1",),
    "logs": ("logs job1 --follow", "logs job1 --attempt 2 --tail 100"),
    "wait": ("wait job1 job2 --timeout 3600",),
    "cancel": ("cancel job1 job2",),
    "hold": ("hold job1",),
    "release": ("release job1",),
    "resized": ("resized job1 --token 1f0c --done 4", "resized job1 --token 1f0c --refused 'no checkpoint yet'"),
    "purge": ("purge job1",),
    "priority": ("priority job1 10", "priority job1 -5"),
    "scale": ("scale job1 --max 8", "scale job1 --min 2 --max 4"),
    "audit": ("audit --since 1d --action settings", "audit --job job1 --who ann"),
    "export": ("export > queue.json",),
    "import": ("import queue.json --dry-run",),
    "pause": ("pause --reason 'restore of the table'",),
    "resume": ("resume",),
    "restore": ("restore --dry-run",),
    "version": ("version",),
    "doctor": ("doctor", "doctor --try --instance-type ml.m5.large"),
    "deploy": (
        "deploy",
        "deploy --config queue.yaml --dry-run",
        "deploy --yes --parameter LogLevel=DEBUG",
    ),
    "upgrade": ("upgrade", "upgrade --yes --json"),
    "uninstall": ("uninstall", "uninstall --confirm trainmaster"),
    "exec": (
        "exec -- aws sagemaker create-training-job --cli-input-json file://job.json",
        "exec --priority 5 --option share=vision -- accelerate launch train.py",
    ),
    "console": ("console", "console --read-only --port 8642 --no-browser"),
    "exporter": ("exporter", "exporter --board > grafana.json"),
    "plan": ("plan job.json --priority 5",),
    "sweep": ("sweep submit job.json --integer layers=2:8 --strategy grid", "sweep show sweep7"),
    "sweep submit": (
        "sweep submit tuning-job.json --strategy random",
        "sweep submit job.json --continuous lr=0.0001:0.1:log --categorical optimizer=adam,sgd --trials 20",
        "sweep submit job.json --integer layers=2:8 --strategy grid --max-concurrent 4 --minimize validation:loss",
    ),
    "sweep show": ("sweep show sweep7", "sweep show sweep7 -o csv"),
    "sweep cancel": ("sweep cancel sweep7",),
    "pools": ("pools", "pools --wide"),
    "pools set": (
        "pools set ml.p5.48xlarge=4 ml.g5.2xlarge=8",
        "pools set spot-p5=2 --type ml.p5.48xlarge --kind spot",
    ),
    "pools drain": ("pools drain ml.p5.48xlarge --wait",),
    "pools resume": ("pools resume ml.p5.48xlarge",),
    "pools remove": ("pools remove ml.g5.2xlarge",),
    "schedule": ("schedule --from 6h --to +1d", "schedule --pool ml.p5.48xlarge -o csv"),
    "shares": ("shares", "shares -o csv"),
    "usage": ("usage --from 30d", "usage --from 2030-01-01 --to 2030-02-01 --by user --csv"),
    "top": ("top", "top --interval 2"),
    "settings": ("settings", "settings --json > settings.json"),
    "settings set": ("settings set order=fair preemption.minRuntimeSeconds=600", "settings set settings.json"),
    "settings unset": ("settings unset preemption.minRuntimeSeconds",),
    "settings replay": ("settings replay settings.json", "settings replay settings.json --days 14 --json"),
    "settings schema": ("settings schema > schema.json",),
}


def add_examples(path: str, command: Any) -> None:
    """End the help of a command, and of those below it, with their examples."""
    if (lines := EXAMPLES.get(path)) is not None:
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  trainmaster {line}" for line in lines)
    for name, below in getattr(command, "commands", {}).items():
        add_examples(f"{path} {name}", below)
