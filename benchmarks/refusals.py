"""What a refusal of `mlopt serve` takes of the event loop: CPU, with reading and writing.

    python benchmarks/refusals.py [--rounds 5] [--before SRC]

64 connections in one process, over pairs of sockets, each asked 200 times while no credit
is left. `--before` names other sources to measure in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import uvicorn
from uvicorn.server import ServerState

from mlopt.serving.app import refusal
from mlopt.serving.metrics import Metrics
from mlopt.serving.microbatch import Microbatches, Request
from mlopt.serving.protocol import Protocol

CONNECTIONS, TIMES = 64, 200
BODY = b'[{"age": 39, "work": "State-gov", "hours": 40, "country": "United-States"}]'
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
ASKED = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def full() -> SimpleNamespace:
    """As much of a service as a refusal needs, without a credit."""
    queue = Microbatches(0.1, 1 << 20)
    for rows in (1, 64, 1024):
        queue.cost.tried(rows, 0.008 + 5e-5 * rows)
    while queue.admit(Request(0, 1)):
        pass
    service = SimpleNamespace(ready=True, metrics=Metrics(), queue=queue)
    service.expect = lambda: not queue.full
    return service


async def nobody(scope: object, receive: object, send: object) -> None:
    """What is served if a request is not refused."""


async def seconds() -> float:
    """CPU of one refusal."""
    service, loop, clients = full(), asyncio.get_running_loop(), []
    logging.disable()
    config = uvicorn.Config(nobody, lifespan="off", ws="none")
    config.load()
    given = {"config": config, "server_state": ServerState(), "app_state": {}}
    for _ in range(CONNECTIONS):
        near, far = socket.socketpair()
        near.setblocking(False)
        made = partial(Protocol, partial(refusal, service), **given)
        await loop.connect_accepted_socket(made, near)
        clients.append(far)
    spent, refused = 0.0, service.metrics.answers
    for wanted in range(CONNECTIONS, CONNECTIONS * (TIMES + 1), CONNECTIONS):
        for client in clients:
            client.send(ASKED)
        began = time.thread_time()
        while refused[503] < wanted:
            await asyncio.sleep(0)
        spent += time.thread_time() - began
        for client in clients:
            client.recv(1 << 16)
    return spent / (CONNECTIONS * TIMES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path)
    given = parser.parse_args()
    if not given.before:
        least = min(asyncio.run(seconds()) for _ in range(given.rounds))
        print(f"{1e6 * least:.1f} us of CPU a refusal")
        return
    for _ in range(given.rounds):
        sources = {"before": str(given.before), "now": os.environ["PYTHONPATH"]}
        for name, source in sources.items():
            print(f"{name}: ", end="", flush=True)
            environment = {**os.environ, "PYTHONPATH": source}
            command = [sys.executable, __file__, "--rounds", "3"]
            subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    main()
