"""Models that many workers change at a time: blocks of arrays on the members of a mesh.

`Job` is for a user's own ``step(block, model) -> delta``. Below it, from the bottom:
`blocks`, `ownership`, `shard`, `client` and `snapshots` are protocols without threads and
sockets; `service` and `store` are what members and those who ask make of them, `host` is
the driver's part; `program` says what a job does, `layouts` where.
"""

from mlopt.server.elastic import Policy
from mlopt.server.job import Job, Result

__all__ = ["Job", "Policy", "Result"]
