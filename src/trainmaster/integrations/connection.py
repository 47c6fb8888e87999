"""Reads which queue a connection of an orchestrator names, and which options its jobs get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.config import STACK_VARIABLE
from trainmaster.client.sdk.elastic import NAMES, ElasticOptions
from trainmaster.domain.requests.tag_names import OPTION_PREFIX, PRIORITY_TAG

if TYPE_CHECKING:
    import boto3

    from trainmaster.client.sdk.hook import Route


_NO_ADDRESS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class QueueConnection:
    """The queue's address, and the options of jobs that do not set them.

    Without `api_url` and `stack`, the address is that of the default stack. `tags` are options by tag.
    """

    api_url: str | None = None
    api_id: str | None = None
    stack: str | None = None
    resources: str | None = None
    elastic: ElasticOptions | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, members: object, default_address: Mapping[str, str] = _NO_ADDRESS) -> QueueConnection:
        """Return the connection that has these members; names have `-` or `_`, and the queue checks the options.

        Members other than the address are options: `priority`, `share`, `resources`, or a tag's name without
        `trainmaster:`. Raises ValueError if it is no object, or a member no text, number or Boolean.
        """
        if not isinstance(members, Mapping):
            raise ValueError(f"it must be an object, true or false, not {members!r}.")  # noqa: TRY004 - of a JSON text
        texts = {name.replace("-", "_"): _text(name, value) for name, value in members.items()}
        if "api_url" not in texts and "stack" not in texts:
            texts = {**default_address, **texts}
        own = {name: texts.pop(name, None) for name in ("api_url", "api_id", "stack", "resources")}
        elastic: dict[str, Any] = {name: texts.pop(name) for name in NAMES if name in texts}
        tags = {_tag_of(name): text for name, text in texts.items()}
        return cls(**own, elastic=ElasticOptions(**elastic) if elastic else None, tags=tags)

    def client(self, session: boto3.session.Session) -> ApiClient:
        """Return an API client that signs with the session's credentials."""
        environ = {STACK_VARIABLE: self.stack} if self.stack else {}
        return ApiClient(self.api_url, api_id=self.api_id, session=session, environ=environ)

    def set_defaults(self, route: Route) -> None:
        """Give the options to the jobs of a route."""
        route.resources, route.elastic, route.tags = self.resources, self.elastic, self.tags


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"{name} must be a text, a number or a Boolean, not {value!r}.")


def _tag_of(option: str) -> str:
    return option if option == PRIORITY_TAG else OPTION_PREFIX + option.replace("_", "-")
