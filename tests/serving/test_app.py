"""What the service answers, line by line: good rows, bad ones, too many, too late."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from tests.serving.served import ROW, Client, people, write_model

import mlopt
from mlopt.costs import Fit
from mlopt.errors import ConfigError, InputError
from mlopt.serving import answering as answering_module
from mlopt.serving.app import Limits, build_app, header_of, refusal
from mlopt.serving.bodies import ARROW, CSV, JSON
from mlopt.serving.server import Where, read_token
from mlopt.serving.service import Service
from mlopt.sweep.predict import predictions

LIMITS = Limits(deadline=20.0, body=50_000)


@pytest.fixture(scope="module")
def service(model_path: Path) -> Iterator[Service]:
    """A service whose decisions do not depend on how fast this machine is."""
    made = Service(model_path, latency=1000.0)
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[Client]:
    """A client in this process."""
    with Client(build_app(service, LIMITS)) as made:
        yield made


def post(client: Client, content: Any, media: str = JSON, **options: Any) -> Any:
    """The answer of ``/predict``."""
    content = content if isinstance(content, str | bytes) else json.dumps(content)
    headers = {"content-type": media, **options.pop("headers", {})}
    return client.post("/predict", content=content, headers=headers, params=options)


def test_predictions_are_those_of_the_loaded_model(
    client: Client, model_path: Path
) -> None:
    frame = people(30, seed=2)
    expected = predictions(mlopt.load(model_path), frame, proba=True)
    answer = post(client, frame.to_json(orient="records"), proba=True)
    assert answer.status_code == 200
    found = answer.json()
    assert found.pop("model") == client.get("/ready").json()["model"]
    assert list(found) == ["prediction", "probability_no", "probability_yes"]
    assert found["prediction"] == expected["prediction"].tolist()
    assert found["probability_yes"] == pytest.approx(expected["probability_yes"].tolist())
    text = post(client, frame.to_csv(index=False), CSV, headers={"accept": CSV})
    assert text.headers["content-type"] == CSV
    assert text.text.splitlines() == ["prediction", *expected["prediction"]]


def test_cells_that_cannot_be_read_are_said_to_be_missing(client: Client) -> None:
    rows = [ROW, ROW | {"age": "old", "since": "yesterday"}, ROW | {"age": None}]
    answer = post(client, rows)
    assert answer.status_code == 200
    said = answer.json()["remarks"]
    assert [remark.split(":")[0] for remark in said] == ["`age`", "`since`"]
    assert "'old' in row 2" in said[0]
    assert json.loads(answer.headers["x-remarks"]) == said
    assert "remarks" not in post(client, [ROW]).json()


def test_the_head_of_an_answer_has_room_for_few_remarks(client: Client) -> None:
    answer = post(client, [ROW | {"age": "z" * 10_000, "since": "y" * 10_000}])
    assert json.loads(answer.headers["x-remarks"]) == answer.json()["remarks"]
    assert len(answer.headers["x-remarks"]) < 1000
    said = json.loads(header_of(["a" * 1000] * 50))
    assert said == ["a" * 1000] * 4 + ["and 46 more, which JSON has"]


BAD: list[tuple[int, dict[str, Any], str]] = [
    (400, {"content": "[{"}, "no JSON"),
    (400, {"content": [ROW], "proba": "perhaps"}, "`proba` must be true or false"),
    (400, {"content": [ROW], "deadline": "soon"}, "`deadline` must be seconds"),
    (400, {"content": [ROW], "deadline": -1}, "`deadline` must be seconds"),
    (400, {"content": [ROW], "prob": 1}, "prob"),
    (400, {"content": "no\nrows", "media": ARROW}, "no Arrow IPC"),
    (413, {"content": [ROW] * 1000}, "at most 50,000 bytes"),
    (415, {"content": [ROW], "media": "text/html"}, "must be one of application/json"),
    (415, {"content": [ROW], "media": ""}, "must be one of application/json"),
    (
        415,
        {"content": [ROW], "headers": {"content-encoding": "gzip"}},
        "must come unpacked",
    ),
    (422, {"content": [{**ROW, "city": "rome"}, {}]}, "'age' is missing and 5 more"),
]


@pytest.mark.parametrize(("status", "asked", "says"), BAD)
def test_what_is_wrong_with_a_request_is_named(
    status: int, asked: dict[str, Any], says: str, client: Client, service: Service
) -> None:
    answer = post(client, **asked)
    assert answer.status_code == status
    assert says in answer.json()["error"]
    assert service.queue.open_bytes == service.queue.open_rows == 0


def test_missing_columns_are_listed(client: Client) -> None:
    row = {name: ROW[name] for name in ("age", "wage", "code", "since")}
    assert post(client, [row]).json()["columns"] == ["price", "city"]


def test_a_body_without_a_length_is_bounded_too(client: Client) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(600):
            yield b"[" * 100

    answer = client.post("/predict", content=chunks(), headers={"content-type": JSON})
    assert answer.status_code == 413


def test_the_rows_that_a_model_refuses_do_not_fail_the_others(
    model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(model_path, latency=1000.0)
    real, sizes = predictions, []

    def refusing(model: Any, X: pd.DataFrame, *, proba: bool = False) -> pd.DataFrame:
        sizes.append(len(X))
        if (X["age"] == 13).any():
            raise ValueError("13 is no age")
        if (X["age"] == 14).any():
            raise ZeroDivisionError
        return real(model, X, proba=proba)

    monkeypatch.setattr(answering_module, "predictions", refusing)
    ages = [12, 13, 14, 15]
    answers = asyncio.run(together(service, [[ROW | {"age": age}] for age in ages]))
    assert [answer.status_code for answer in answers] == [200, 422, 500, 200]
    assert "13 is no age" in answers[1].json()["error"]
    assert 4 in sizes  # all were in one call first
    service.close()


async def together(
    service: Service, bodies: list[Any], limits: Limits = LIMITS, **options: Any
) -> list[httpx.Response]:
    """Answers to requests that come at once."""
    transport = httpx.ASGITransport(build_app(service, limits))
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        asked = (client.post("/predict", json=body, params=options) for body in bodies)
        return await asyncio.gather(*asked)


def test_rows_of_many_requests_share_calls_and_come_back_to_their_own(
    model_path: Path,
) -> None:
    service = Service(model_path, latency=1000.0)
    frame = people(40, seed=3)
    bodies = [json.loads(frame[k : k + 2].to_json(orient="records")) for k in range(39)]
    answers = asyncio.run(together(service, bodies, proba=True))
    expected = predictions(mlopt.load(model_path), frame, proba=True)["probability_yes"]
    for k, answer in enumerate(answers):
        assert answer.json()["probability_yes"] == pytest.approx(list(expected[k : k + 2]))
    assert sum(service.metrics.gathered.counts) <= 3
    assert service.queue.open_requests == 0
    service.close()


def test_calls_of_one_request_each_say_nothing_of_how_many_may_be_open(
    model_path: Path,
) -> None:
    service = Service(model_path, latency=1000.0, gather=False)
    answers = asyncio.run(together(service, [[ROW]] * 12))
    assert [answer.status_code for answer in answers] == [200] * 12
    assert sum(service.metrics.gathered.counts) == 12
    assert not service.queue.waits.measured.throughput
    service.close()


class Stuck:
    """A model that answers when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.entered = threading.Event(), threading.Event()
        monkeypatch.setattr(answering_module, "predictions", self)

    def __call__(self, *args: Any, **options: Any) -> pd.DataFrame:
        self.entered.set()
        assert self.go.wait(30)
        return predictions(*args, **options)


def test_no_more_are_let_through_in_a_turn_of_the_loop_than_get_a_credit(
    model_path: Path,
) -> None:
    service = Service(model_path, latency=2.0)
    service.queue.cost.line = Fit(0.4, 0.2)  # two rows a call: four credits

    async def heads() -> list[list[bool]]:
        turns = []
        for _ in range(2):
            turns.append([not refusal(service) for _ in range(6)])
            await asyncio.sleep(0)
        assert await together(service, [[ROW]])  # whoever came to nothing holds no credit
        return turns

    let_through = [True] * 4 + [False] * 2
    assert asyncio.run(heads()) == [let_through] * 2
    assert service.metrics.answers[503] == 4


def test_without_credit_503_comes_at_once_and_late_ones_get_504(
    model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(model_path, latency=2.0)
    service.queue.cost.line = Fit(0.4, 0.2)  # two rows a call: four credits
    stuck = Stuck(monkeypatch)

    async def play() -> tuple[list[httpx.Response], httpx.Response, httpx.Response]:
        asked = asyncio.ensure_future(together(service, [[ROW]] * 4, Limits(0.2)))
        await asyncio.to_thread(stuck.entered.wait, 30)
        while not service.queue.full:
            await asyncio.sleep(0.001)
        (refused,) = await together(service, [[ROW]])
        late = await asked
        stuck.go.set()
        await service.drain()
        (ended,) = await together(service, [[ROW]])
        return late, refused, ended

    late, refused, ended = asyncio.run(play())
    assert [answer.status_code for answer in late] == [504] * 4
    assert "within 0.2 s" in late[0].json()["error"]
    for answer in (refused, ended):
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
    assert ended.headers["connection"] == "close"
    assert service.queue.open_rows == service.queue.open_bytes == 0
    service.close()


def test_a_new_model_answers_what_comes_and_the_old_one_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    path = write_model(tmp_path / "model.skops")
    service = Service(path, latency=1000.0, tell=told.append)
    before, stuck = service.model.token, Stuck(monkeypatch)

    async def play() -> tuple[list[httpx.Response], list[httpx.Response]]:
        asked = asyncio.ensure_future(together(service, [[ROW]]))
        await asyncio.to_thread(stuck.entered.wait, 30)
        write_model(path, seed=1)
        assert await service.reload()
        stuck.go.set()
        old, new = await asked, await together(service, [[ROW]])
        path.write_bytes(path.read_bytes()[:-50])
        assert not await service.reload()
        return old, new + await together(service, [[ROW]])

    old, new = asyncio.run(play())
    tokens = [answer.json()["model"] for answer in old + new]
    assert tokens[0] == before != tokens[1] == tokens[2]
    assert "is not used" in told[-1]
    with Client(build_app(service)) as client:
        ready = client.get("/ready")
        assert ready.status_code == 200
        assert "model" in ready.json()["reload_failed"]
        assert 'mlopt_reloads_total{result="failed"} 1' in client.get("/metrics").text
        service.draining = True
        assert client.get("/ready").status_code == 503
        assert client.get("/health").status_code == 200
    service.close()


def test_metrics_can_be_read_and_count_what_was_asked(client: Client) -> None:
    def read() -> dict[str, float]:
        answer = client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = [line for line in answer.text.splitlines() if not line.startswith("# ")]
        return {
            name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)
        }

    before = read()
    assert post(client, [ROW] * 3).status_code == 200
    assert post(client, "[").status_code == 400
    after = read()
    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    assert grown["mlopt_rows_total"] == 3
    assert grown['mlopt_requests_total{status="200"}'] == 1
    assert grown['mlopt_requests_total{status="400"}'] == 1
    assert grown['mlopt_call_rows_bucket{le="4"}'] == 1
    assert grown['mlopt_call_rows_bucket{le="2"}'] == 0
    assert after["mlopt_open_rows"] == 0


def test_the_schema_says_what_a_row_needs(client: Client) -> None:
    schema = client.get("/schema").json()
    kinds = {column["name"]: column["kind"] for column in schema["columns"]}
    assert kinds == {"age": "number", "wage": "number", "price": "number",
                     "code": "number", "city": "category", "since": "date"}  # fmt: skip
    row = {column["name"]: column["example"] for column in schema["columns"]}
    answer = post(client, [row])
    assert answer.status_code == 200
    assert "remarks" not in answer.json()
    cities = next(c["values"] for c in schema["columns"] if c["name"] == "city")
    assert sorted(cities) == ["bern", "oslo", "rome"]
    assert schema["card"]["classes"] == ["no", "yes"]


def test_a_token_guards_all_that_shows_the_model(model_path: Path) -> None:
    service = Service(model_path)
    with Client(build_app(service, LIMITS, "secret")) as client:
        for path in ("/schema", "/metrics", "/predict"):
            answer = client.get(path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        wrong = {"authorization": "Bearer secre"}
        assert post(client, [ROW], headers=wrong).status_code == 401
        right = {"authorization": "Bearer secret"}
        assert post(client, [ROW], headers=right).status_code == 200
        for path in ("/", "/health", "/ready"):
            assert client.get(path).status_code == 200
    service.close()


def test_other_machines_need_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="must have a token"):
        Where("0.0.0.0")
    assert Where("::1").token == ""
    file = tmp_path / "token"
    file.write_text("abc\n")
    assert Where("0.0.0.0", token=read_token(file)).token == "abc"
    monkeypatch.setenv("MLOPT_TOKEN", "xyz")
    assert read_token(None) == "xyz"
    file.write_text("\n")
    with pytest.raises(ConfigError, match="one line"):
        read_token(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(tmp_path / "none")


def test_a_model_without_names_of_columns_cannot_be_served(tmp_path: Path) -> None:
    from sklearn.linear_model import Ridge

    from mlopt.sweep.models import dump_model

    path = tmp_path / "model.skops"
    path.write_bytes(dump_model(Ridge().fit([[1.0], [2.0]], [1.0, 2.0])))
    with pytest.raises(InputError, match="names of its columns"):
        Service(path)
