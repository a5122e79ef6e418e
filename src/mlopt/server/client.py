"""Who changes and reads blocks: knows owners, numbers operations, asks again.

A client has one operation on a block under way at a time; so the number of the last one
that was done is all that a block must know of it. It reads a block when what it has done to
it is acknowledged, and therefore sees it.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import Any

from mlopt.cluster.wire import Answer, Header
from mlopt.errors import ClusterError, MemberLostError
from mlopt.server.asking import Asking, Call
from mlopt.server.blocks import Array
from mlopt.server.ownership import Owner, Owners
from mlopt.server.shard import BUSY, MOVED, STAYS, UNKNOWN


class Client:
    """Asks for operations on blocks, wherever they are; each is done exactly once.

    Parameters
    ----------
    number : int
        Its own; not 0.
    owners : Owners
        Shared with the shard of its member, which hears more.
    """

    def __init__(self, number: int, owners: Owners) -> None:
        self.number, self.owners = number, owners
        self._sequences: Counter[int] = Counter()
        self._turns: dict[int, deque[object]] = defaultdict(deque)

    def update(
        self,
        block: int,
        arrays: Sequence[Array],
        operation: str = "add",
        sequence: int | None = None,
    ) -> Asking:
        """Change a block, after all that was asked of it before; gives when it is done.

        The numbers of a client's operations on a block grow; they are its own, unless they
        are given: who does again what another had begun under the same number finds done
        what is.
        """
        turn = self._queued(block)
        return self._in_turn(block, operation, arrays, turn, sequence)

    def get(self, block: int) -> Asking:
        """A block's arrays, with all that this client has been asked to do to it."""
        return self._in_turn(block, "get", [], self._queued(block))

    def copy(self, block: int, changes: int = -1) -> Asking:
        """All that a block is, unless it is as it was after so many changes."""
        return (yield from self._ask(block, "copy", changes, []))

    def move(self, block: int, target: str) -> Asking:
        """Have a block's owner hand it over.

        Raises
        ------
        MemberLostError
            The target is gone; the block is where it was.
        """
        while True:
            header, arrays = yield from self._ask(block, "move", 0, [], {"target": target})
            if STAYS in header.more:
                raise MemberLostError(f"Block {block} stays: {target} is gone.")
            if BUSY not in header.more:
                self.owners.learn(block, Owner(target, header.version))
                return header, arrays
            yield None

    def _queued(self, block: int) -> object:
        turn = object()
        self._turns[block].append(turn)
        return turn

    def _in_turn(
        self,
        block: int,
        operation: str,
        arrays: Sequence[Array],
        turn: object,
        sequence: int | None = 0,
    ) -> Asking:
        try:
            while not self._may(block, turn):
                yield None
            if sequence is None:  # not before: of threads the one behind had the lower
                self._sequences[block] += 1
                sequence = self._sequences[block]
            return (yield from self._ask(block, operation, sequence, arrays))
        finally:
            self._turns[block].remove(turn)

    def _may(self, block: int, turn: object) -> bool:
        return self._turns[block][0] is turn

    def _ask(
        self,
        block: int,
        operation: str,
        sequence: int,
        arrays: Sequence[Array],
        more: dict[str, Any] | None = None,
    ) -> Asking:
        while True:
            owner = self.owners.get(block)
            if owner is None:
                raise ClusterError(f"Nobody owns block {block}: `create` the model first.")
            header = Header(block, owner.version, self.number, sequence, more or {})
            try:
                said: Answer = yield Call(owner.member, operation, header, arrays)
            except MemberLostError:
                # With the same number again: there, or where it is restored.
                yield None
                continue
            if (member := said[0].more.get(MOVED)) is not None:
                # Nothing new: who answers is behind, and will hear.
                if not self.owners.learn(block, Owner(member, said[0].version)):
                    yield None
            elif UNKNOWN in said[0].more:
                yield None
            else:
                return said
