"""What layouts on members have in common: sending cells, waiting for tasks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mlopt.cluster import Mesh, MeshHere, Resident
from mlopt.cluster.resident import LOST
from mlopt.cluster.wire import Header
from mlopt.errors import MemberLostError, TaskKilledError
from mlopt.server.program import Program
from mlopt.server.resident import cell_message, keep_cells

LOOK = 0.05
"""Seconds from one look at all tasks to the next: one that failed leaves others waiting."""

PROMPT = 1.0
"""Seconds that whoever interrupts waits for steps under way, and once more for a pass to
end: longer, and one thinks that it hangs (Nielsen, Usability Engineering, 1993)."""


def suspect(deaths: dict[int, tuple[int, int]], steps: Mapping[int, int]) -> None:
    """A member was lost that had some strata under way: one may be what ends its process.

    Parameters
    ----------
    deaths : dict of int to (int, int)
        Of strata: members in succession, and what it had then at most. It is changed.
    steps : mapping of int to int
        What each has had. One that has had more since the last time ended a step on
        another member, and is counted anew.

    Raises
    ------
    TaskKilledError
        `LOST` members were lost with one of them, and none of these ended its step.
    """
    for stratum, count in steps.items():
        members, most = deaths.get(stratum, (0, -1))
        deaths[stratum] = members + 1 if count <= most else 1, max(count, most)
    if blamed := sorted(a for a in steps if deaths[a][0] >= LOST):
        which = f"one of the blocks {', '.join(map(str, blamed))}"
        raise TaskKilledError(
            f"{LOST} members were lost, one after another, with the same step of "
            f"{f'block {blamed[0]}' if len(blamed) == 1 else which} under way: see whether "
            "it ends its process, or needs more memory than a member has."
        )


def give_cells(mesh: Mesh, member: str, stratum: int, program: Program) -> None:
    """Send the cells of a stratum to a member, or have it fetch those of an executor; one
    in this process shares them."""
    cells = program.cells[stratum]
    if program.executor is not None or isinstance(mesh, MeshHere):
        mesh.start(member, keep_cells, stratum, *cells).result()
        return
    for part, cell in enumerate(cells):
        plain, arrays = cell_message(cell)
        mesh.ask(member, "cell", Header(stratum, plain, sequence=part), arrays)


def finished(tasks: Sequence[Resident]) -> list[Any]:
    """What all tasks return; if one fails, or a member is lost, the others are stopped.

    Raises
    ------
    MemberLostError
        A member was lost.
    """
    while alive := [task for task in tasks if task.alive]:
        if any(failed(task) for task in tasks if not task.alive):
            for task in alive:
                task.stop()
        with suppress(Exception):
            alive[0].result(LOOK)
    errors = [error for task in tasks if (error := failed(task)) is not None]
    lost = [error for error in errors if isinstance(error, MemberLostError)]
    for error in (*lost, *errors):
        raise error
    return [task.result() for task in tasks]


def halted(tasks: Sequence[Resident]) -> bool:
    """Stop tasks; gives whether they ended soon, each after the step that it was at."""
    for task in tasks:
        task.stop()
    return ended(tasks)


def ended(tasks: Sequence[Resident]) -> bool:
    """Whether all tasks end soon, whatever they come to."""
    end = time.monotonic() + PROMPT
    while (alive := any(task.alive for task in tasks)) and time.monotonic() < end:
        time.sleep(LOOK / 10)
    return not alive


def was_lost(task: Resident) -> bool:
    """Whether its own member was lost before it ended."""
    try:
        task.result(0)
    except MemberLostError:
        return True
    except Exception:
        return False
    return False


def failed(task: Resident) -> Exception | None:
    """Why a task that has ended came to nothing."""
    try:
        done = task.result(0)
    except Exception as error:
        return error
    lost = getattr(done, "lost", "")
    return MemberLostError(f"{lost} was lost.") if lost else None
