"""Makes the environment of a command whose AWS clients call the endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trainmaster.client.api.errors import NotConfigured
from trainmaster.console.loopback import LOOPBACK

ENDPOINT: Final = "AWS_ENDPOINT_URL"
IGNORE: Final = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
_PROXIES: Final = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_NO_PROXY: Final = ("no_proxy", "NO_PROXY")
_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_DEFAULT_PROFILE")
"""Variables that come before `AWS_PROFILE`."""


def command_environment(
    environ: Mapping[str, str],
    urls: Mapping[str, str],
    settings: Mapping[str, Any],
    *,
    profile: str | None = None,
    region: str | None = None,
) -> dict[str, str]:
    """Return the environment of the command, whose SDKs call the endpoint. Raises NotConfigured.

    Args:
        environ: the environment of this process.
        urls: the endpoint's URL for each service.
        settings: settings of the AWS profile in force.
        profile: the profile that an option selects; the command has the same.
        region: the AWS Region that an option selects; the command has the same.
    """
    own = dict(environ)
    if profile is not None:
        own = {name: value for name, value in own.items() if name not in _KEYS} | {"AWS_PROFILE": profile}
    if region is not None:
        own |= {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}
    if _ignores_endpoints(environ, settings):
        own = {name: value for name, value in own.items() if not name.startswith(ENDPOINT)}
    own |= {f"{ENDPOINT}_{service.upper()}": url for service, url in urls.items()} | {IGNORE: "false"}
    return own | _without_a_proxy(own)


def _ignores_endpoints(environ: Mapping[str, str], settings: Mapping[str, Any]) -> bool:
    """Return whether SDKs ignore configured addresses so far. Raises NotConfigured.

    To heed the endpoint's address, they must heed all; so a profile may have none that they would heed from now on.
    """
    ignores = environ.get(IGNORE) or settings.get("ignore_configured_endpoint_urls", "")
    if str(ignores).lower() != "true":
        return False
    if named := [name for name in ("endpoint_url", "services") if name in settings]:
        message = f"The AWS profile has {named[0]}, which {IGNORE} says to ignore; exec needs such an address itself."
        raise NotConfigured(message, hint="Select a profile without it, with --profile.")
    return True


def _without_a_proxy(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that keep calls to this machine from an HTTP proxy, if there is one."""
    if not any(environ.get(name) for name in _PROXIES):
        return {}
    listed = [host for name in _NO_PROXY for host in environ.get(name, "").split(",") if host.strip()]
    hosts = ",".join(dict.fromkeys([*listed, LOOPBACK]))
    return dict.fromkeys(_NO_PROXY, "*" if "*" in listed else hosts)
