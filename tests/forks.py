"""Processes of Python that are forks of one which has loaded the libraries already.

`Popen` and `run` are those of `subprocess`, for commands of this Python. To load
scikit-learn, pandas and Numba takes seconds, longer than most of what tests then do there.
What is the same for all forks of one process is not tested with them: what a command
imports, how strings hash, and whether a process starts at all. Elsewhere than on Linux
these are true processes, as Dask's workers are there.
"""

from __future__ import annotations

import atexit
import codecs
import io
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Sequence
from multiprocessing import forkserver, reduction
from pathlib import Path
from subprocess import PIPE, TimeoutExpired
from typing import Any

__all__ = ["LOADED", "ON", "PIPE", "Popen", "TimeoutExpired", "run"]

ON = sys.platform == "linux"
LOADED = [
    "distributed", "mlopt.cluster.workers", "mlopt.pipeline.estimator",
    "mlopt.tuning.search", "mlopt.cli", "mlopt.sweep.run", "alembic.context",
    "hypothesis", "pytest",
    "tests.forks",
]  # fmt: skip
"""What has been loaded where the forks are made, of workers, too."""

_FLAGS = {"-P", "-W"}
"""Those that commands of tests have; what `-P` leaves out of the path is no use to them."""


class Popen(subprocess.Popen[Any]):
    """As `subprocess.Popen`, of a command that begins with `sys.executable`."""

    _told = -1
    """What says the number of the process, and in the end its status."""

    def _execute_child(
        self, args: Sequence[Any], executable: Any, preexec_fn: Any, close_fds: Any,
        pass_fds: Sequence[int], cwd: Any, env: Any, startupinfo: Any, creationflags: Any,
        shell: Any, p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int,
        errread: int, errwrite: int, *rest: Any,
    ) -> None:  # fmt: skip
        command = [os.fspath(one) for one in args]
        assert command[0] == sys.executable
        assert not shell
        said = [
            from_pipe if from_pipe != -1 else own
            for from_pipe, own in ((p2cread, 0), (c2pwrite, 1), (errwrite, 2))
        ]
        assert not set(pass_fds) & {0, 1, 2}
        environment = dict(os.environ if env is None else env)
        start = _Start(
            command[1:], str(cwd or Path.cwd()), environment, [0, 1, 2, *pass_fds],
            new_session=rest[5], before=preexec_fn,
        )  # fmt: skip
        told, to_child = forkserver.connect_to_new_process([*said, *pass_fds])
        self._told, self._child_created = told, True
        letter = io.BytesIO()
        reduction.dump({"sys_path": [*sys.path]}, letter)  # to find what is sent
        reduction.dump(start, letter)
        with io.FileIO(to_child, "w") as file:
            file.write(letter.getbuffer())
        self.pid = forkserver.read_signed(told)
        for theirs, ours in ((p2cread, p2cwrite), (c2pwrite, c2pread), (errwrite, errread)):
            if theirs != -1 and ours != -1:
                os.close(theirs)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._told >= 0:
            self._hear(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None and not self._hear(timeout):
            assert timeout is not None
            raise TimeoutExpired(self.args, timeout)
        return self.returncode

    def _hear(self, timeout: float | None) -> bool:
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None:
                if not select.select([self._told], [], [], timeout)[0]:
                    return False
                try:
                    self.returncode = forkserver.read_signed(self._told)
                except EOFError:  # it went with the process that it is a fork of
                    self.returncode = 255
                os.close(self._told)
        return True


def run(command: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[Any]:
    """As `subprocess.run`, for what tests give it."""
    check, timeout = options.pop("check", False), options.pop("timeout", None)
    if options.pop("capture_output", False):
        options |= {"stdout": PIPE, "stderr": PIPE}
    with Popen(command, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


if not ON:
    Popen, run = subprocess.Popen, subprocess.run  # type: ignore[misc, assignment]


class _Start:
    """There: what Python does with the rest of a command."""

    def __init__(
        self, command: list[str], folder: str, environment: dict[str, str],
        numbers: list[int], *, new_session: bool, before: Any,
    ) -> None:  # fmt: skip
        self.command, self.folder, self.environment = command, folder, environment
        self.numbers, self.new_session, self.before = numbers, new_session, before

    def _bootstrap(self, parent_sentinel: int) -> int:
        os.close(parent_sentinel)
        self._settle()
        try:
            return self._end(self._run)
        finally:
            self._end(threading._shutdown)  # type: ignore[attr-defined]
            self._end(atexit._run_exitfuncs)
            for file in (sys.stdout, sys.stderr):
                if file is not None and not file.closed:
                    try:
                        file.flush()
                    except OSError:
                        return 120  # as Python ends where it cannot say all

    def _settle(self) -> None:
        """Files, surroundings and the state of libraries as in a process of its own."""
        given: list[int] = forkserver.get_inherited_fds() or []
        # Above all numbers that are meant, so that none is written over before it is read.
        high = max(*self.numbers, *given) + 1
        for at, one in enumerate(given):
            os.dup2(one, high + at)
            os.close(one)
        for at, number in enumerate(self.numbers):
            os.dup2(high + at, number)
            os.close(high + at)
            os.set_inheritable(number, number < 3)
        if self.new_session:
            os.setsid()
        if self.before is not None:
            self.before()
        if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # as Python does first
            signal.signal(signal.SIGINT, signal.default_int_handler)
        old = dict(os.environ)
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.folder)
        encoding = self.environment.get("PYTHONIOENCODING") or "utf-8"
        encoding = codecs.lookup(encoding).name
        sys.stdin = io.TextIOWrapper(
            io.BufferedReader(io.FileIO(0, closefd=False)), encoding
        )
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = io.TextIOWrapper(
                io.BufferedWriter(io.FileIO(number, "w", closefd=False)), encoding,
                errors="backslashreplace" if number == 2 else None,
                line_buffering=number == 2 or os.isatty(number),
            )  # fmt: skip
            setattr(sys, name, file)
            setattr(sys, f"__{name}__", file)
        if filters := self.environment.get("PYTHONWARNINGS"):
            warnings._processoptions(filters.split(","))  # type: ignore[attr-defined]
        _reread({name for name, _ in old.items() ^ self.environment.items()})

    def _run(self) -> None:
        rest = [*self.command]
        while rest[0] in _FLAGS:
            if rest.pop(0) == "-W":
                warnings._processoptions([rest.pop(0)])  # type: ignore[attr-defined]
        given = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        known = [path for path in sys.path if path not in ("", *given)]
        sys.path[:] = [*filter(None, given), *known]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        if rest[0] == "-c":
            sys.path.insert(0, "")
            sys.argv = ["-c", *rest[2:]]
            exec(compile(rest[1], "<string>", "exec"), main.__dict__)
        elif rest[0] == "-m":
            sys.path.insert(0, self.folder)
            sys.argv = rest[1:]
            runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(rest[0]).resolve().parent))
            sys.argv = rest
            runpy.run_path(rest[0], run_name="__main__")

    def _end(self, work: Any) -> int:
        """Work, and the status that Python ends with."""
        try:
            work()
        except SystemExit as end:
            if end.code is None or isinstance(end.code, int):
                return end.code or 0
            sys.stderr.write(f"{end.code}\n")
            return 1
        except KeyboardInterrupt:
            traceback.print_exc()
            sys.stderr.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        except BaseException:
            traceback.print_exc()
            return 1
        return 0


def _reread(changed: set[str]) -> None:
    """What libraries have read from the surroundings, and from chance, when loaded."""
    import dask
    import numpy as np

    np.random.seed()  # noqa: NPY002  (who draws from it)
    if any(name.startswith("DASK_") for name in changed):
        dask.config.refresh()
