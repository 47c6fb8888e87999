"""Draw the picture of the README, `docs/images/queue.svg`, from a real run on the local stack.

It deploys the template to the stand-ins for AWS, submits six jobs with the installed command, and renders what
`trainmaster ls` and `trainmaster why` print on a terminal. Run it with the development environment's Python:
`.venv/bin/python scripts/readme_picture.py`.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from trainmaster.local.stack import LocalStack, StackAddress

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "images" / "queue.svg"
COLUMNS = 116
INSTANCES = {"ml.p5.48xlarge": 4, "ml.g5.2xlarge": 2}
Job = tuple[str, str, int, int, int]
"""Name, instance type, instances, priority, maximum run time in hours."""
JOBS: tuple[Job, ...] = (
    ("llm-pretrain", "ml.p5.48xlarge", 2, 1, 20),
    ("vision-finetune", "ml.p5.48xlarge", 2, 2, 6),
    ("embeddings", "ml.g5.2xlarge", 1, 0, 3),
    ("ablation-7", "ml.p5.48xlarge", 2, 1, 4),
    ("nightly-eval", "ml.p5.48xlarge", 1, 0, 1),
    ("hotfix-safety", "ml.p5.48xlarge", 2, 9, 2),
)
CHARACTER_WIDTH = 12.2
INDENTED = re.compile(r'(<text [^>]*x=")([\d.]+)("[^>]*textLength=")([\d.]+)("[^>]*>)((?:&#160;)+)')
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {terminal_width} {terminal_height}">
<style>
{styles}
text {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: {char_height}px; }}
</style>
<defs>{lines}</defs>
<rect width="100%" height="100%" rx="8" fill="#1b1f27"/>
<g transform="translate(8, 8)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def main() -> None:
    """Run the stack, submit the jobs, and write the picture."""
    with LocalStack(label="picture", limits=INSTANCES) as address:
        for job in JOBS:
            submit(address, job)
            time.sleep(3)
        time.sleep(10)
        draw([shown(address, *words) for words in (("ls",), ("why", "llm-pretrain"), ("why", "nightly-eval"))])


def submit(address: StackAddress, job: Job) -> None:
    """Submit a job as a user does."""
    name, kind, count, priority, hours = job
    request = json.loads((ROOT / "examples" / "job.json").read_text())
    request["TrainingJobName"] = name
    request["ResourceConfig"] |= {"InstanceType": kind, "InstanceCount": count}
    request["Environment"] = {"SIMULATOR_TRAINING_SECONDS": "600"}
    request["StoppingCondition"] = {"MaxRuntimeInSeconds": hours * 3600}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(request, file)
        file.flush()
        run(address, "submit", file.name, "--priority", str(priority))


def run(address: StackAddress, *words: str) -> None:
    """Run the command and raise if it fails."""
    command = [sys.executable, "-m", "trainmaster", *words]
    subprocess.run(command, env=os.environ | address.environment(), check=True, stdout=subprocess.DEVNULL)


def shown(address: StackAddress, *words: str) -> str:
    """Return what the command prints on a terminal, escape sequences included, below its prompt."""
    ours, theirs = pty.openpty()
    environment = os.environ | address.environment() | {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "trainmaster", *words]
    subprocess.run(command, env=environment, check=True, stdout=theirs, stderr=theirs)
    os.close(theirs)
    printed = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux reports the end of a pseudo-terminal as an error
            break
        if not part:
            break
        printed += part
    os.close(ours)
    return f"\x1b[1;32m$\x1b[0m \x1b[1mtrainmaster {' '.join(words)}\x1b[0m\n" + printed.decode().replace("\r\n", "\n")


def draw(parts: list[str]) -> None:
    """Write the parts, one below the other, as one picture."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    console.print(Text.from_ansi("\n".join(parts)))
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    drawn = console.export_svg(title="trainmaster", code_format=SVG, unique_id="queue")
    TARGET.write_text(re.sub(r"[ \t]+$", "", INDENTED.sub(unindented, drawn), flags=re.MULTILINE))


def unindented(text: re.Match[str]) -> str:
    """Return a text element without its leading spaces, placed where its first character is: some viewers drop them."""
    before, x, between, length, after, spaces = text.groups()
    shift = spaces.count("&#160;") * CHARACTER_WIDTH
    return f"{before}{float(x) + shift:g}{between}{float(length) - shift:g}{after}"


if __name__ == "__main__":
    main()
