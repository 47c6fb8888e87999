"""Sentences of the API in the words of the command line: commands for routes, options for tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_COMMANDS: Final[Mapping[str, str]] = {
    "GET /openapi.json": "the reference of the API",
    "GET /jobs": "`trainmaster ls`",
    "GET /pools": "`trainmaster pools`",
    "GET /settings": "`trainmaster settings`",
    "GET /manager": "`trainmaster version`",
    "PUT /pools": "`trainmaster pools set`",
    "PUT /settings": "`trainmaster settings set`",
    "PUT /pause": "`trainmaster pause`",
    "DELETE /pause": "`trainmaster resume`",
}
_ROUTE = re.compile("|".join(map(re.escape, _COMMANDS)))
_OPTION = re.compile(r"(?:(?:[Tt]he )?option )?'trainmaster:([^'\s]*)'")
_TAGGED = re.compile(r"tag it 'trainmaster:([^'\s]*)' = '([^'\s]*)'")
_PARAMETER = re.compile(r"`(since|until|from|to)`")
_LIST = re.compile(r"'[\w.=]+(?:\+[\w.=]+)+'")
"""A list in the form of a tag's value, where options take commas."""
_TAG, _GIVEN = "omit the tag", "omit the option"
_PREFIX = re.compile(r"trainmaster:(?=[a-z])")
"""Options of the queue that have one of the same name on the command line."""


def in_own_words(text: str) -> str:
    """Replace the API's routes and tags in a sentence by commands and options."""
    text = _ROUTE.sub(lambda found: _command(found[0], text[: found.start()]), text)
    text = _PARAMETER.sub(r"--\1", text)
    text = _TAGGED.sub(r"submit it with --option \1=\2", text)
    text = _PREFIX.sub("", _OPTION.sub(lambda found: _option(found[1]), text))
    if (found := _LIST.search(text)) is None:
        return text
    return text.replace(found[0], found[0].replace("+", ",")).replace("spaces or '+'", "commas").replace(_TAG, _GIVEN)


def _command(route: str, before: str) -> str:
    """Return the command for a route, with a capital at the beginning of a sentence."""
    command = _COMMANDS[route]
    return command[0].upper() + command[1:] if before.rstrip()[-1:] in ("", ".") else command


def _option(name: str) -> str:
    from trainmaster.cli.common.elastic_options import NAMES

    return f"--{name}" if name in {"resources", "instances", *NAMES} else f"--option {name}"
