"""The model in a process of its own: the same answers, and what becomes of its loss."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.serving.served import ROW, people, write_model

import mlopt
from mlopt.errors import InputError, MemberLostError
from mlopt.serving.answering import Caller
from mlopt.serving.app import build_app
from mlopt.serving.bodies import JSON, read_rows
from mlopt.serving.service import Service
from mlopt.sweep.predict import predictions

pytestmark = pytest.mark.cluster


def test_a_model_that_is_not_there_is_refused_before_a_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlopt.serving.service.Caller", None)
    with pytest.raises(InputError, match="there is no such file"):
        Service(tmp_path / "model.skops", apart=True)


def test_a_model_in_a_process_of_its_own_answers_alike_and_may_be_lost(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    path = write_model(tmp_path / "model.skops")
    service = Service(path, latency=1000.0, apart=True, tell=told.append)
    asyncio.run(play(service, path))
    service.close()
    assert sum("another one begins" in text for text in told) == 1
    assert not runs(service.process)


def test_another_process_is_tried_until_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    path = write_model(tmp_path / "model.skops")
    service = Service(path, latency=1000.0, apart=True, tell=told.append)
    begins: list[Exception | None] = [OSError("no memory"), MemberLostError("gone"), None]

    def caller(apart: bool) -> Caller:
        if (error := begins.pop(0)) is not None:
            raise error
        return Caller(apart)

    monkeypatch.setattr("mlopt.serving.service.Caller", caller)
    monkeypatch.setattr("mlopt.serving.service.PAUSE", 0.01)

    async def lose() -> None:
        os.kill(service.process, signal.SIGKILL)
        rows = read_rows(json.dumps([ROW]).encode(), JSON, service.model)
        with pytest.raises(MemberLostError):
            await service.predict(rows, service.answering, proba=False)
        async with asyncio.timeout(60):
            while not service.ready:
                await asyncio.sleep(0.01)
        assert (await service.predict(rows, service.answering, proba=False)).columns

    asyncio.run(lose())
    service.close()
    assert not begins
    assert ["no memory" in text for text in told][1:3] == [True, False]


def test_a_call_that_hangs_ends_with_the_service(tmp_path: Path) -> None:
    told: list[str] = []
    path = write_model(tmp_path / "model.skops")
    service = Service(path, latency=1000.0, apart=True, tell=told.append)
    process = service.process

    async def hang() -> None:
        rows = read_rows(json.dumps([ROW]).encode(), JSON, service.model)
        os.kill(process, signal.SIGSTOP)
        call = asyncio.create_task(service.predict(rows, service.answering, proba=False))
        await asyncio.sleep(0.2)
        closing = asyncio.create_task(asyncio.to_thread(service.close))
        try:
            await asyncio.wait([closing], timeout=20)
            assert closing.done()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with pytest.raises(MemberLostError):
            await call

    asyncio.run(hang())
    assert told == []
    assert not runs(process)


async def play(service: Service, path: Path) -> None:
    """Answers; a process that is killed; a new model, for which the old one is left."""
    transport = httpx.ASGITransport(build_app(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:

        async def ask(*rows: object) -> httpx.Response:
            return await client.post("/predict", json=rows, params={"proba": True})

        frame = people(40, seed=3)
        bodies = json.loads(frame.to_json(orient="records"))
        answers = await asyncio.gather(*(ask(row) for row in bodies))
        expected = predictions(mlopt.load(path), frame, proba=True)["probability_yes"]
        found = [answer.json()["probability_yes"][0] for answer in answers]
        assert found == pytest.approx(list(expected))
        assert (await ask(ROW | {"age": "old"})).json()["remarks"]
        assert sum(service.metrics.gathered.counts) <= 4

        os.kill(service.process, signal.SIGKILL)
        assert (await ask(ROW)).status_code == 500
        refused = await ask(ROW)
        assert (refused.status_code, (await client.get("/ready")).status_code) == (503, 503)
        assert int(refused.headers["retry-after"]) >= 1
        while not service.ready:
            await asyncio.sleep(0.01)
        assert (await ask(ROW)).status_code == 200

        before, old = service.process, service.answering
        write_model(path, seed=1)
        assert await service.reload()
        assert (await ask(ROW)).json()["model"] == service.model.token != old.model.token
        assert old.tried(1) > 0  # while somebody has it
        tried, ends = old.tried, asyncio.get_running_loop().time() + 20
        del old
        with contextlib.suppress(KeyError):  # there is none of its number any more
            while await asyncio.to_thread(tried, 1):
                assert asyncio.get_running_loop().time() < ends
        assert service.process == before
        assert service.queue.open_rows == service.queue.open_bytes == 0


def runs(number: int) -> bool:
    """Whether there is a process of that number."""
    return Path(f"/proc/{number}").exists()


def test_a_model_that_fails_many_rows_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []

    class Told(Caller):
        def close(self) -> None:
            closed.append(True)
            super().close()

        def load(self, path: Path) -> Any:
            found = super().load(path)

            def fails(rows: int) -> float:
                raise MemoryError(rows)

            return replace(found, tried=fails)

    monkeypatch.setattr("mlopt.serving.service.Caller", Told)
    with pytest.raises(MemoryError):
        Service(write_model(tmp_path / "model.skops"), apart=True)
    assert closed == [True]
