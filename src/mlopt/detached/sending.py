"""A job on its way to the scheduler: refused where a worker could not run it."""

from __future__ import annotations

import importlib.metadata
import uuid
from collections.abc import Mapping
from typing import Any

from mlopt.cluster import detached
from mlopt.cluster.at_scheduler import DRIVERS
from mlopt.detached import driver
from mlopt.detached.records import Folder
from mlopt.errors import InputError


def check(client: Any, folder: Folder, key: str) -> None:
    """Refuse a job that a worker could not run: all of them may be asked to."""
    version = importlib.metadata.version("mlopt")
    try:
        found: Mapping[str, str] = detached.ask_workers(
            client, driver.check, str(folder.path), key, version
        )
    except Exception as error:
        raise InputError(
            f"All workers must have mlopt {version}, and the scheduler too; asked for it, "
            f"they said: {error!r}."
        ) from error
    refused = {worker: why for worker, why in found.items() if why}
    if refused:
        worker, why = next(iter(refused.items()))
        raise InputError(
            f"All workers must be able to run the job, and {len(refused)} of {len(found)} "
            f"cannot: {worker} says: {why}"
        )


def send(client: Any, folder: Folder, key: str) -> None:
    """Have a worker drive it."""
    detached.remember(client, folder.name, str(folder.path))
    detached.detach(client, key, driver.drive, str(folder.path), key)


def new_key(name: str) -> str:
    """Of a task that drives the job of this name."""
    return f"{DRIVERS}{name}-{uuid.uuid4().hex[:8]}"
