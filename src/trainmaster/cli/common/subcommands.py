"""The group of a command that has commands of its own."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class Subcommands(TyperGroup):
    """Lists each command with the whole first line of its help, which click would cut."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with the first line of their help."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, (each.help or "").partition("\n")[0]) for name, each in self.commands.items()])
