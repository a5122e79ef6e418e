"""A pool of SLURM's nodes, and a sweep that is submitted to it.

Needs dask-jobqueue. Run it where a process may stay: it is the scheduler. `--storage` is a
folder that all nodes see. With `--here`, dask-jobqueue starts the same script on this
machine instead.

usage: slurm_pool.py DATA TARGET --storage DIR [--queue batch] [--nodes 4] [--here]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import distributed

import mlopt
from mlopt.detached.kinds import Sweep
from mlopt.sweep.config import Config, Data, Search

NODE = {"cores": 4, "processes": 2, "memory": "16GB", "walltime": "02:00:00"}
LAPTOP = {"cores": 1, "processes": 1, "memory": "1GB", "interface": "lo"}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("target")
    parser.add_argument("--storage", type=Path, required=True)
    parser.add_argument("--queue", default="batch")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--timeout", type=float, default=600.0)
    parser.add_argument("--here", action="store_true")
    given = parser.parse_args(arguments)
    if given.here:
        from dask_jobqueue.local import LocalCluster

        cluster = LocalCluster(**LAPTOP)
    else:
        from dask_jobqueue import SLURMCluster

        given.storage.mkdir(parents=True, exist_ok=True)

        # Between nodes lines must be TLS; dask-jobqueue makes certificates for the job.
        security = distributed.Security.temporary()
        cluster = SLURMCluster(
            queue=given.queue,
            security=security,
            protocol="tls://",
            shared_temp_directory=str(given.storage),
            **NODE,
        )
    with cluster, distributed.Client(cluster) as client:
        cluster.scale(jobs=given.nodes)
        client.wait_for_workers(1)
        data = Data(path=str(given.data.absolute()), target=given.target)
        work = Sweep(config=Config(data=data, search=Search(timeout=given.timeout)))
        job = mlopt.submit(work, scheduler=client, storage=given.storage)
        job.follow(sys.stderr)
        print(f"{job.name}: best {job.result()['best_score']:.4f}, in {job.output}")


if __name__ == "__main__":
    main()
