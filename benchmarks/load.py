"""Clients of a service, in a process of their own: raw sockets, every answer compared.

Prints one line of JSON. Latency runs from when a request is sent until its answer is there,
by the kernel's stamp of it. `read` says how much later it was read: the wait of the clients
for a core and for each other. With a rate, `late` counts those that were sent more than
50 ms after they were due.

    python benchmarks/load.py --port 8000 --requests requests.json --clients 64 --seconds 60
    python benchmarks/load.py ... --rate 5000        # so many a second, whatever comes back

The file of requests: path, media type, and a list of [body, expected columns].
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import struct
import time
from collections import Counter
from pathlib import Path

TOLERANCE = 1e-6
"""Rows in one call differ by rounding from rows alone: of float32, in models of tables."""
STAMPS = 35
"""Linux's SO_TIMESTAMPNS: what is received says when it came, of the clock `time.time`."""
STAMP = struct.Struct("qq")


class Client:
    """A connection with at most one request open."""

    def __init__(self, port: int, selector: selectors.BaseSelector) -> None:
        self.port, self.selector = port, selector
        self.number, self.since, self.came = -1, 0.0, 0.0
        self.connect()

    def connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, STAMPS, 1)
        self.selector.register(self.socket, selectors.EVENT_READ, self)
        self.buffer, self.last = b"", False

    def close(self) -> None:
        self.selector.unregister(self.socket)
        self.socket.close()

    def receive(self) -> tuple[int, bytes] | None:
        """The status and body of a whole answer; status 0 where the connection ended."""
        try:
            data, said, *_ = self.socket.recvmsg(1 << 16, 64)
        except ConnectionError:
            data, said = b"", []
        if not data:
            return 0, b""
        if said:
            seconds, nanoseconds = STAMP.unpack(said[0][2])
            self.came = seconds + 1e-9 * nanoseconds
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return None
        lowered = head.lower()
        self.last = b"connection: close" in lowered
        at = lowered.index(b"content-length:") + 15
        length = int(lowered[at:].split(b"\r\n", 1)[0])
        if len(body) < length:
            return None
        self.buffer = body[length:]
        return int(head.split(b" ", 2)[1]), body


def same(given: bytes, expected: dict[str, list]) -> bool:
    """Whether an answer says what is expected, numbers up to `TOLERANCE`."""
    columns = json.loads(given)
    if "outputs" in columns:  # of the Open Inference Protocol
        columns = {one["name"]: one["data"] for one in columns["outputs"]}
    for name, values in expected.items():
        pairs = list(zip(columns.get(name, []), values, strict=False))
        if len(pairs) != len(values):
            return False
        for a, b in pairs:
            close = abs(a - b) <= TOLERANCE if isinstance(b, float) else a == b
            if not close:
                return False
    return True


class Load:
    """Clients that ask for some seconds, and what they were answered."""

    def __init__(self, port: int, given: dict, clients: int, rate: float) -> None:
        self.expected = [answer for _, answer in given["requests"]]
        self.asks = [_request(given, body.encode()) for body, _ in given["requests"]]
        self.rate = rate
        self.selector = selectors.DefaultSelector()
        self.free = [Client(port, self.selector) for _ in range(clients)]
        self.statuses: Counter[int] = Counter()
        self.latency: dict[int, list[float]] = {200: [], 503: []}
        self.read: list[float] = []
        self.sent = self.open = self.wrong = self.late = 0
        self.gone = False

    def run(self, seconds: float) -> dict:
        """Ask for ``seconds``, then wait for what is open."""
        self.begin, cpu = time.perf_counter(), time.process_time()
        self.end = self.begin + seconds
        while True:
            now = time.perf_counter()
            self.send(now)
            if not self.open and (now >= self.end or self.gone):
                break
            due = self.begin + self.sent / self.rate - now if self.rate else 0.05
            wait = max(0.0, min(due, 0.05)) if self.free else 0.05
            for key, _ in self.selector.select(wait):
                self.receive(key.data)
        taken = min(time.perf_counter(), self.end) - self.begin
        return {
            "busy": (time.process_time() - cpu) / taken,
            "requests": self.sent, "seconds": taken, "wrong": self.wrong, "late": self.late,
            "statuses": dict(self.statuses), "rate": self.statuses[200] / taken,
            "latency": {str(s): quantiles(v) for s, v in self.latency.items()},
            "read": quantiles(self.read),
        }  # fmt: skip

    def send(self, now: float) -> None:
        """What is due, as far as connections are free."""
        while self.free and not self.gone:
            due = self.begin + self.sent / self.rate if self.rate else now
            if due > now or now >= self.end:
                return
            client = self.free.pop()
            client.number, client.since = self.sent % len(self.asks), time.time()
            try:
                client.socket.sendall(self.asks[client.number])
            except ConnectionError:
                client.number, self.gone = -1, True
                return
            self.sent, self.open = self.sent + 1, self.open + 1
            self.late += now - due > 0.05

    def receive(self, client: Client) -> None:
        """What has come for a client."""
        answer = client.receive()
        if answer is None:
            return
        status, body = answer
        asked, client.number = client.number, -1
        if asked >= 0:
            self.open -= 1
            self.statuses[status] += 1
        if status in self.latency:
            self.latency[status].append(client.came - client.since)
            self.read.append(time.time() - client.came)
        if status == 200:
            self.wrong += not same(body, self.expected[asked])
        if status and not client.last:
            self.free.append(client)
            return
        client.close()
        try:
            if asked >= 0 or client.last:
                raise ConnectionError("the service has ended")
            client.connect()  # it was silent for longer than the server keeps connections
        except ConnectionError:
            self.gone = True
            if client in self.free:
                self.free.remove(client)


def _request(given: dict, content: bytes) -> bytes:
    head = f"POST {given['path']} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: {given['media']}\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def quantiles(values: list[float]) -> dict[str, float]:
    """Median, 99th percentile and largest, in milliseconds."""
    if not values:
        return {}
    values = sorted(values)
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {
        n: 1e3 * values[min(len(values) - 1, int(q * len(values)))] for n, q in at.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--requests", type=Path, required=True)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=0, help="a second; 0: as they can")
    given = parser.parse_args()
    asks = json.loads(given.requests.read_text())
    load = Load(given.port, asks, given.clients, given.rate)
    print(json.dumps(load.run(given.seconds)))


if __name__ == "__main__":
    main()
