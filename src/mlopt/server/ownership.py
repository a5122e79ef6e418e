"""Who owns which block, as somebody has heard: the newest of all that was said.

Owners alone are sure. Everybody else may be behind, and is told by who is asked in error: a
former owner knows the one after it. So nobody need be asked first, and there is no member
that all depend on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlopt.cluster.wire import Answer, Header


class Owner(NamedTuple):
    """A member that has a block, and the version that it has as its."""

    member: str
    version: int


class Move(NamedTuple):
    """Blocks that are to change their owner."""

    blocks: tuple[int, ...]
    source: str
    target: str


class Owners:
    """What is known of owners; for any number of threads."""

    def __init__(self, known: Mapping[int, Owner] | None = None) -> None:
        self._known = dict(known or {})
        self._changing = threading.Lock()

    def get(self, block: int) -> Owner | None:
        """The newest owner that was heard of."""
        return self._known.get(block)

    def version(self, block: int) -> int:
        """Of the newest owner; 0 if there is none."""
        found = self._known.get(block)
        return 0 if found is None else found.version

    def learn(self, block: int, owner: Owner) -> bool:
        """Hear of an owner; gives whether that was news."""
        with self._changing:
            if owner.version <= self.version(block):
                return False
            self._known[block] = owner
            return True

    def all(self) -> dict[int, Owner]:
        """A copy."""
        with self._changing:
            return dict(self._known)

    def of(self, member: str) -> list[int]:
        """The blocks that it has."""
        return sorted(b for b, owner in self.all().items() if owner.member == member)


def dealt(blocks: Iterable[int], members: Sequence[str]) -> dict[int, Owner]:
    """First owners: runs of neighbouring blocks, as many for each member."""
    numbers = list(blocks)
    share = len(members) / max(1, len(numbers))
    return {b: Owner(members[int(at * share)], 1) for at, b in enumerate(numbers)}


def told(owners: Mapping[int, Owner]) -> Answer:
    """Owners as a message."""
    names = sorted({owner.member for owner in owners.values()})
    places = {name: at for at, name in enumerate(names)}
    table = [(b, places[owner.member], owner.version) for b, owner in owners.items()]
    more: dict[str, Any] = {"members": names}
    return Header(more=more), [np.array(table, np.int64).reshape(-1, 3)]


def heard(said: Answer) -> dict[int, Owner]:
    """The owners that were `told`."""
    header, (table,) = said
    names = header.more["members"]
    return {b: Owner(names[at], version) for b, at, version in table.tolist()}
