"""Probing: counts looked up anew, rates measured once, settings of the user on top."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlopt import options
from mlopt.errors import InputError
from mlopt.locking import open_in_forks
from mlopt.parameters import check_client
from mlopt.resources import cache
from mlopt.resources.calibration import Calibration
from mlopt.resources.cluster_probe import cluster_counts, measure_cluster
from mlopt.resources.control_groups import group_limits, group_rooms, told
from mlopt.resources.descriptor import Resources
from mlopt.resources.experience import experience, forget
from mlopt.resources.measure import measure

_BUSY = 0.4
"""Share of the cores: of two, a single other program takes more."""
_SECONDS = ("task", "round_trip")
"""Of `measure`; all else is a speed."""
_COUNTED = {"RLIMIT_DATA": 5, "RLIMIT_AS": 0}
"""Limits of ``ulimit``, and which number of `/proc/self/statm` has the pages that count."""
_known: dict[str, dict[str, float]] = {}
_lock = open_in_forks(threading.Lock())


def probe(client: Any = None, *, refresh: bool = False) -> Resources:
    """See `Resources.probe`."""
    if client is not None:
        check_client(client)
    found = _probe_process(refresh) if client is None else _probe_cluster(client, refresh)
    return configured(found)


def _probe_process(refresh: bool) -> Resources:
    threads, key = _this_machine()
    if not refresh and (known := _known.get(str(key))):
        return _process(threads, key, known)
    with _lock:  # two probes at once would measure one another
        rates = None if refresh else _known.get(str(key)) or cache.load(key)
        if rates is None:
            disturbed = _others_work()
            rates = measure(threads)
            if not refresh and (before := cache.load(key, disturbed=True)):
                rates = _best(before, rates)
            cache.store(key, rates, disturbed=disturbed)
        _known[str(key)] = rates
    return _process(threads, key, rates)


def remembered() -> Resources:
    """See `Resources.remembered`."""
    threads, key = _this_machine()
    rates = _known.get(str(key)) or cache.load(key)
    if rates is not None:
        _known[str(key)] = rates
    else:
        rates = cache.load(key, disturbed=True)
    return configured(_process(threads, key, rates or {}))


def _others_work() -> bool:
    """Whether so many cores were busy in the last minute that rates may be wrong."""
    try:
        return os.getloadavg()[0] > _BUSY * (os.cpu_count() or 1)
    except (AttributeError, OSError):  # a system that does not tell
        return False


def _best(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    """Of each rate the better: what disturbs a measurement makes it worse."""
    best = {name: min if name in _SECONDS else max for name in now}
    return {name: best[name](rate, before.get(name, rate)) for name, rate in now.items()}


def _this_machine() -> tuple[int, dict[str, str]]:
    from dask.system import cpu_count

    threads = cpu_count()
    return threads, cache.identity(threads)


def _process(threads: int, key: dict[str, str], rates: dict[str, float]) -> Resources:
    found = cache.load_calibration(key)
    here = Resources(
        threads=threads, memory=memory_limit(), calibration=found, experience=experience()
    )
    return here.with_rates(rates)


def keep_calibration(found: Calibration) -> bool:
    """Keep ``found`` beside what was kept of this machine; False where it cannot be.

    What is remembered of predictions without it is forgotten.
    """
    key = _this_machine()[1]
    forget()
    return cache.store_calibration(key, cache.load_calibration(key).updated(found))


def _probe_cluster(client: Any, refresh: bool) -> Resources:
    scheduler, counts = cluster_counts(client)
    # Without the lock: its workers may be threads of this process, with fits that probe.
    rates = None if refresh else _known.get(scheduler)
    if rates is None:
        _known[scheduler] = rates = measure_cluster(client, counts["threads"])
    return Resources(cluster=True).with_rates({**counts, **rates})


def configured(resources: Resources) -> Resources:
    """``resources`` with what the user set under ``mlopt.resources`` in ``dask.config``.

    Raises
    ------
    InputError
        If a setting names no field of `Resources`.
    """
    settings = options.given("mlopt.resources", {})
    if not isinstance(settings, Mapping):
        raise options.refusal("mlopt.resources", "a mapping of fields to numbers", settings)
    settings = {str(name).replace("-", "_"): value for name, value in settings.items()}
    if unknown := sorted(set(settings) - set(Resources.names())):
        raise InputError(
            f"`mlopt.resources` in dask.config names no field of Resources: {unknown}. "
            f"Fields: {', '.join(Resources.names())}."
        )
    if isinstance(settings.get("memory"), str):
        settings["memory"] = options.size("mlopt.resources.memory")
    if set(settings) - {"workers", "threads", "memory"}:  # other rates, other predictions
        resources = replace(resources, experience=None)
    try:
        return resources.with_rates(settings)
    except InputError as error:
        raise InputError(f"`mlopt.resources` in dask.config: {error}") from None


def memory_limit() -> int:
    """Bytes that this process may use: of the machine, or as its limits say if less.

    So does the user, by ``mlopt.resources.memory``.
    """
    limits = [machine_memory(), *group_limits(), *_process_limits().values()]
    return _set(min((limit for limit in limits if limit), default=Resources().memory))


def memory_free() -> int:
    """Bytes of `memory_limit` that neither this process nor others have taken."""
    machine = machine_memory() or Resources().memory
    available = 1024 * told(Path("/proc/meminfo"), "MemAvailable:") or machine
    return _set(max(0, min([available, *group_rooms(machine), *_process_rooms()])))


def _set(memory: int) -> int:
    """So many bytes, or as many as the user has set, if less."""
    return min(memory, configured(Resources(memory=max(1, memory))).memory)


def machine_memory() -> int | None:
    """Bytes of the machine, where it tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return None


def _process_limits() -> dict[str, int]:
    """What ``ulimit -d`` and ``ulimit -v`` allow, where they do."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return {}
    soft = {name: resource.getrlimit(getattr(resource, name))[0] for name in _COUNTED}
    return {k: limit for k, limit in soft.items() if limit != resource.RLIM_INFINITY}


def _process_rooms() -> list[int]:
    """What these leave beside what the process has."""
    try:
        pages = list(map(int, Path("/proc/self/statm").read_text("utf-8").split()))
    except OSError:  # not Linux
        return []
    size = os.sysconf("SC_PAGE_SIZE")
    return [limit - size * pages[_COUNTED[k]] for k, limit in _process_limits().items()]
