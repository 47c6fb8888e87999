"""Usage errors in two lines: what is wrong and the nearest that exists, then where the help is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import typer

# typer has its own copy of click in some versions: the base is that of its own error.
UsageError = cast("type[Exception]", typer.BadParameter.__base__)

_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("delete", "rm", "remove", "del", "kill", "stop", "scancel", "abort", "down", "qdel"), "cancel"),
    **dict.fromkeys(("get", "list", "squeue", "queue", "q", "status", "ps", "jobs", "qstat", "sacct"), "ls"),
    **dict.fromkeys(("describe", "info", "inspect", "view", "scontrol", "details"), "show"),
    **dict.fromkeys(
        ("run", "create", "sbatch", "srun", "launch", "add", "start", "apply", "qsub", "enqueue"), "submit"
    ),
    **dict.fromkeys(("tail", "log", "follow", "output"), "logs"),
    **dict.fromkeys(("explain", "reason", "diagnose"), "why"),
    **dict.fromkeys(("watch", "join"), "wait"),
    **dict.fromkeys(("sinfo", "nodes", "capacity", "instances", "quota", "quotas"), "pools"),
    **dict.fromkeys(("config", "configure", "policy", "policies", "limits"), "settings"),
    **dict.fromkeys(("requeue", "resubmit", "retry"), "submit --resubmit"),
    **dict.fromkeys(("prio", "renice", "nice"), "priority"),
    **dict.fromkeys(("suspend", "freeze"), "hold"),
    **dict.fromkeys(("unhold", "unfreeze", "unsuspend"), "release"),
    **dict.fromkeys(("forecast", "estimate", "simulate", "dry-run"), "plan"),
    **dict.fromkeys(("history", "events"), "audit"),
    **dict.fromkeys(("backup", "dump"), "export"),
    "update": "priority",
}
"""Commands of other tools (squeue, kubectl, sky, the AWS CLI), and those here that do the same."""
_ELSEWHERE_BELOW: Final[Mapping[str, Mapping[str, str]]] = {
    "pools": {
        **dict.fromkeys(("add", "create", "update", "put", "apply", "scale", "new", "change", "edit"), "pools set"),
        **dict.fromkeys(("delete", "rm", "del", "unset"), "pools remove"),
        **dict.fromkeys(("ls", "list", "show", "get", "describe", "status"), "pools"),
        **dict.fromkeys(("cordon", "pause", "disable", "close"), "pools drain"),
        **dict.fromkeys(("uncordon", "enable", "open", "undrain"), "pools resume"),
    },
    "settings": {
        **dict.fromkeys(("get", "ls", "list", "show", "view", "describe", "status"), "settings"),
        **dict.fromkeys(("add", "update", "put", "apply", "edit", "change"), "settings set"),
        **dict.fromkeys(("delete", "rm", "remove", "reset", "del"), "settings unset"),
    },
}
_OPTIONS_ELSEWHERE: Final[Mapping[str, str]] = {
    "--from": "--since",
    "--since": "--from",
    "--to": "--until",
    "--until": "--to",
    "--status": "--state",
    "--watch": "--follow",
    "--user": "--mine",
    "--me": "--mine",
    "--format": "--output",
    "--count": "--instances",
    "--nodes": "--instances",
    "--nice": "--priority",
    "--dry-run": "`trainmaster plan`",
    "--endpoint-url": "--api-url",
    "-n": "--tail",
    "-p": "--priority",
}
_TYPES: Final[Mapping[str, str]] = {"int": "a whole number", "float": "a number", "bool": "true or false"}
_BOUNDS: Final = {
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
    "greater_than": ("gt", "more than"),
    "less_than": ("lt", "less than"),
}
_PAIR: Final = 2
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_QUOTED: Final = re.compile(r"'([^']*)'")


def usage_lines(error: Any, arguments: Sequence[str] = (), commands: Collection[str] = ()) -> str:
    """Return the lines of a usage error of click, given the arguments and the commands of the program."""
    context = getattr(error, "ctx", None)
    command = next((word for word in arguments if word in commands), "")
    path = context.command_path if context is not None else f"trainmaster {command}".strip()
    message = _message(error, context, path, arguments).rstrip(". ")
    return f"{message}{'' if message.endswith('?') else '.'}\nSee `{path} --help`."


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that the given one may be a misspelling of; None if none is near."""
    from trainmaster.domain.requests.fields import did_you_mean

    return did_you_mean(word, known)


def _message(error: Any, context: Any, path: str, arguments: Sequence[str]) -> str:
    kind, message = type(error).__name__, str(error.message)
    if kind in ("NoSuchOption", "BadOptionUsage"):
        return _option_message(error, context, path)
    if kind in ("NoSuchCommand", "UsageError") and message.startswith("No such command"):
        found = _QUOTED.search(message)
        return _command_message(found[1] if found else "", context, path, arguments)
    if kind == "UsageError" and "extra argument" in message:
        extra = message.rpartition("(")[2].rstrip(")")
        return f"{extra} is too much: use `{_synopsis(context)}`"
    if kind == "MissingParameter" and error.param is not None:
        return f"{_name(error)} is missing: use `{_synopsis(context)}`"
    if kind == "BadParameter" or getattr(error, "param", None) is not None:
        return _swapped(error, context, arguments) or _value_message(error)
    return message


def _swapped(error: Any, context: Any, arguments: Sequence[str]) -> str | None:
    """Return the message for two arguments of which each is given where the other belongs; None if they are not."""
    if context is None or getattr(error, "param", None) is None:
        return None
    forms = [param for param in context.command.params if param.param_type_name == "argument"]
    details: list[Any] = getattr(error.__cause__, "errors", list)()
    is_number = bool(details) and details[0]["type"].startswith("int_")
    if len(forms) != _PAIR or error.param is not forms[1] or not is_number:
        return None
    words = [*arguments]
    at = next((at for at in range(len(words) - 1) if words[at + 1] == str(details[0]["input"])), None)
    if at is None or _WHOLE.fullmatch(words[at]) is None:
        return None
    right = f"{context.command_path} {words[at + 1]} {words[at]}"
    return f"{_form(forms[0])} and {_form(forms[1])} are swapped: use `{right}`"


def _command_message(word: str, context: Any, path: str, arguments: Sequence[str]) -> str:
    """Return the message for a word that is no command, with the one that is meant if it can be told."""
    group = path.partition(" ")[2]
    known = [*context.command.commands]
    same = _ELSEWHERE_BELOW.get(group, {}) if group else _ELSEWHERE
    meant = same.get(word.lower())
    if not group and len(words := word.lower().split("-")) > 1 and meant is None:
        meant = same.get(words[0])  # `list-jobs`, `create-training-job`
    if not group and meant is not None:
        meant = _of_object(word, meant, arguments)
    if meant is None:
        near = nearest(word, known)
        meant = f"{group} {near}".strip() if near else None
    guess = f" Did you mean `trainmaster {meant}`?" if meant else f" The commands are: {', '.join(known)}"
    return f"There is no command {word!r}{' of ' + group if group else ''}.{guess}"


def _of_object(word: str, meant: str, arguments: Sequence[str]) -> str:
    """Return the command for `get pools` or `delete pool`, where the word before it is meant for jobs else."""
    behind = arguments[arguments.index(word) + 1 :] if word in arguments else ()
    objects = [each.lower().rstrip("s") for each in behind if not each.startswith("-")]
    for group in ("pool", "setting"):
        if objects[:1] == [group]:
            return _ELSEWHERE_BELOW[f"{group}s"].get(word.lower(), f"{group}s")
    one = objects[1:] if objects[:1] == ["job"] else objects
    return "show" if meant == "ls" and one else meant


def _option_message(error: Any, context: Any, path: str) -> str:
    name, message = str(error.option_name), str(error.message)
    if "does not take a value" in message:
        return f"{name} takes no value: omit what follows its ="
    if "requires an argument" in message:
        return f"{name} needs a value: {_value_form(context, name)}"
    own = [each for param in context.command.params for each in param.opts if each.startswith("-")]
    if name in ("--name", "--job-name", "--job", "--training-job-name") and (form := _argument(context)):
        return f"{path.partition(' ')[2]} has no option {name}. Give the value without it: `{path} {form}`"
    if path.endswith(" export") and name in ("-o", "--output", "-f", "--file"):
        return f"export has no option {name}. It writes to standard output: `{path} > FILE`"
    if name == "--all" and _argument(context):
        return f"{path.partition(' ')[2]} has no option --all. Give each name; `trainmaster ls` lists them"
    if _is_of_a_command(name, context):
        return f"{name} is an option of commands. Give it after the command: `{path} COMMAND {name}`"
    same = _OPTIONS_ELSEWHERE.get(name)
    meant = same if same in own or (same or "").startswith("`") or same == "--api-url" else _near_option(name, own)
    guess = f" Did you mean {meant}?" if meant else ""
    return f"{path.partition(' ')[2] or path} has no option {name}.{guess}"


def _is_of_a_command(name: str, context: Any) -> bool:
    """Return whether the option, which the program itself does not have, is one of its commands'."""
    commands = context.command.commands.values() if context.parent is None else ()
    return any(name in param.opts for command in commands for param in command.params)


def _near_option(name: str, own: Sequence[str]) -> str | None:
    """Return the option that the name begins or misspells; one letter is no misspelling."""
    begun = [each for each in own if name.startswith("--") and each.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    bare = {each.lstrip("-"): each for each in own if each.startswith("--")}
    near = nearest(name.lstrip("-"), bare) if len(name) > len("-x") else None
    return bare[near] if near else None


def _value_form(context: Any, name: str) -> str:
    params = context.command.params if context is not None else []
    metavar = next((param.metavar for param in params if name in param.opts and param.metavar), None)
    return f"{name} {metavar or 'VALUE'}"


def _value_message(error: Any) -> str:
    """Return the message for a value of the wrong type or outside its bounds, with the value."""
    name, message = _name(error), str(error.message).removeprefix("Value error, ")
    details: list[Any] = getattr(error.__cause__, "errors", list)()
    if details and details[0]["type"] != "value_error":
        return _typed_message(name, details[0], getattr(getattr(error, "param", None), "metavar", None))
    if (found := re.fullmatch(r"'(.*)' is not one of (.*?)\.?", message, re.DOTALL)) is not None:
        known = _QUOTED.findall(found[2])
        meant = nearest(found[1], known)
        return f"{name} is {found[1]!r}.{f' Did you mean {meant}?' if meant else ''} Use one of {', '.join(known)}"
    return message if name.strip(".") in message else f"{name}: {message}"


def _typed_message(name: str, detail: Mapping[str, Any], metavar: str | None) -> str:
    form = next((text for kind, text in _TYPES.items() if detail["type"].startswith(kind)), None)
    if form is None and detail["type"] in _BOUNDS:
        member, text = _BOUNDS[detail["type"]]
        bound = detail["ctx"][member]
        form = f"{text} {bound:,}" if isinstance(bound, int) else f"{text} {bound:g}"
    elif form is not None and metavar == "SECONDS":
        form = f"{form} of seconds"
    return f"{name} is {detail['input']!r}: it must be {form or detail['msg']}"


def _name(error: Any) -> str:
    """Return how the user writes the option or the argument that is wrong; empty if the error names none."""
    hint, param = getattr(error, "param_hint", None), getattr(error, "param", None)
    if isinstance(hint, str):
        return hint.strip("'")
    if param is None:
        return ""
    long = [each for each in param.opts if each.startswith("--")]
    return long[0] if long else str(param.human_readable_name if not param.metavar else param.metavar)


def _argument(context: Any) -> str:
    """Return the arguments of a command as its help has them; empty if it has none."""
    arguments = [param for param in context.command.params if param.param_type_name == "argument"]
    return " ".join(_form(each) for each in arguments)


def _form(argument: Any) -> str:
    name = argument.metavar or argument.human_readable_name
    return f"{name} [{name} ...]" if argument.nargs == -1 and "..." not in name else name


def _synopsis(context: Any) -> str:
    required = [param for param in context.command.params if param.required and param.param_type_name == "option"]
    options = " ".join(f"{param.opts[-1]} {param.metavar or param.human_readable_name}" for param in required)
    argument = _argument(context)
    rest = [f"{options} [OPTIONS]".strip(), argument] if argument.startswith("--") else [argument, options, "[OPTIONS]"]
    return " ".join(filter(None, [context.command_path, *rest]))
