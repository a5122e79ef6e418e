"""The service over HTTP: what is asked, what is refused and how, what is shown.

| status | of ``POST /predict`` |
|---|---|
| 200 | predictions, in the order of the rows |
| 400 | the body is not what its type says, or an option is none |
| 401 | the token is missing or wrong |
| 413 | the body is too large |
| 415 | a type of body that is not read |
| 422 | a column that the model needs is missing, or the model refuses the rows |
| 503 | no credit: at once, with ``Retry-After``; or the service ends |
| 504 | the deadline has passed |
"""

from __future__ import annotations

import asyncio
import hmac
import json
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mlopt.errors import InputError, MissingColumnError
from mlopt.serving.answering import Answering
from mlopt.serving.bodies import JSON, READERS, WRITERS, Rows, read_rows, write_rows
from mlopt.serving.model import ServedModel
from mlopt.serving.page import PAGE
from mlopt.serving.service import Answer, NoCreditError, Service

Headers = tuple[tuple[bytes, bytes], ...]

ASIDE = 1 << 16
"""Bytes of a body from which it is read beside the event loop: .25 ms of JSON
(`benchmarks/sizes.py`), as much as the work of a few requests of a row."""
MOST_REMARKS = 4 << 10
"""Bytes of remarks in the head of an answer: clients and proxies take heads of 8 kB (nginx)
to 64 kB (Python's) and refuse the answer beyond."""
OPEN = ("/", "/health", "/ready")
"""Paths that need no token: they show nothing of the model."""
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True)
class Limits:
    """What a request may ask for.

    Parameters
    ----------
    deadline : float
        Seconds that it may take at most, unless it asks for less. The usual 10 are far more
        than `Service.latency`: whoever waits longer has met something unforeseen.
    body : int
        Bytes of its body. The usual 8 MB are .03 s of JSON, in a thread beside the event
        loop; `mlopt predict` is for more.
    """

    deadline: float = 10.0
    body: int = 8 << 20


class Refused(Exception):
    """An answer that is none: a status, and what to say."""

    def __init__(self, status: int, said: str, **beside: Any) -> None:
        super().__init__(said)
        self.status = status
        self.content = {"error": said, **beside}


def build_app(service: Service, limits: Limits = Limits(), token: str = "") -> ASGIApp:
    """The application.

    Parameters
    ----------
    service : Service
    limits : Limits
    token : str
        If not empty, what ``Authorization: Bearer`` must say for all but `OPEN`.
    """

    async def health(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        said = {
            "ready": service.ready,
            "model": service.model.token,
            "reload_failed": service.failed or None,
        }
        return JSONResponse(said, 200 if service.ready else 503)

    async def metrics(_: Request) -> Response:
        text = service.metrics.text(service.gauges())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def schema(_: Request) -> Response:
        model = service.model
        columns = [
            {"name": c.name, "kind": c.kind, "values": c.values, "example": c.example}
            for c in model.columns
        ]
        said = {
            "columns": columns,
            "probabilities": model.has_probabilities,
            "reads": list(READERS),
            "writes": list(WRITERS),
            "limits": {"body_bytes": limits.body, "deadline_seconds": limits.deadline},
            "card": model.card,
        }
        return JSONResponse(said)

    async def page(_: Request) -> Response:
        return HTMLResponse(PAGE, headers={"content-security-policy": POLICY})

    predict = Predict(service, limits)
    routes = [
        Route("/predict", predict, methods=["POST"]),
        Route("/", page),
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics),
        Route("/schema", schema),
    ]
    app = Front(predict, Starlette(routes=routes))
    return Guard(app, token) if token else app


def refusal(service: Service) -> bytes:
    """The whole answer over HTTP/1.1 where there is no credit, counted; else empty.

    Whoever is not refused becomes a task, and gets a credit in the next turn of the event
    loop. Of others that come in this one no more are let through than have one then.
    """
    if not service.ready or service.expect():
        return b""
    service.metrics.answers[503] += 1
    return _no_credit(service.queue.refuse())


@lru_cache(maxsize=64)
def _no_credit(seconds: int) -> bytes:
    error = NoCreditError(seconds)
    content = error.content()
    head = f"HTTP/1.1 503 Service Unavailable\r\ncontent-type: {JSON}\r\n"
    head += f"retry-after: {seconds}\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


class Front:
    """Predictions before all routing, which takes as long as all else of a request does."""

    def __init__(self, predict: ASGIApp, app: ASGIApp) -> None:
        self.predict = predict
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = scope["type"] == "http" and scope["path"] == "/predict"
        if wanted and scope["method"] == "POST":
            await self.predict(scope, receive, send)
        else:
            await self.app(scope, receive, send)


class Guard:
    """Lets only those in who know the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN:
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self.expected):
                said = {
                    "error": "Send the token of this service as `Authorization: Bearer`."
                }
                headers = {"www-authenticate": "Bearer"}
                await JSONResponse(said, 401, headers)(scope, receive, send)
                return
        await self.app(scope, receive, send)


class Predict:
    """``POST /predict``."""

    def __init__(self, service: Service, limits: Limits) -> None:
        self.service = service
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begin, metrics = self.service.arrived(), self.service.metrics
        try:
            media, extra, content = await self._answer(
                dict(scope["headers"]), scope, receive, begin
            )
            status = 200
        except NoCreditError as error:
            status, media, extra = 503, JSON, self._retry(error)
            content = error.content()
        except Refused as error:
            status, media, extra = error.status, JSON, ()
            content = json.dumps(error.content).encode()
        headers = [
            (b"content-type", media.encode()),
            (b"content-length", b"%d" % len(content)),
            *extra,
        ]
        metrics.answers[status] += 1
        if status == 200:
            metrics.request.saw(asyncio.get_running_loop().time() - begin)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _retry(self, error: NoCreditError) -> Headers:
        after = (b"retry-after", b"%d" % error.seconds)
        return (after, (b"connection", b"close")) if self.service.draining else (after,)

    async def _answer(
        self, headers: Mapping[bytes, bytes], scope: Scope, receive: Receive, since: float
    ) -> tuple[str, Headers, bytes]:
        service = self.service
        service.check_credit()  # before any work: what is refused must cost next to nothing
        options = Options.of(scope["query_string"], self.limits.deadline)
        reads = _media(headers.get(b"content-type", b""))
        if reads not in READERS:
            raise Refused(
                415, f"`content-type` must be one of {', '.join(READERS)}; got {reads!r}."
            )
        packing = headers.get(b"content-encoding", b"identity").decode("latin-1")
        if packing.lower() != "identity":
            raise Refused(
                415,
                f"A body must come unpacked, without `content-encoding`: got {packing!r}.",
            )
        answering = service.answering
        model = answering.model
        if options.proba and not model.has_probabilities:
            raise Refused(422, "This model gives no probabilities: leave `proba` out.")
        body = Body(service, self.limits.body)
        try:
            async with asyncio.timeout(options.deadline):
                content = await body.read(headers, receive)
                rows = await _rows(content, reads, model)
                answer = await self._predicted(rows, answering, options, since)
        except TimeoutError:
            raise Refused(504, f"No answer within {options.deadline:g} s.") from None
        finally:
            body.release()
        writes = _accepted(headers.get(b"accept", b""))
        beside: dict[str, Any] = {"model": answer.token}
        extra: Headers = ()
        if answer.remarks:
            beside["remarks"] = answer.remarks
            extra = ((b"x-remarks", header_of(answer.remarks)),)
        return writes, extra, write_rows(answer.columns, writes, **beside)

    async def _predicted(
        self, rows: Rows, answering: Answering, options: Options, since: float
    ) -> Answer:
        try:
            return await self.service.predict(
                rows, answering, proba=options.proba, since=since
            )
        except (NoCreditError, TimeoutError):
            raise
        except (ValueError, TypeError) as error:
            raise Refused(422, f"The model refuses these rows: {error}") from None
        except Exception as error:
            self.service.tell("".join(traceback.format_exception(error)))
            raise Refused(500, f"The model failed: {type(error).__name__}.") from None


async def _rows(content: bytes, media: str, model: ServedModel) -> Rows:
    try:
        if len(content) > ASIDE:
            return await asyncio.to_thread(read_rows, content, media, model)
        return read_rows(content, media, model)
    except MissingColumnError as error:
        raise Refused(422, str(error), columns=error.columns) from None
    except InputError as error:
        raise Refused(400, str(error)) from None


@dataclass(frozen=True)
class Options:
    """What the query of a request says: ``?proba=true&deadline=0.5``."""

    deadline: float
    proba: bool = False

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, query: bytes, deadline: float) -> Options:
        """The options, with a deadline of at most ``deadline`` seconds."""
        if not query:
            return cls(deadline)
        given = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
        unknown = given.keys() - {"proba", "deadline"}
        if unknown:
            raise Refused(
                400, f"Options are `proba` and `deadline`; got {sorted(unknown)}."
            )
        proba = given.get("proba", "false").lower()
        if proba not in ("true", "false", "1", "0", ""):
            raise Refused(400, f"`proba` must be true or false; got {proba!r}.")
        try:
            wanted = float(given.get("deadline", deadline))
        except ValueError:
            wanted = -1.0
        if not wanted > 0:
            raise Refused(
                400, f"`deadline` must be seconds above 0; got {given['deadline']!r}."
            )
        return cls(min(wanted, deadline), proba in ("true", "1", ""))


class Body:
    """The body of a request, with credits for its bytes."""

    def __init__(self, service: Service, most: int) -> None:
        self.service = service
        self.most = most
        self.held = 0

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """All of it; credits are taken before it is read where its length is known."""
        self._take(int(headers.get(b"content-length", b"0")))
        parts: list[bytes] = []
        length, more = 0, True
        while more:
            message: Message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "The body ended early.")
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            self._take(length)
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def release(self) -> None:
        """Give the credits back."""
        self.service.queue.release(self.held)
        self.held = 0

    def _take(self, length: int) -> None:
        if length > self.most:
            raise Refused(
                413,
                f"A body must have at most {self.most:,} bytes; this one has {length:,} or "
                "more. Send its rows in several requests, or use `mlopt predict`.",
            )
        if length > self.held:
            if not self.service.queue.reserve(length - self.held):
                raise self.service.refused()
            self.held = length


def header_of(remarks: Sequence[str]) -> bytes:
    """As many remarks as the head of an answer has room for."""
    kept: list[str] = []
    room = MOST_REMARKS
    for remark in remarks:
        room -= len(json.dumps(remark)) + 2
        if room < 0:
            kept.append(f"and {len(remarks) - len(kept)} more, which JSON has")
            break
        kept.append(remark)
    return json.dumps(kept).encode()


def _media(header: bytes) -> str:
    return header.partition(b";")[0].strip().lower().decode("latin-1")


def _accepted(header: bytes) -> str:
    """The first type that is asked for and written; else JSON."""
    asked = (_media(part) for part in header.split(b","))
    return next((media for media in asked if media in WRITERS), JSON)
