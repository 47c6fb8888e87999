"""Settings of a queue as a document, for its API, its table and users' files.

Omitted members have their default values at every depth; an omitted share does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.domain.document import Document, document, value_of
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.policy.settings import Policy

_DEFAULT = Policy()


def settings_document(policy: Policy) -> Document:
    """Return all settings, default values included."""
    return document(policy)


def policy_of(given: Mapping[str, Any], default: Policy = _DEFAULT) -> Policy:
    """Return the settings of a document, with those of `default` where it has none.

    Raises `InvalidRequest` for values of a wrong type, which the API refuses before with the field's name.
    """
    try:
        return value_of(Policy, _merged(document(default), given))
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise InvalidRequest(f"The settings are not valid: {error}") from error


def differences(policy: Policy, default: Policy) -> Document:
    """Return the smallest document that makes this policy of the default one."""
    return _differing(document(policy), document(default), document(policy, sparse=True))


def _merged(default: Mapping[str, Any], given: Mapping[str, Any]) -> Document:
    return {**default, **{key: _one_merged(default.get(key), value) for key, value in given.items()}}


def _one_merged(default: Any, given: Any) -> Any:
    return _merged(default, given) if isinstance(default, Mapping) and isinstance(given, Mapping) else given


def _differing(full: Mapping[str, Any], default: Mapping[str, Any], sparse: Mapping[str, Any]) -> Document:
    """Return the differing members; `sparse` has the short form of parts that only this policy has."""
    found: Document = {}
    for key, value in full.items():
        if key not in default:
            found[key] = sparse[key]
        elif value != default[key]:
            both = isinstance(value, Mapping) and isinstance(default[key], Mapping)
            found[key] = _differing(value, default[key], sparse.get(key, {})) if both else value
    return found
