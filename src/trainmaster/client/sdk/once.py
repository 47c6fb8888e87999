"""Remembers what this process has already been told."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass
class Once:
    """Tells first occurrences apart; it forgets the oldest of more than `max_size`."""

    max_size: int = 1024
    _seen: OrderedDict[Hashable, None] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_first(self, key: Hashable) -> bool:
        """Return whether this is the first occurrence of the key."""
        with self._lock:
            if key in self._seen:
                return False
            self._seen[key] = None
            if len(self._seen) > self.max_size:
                self._seen.popitem(last=False)
            return True
