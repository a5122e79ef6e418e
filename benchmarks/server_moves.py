"""What it costs to move blocks of a model while four worker processes update them.

Four workers of one machine, four blocks. Some workers add to blocks one after the
other, each update waiting for the one before; nothing moves at first, then the driver
has one block after the other handed over. Printed are medians and the longest, in
milliseconds: for how long nobody could use a block that moved (from the moment that its
source sends askers on to the acknowledgement of its arrays), and what an update took
with and without moves; then the sum of all updates, which is exact.

usage: server_moves.py [--moves 200] [--megabytes 1] [--clients 2]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import cloudpickle
import numpy as np

from mlopt.cluster import MeshDask, local_cluster
from mlopt.server.host import Host
from mlopt.server.ownership import Move
from mlopt.server.store import Store

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def updates(site, tables, seed):
    """Until it is stopped: when each update began, and how long it took."""
    rng, took = np.random.default_rng(seed), []
    table = tables.tables["W"]
    ones = [np.ones((table.keys.rows, 128), np.int64)]
    with Store(site, tables, site.service.shard.owners) as store:
        while not site.stop.is_set():
            began = time.time()
            store.update(int(rng.integers(len(tables.blocks))), ones)
            took.append((began, time.time() - began))
    return took


def shown(seconds):
    """Median, 99 of 100, and the longest, in milliseconds."""
    found = sorted(1e3 * one for one in seconds)
    if not found:
        return "none"
    median, high = statistics.median(found), found[int(0.99 * len(found))]
    return f"{median:.2f} (99%: {high:.1f}, longest {found[-1]:.1f}; {len(found)})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=200)
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("--clients", type=int, default=2)
    given = parser.parse_args()
    rows = int(given.megabytes * 1024)
    with local_cluster(4) as client, MeshDask(client) as mesh:
        model = {"W": np.zeros((4 * rows, 128), np.int64)}
        with Host(mesh, model, every=None) as host:
            blocks, rng = host.tables.blocks, np.random.default_rng(0)
            size = model["W"].nbytes / len(blocks) / 2**20
            tasks = [
                mesh.start(member, updates, host.tables, seed)
                for seed, member in enumerate(mesh.members[: given.clients])
            ]
            time.sleep(2)
            stalls, spans = [], []
            for _ in range(given.moves):
                block = int(rng.integers(len(blocks)))
                owner = host.owners.get(block).member
                others = [member for member in mesh.members if member != owner]
                began = time.time()
                stalls += host.store.move([Move((block,), owner, rng.choice(others))])
                spans.append((began, time.time()))
                time.sleep(0.01)
            for task in tasks:
                task.stop()
            took = [one for task in tasks for one in task.result()]
            W, table = host.model()["W"], host.tables.tables["W"]
            done = sum(int(W[table.rows(block)][0, 0]) for block in blocks)
            torn = sum(bool(np.ptp(W[table.rows(block)])) for block in blocks)
    first = spans[0][0]
    print(f"{len(blocks)} blocks of {size:.1f} MB, {len(spans)} moves, milliseconds:")
    print(f"  a block could not be used   {shown(stalls)}")
    print(f"  a move took                 {shown([end - began for began, end in spans])}")
    print(f"  an update, nothing moves    {shown([s for t, s in took if t + s < first])}")
    print(f"  an update, blocks move      {shown([s for t, s in took if t >= first])}")
    print(f"  sent {len(took)} updates, stored {done}, {torn} blocks torn")


if __name__ == "__main__":
    main()
