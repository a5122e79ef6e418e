"""The process: signals under load lose nothing, and bad arguments are one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest
from tests.serving.served import ROW, write_model

from mlopt import cli
from mlopt.cli import main
from mlopt.statuses import BAD_INPUT


class Process:
    """`mlopt serve` on a port of its own, and what it says on stderr."""

    def __init__(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "mlopt", "serve", *map(str, arguments)]
        self.process = subprocess.Popen(
            [*command, "--port", "0"], stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        assert self.process.stderr is not None
        first = self.process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", first)
        assert found is not None, first
        self.port = int(found[1])

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ended(self) -> tuple[int, str]:
        """The status, and the last words."""
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


class Askers:
    """Threads that ask for the same row until the service is gone."""

    def __init__(self, port: int, number: int) -> None:
        self.port = port
        self.statuses: Counter[int] = Counter()
        self.models: set[str] = set()
        self.threads = [threading.Thread(target=self._ask) for _ in range(number)]
        for thread in self.threads:
            thread.start()

    def _ask(self) -> None:
        body, headers = json.dumps([ROW]), {"content-type": "application/json"}
        while True:
            connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                while True:
                    connection.request("POST", "/predict", body, headers)
                    answer = connection.getresponse()
                    said = json.loads(answer.read())
                    self.statuses[answer.status] += 1
                    if answer.status == 200:
                        self.models.add(said["model"])
            except ConnectionRefusedError:
                return
            except (HTTPException, OSError):
                self.statuses[0] += 1  # never let in: see what the service says
            finally:
                connection.close()

    def wait(self) -> None:
        """Until the service is gone."""
        for thread in self.threads:
            thread.join(60)


def eventually(holds: Callable[[], object]) -> None:
    """Wait until it does."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def ready(port: int) -> dict[str, object]:
    """What ``/ready`` says."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/ready")
    said: dict[str, object] = json.loads(connection.getresponse().read())
    connection.close()
    return said


@pytest.mark.slow
def test_signals_under_load_lose_nothing(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.skops")
    with Process(path) as served:
        play_signals(served, path, tmp_path)


def play_signals(served: Process, path: Path, tmp_path: Path) -> None:
    """A new model by SIGHUP, a bad one by itself, the end by SIGTERM; four clients ask."""
    first = ready(served.port)["model"]
    askers = Askers(served.port, 4)
    eventually(lambda: askers.statuses[200] > 20)

    write_model(tmp_path / "new.skops", seed=1).replace(path)
    served.process.send_signal(signal.SIGHUP)
    eventually(lambda: len(askers.models) == 2)
    second = ready(served.port)["model"]
    assert askers.models == {first, second}

    path.write_bytes(b"no model")  # seen without a signal
    eventually(lambda: ready(served.port)["reload_failed"])
    assert ready(served.port)["model"] == second
    assert set(askers.statuses) <= {200}

    before = askers.statuses[200]
    eventually(lambda: askers.statuses[200] > before + 20)
    served.process.send_signal(signal.SIGTERM)
    status, said = served.ended()
    askers.wait()
    assert status == 0
    assert "is not used" in said
    let_in, answered = map(int, re.findall(r"(\d+) (?:requests|of them)", said)[-2:])
    assert let_in == answered == askers.statuses[200]
    assert set(askers.statuses) <= {200, 503, 0}


def refused(*arguments: str | Path) -> int:
    """The exit status."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in ("serve", *arguments)])
    return int(caught.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("none.skops",), "none.skops cannot be read"),
        (("--host", "0.0.0.0"), "must have a token"),
        (("--port", "70000"), "--port must be 0, for any that is free, to 65535"),
        (("--port", "-1"), "--port must be"),
        (("--deadline", "0"), "--deadline must be seconds above 0"),
        (("--body", "much"), '--body must be bytes, as in "8MiB"'),
    ],
)
def test_arguments_that_cannot_work_are_one_line(
    arguments: tuple[str, ...],
    says: str,
    model_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = arguments if arguments[0] == "none.skops" else (str(model_path), *arguments)
    assert refused(*given) == BAD_INPUT
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_without_the_extra_it_says_what_to_install(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    assert refused(model_path) == BAD_INPUT
    assert "needs starlette and uvicorn: pip install" in capsys.readouterr().err
