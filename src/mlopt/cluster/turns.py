"""A share of the pool for each job: calls take turns, whoever has sent more of them.

Start-time fair queueing (Goyal, Vin and Cheng, 1996), with a call as the unit: the k-th
call of a job gets the tag ``max(k, v)``, where v is the least tag of what is being run, and
the scheduler takes calls by their tags. A job that sends a thousand at once so has one
run for each of a job that comes later; one that sent none for a while saves nothing up.
Calls of clients that are no jobs have no tag, and come first.
"""

from __future__ import annotations

import time
import weakref
from typing import Any

from mlopt.cluster.at_scheduler import ask

_EVERY = 1.0
"""Seconds for which what is being run counts as known: an answer of the scheduler takes
milliseconds, and the calls of a job that are in turn some seconds."""

_turns: weakref.WeakKeyDictionary[Any, Turns] = weakref.WeakKeyDictionary()


class Turns:
    """The tags of one job's calls."""

    def __init__(self) -> None:
        self.tag, self._asked = 1, -_EVERY

    def next(self, client: Any, calls: int) -> int:
        """The tag of the next ``calls`` calls, which are sent together."""
        now = time.monotonic()
        if now - self._asked >= _EVERY:
            self.tag = max(self.tag, ask(client, "least"))
            self._asked = now
        tag, self.tag = self.tag, self.tag + calls
        return tag


def take_turns(client: Any) -> None:
    """Tag all that this client submits from now on through a `Cluster`."""
    _turns[client] = Turns()


def priority(client: Any, calls: int) -> dict[str, int]:
    """The annotation of calls that are sent together; none where the client is no job's."""
    turns = _turns.get(client)
    return {} if turns is None else {"priority": -turns.next(client, calls)}
