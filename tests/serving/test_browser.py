"""The page in a real browser, where Chromium is installed: it shows, and predicts a row."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from mlopt.serving.app import build_app
from mlopt.serving.server import Server
from mlopt.serving.service import Service

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-pipe",
]  # fmt: skip


class Browser:
    """Chromium that is told what to do over a pipe, in the DevTools protocol."""

    def __init__(self, folder: Path) -> None:
        here_in, self._write = os.pipe()
        self._read, here_out = os.pipe()
        # The protocol is spoken on file descriptors 3 and 4.
        shell = f"exec 3<&{here_in} 4>&{here_out}; exec {CHROMIUM} {' '.join(FLAGS)}"
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", f"{shell} --user-data-dir={folder} about:blank"],
            pass_fds=(here_in, here_out), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(here_in)
        os.close(here_out)
        self._number, self._left, self._session = 0, b"", ""

    def open(self, address: str) -> None:
        target = self.ask("Target.createTarget", url=address)["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a command."""
        self._number += 1
        said = {"id": self._number, "method": method, "params": params}
        said |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(said).encode() + b"\0")
        while True:
            while b"\0" not in self._left:
                more = os.read(self._read, 1 << 16)
                assert more, "the browser is gone"
                self._left += more
            message, _, self._left = self._left.partition(b"\0")
            heard = json.loads(message)
            if heard.get("id") == self._number:
                assert "error" not in heard, heard
                return heard["result"]

    def value(self, script: str) -> Any:
        """What JavaScript says on the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, script: str) -> Any:
        """Until it is true."""
        end = time.monotonic() + 30
        while not (found := self.value(script)):
            assert time.monotonic() < end, script
            time.sleep(0.05)
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._write)
        os.close(self._read)


@pytest.fixture
def page(model_path: Path, tmp_path: Path) -> Iterator[Browser]:
    """The page of a service that asks for a token."""
    service = Service(model_path)
    app = build_app(service, token="secret")
    config = uvicorn.Config(app, port=0, lifespan="off", log_level="error")
    server = Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(f"http://127.0.0.1:{port}/")
        yield browser
    finally:
        browser.close()
        server.should_exit = True
        thread.join()
        service.close()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_person_sees_the_model_and_tries_a_row(page: Browser) -> None:
    page.wait("typeof $ == 'function' && !$('login').hidden")
    assert page.value("getComputedStyle($('login')).display") != "none"
    page.value("$('token').value = 'secret'; $('login').requestSubmit()")
    page.wait("$('row').querySelectorAll('[name]').length == 6")
    assert page.value("getComputedStyle($('login')).display") == "none"
    assert page.value("$('title').textContent") == "model.skops"
    page.value("$('row').querySelector('[name=age]').value = '75'")
    page.value("$('row').requestSubmit()")
    page.wait("$('answer').textContent != ''")
    assert page.value("$('answer').querySelector('b').textContent") == "yes"
    assert page.value("$('answer').querySelectorAll('.share').length") == 2
    page.wait("$('rate').textContent != '–'")
    page.value("$('row').querySelector('[name=age]').value = 'old'")
    page.value("$('row').requestSubmit()")
    page.wait("$('answer').textContent.includes('is no number')")
