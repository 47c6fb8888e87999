"""Writes docs/reference/cli.md from the command line's own help texts; `--check` only says whether it is up to date.

It takes names, texts and defaults from the commands, not the help as typer lays it out, which changes with typer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from trainmaster.cli.common.exit_codes import MEANINGS
from trainmaster.cli.main import build

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
_NOT_OURS = {"help", "install_completion", "show_completion"}
_HEAD = """\
# The command line

<!-- Written by scripts/cli_reference.py from the help texts: change those, then run it again. -->

`pip install trainmaster` installs the program `trainmaster`; `python -m trainmaster` is the same.

- **Where the queue is** comes from `--api-url`, else from `TRAINMASTER_API_URL`, else from the outputs `ApiUrl` and
  `ApiId` of the CloudFormation stack that `--stack` or `TRAINMASTER_STACK` names (`trainmaster` where neither does).
  Given on the command line, `--stack` goes before the variable. Behind a VPC endpoint's own host name the API's id is
  needed, too: `--api-id` or `TRAINMASTER_API_ID`.
- **Who you are** comes from the AWS credentials of your environment, as for the AWS CLI; `--profile` and `--region`
  choose others. Requests are signed (Signature Version 4); your identity needs `execute-api:Invoke`.
- **Output** goes to standard output; errors, warnings and progress go to standard error. `--json` prints the API's
  own answer; for a HyperPod manifest with `notHonoured`, a list of `field` and `why`. Colours appear on a terminal
  only, and not where `NO_COLOR` is set.
- **Completion** for your shell: `trainmaster --install-completion`.
"""


def page() -> str:
    """The whole page."""
    root: Any = get_command(build())
    parts = [
        _HEAD,
        "## Exit codes",
        "\n".join(_exit_codes()),
        "## Global options",
        "They stand before or behind the command.",
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
    names = [f"{param.metavar}{'...' if param.nargs < 0 else ''}" for param in arguments]
    usage = " ".join([path, "[OPTIONS]", *names])
    return [f"## {path}", f"```text\n{usage}\n```", command.help, _arguments(command), _options(command)]


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
    shown = option.default is not None and not isinstance(option.default, bool | list | tuple)
    return f"{option.help} Default: {option.default}." if shown else option.help


def _table(heading: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    lines = [f"| `{name}` | {text.replace('|', chr(92) + '|')} |" for name, text in rows]
    return "\n".join([f"| {heading} | Meaning |", "|---|---|", *lines])


def main() -> None:
    """Write the page, or check it."""
    if "--check" in sys.argv[1:]:
        sys.exit(None if PAGE.read_text() == page() else f"{PAGE.name} is out of date: run scripts/cli_reference.py")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
