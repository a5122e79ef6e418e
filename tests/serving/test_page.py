"""The page, without a browser: whole, loading nothing, asking what the app answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

from tests.serving.served import Client

from mlopt.serving.app import build_app
from mlopt.serving.page import PAGE, SCRIPT
from mlopt.serving.service import Service


class Read(HTMLParser):
    """Elements by id, what is loaded, and what is left open."""

    VOID = frozenset({"meta", "link", "input", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.loaded: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href")]
        self.open += [tag] if tag not in self.VOID else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing_from_elsewhere() -> None:
    page = Read()
    page.feed(PAGE)
    assert page.open == []
    assert page.loaded == ["data:,"]
    assert len(set(page.ids)) == len(page.ids)
    used = {
        *re.findall(r'\$\("(\w+)"\)', SCRIPT),
        *re.findall(r'line\(\w+, "(\w+)"', SCRIPT),
    }
    assert set(used) <= set(page.ids)
    assert "innerHTML" not in SCRIPT  # what a model or a client says is text, never markup


def test_the_script_asks_for_what_the_service_answers(model_path: Path) -> None:
    service = Service(model_path)
    with Client(build_app(service)) as client:
        page = client.get("/")
        assert page.text == PAGE
        assert "default-src 'none'" in page.headers["content-security-policy"]
        paths = set(re.findall(r'ask\("(\w+)"', SCRIPT))
        assert paths == {"schema", "metrics", "predict"}
        schema, metrics = client.get("/schema").json(), client.get("/metrics").text
        for field in re.findall(r"schema\.(\w+)", SCRIPT):
            assert field in schema
        for field in set(re.findall(r"card\.(\w+)", SCRIPT)):
            assert field in schema["card"]
        for name in set(re.findall(r"\bmlopt_\w+", SCRIPT)):
            assert name in metrics
        answer = client.post("/predict?proba=true", json=[{
            column["name"]: column["example"] for column in schema["columns"]
        }]).json()  # fmt: skip
        assert {"prediction", "model", "probability_yes"} <= set(answer)
    service.close()


def test_the_page_is_read_as_utf_8_whatever_the_locale() -> None:
    code = """
import sys
assert sys.stdout.encoding != "utf-8", "the locale is not what it should be"
from mlopt.serving.page import SCRIPT
print(ascii(SCRIPT))
"""
    environment = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    environment = {k: v for k, v in environment.items() if k != "PYTHONIOENCODING"}
    command = [sys.executable, "-X", "utf8=0", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ascii(SCRIPT)
