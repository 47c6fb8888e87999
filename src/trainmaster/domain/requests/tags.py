"""Tags of a request: the priority and the `trainmaster:` options. Other tags pass unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from trainmaster.domain.errors import UnknownOption
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.requests.fields import Problem, did_you_mean, entries, part, repeated, shown, text
from trainmaster.domain.requests.options import OPTIONS, Option, Options, options_from
from trainmaster.domain.requests.tag_names import ATTEMPT_TAGS, OPTION_PREFIX, PRIORITY_TAG, SHARE_TAG

MAX_TAGS = 50
"""Tags of a training job (CreateTrainingJob, `Tags`); the queue adds its own, and the share's if the user gave none."""

# int() would also take spaces, underscores and the digits of other scripts, and raise on thousands of zeros.
_INTEGER = re.compile(r"[+-]?0{0,200}[0-9]{1,7}")


def options_of(request: Mapping[str, object]) -> Options:
    """Return the priority and the options of a request.

    Raises `InvalidRequest`, or `UnknownOption` for an option that does not exist, with the field `Tags[i].Key` or
    `Tags[i].Value`.
    """
    for problem in tag_problems(request):
        raise problem.refusal()
    tags = tag_values(request)
    texts = {name: tags[OPTION_PREFIX + name] for name in OPTIONS if OPTION_PREFIX + name in tags}
    return options_from(int(tags.get(PRIORITY_TAG) or 0), texts)


def gives(request: Mapping[str, object], name: str) -> bool:
    """Return whether a request has the option."""
    return any(text(tag, "Key") == OPTION_PREFIX + name for tag in entries(request, "Tags"))


def tag_values(request: Mapping[str, object]) -> dict[str, str]:
    """Return all tags of a request, values by key."""
    return {text(tag, "Key") or "": text(tag, "Value") or "" for tag in entries(request, "Tags")}


def option_in(request: Mapping[str, object], name: str) -> object | None:
    """Return the value of an option; None if the request does not have it or it is invalid."""
    tags = entries(request, "Tags")
    value = next((text(tag, "Value") for tag in tags if text(tag, "Key") == OPTION_PREFIX + name), None)
    return None if value is None else OPTIONS[name].read(value)


def option_field(request: Mapping[str, object], name: str) -> str:
    """Return the path of an option's value in a request; `Tags` if it does not have the option."""
    keys = [text(tag, "Key") for tag in entries(request, "Tags")]
    return f"Tags[{keys.index(OPTION_PREFIX + name)}].Value" if gives(request, name) else "Tags"


def priority_field(request: Mapping[str, object]) -> str:
    """Return the path of the priority's value in a request; `Tags` if it does not have the tag."""
    keys = [text(tag, "Key") for tag in entries(request, "Tags")]
    return f"Tags[{keys.index(PRIORITY_TAG)}].Value" if PRIORITY_TAG in keys else "Tags"


def tag_problems(request: Mapping[str, object]) -> list[Problem]:
    """Return everything wrong with the tags of a request."""
    tags = entries(request, "Tags")
    return [*_too_many(tags), *_repeated_keys(tags), *_each(tags)]


def misspelt(request: Mapping[str, object]) -> list[Problem]:
    """Return the problems of tags that are meant to be options but are none.

    They are reported first: a misspelt 'resources' would otherwise look like a missing instance type.
    """
    return [problem for problem in tag_problems(request) if problem.kind is UnknownOption]


def _too_many(tags: Sequence[object]) -> Iterator[Problem]:
    added = len(ATTEMPT_TAGS) + all(part(tag).get("Key") != SHARE_TAG for tag in tags)
    allowed = MAX_TAGS - added
    if len(tags) > allowed:
        yield Problem(
            "Tags",
            f"The request has {len(tags)} tags; at most {allowed} are allowed.",
            f"Remove {len(tags) - allowed}: SageMaker allows {MAX_TAGS} tags for each job, and the queue adds "
            f"{added} of its own.",
        )


def _repeated_keys(tags: Sequence[Mapping[str, object]]) -> Iterator[Problem]:
    for index in repeated(text(tag, "Key") for tag in tags):
        key = shown(tags[index].get("Key"))
        yield Problem(f"Tags[{index}].Key", f"The tag {key} is specified twice.", "Specify each tag once.")


def _each(tags: Sequence[Mapping[str, object]]) -> Iterator[Problem]:
    for index, tag in enumerate(tags):
        key = text(tag, "Key") or ""
        if key == PRIORITY_TAG:
            yield from _priority_problems(tag, f"Tags[{index}].Value")
        elif key.casefold().startswith("aws:"):
            yield _reserved(key, f"Tags[{index}].Key")
        elif key in ATTEMPT_TAGS:
            yield _set_by_queue(key, f"Tags[{index}].Key")
        # Another spelling of the prefix would otherwise be an option that is silently not honored.
        elif key.casefold().startswith(OPTION_PREFIX):
            yield from _option_problems(key, tag, f"Tags[{index}]")


def _priority_problems(tag: Mapping[str, object], field: str) -> Iterator[Problem]:
    value = text(tag, "Value")
    if value is None or not _INTEGER.fullmatch(value) or abs(int(value)) > MAX_PRIORITY:
        yield Problem(
            field,
            f"The priority {shown(tag.get('Value'))} is not an integer from -{MAX_PRIORITY} to {MAX_PRIORITY}.",
            "Write plain digits such as '100' or '-5'; jobs of higher priority run first, and without this tag "
            "the priority is 0.",
        )


def _reserved(key: str, field: str) -> Problem:
    return Problem(field, f"The tag {shown(key)} has a prefix that AWS reserves.", "Use a key without 'aws:'.")


def _set_by_queue(key: str, field: str) -> Problem:
    return Problem(
        field,
        f"The tag {shown(key)} is set by the queue.",
        "Omit it; the queue adds it to every attempt.",
    )


def _option_problems(key: str, tag: Mapping[str, object], field: str) -> Iterator[Problem]:
    name = key[len(OPTION_PREFIX) :]
    option = OPTIONS.get(name) if key.startswith(OPTION_PREFIX) else None
    if option is None:
        yield _unknown_option(key, name, field)
    elif option.read(value := text(tag, "Value") or "") is None:
        yield _unreadable(option, key, tag.get("Value"), value, f"{field}.Value")


def _unreadable(option: Option, key: str, given: object, value: str, field: str) -> Problem:
    if option.wrong is None:
        return Problem(field, f"The option {shown(key)} is {shown(given)}.", f"It must be {option.takes}.")
    wrong, hint = option.wrong(value)
    return Problem(field, f"In the option {shown(key)} {wrong}.", hint)


def _unknown_option(key: str, name: str, field: str) -> Problem:
    meant = did_you_mean(name, OPTIONS)
    known = ", ".join(OPTION_PREFIX + option for option in sorted(OPTIONS))
    guess = f"Did you mean '{OPTION_PREFIX}{meant}'?" if meant else f"The options are: {known}."
    return Problem(
        f"{field}.Key",
        f"There is no option {shown(key)}.",
        guess,
        UnknownOption,
    )
