"""How a command ends: its exit status, and what is said of what went wrong."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from typing import Any

from cyclopts import CycloptsError

from mlopt.errors import (
    ConfigError,
    InputError,
    MloptError,
    QuerySyntaxError,
    StudyError,
    masked,
)
from mlopt.interrupts import Interrupts

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def status_of(run: Callable[[], Any]) -> int:
    """The exit status of ``run``, with what went wrong as one line on stderr."""
    try:
        with Interrupts():
            return run() or DONE
    except (ConfigError, InputError, StudyError, CycloptsError) as error:
        return _complain(error, BAD_INPUT)
    except KeyboardInterrupt:
        return interrupted()
    except (MloptError, OSError) as error:
        return _complain(error, FAILED)
    except (MemoryError, ImportError, RuntimeError) as error:
        # Neither a library nor the stack of a thread may fit; other errors are mistakes.
        if isinstance(error, RuntimeError) and "start new thread" not in str(error):
            raise
        hint = "Is there enough memory, also by `ulimit -v` and `ulimit -u`?"
        return _complain(RuntimeError(f"{str(error) or 'out of memory'}. {hint}"), FAILED)


def _complain(error: Exception, status: int) -> int:
    # The picture of a query with its caret needs its lines.
    pictured = isinstance(error, QuerySyntaxError)
    said = masked(str(error) if pictured else " ".join(str(error).split()))
    sys.stderr.write(f"mlopt: {said}\n")
    return status


def interrupted() -> int:
    """Say how to go on."""
    keeps = "sweep" in sys.argv[1:2]
    how = "; what was found is kept. To go on" if keeps else ". To run it again"
    sys.stderr.write(f"mlopt: interrupted{how}: {_command()}\n")
    return INTERRUPTED


def _command() -> str:
    """This command to run again, without the passwords that it was given."""
    given = shlex.join(["mlopt", *sys.argv[1:]])
    shown = masked(given)
    return shown if shown == given else f"{shown} with what *** hides, or OPTUNA_STORAGE"
