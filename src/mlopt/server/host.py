"""The driver's part of a store: makes blocks, copies them, restores those that are lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from mlopt.cluster.mesh import Mesh
from mlopt.cluster.wire import Header
from mlopt.errors import ClusterError, MemberLostError
from mlopt.server.asking import BREATH, Call, drive, surely
from mlopt.server.blocks import Block
from mlopt.server.ownership import Owner, Owners, dealt, told
from mlopt.server.service import ShardService
from mlopt.server.shard import BUSY, MOVED, STAYS
from mlopt.server.snapshots import Copies, Copy, restore
from mlopt.server.store import Store
from mlopt.server.tables import Model, Tables

log = logging.getLogger("mlopt")

EVERY = 5.0
"""Seconds from one look at all blocks to the next: a copy of 80 MB takes 40 ms of CPU,
below one part in a hundred; and so much work may be lost with a member."""


class Host:
    """A model whose blocks are on members of a mesh, until `close`.

    Parameters
    ----------
    mesh : Mesh
        Given a service: an earlier one of it is closed.
    model : mapping of str to ndarray, or groups of them
    servers : sequence of str, optional
        Members to have blocks at first. Default: all.
    owners : mapping of int to str, optional
        First owners of all blocks, instead.
    tables : Tables, optional
        How the model is cut.
    hashed : bool
        See `Keys`.
    every : float, optional
        Seconds between copies of what has changed; None for no copies but the first.
    mends : bool
        Whether blocks of lost members are restored; else no copies are kept here.
    make : callable
        ``make(site, *args)`` gives a member's `ShardService`.
    *args
        For that.

    Attributes
    ----------
    store : Store
        The driver's.
    restored : list of int
        Blocks that went back to their copies, so far.
    """

    def __init__(
        self,
        mesh: Mesh,
        model: Model,
        *args: Any,
        servers: Sequence[str] | None = None,
        owners: Mapping[int, str] | None = None,
        tables: Tables | None = None,
        hashed: bool = False,
        every: float | None = EVERY,
        mends: bool = True,
        make: Callable[..., ShardService] = ShardService,
    ) -> None:
        mesh.serve(make, *args)
        members = list(mesh.members) if servers is None else list(servers)
        if not members:
            raise ClusterError("A model needs a member to be on, and the mesh has none.")
        if not mends and (lost := set(members) - set(mesh.members)):
            raise MemberLostError(f"{', '.join(sorted(lost))} left as the model came.")
        self.mesh, self.mends = mesh, mends
        self.tables = tables or Tables.of(model, len(members), hashed)
        self.owners, self.restored = Owners(), list[int]()
        self.error: ClusterError | None = None
        self.store = Store(mesh, self.tables, self.owners)
        self._copies = Copies()
        self._restoring, self._ended = threading.Lock(), threading.Event()
        first = dealt(self.tables.blocks, members)
        given = {block: Owner(member, 1) for block, member in (owners or {}).items()}
        self._servers = {owner.member for owner in (first | given).values()}
        self._create(model, first | given)
        self._unwatch = mesh.watch(self._changed, self._part_with)
        if mends and set(members) - set(mesh.members):  # since a moment ago
            self._restore()
        self._copier = threading.Thread(target=self._copy, args=(every,), daemon=True)
        if every is not None:
            self._copier.start()

    def model(self) -> dict[str, Any]:
        """The model now; of blocks that nobody has any more their last copies."""
        if not self.mends or (self.mesh.members and self.error is None):
            return self.store.pull()
        model = self.tables.empty()
        for block in self.tables.blocks:
            copy = self._copies.get(block)
            assert copy is not None
            self.tables.put(model, block, copy.packed[2:])
        return model

    def copy_all(self) -> None:
        """Copy what has changed now."""
        for block in self.tables.blocks:
            drive(self._copies.taken(self.store.client, block), self.mesh, patience=60)

    def close(self) -> None:
        """Copy no more, and restore nothing; the mesh is its owner's."""
        self._ended.set()
        self._unwatch()
        self.store.close()

    def _create(self, model: Model, owners: Mapping[int, Owner]) -> None:
        for number, arrays in self.tables.cut(model):
            owner, packed = owners[number], Block(arrays, 1).packed(arrays)
            if self.mends:
                self._copies.keep(number, Copy(1, 0, packed))
            self._say(Call(owner.member, "put", Header(number, 1), packed))
            self.owners.learn(number, owner)
        for member in self.mesh.members:
            self._say(Call(member, "owners", *told(self.owners.all())))

    def _say(self, call: Call) -> None:
        try:
            drive(surely(call, lambda member: member in self.mesh.members), self.mesh)
        except MemberLostError:
            if not self.mends:
                raise
            # What it should have is restored, as if it had been lost later.

    def _copy(self, every: float) -> None:
        while not self._ended.wait(every):
            try:
                self.copy_all()
            except ClusterError:
                if not self._ended.is_set():
                    log.warning("blocks could not be copied", exc_info=True)

    def _changed(self, member: str, came: bool) -> None:
        if self._ended.is_set() or not self.mends:
            return
        if came:
            self._say(Call(member, "owners", *told(self.owners.all())))
        else:
            threading.Thread(target=self._restore, daemon=True).start()

    def _part_with(self, member: str) -> None:
        """Others take the blocks of a member before it goes, as they are."""
        if not self.mends:
            return
        try:
            while (held := self.owners.of(member)) and not self._ended.is_set():
                if not self.mesh.staying:
                    self.copy_all()  # there is nobody to take them
                    return
                for block in held:
                    self._take(block, member)
        except ClusterError as error:
            log.warning("blocks of %s go back to their copies: %s", member, error)

    def _take(self, block: int, member: str) -> None:
        """Ask a member itself, once: if it is lost on the way, its blocks are restored."""
        target = self._choose(block)
        header = Header(block, more={"target": target})
        said, _ = self.mesh.ask(member, "move", header)
        if BUSY in said.more:
            time.sleep(BREATH)
        elif STAYS not in said.more:
            owner = Owner(said.more.get(MOVED, target), said.version)
            self.owners.learn(block, owner)

    def _restore(self) -> None:
        with self._restoring:
            try:
                if not self.mesh.members:
                    raise ClusterError(
                        "The pool has shrunk to nothing: there is no member to have the "
                        "model, which is as it was when it was copied last."
                    )
                self.restored += drive(
                    restore(
                        self.tables.blocks, lambda: self.mesh.members, self.owners,
                        self._copies, self._choose,
                    ),
                    self.mesh,
                )  # fmt: skip
            except ClusterError as error:
                if not self._ended.is_set():
                    self.error = error
                    log.warning("blocks could not be restored: %s", error)

    def _choose(self, block: int) -> str:
        """A member that has the fewest blocks, of those that had some at first."""
        here = self.mesh.staying
        here = tuple(self._servers.intersection(here)) or here
        if not here:
            raise ClusterError("The pool has shrunk to nothing.")
        return min(here, key=lambda member: len(self.owners.of(member)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
