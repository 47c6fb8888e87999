"""URLs without credentials and signatures, for logs, messages and names of pools."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

_PORTS = {"http": 80, "https": 443}


def without_secrets(url: str) -> str:
    """Return an HTTP URL without user, password, query and fragment; other URLs, such as S3's, unchanged."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("?")[0]
    if parts.scheme not in _PORTS:
        return url
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def without_secrets_of(url: str, message: str) -> str:
    """Return a message about a URL without the URL's credentials and signatures, even if it quotes only part of it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return message
    if parts.scheme not in _PORTS:
        return message
    secrets = (f"{parts.netloc.rpartition('@')[0]}@", f"?{parts.query}", parts.query, f"#{parts.fragment}")
    for secret in secrets:
        message = message.replace(secret, "") if len(secret) > 1 else message
    return message


def normal(url: str) -> str:
    """Return one text for all URLs that are equal: no secrets, a lower-case host, no default port.

    See RFC 3986, 6.2.2.1 and 6.2.3.
    """
    parts = urlsplit(without_secrets(url))
    place = parts.netloc.lower().removesuffix(f":{_PORTS.get(parts.scheme)}").removesuffix(":")
    return urlunsplit((parts.scheme, place, parts.path if parts.path != "/" else "", "", ""))
