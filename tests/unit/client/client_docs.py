"""The examples of docs/how-to/submit-from-the-sdk.md, to be run as they stand but for account, bucket and role."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from client_world import ROLE

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "submit-from-the-sdk.md"
SECONDS = 240
HEADINGS = ("SDK 2: estimators", "SDK 3: ModelTrainer", "Plain boto3", "Ask before you submit")


def example(heading: str, bucket: str = "my-bucket") -> str:
    """The one example under a heading of the page."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return replaced(str(code), bucket)


def replaced(code: str, bucket: str) -> str:
    """The code with the tests' role and a bucket of theirs."""
    return code.replace("arn:aws:iam::111122223333:role/training", ROLE).replace("my-bucket", bucket)


def blocks(page: str) -> list[str]:
    """The Python examples of a page, as they stand."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def run_as_program(code: str, folder: Path) -> str:
    """Run an example as a program from the checkout, as its reader does; gives all that it prints."""
    path = folder / "example.py"
    path.write_text(code)
    ran = subprocess.run([sys.executable, path], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def run(code: str) -> dict[str, Any]:
    """Run an example as a script; gives its variables."""
    variables: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, str(PAGE), "exec"), variables)
    return variables
