"""Copies of blocks, for when a member is lost: its blocks go back to theirs, no others do.

What was done to a block since its copy was made is undone, on whichever member it is then:
the operations that it remembers are those of the copy, so that what is asked for again is
done once to what the block has become. No copy is made of what did not change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from typing import Any, NamedTuple

from mlopt.cluster.wire import Answer, Header
from mlopt.errors import ClusterError, MemberLostError
from mlopt.server.asking import Asking, Call, surely
from mlopt.server.blocks import Array
from mlopt.server.client import Client
from mlopt.server.ownership import Owner, Owners, heard, told
from mlopt.server.shard import UNKNOWN

AHEAD = 1 << 20
"""Versions that a restored block is ahead of all that anybody has heard of it. A member
that was lost may have handed it on a few times more, and what it sent may be under way."""


class Copy(NamedTuple):
    """A block as it once was.

    Parameters
    ----------
    version, changes : int
        That it had.
    packed : sequence of ndarray
        As of `Block.packed`.
    """

    version: int
    changes: int
    packed: Sequence[Array]


class _Coming(NamedTuple):
    """A block on its way."""

    target: str
    source: str
    version: int


class Copies:
    """The last copy of each block, in this process."""

    def __init__(self) -> None:
        self._copies: dict[int, Copy] = {}
        self._changing = threading.Lock()

    def keep(self, block: int, copy: Copy) -> None:
        """Keep a copy, unless there is a newer one."""
        with self._changing:
            before = self._copies.get(block)
            if before is None or copy[:2] >= before[:2]:
                self._copies[block] = copy

    def get(self, block: int) -> Copy | None:
        """The last one."""
        return self._copies.get(block)

    def taken(self, client: Client, block: int) -> Asking:
        """Copy a block anew, if it has changed."""
        last = self.get(block)
        header, packed = yield from client.copy(block, -1 if last is None else last.changes)
        if packed:
            self.keep(block, Copy(header.version, header.sequence, packed))
        return header, packed


def restore(
    blocks: Iterable[int],
    present: Callable[[], Collection[str]],
    owners: Owners,
    copies: Copies,
    choose: Callable[[int], str],
) -> Generator[Call | None, Any, list[int]]:
    """Give blocks whose owner is lost to members that are there.

    Parameters
    ----------
    blocks : iterable of int
        All that there are.
    present : callable
        The members that are there.
    owners : Owners
        As the caller knows them; brought up to date.
    copies : Copies
        Of every block one at least.
    choose : callable
        Gives a member to have a block.

    Returns
    -------
    list of int
        Blocks that went back to their copies.

    Raises
    ------
    ClusterError
        A block was lost of which there is no copy.
    """
    waiting, left = yield from _found(present, owners)
    restored = []
    for block in blocks:
        owner = owners.get(block)
        assert owner is not None, block
        here = present()
        coming = waiting.get(block)
        if coming is not None and coming.source in here:
            coming = None  # it will come
        if owner.member in here and coming is None:
            continue
        copy = yield from _newest(block, left.get(block), copies, present)
        target, version, more = choose(block), owner.version, dict[str, int]()
        if coming is not None and coming.target in here:  # it may have come
            target, version = coming.target, max(version, coming.version)
            more = {"unless": coming.version}
        header = Header(block, version + AHEAD, more=more)
        try:
            put = Call(target, "put", header, copy.packed)
            said, _ = yield from surely(put, lambda member: member in present())
        except MemberLostError:
            continue  # whoever hears of that loss restores it
        owners.learn(block, Owner(target, said.version))
        if said.version == header.version:
            restored.append(block)
    for member in present():
        yield from _asked(Call(member, "owners", *told(owners.all())), present)
    return restored


def _found(
    present: Callable[[], Collection[str]], owners: Owners
) -> Generator[Call | None, Any, tuple[dict[int, _Coming], dict[int, str]]]:
    """Which blocks somebody waits for, and from whom; and who kept one that has left."""
    waiting: dict[int, _Coming] = {}
    left: dict[int, str] = {}
    for member in present():
        said = yield from _asked(Call(member, "holdings"), present)
        if said is None:
            continue
        for block, owner in heard(said).items():
            owners.learn(block, owner)
        more = said[0].more
        waiting |= {b: _Coming(member, *source) for b, *source in more["arriving"]}
        left.update(dict.fromkeys(more["leaving"], member))
    return waiting, left


def _newest(
    block: int,
    kept_by: str | None,
    copies: Copies,
    present: Callable[[], Collection[str]],
) -> Generator[Call | None, Any, Copy]:
    """The newest copy of a block: maybe that of who handed it over to a lost member."""
    copy = copies.get(block)
    if kept_by is not None:
        said = yield from _asked(Call(kept_by, "left", Header(block)), present)
        if said is not None and UNKNOWN not in said[0].more:
            kept = Copy(said[0].version, said[0].sequence, said[1])
            copy = kept if copy is None else max(copy, kept, key=lambda one: one[:2])
    if copy is None:
        raise ClusterError(
            f"Block {block} was lost with its owner, and there is no copy of it: make "
            "snapshots."
        )
    return copy


def _asked(
    call: Call, present: Callable[[], Collection[str]]
) -> Generator[Call | None, Any, Answer | None]:
    """The answer of a member; nothing if it is gone."""
    try:
        return (yield from surely(call, lambda member: member in present()))
    except MemberLostError:
        return None
