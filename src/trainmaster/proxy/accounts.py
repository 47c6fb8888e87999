"""Tells the account of an access key from the key's ID."""

from __future__ import annotations

import base64
import re
from typing import Final

_KEY_ID: Final = re.compile(r"A[KS]IA(?![IJ])[A-Z2-7]{16}")
"""Key IDs that contain the account. Those of users that begin with AKIAI and AKIAJ are older than that."""
_ACCOUNT_BITS: Final = 0x7FFF_FFFF_FF80
_MAX_ACCOUNT: Final = 10**12


def account_of(key_id: str) -> str | None:
    """Return the account of an access key ID; None if the ID does not tell.

    AWS answers the same by `sts:GetAccessKeyInfo`; the ID holds the account's number in 40 bits of its base32 text
    (https://hackingthe.cloud/aws/enumeration/get-account-id-from-keys/).
    """
    if not _KEY_ID.fullmatch(key_id):
        return None
    number = (int.from_bytes(base64.b32decode(key_id[4:])[:6], "big") & _ACCOUNT_BITS) >> 7
    return f"{number:012d}" if number < _MAX_ACCOUNT else None
