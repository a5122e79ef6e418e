"""Questions that only the scheduler can answer: which jobs it has, whose turn it is.

A plugin answers them, as Dask's own extensions do. ``Client.run_on_scheduler`` would write
a line into the scheduler's log each time.
"""

from __future__ import annotations

import weakref
from typing import Any

import distributed

from mlopt.errors import ClusterError

DRIVERS = "mlopt-job-"
"""How the keys of tasks begin that drive others (`mlopt.cluster.detached`)."""

_PREFIX = "mlopt_"
_asking: weakref.WeakSet[Any] = weakref.WeakSet()


class Answers(distributed.SchedulerPlugin):
    """On the scheduler, for as long as it runs."""

    name = "mlopt-answers"
    idempotent = True

    async def start(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        for answer in (self.jobs, self.least, self.forgive):
            scheduler.handlers[_PREFIX + answer.__name__] = answer

    async def jobs(self) -> tuple[list[str], int]:
        """The keys of drivers, first come first; how many workers there are."""
        wanted = self.scheduler.clients["fire-and-forget"].wants_what
        tasks = [task for task in wanted if str(task.key).startswith(DRIVERS)]
        tasks.sort(key=lambda task: (task.priority, task.key))
        return [str(task.key) for task in tasks], len(self.scheduler.workers)

    async def least(self) -> int:
        """The least tag of what runs (`mlopt.cluster.turns`); 0 where nothing has one."""
        workers = self.scheduler.workers.values()
        tags = (task.priority[0] for worker in workers for task in worker.processing)
        return int(min((tag for tag in tags if tag > 0), default=0))

    async def forgive(self, key: str) -> None:
        """Count no worker that has died so far against this task."""
        if key in self.scheduler.tasks:
            self.scheduler.tasks[key].suspicious = 0


def ask(client: Any, what: str, **named: Any) -> Any:
    """What the method of `Answers` returns.

    Raises
    ------
    ClusterError
        The scheduler does not answer.
    """
    try:
        if client not in _asking:
            client.register_plugin(Answers())
            _asking.add(client)
        return client.sync(getattr(client.scheduler, f"{_PREFIX}{what}"), **named)
    # It has gone, or the client has been closed while it asked.
    except (OSError, RuntimeError, AttributeError) as error:
        raise ClusterError(
            f"The Dask scheduler does not answer (client status: {client.status}): if it "
            "is gone, start another one, and resume the jobs that it had."
        ) from error
