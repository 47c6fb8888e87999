"""What of a URL may be shown and kept: neither credentials nor signatures.

It must not ask for what a URL leads to.
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

_PORTS = {"http": 80, "https": 443}


def without_secrets(url: str) -> str:
    """A URL of HTTP without user, password, query and fragment; others, as S3's, have nothing of the kind."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("?")[0]
    if parts.scheme not in _PORTS:
        return url
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def without_secrets_of(url: str, said: str) -> str:
    """What somebody has said of a URL, without its credentials and signatures, also where only a part of it is told."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return said
    if parts.scheme not in _PORTS:
        return said
    secrets = (f"{parts.netloc.rpartition('@')[0]}@", f"?{parts.query}", parts.query, f"#{parts.fragment}")
    for secret in secrets:
        said = said.replace(secret, "") if len(secret) > 1 else said
    return said


def normal(url: str) -> str:
    """The same text for all URLs that name the same: no secrets, the host in lower case, no port that is the default.

    RFC 3986, 6.2.2.1 and 6.2.3.
    """
    parts = urlsplit(without_secrets(url))
    place = parts.netloc.lower().removesuffix(f":{_PORTS.get(parts.scheme)}").removesuffix(":")
    return urlunsplit((parts.scheme, place, parts.path if parts.path != "/" else "", "", ""))
