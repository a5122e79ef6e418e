"""A model on the members of a mesh, from one of its ends: the driver's, or a member's.

Reads see what the same store has written before. Pushes are sent by threads of the store's:
while one of a block is under way, those that follow are added up, and go as one.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from typing import Any, Self

import numpy as np

from mlopt.cluster.mesh import Peers
from mlopt.cluster.pool import Pool
from mlopt.cluster.wire import Answer
from mlopt.server.asking import drive
from mlopt.server.blocks import Array
from mlopt.server.client import Client
from mlopt.server.ownership import Move, Owners
from mlopt.server.tables import Model, Tables

PATIENCE = 60.0
"""Seconds without an answer after which a block is given up: a worker that died is noticed
in half a minute (`docs/mesh.md`), and its blocks are restored within a few seconds."""


def pool_of(threads: int) -> Pool:
    """Threads that stores may share."""
    return Pool(threads, "mlopt-store", lambda: None)


class Store:
    """Blocks of a model, wherever they are.

    Parameters
    ----------
    peers : Peers
        The mesh, or a member's site.
    tables : Tables
        What the model is.
    owners : Owners
        On a member those of its shard.
    threads : int or Pool
        That send, and ask for blocks of several members at a time.
    patience : float
        Seconds.
    client : int, optional
        Whose operations these are. Default: nobody else's.

    Notes
    -----
    For any number of threads; `close` ends those of the store.
    """

    def __init__(
        self,
        peers: Peers,
        tables: Tables,
        owners: Owners,
        *,
        threads: int | Pool = 2,
        patience: float = PATIENCE,
        client: int | None = None,
    ) -> None:
        self.peers, self.tables, self.owners = peers, tables, owners
        self.client = Client(client or secrets.randbits(62) + 1, owners)
        self._patience = patience
        self._own = not isinstance(threads, Pool)
        self._threads = threads if isinstance(threads, Pool) else pool_of(threads)
        self._waiting: dict[int, deque[tuple[list[Array], int | None]]] = {}
        self._sending: dict[int, Future[None]] = {}
        self._changing = threading.Lock()

    # --- blocks

    def get(self, block: int, into: Sequence[Array] | None = None) -> Sequence[Array]:
        """The arrays of a block, with all that this store has done to it.

        Raises
        ------
        ClusterError
            Nobody has had it for ``patience`` seconds.
        """
        self._settled([block])
        return self._get(block, into)

    def update(
        self,
        block: int,
        deltas: Sequence[Array],
        operation: str = "add",
        sequence: int | None = None,
    ) -> None:
        """Change a block, exactly once, and wait until that is done.

        Raises
        ------
        ClusterError
            As `get`; it may be done or not. A member refused it: it is not done.
        """
        self._drive(self.client.update(block, deltas, operation, sequence))

    def push_block(
        self, block: int, deltas: Sequence[Array], sequence: int | None = None
    ) -> None:
        """Add to a block, exactly once, some time before it is read by this store.

        Parameters
        ----------
        block : int
        deltas : sequence of ndarray
        sequence : int, optional
            See `Client.update`. Without, what waits for a block is added up.
        """
        with self._changing:
            waiting = self._waiting.setdefault(block, deque())
            if sequence is None and waiting and waiting[-1][1] is None:
                for array, delta in zip(waiting[-1][0], deltas, strict=True):
                    array += delta
                return
            waiting.append(([np.array(delta) for delta in deltas], sequence))
            if block not in self._sending:
                self._sending[block] = self._threads.submit(self._send, block)

    def flush(self) -> None:
        """Wait until all that was pushed is done.

        Raises
        ------
        ClusterError
            Some of it could not be.
        """
        self._settled(list(self.tables.blocks))

    def _send(self, block: int) -> None:
        while True:
            with self._changing:
                if not self._waiting[block]:
                    del self._sending[block]
                    return
                deltas, sequence = self._waiting[block].popleft()
            # If it fails, whoever reads or flushes is told by the future, which stays.
            self.update(block, deltas, sequence=sequence)

    def _settled(self, blocks: Iterable[int]) -> None:
        with self._changing:
            sending = [self._sending[b] for b in blocks if b in self._sending]
        wait(sending)
        for one in sending:
            one.result()

    # --- the model

    def pull(self, into: Model | None = None, tables: Iterable[str] = ()) -> dict[str, Any]:
        """The model; blocks are each of a moment, but not all of the same.

        Parameters
        ----------
        into : mapping, optional
            An earlier one, whose memory is used.
        tables : iterable of str
            Some of its arrays, or groups. Default: all.
        """
        wanted = [self.tables.tables[name] for name in tables or self.tables.tables]
        blocks = {block: table for table in wanted for block in table.blocks}
        self._settled(blocks)
        given = into or {}
        model = {one.name: given.get(one.name, one.empty()) for one in wanted}

        def pull(block: int) -> None:
            table = blocks[block]
            rows = table.rows(block)
            self._get(block, [one[rows] for one in table.in_rows(model[table.name])])

        self._by_members(blocks, pull)
        return model

    def push(self, delta: Model, sequence: int | None = None) -> None:
        """Add to the model, or to some of its tables, block by block; see `push_block`.

        Raises
        ------
        InputError
            It is not like the model.
        """
        self.tables.check(delta)
        for block, arrays in self.tables.cut(delta):
            if any(array.any() for array in arrays):
                self.push_block(block, arrays, sequence)

    # --- owners

    def move(self, moves: Iterable[Move]) -> list[float]:
        """Have blocks change their owners, those of different moves at a time.

        Returns
        -------
        list of float
            Of each block, seconds for which nobody could use it, at most.

        Raises
        ------
        MemberLostError
            A target is gone; its blocks are where they were.
        """
        jobs = [self._threads.submit(self._move, one.blocks, one.target) for one in moves]
        wait(jobs)
        return [seconds for job in jobs for seconds in job.result()]

    def _move(self, blocks: Sequence[int], target: str) -> list[float]:
        said = (self._asked(self.client.move(block, target)) for block in blocks)
        return [header.more.get("stalled", 0.0) for header, _ in said]

    def _by_members(self, blocks: Iterable[int], call: Callable[[int], None]) -> None:
        """Call for each block, for those of different members at a time."""
        shares: dict[str, list[int]] = {}
        for block in blocks:
            owner = self.owners.get(block)
            shares.setdefault("" if owner is None else owner.member, []).append(block)

        def calls(share: list[int]) -> None:
            for block in share:
                call(block)

        first, *others = shares.values()
        jobs = [self._threads.submit(calls, share) for share in others]
        calls(first)
        for job in jobs:
            job.result()

    def _get(self, block: int, into: Sequence[Array] | None) -> Sequence[Array]:
        return self._drive(self.client.get(block), into)

    def _drive(self, asking: Any, into: Sequence[Array] | None = None) -> Sequence[Array]:
        return self._asked(asking, into)[1]

    def _asked(self, asking: Any, into: Sequence[Array] | None = None) -> Answer:
        said: Answer = drive(asking, self.peers, into, self._patience, self._is_over)
        return said

    def _is_over(self) -> bool:
        """Whether the member that this is on has been given another service, or none."""
        stop = getattr(self.peers, "stop", None)
        return stop is not None and bool(stop.is_set())

    def close(self) -> None:
        """End the store's threads; what was pushed and is not done may be lost."""
        if self._own:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
