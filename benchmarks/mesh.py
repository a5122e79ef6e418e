"""What a mesh of worker processes costs, beside bare sockets in the same run.

Two workers of one machine. One asks the other: for a pull (nothing there, an array back,
into memory that is there already) and a push (an array there, nothing back). In turn with
the pulls of each size, an array of that size goes over a socket that does nothing else: a
byte there, `sendall`, a loop of `recv_into`. Printed are medians: seconds of wall time of
one pull, and processor seconds of the asking process and of the asked one.

Then a member is killed some times (SIGKILL) while it is asked: seconds until the ask fails,
and until the driver is told and `members` is without it.

usage: mesh.py [--rounds 9] [--kills 5]
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import statistics
import sys
import threading
import time
from functools import partial

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import cloudpickle
import numpy as np

from mlopt.cluster import Header, MeshDask, Service, local_cluster
from mlopt.errors import MemberLostError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SIZES = (1_000, 100_000, 1_000_000, 10_000_000)
# Pulls in a round: about 50 ms of them.
REPEATS = {1_000: 500, 100_000: 200, 1_000_000: 50, 10_000_000: 8}


class Shelf(Service):
    """Arrays that nobody changes, over the mesh and over a bare socket."""

    def __init__(self, site):
        self.arrays = {size: np.ones(size // 8) for size in SIZES}
        self.listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve_bare, daemon=True).start()

    def answer(self, operation, header, arrays):
        if operation == "pull":
            return header, [self.arrays[header.block]]
        if operation == "seconds":
            return Header(more={"seconds": time.process_time()}), []
        if operation == "where":
            return Header(block=self.listening.getsockname()[1], client=os.getpid()), []
        if operation == "wait":
            time.sleep(600)
        return header, []

    def serve_bare(self):
        while True:
            line, _ = self.listening.accept()
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while size := line.recv(8):
                line.sendall(
                    memoryview(self.arrays[int.from_bytes(size, "little")]).cast("B")
                )

    def close(self):
        self.listening.close()


class Bare:
    """The other end of `serve_bare`."""

    def __init__(self, port):
        self.line = socket.create_connection(("127.0.0.1", port))
        self.line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def pull(self, size, out):
        view, got = memoryview(out).cast("B"), 0
        self.line.sendall(size.to_bytes(8, "little"))
        while got < len(view):
            got += self.line.recv_into(view[got:])


def measured(call, times, asked):
    """Of one call: median seconds of wall time; processor seconds here and at the asked."""
    there, here, walls = asked(), time.process_time(), []
    for _ in range(times):
        began = time.perf_counter()
        call()
        walls.append(time.perf_counter() - began)
    here = time.process_time() - here
    return statistics.median(walls), here / times, (asked() - there) / times


def compare(site, other, rounds):
    """In a resident task: by size and way, medians of the rounds."""
    line = Bare(site.ask(other, "where")[0].block)

    def asked():
        return site.ask(other, "seconds")[0].more["seconds"]

    found = {}
    for size in SIZES:
        out, header = np.empty(size // 8), Header(block=size)
        ways = {
            "bare": partial(line.pull, size, out),
            "pull": partial(site.ask, other, "pull", header, into=[out]),
            "push": partial(site.ask, other, "push", arrays=[out]),
        }
        times = {way: [] for way in ways}
        for number in range(rounds + 1):
            for way, call in ways.items():
                taken = measured(call, REPEATS[size], asked)
                if number:  # not the first
                    times[way].append(taken)
        found[size] = {way: medians(rows) for way, rows in times.items()}
        found[size]["ratios"] = medians(
            [pull / bare for pull, bare in zip(*pair, strict=True)]
            for pair in zip(times["pull"], times["bare"], strict=True)
        )
    return found


def medians(rows):
    """By column."""
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def kill(mesh):
    """Seconds until the ask in flight fails, and until the driver knows."""
    told, failed = threading.Event(), []
    came = threading.Event()
    seen = []

    def watch(member, here):
        if here:
            came.set()
        else:
            seen.append(time.monotonic())
            assert member not in mesh.members
            told.set()

    end = mesh.watch(watch)
    member = mesh.members[-1]
    pid = mesh.ask(member, "where")[0].client

    def wait():
        try:
            mesh.ask(member, "wait")
        except MemberLostError:
            failed.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    thread.join()
    told.wait()
    came.wait()
    end()
    return failed[0] - began, seen[0] - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--kills", type=int, default=5)
    given = parser.parse_args()
    with local_cluster(2) as client, MeshDask(client) as mesh:
        mesh.serve(Shelf)
        first, second = mesh.members
        found = mesh.start(second, compare, first, given.rounds).result()
        print(f"{'bytes':>10}  {'':4}  {'wall ms':>8}  {'CPU ms here':>11}  {'there':>7}")
        for size, ways in found.items():
            for way in ("bare", "pull", "push"):
                wall, here, there = (1e3 * seconds for seconds in ways[way])
                print(f"{size:>10}  {way:4}  {wall:8.3f}  {here:11.3f}  {there:7.3f}")
            print("    pull : bare  {:8.2f}x {:11.2f}x {:7.2f}x".format(*ways["ratios"]))
        lost = [kill(mesh) for _ in range(given.kills)]
        for what, seconds in zip(
            ("the ask fails", "the driver knows"), zip(*lost, strict=True), strict=True
        ):
            print(f"SIGKILL, until {what}: median {statistics.median(seconds):.3f} s, "
                  f"longest {max(seconds):.3f} s of {given.kills}")  # fmt: skip


if __name__ == "__main__":
    main()
