"""A shard as the service of a member: who asks may wait, and messages go over the mesh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlopt.cluster.mesh import Service, Site
from mlopt.cluster.wire import Answer, Header
from mlopt.errors import MemberLostError
from mlopt.server.asking import drive
from mlopt.server.blocks import Array, Block
from mlopt.server.ownership import Owner
from mlopt.server.room import Room
from mlopt.server.shard import MOVED, Shard

_LOOK = 1.0
"""Seconds after which who waits for a block looks whether the member has ended."""


class ShardService(Service):
    """Answers what is asked of a member's blocks.

    Parameters
    ----------
    site : Site
    """

    def __init__(self, site: Site) -> None:
        self.site, self.shard = site, Shard(site.member)
        self.room = Room(site.spare)

    def answer(self, operation: str, header: Header, arrays: Sequence[Array]) -> Answer:
        if operation == "move":
            return self.hand_over(header.block, header.more["target"])
        while (said := self.shard.answer(operation, header, arrays)) is None:
            self._wait(header.block)
        self.room.make(self.shard.blocks)
        return said

    def hand_over(self, number: int, target: str) -> Answer:
        """Make another member the owner of a block that is here; see `Shard.hand_over`."""
        moving = self.shard.hand_over(number, target, self._is_present)
        said: Answer = drive(moving, self.site, stopped=self.site.stop.is_set)
        return said

    @contextmanager
    def held(self, number: int) -> Iterator[list[Array]]:
        """A block that is here, or comes here: nobody else reads or changes it meanwhile.

        Raises
        ------
        MemberLostError
            It is not this member's.
        """
        while True:
            found = self.shard.block(number)
            if isinstance(found, Block):
                with found.lock:
                    if not found.gone:
                        yield found.arrays
                        found.changes += 1
                        break
            elif found is None:
                self._wait(number)
            else:
                owner = Owner(str(found[0].more.get(MOVED)), found[0].version)
                raise MemberLostError(f"Block {number} is not here: {owner}.")
        self.room.make(self.shard.blocks)

    def close(self) -> None:
        self.shard.end()
        self.room.close()

    def _is_present(self, member: str) -> bool:
        return member in self.site.members

    def _wait(self, number: int) -> None:
        self.shard.wait(number, _LOOK)
        if self.site.stop.is_set():
            raise MemberLostError(f"{self.site.member} left.")
