"""Turns of the event loop that are short, and since when what they find was there.

asyncio does in one turn all that is ready: with 1000 clients that is 50 ms, in which a call
of the model that has ended is not followed by another, and nobody is answered.
"""

from __future__ import annotations

import selectors
import time
from itertools import islice
from typing import Any

SHARE = 32
"""Connections that are accepted and requests that are answered in one turn, .1 ms of CPU
each: 3 ms of the 50 within which whoever is refused shall know it."""
READ = 256
"""Sockets that are read in one turn: all but those that get a credit are refused, in 10 us
of CPU each (`benchmarks/refusals.py`): as much time as goes to answers."""

Found = list[tuple[selectors.SelectorKey, int]]


class Turns(selectors.DefaultSelector):
    """A selector that gives `READ` sockets at a time, in the order in which they came."""

    def __init__(self) -> None:
        super().__init__()
        self._left: dict[int, tuple[selectors.SelectorKey, int]] = {}
        self._looked = self._since = time.monotonic()
        self.since = self._since
        """When what became ready for the turn before this was there, at the earliest."""

    def select(self, timeout: float | None = None) -> Found:
        """What is ready; what was left by the turn before comes first."""
        self.since = self._since
        if not self._left:
            found = super().select(timeout)
            before, self._looked = self._looked, time.monotonic()
            # What did not have to be waited for became ready since it was looked for last.
            self._since = before if timeout == 0 else self._looked
            if len(found) <= READ:
                return found
            self._left = {key.fd: (key, events) for key, events in found}
        return [self._left.pop(number) for number in list(islice(self._left, READ))]

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Whoever is gone is not left, either: another one may get its number."""
        return self._without(super().unregister(fileobj))

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """What is left of it was asked for otherwise; it will be found anew."""
        return self._without(super().modify(fileobj, events, data))

    def _without(self, key: selectors.SelectorKey) -> selectors.SelectorKey:
        self._left.pop(key.fd, None)
        return key
