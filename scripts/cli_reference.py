"""Writes docs/reference/cli.md from the help texts of the command line; `--check` only checks that it is up to date.

It reads names, texts and defaults from the commands rather than typer's help output, whose layout changes with typer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from trainmaster.cli.common.exit_codes import MEANINGS
from trainmaster.cli.examples import EXAMPLES
from trainmaster.cli.program import build

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
_NOT_OURS = {"help", "install_completion", "show_completion"}
_HEAD = """\
# The command line

<!-- Written by scripts/cli_reference.py from the help texts: change those, then run it again. -->

`pip install trainmaster` installs the program `trainmaster`; `python -m trainmaster` is the same.

- **Address:** `--api-url`, else `TRAINMASTER_API_URL`, else the outputs `ApiUrl` and `ApiId` of the CloudFormation
  stack named by `--stack` or `TRAINMASTER_STACK` (default: `trainmaster`). `--stack` takes precedence over
  `TRAINMASTER_API_URL`. If the URL has the host name of a VPC endpoint, also set the API ID with `--api-id` or
  `TRAINMASTER_API_ID`. An address without TLS (`http://`) is accepted only for this machine: `localhost`, 127.0.0.0/8
  and ::1.
- **Identity:** the AWS credentials of your environment, as for the AWS CLI; `--profile` and `--region` override them.
  The command line signs requests (Signature Version 4); your identity needs `execute-api:Invoke`.
- **Output:** results go to standard output; errors, warnings and progress go to standard error. `--json` prints the
  API's response; for a manifest, it includes `notHonored` and `uploads`. Colors appear only
  on a terminal, and not if `NO_COLOR` is set. In text, control characters of names and reasons become blanks; in JSON
  they are escaped.
- **Completion:** `trainmaster --install-completion` installs it for your shell.
"""


def page() -> str:
    """Return the whole page."""
    root: Any = get_command(build())
    parts = [
        _HEAD,
        "## Exit codes",
        "\n".join(_exit_codes()),
        "## Global options",
        "Global options are accepted before and after the command.",
        _options(root),
    ]
    parts += [part for path, command in _commands("trainmaster", root) for part in _section(path, command)]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _exit_codes() -> Iterator[str]:
    yield "| Code | Meaning |\n|---:|---|"
    yield from (f"| {int(code)} | {meaning} |" for code, meaning in MEANINGS.items())


def _commands(path: str, group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if hasattr(command, "commands"):
            yield from _commands(f"{path} {name}", command)


def _section(path: str, command: Any) -> list[str]:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    names = [f"{each.metavar}{'...' if each.nargs < 0 and '...' not in each.metavar else ''}" for each in arguments]
    usage = " ".join([path, "[OPTIONS]", *names])
    return [
        f"## {path}",
        f"```text\n{usage}\n```",
        command.help,
        _examples(path),
        _arguments(command),
        _options(command),
    ]


def _examples(path: str) -> str:
    examples = EXAMPLES.get(path.partition(" ")[2], ())
    return "\n".join(["```text", *(f"trainmaster {line}" for line in examples), "```"]) if examples else ""


def _arguments(command: Any) -> str:
    rows = [(param.metavar, param.help) for param in command.params if param.param_type_name == "argument"]
    return _table("Argument", rows)


def _options(command: Any) -> str:
    options = [p for p in command.params if p.param_type_name == "option" and p.name not in _NOT_OURS]
    return _table("Option", [(_spelling(option), _meaning(option)) for option in options])


def _spelling(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return f"{names} {option.metavar}" if option.metavar else names


def _meaning(option: Any) -> str:
    shown = option.show_default and option.default is not None and not isinstance(option.default, bool | list | tuple)
    return f"{option.help} Default: {option.default}." if shown else option.help


def _table(heading: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    lines = [f"| `{_escaped(name)}` | {_escaped(text)} |" for name, text in rows]
    return "\n".join([f"| {heading} | Meaning |", "|---|---|", *lines])


def _escaped(text: str) -> str:
    """Return the text for a cell: a bar would end it, also in code."""
    return text.replace("|", chr(92) + "|")


def main() -> None:
    """Write the page, or check it."""
    if "--check" in sys.argv[1:]:
        sys.exit(None if PAGE.read_text() == page() else f"{PAGE.name} is out of date: run scripts/cli_reference.py")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
