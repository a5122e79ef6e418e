"""`mlopt serve` under load: rows of many clients in one call, beside a call each.

    python benchmarks/serving.py [--seconds 60]

adult as `mlopt fit` models it; 64 clients, one row a request, every answer compared
with what the model says of that row alone. Server and clients are processes of their own on
loopback and share the cores. Rounds alternate; medians are printed, and CPU seconds a
request, which depend less on what else the machine does.

* gathered: `mlopt serve`; alone: the same stack, one call a request.
* MLServer (`--peers`): the same calls, gathered by its adaptive batching.
* overload: three times the rate that was reached, whatever comes back.
* end: SIGTERM under load. Nothing that was let in may be lost.
* `--emulated`: overload alone, of a model that sleeps for .08 s a call and 1 ms a row
  beside what it computes. A tenth of the requests a second saturates it, so that the event
  loop and the clients have cores enough, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from urllib.request import urlopen

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HERE = Path(__file__).parent
DATA = Path(os.environ.get("MLOPT_DATA", HERE.parents[1] / "shared/data"))
HEADER = (
    "age,workclass,fnlwgt,education,education_num,marital,occupation,relationship,race,sex,"
    "gain,loss,hours,country,income"
)
ROWS = 256
SLEEP = (0.08, 0.001)
"""Seconds of a call and of a row of the model that sleeps: ten times what adult's takes."""
TICK = os.sysconf("SC_CLK_TCK")


def write_adult(folder: Path) -> Path:
    """adult as a CSV file with a header."""
    with gzip.open(DATA / "adult/adult.data.gz", "rt") as file:
        lines = file.read().splitlines()
    path = folder / "adult.csv"
    rows = [line.replace(", ", ",") for line in lines if line.count(",") == 14]
    path.write_text("\n".join([HEADER, *rows, ""]))
    return path


def write_requests(table: Path, model: Path, target: Path) -> None:
    """Requests of a row each, and what the model says of each row alone."""
    import mlopt
    from mlopt.readers import read_table
    from mlopt.sweep.predict import predictions

    frame = read_table(table, target="income").X.iloc[:ROWS]
    loaded = mlopt.load(model)
    asks = []
    for at, row in enumerate(json.loads(frame.to_json(orient="records"))):
        found = predictions(loaded, frame.iloc[at : at + 1], proba=True)
        asks.append([json.dumps([row]), {str(n): found[n].tolist() for n in found}])
    media = "application/json"
    said = {"path": "/predict?proba=true", "media": media, "requests": asks}
    target.write_text(json.dumps(said))


def prepared(folder: Path) -> tuple[Path, Path]:
    """A model of adult as `mlopt fit` makes it, and requests of it, as files."""
    model, requests = folder / "model.skops", folder / "requests.json"
    table = write_adult(folder)
    fit = [sys.executable, "-m", "mlopt", "fit", str(table), "--target", "income"]
    fit += ["--output", str(model)]
    subprocess.run(fit, check=True, stdout=subprocess.DEVNULL)
    write_requests(table, model, requests)
    return model, requests


def peer_requests(requests: Path, target: Path) -> None:
    """The same requests in the Open Inference Protocol, but for those with missing texts,
    which have no form there.
    """
    given = json.loads(requests.read_text())
    asks = []
    for body, expected in given["requests"]:
        (row,) = json.loads(body)
        if None in row.values():
            continue
        inputs = []
        for name, value in row.items():
            kind = {"datatype": "FP64"}
            if isinstance(value, str):
                kind = {"datatype": "BYTES", "parameters": {"content_type": "str"}}
            inputs.append({"name": name, "shape": [1, 1], "data": [value], **kind})
        asks.append([json.dumps({"inputs": inputs}), expected])
    said = {"path": "/v2/models/adult/infer", "media": "application/json"}
    target.write_text(json.dumps({**said, "requests": asks}))


@contextmanager
def peer(python: Path, model: Path, folder: Path):
    """MLServer with the model, and calls of up to 64 rows."""
    http, grpc, metrics = (free_port() for _ in range(3))
    folder.mkdir()
    ports = {"http_port": http, "grpc_port": grpc, "metrics_port": metrics}
    settings = {"host": "127.0.0.1", "debug": False, "parallel_workers": 0, **ports}
    (folder / "settings.json").write_text(json.dumps(settings))
    batches = {"max_batch_size": 64, "max_batch_time": 0.01}
    said = {"name": "adult", "implementation": "peer_mlserver.Adult", **batches}
    said["parameters"] = {"uri": str(model)}
    (folder / "model-settings.json").write_text(json.dumps(said))
    command = ["env", f"PYTHONPATH={HERE}:{HERE.parent / 'src'}"]
    command += [str(python.parent / "mlserver"), "start", str(folder)]
    with served(command, http, "/v2/models/adult/ready") as server:
        yield server


class Served:
    """A server in a process of its own."""

    def __init__(self, command: list[str], port: int, ready: str) -> None:
        self.port = port
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115  (kept)
        self.process = subprocess.Popen(command, stderr=self.log, stdout=self.log)
        for _ in range(1200):
            time.sleep(0.1)
            try:
                urlopen(f"http://127.0.0.1:{port}{ready}").read()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
        raise RuntimeError(self.said())

    def said(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def family(self) -> list[int]:
        """The process and those that it has started."""
        number, found = str(self.process.pid), [self.process.pid]
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                if path.read_text().rpartition(")")[2].split()[1] == number:
                    found.append(int(path.parent.name))
        return found

    def told(self, name: str) -> list[str]:
        """A file of /proc of each of them that has not ended meanwhile."""
        found = []
        for number in self.family():
            with suppress(OSError):
                found.append(Path(f"/proc/{number}/{name}").read_text())
        return found

    def cpu(self) -> float:
        """Seconds of all their threads so far."""
        fields = [text.rpartition(")")[2].split() for text in self.told("stat")]
        return sum(int(one[11]) + int(one[12]) for one in fields) / TICK

    def memory(self) -> float:
        """MB of resident memory, what they share counted in each."""
        sizes = [text.partition("VmRSS:")[2].split() for text in self.told("status")]
        return sum(int(size[0]) for size in sizes if size) / 1024

    def metrics(self) -> dict[str, float]:
        text = urlopen(f"http://127.0.0.1:{self.port}/metrics").read().decode()
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#"]
        return {name: float(value) for name, value in lines}


@contextmanager
def served(command: list[str], port: int, ready: str = "/ready"):
    server = Served(command, port, ready)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.terminate()
            server.process.wait(60)


def load(port: int, requests: Path, seconds: float, clients: int, rate: float = 0):
    """The clients, as a process that is running."""
    command = [sys.executable, HERE / "load.py", "--port", port, "--requests", requests]
    command += ["--seconds", seconds, "--clients", clients, "--rate", rate]
    return subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)


def result(process) -> dict:
    out, _ = process.communicate()
    return json.loads(out)


def measured(server: Served, *args) -> dict:
    """A load, with what it took of the server."""
    cpu, memory = server.cpu(), server.memory()
    found = result(load(server.port, *args))
    spent, asked = server.cpu() - cpu, max(1, found["requests"])
    found["cpu"], found["a second"] = 1e3 * spent / asked, asked / spent
    found["memory"] = (memory, server.memory())
    return found


def show(name: str, found: dict) -> None:
    said = f"{name:10} {found['rate']:7.0f} answers/s  {quantiles(found, '200')}"
    said += f"  server {found['cpu']:.2f} CPU ms a request"
    said += f" ({found['a second']:.0f} a CPU second)"
    said += f"  clients {found['busy']:.0%} of a core, {found['late']} late,"
    said += f" read {found['read'].get('p99', 0):.1f} ms later at p99"
    said += f"  wrong {found['wrong']}  {found['statuses']}"
    if found["latency"]["503"]:
        said += f"  503: {quantiles(found, '503')}"
    print(f"{said}  load {os.getloadavg()[0]:.1f}", flush=True)


def quantiles(found: dict, status: str) -> str:
    """Latency of the answers with a status."""
    of = found["latency"][status]
    return ", ".join(f"{name} {of.get(name, 0):.1f}" for name in ("p50", "p99")) + " ms"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--peers", type=Path, help="Python that has serving-peers.txt")
    parser.add_argument("--emulated", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (emulate if given.emulated else compare)(Path(folder), given)


def emulate(folder: Path, given: argparse.Namespace) -> None:
    """What is let in beside 64 clients, and how soon the rest is refused."""
    model, requests = prepared(folder)
    for _ in range(given.rounds):
        port = free_port()
        command = [sys.executable, __file__, "--asleep", str(model), str(port)]
        with served(command, port) as server:
            overload(server, requests, given.seconds / 2, given.clients, 1000)


def overload(
    server: Served, requests: Path, seconds: float, usual: int, clients: int
) -> None:
    """Three times what `usual` clients reach, asked by `clients`."""
    before = measured(server, requests, seconds, usual)
    show(f"{usual} clients", before)
    over = measured(server, requests, seconds, clients, 3 * before["rate"])
    show("overload", over)
    print(f"p99 of what was let in: {ratio(over, before):.2f}x; answers "
          f"{over['rate'] / before['rate']:.2f}x; credits for "
          f"{server.metrics()['mlopt_credit_rows']:.0f} rows\n")  # fmt: skip


def compare(folder: Path, given: argparse.Namespace) -> None:
    model, requests = prepared(folder)
    ports = [free_port() for _ in range(2)]
    together = [sys.executable, "-m", "mlopt", "serve", str(model)]
    together += ["--port", str(ports[0])]
    alone = [sys.executable, str(HERE / "serving.py"), "--alone", str(model), str(ports[1])]
    short = max(2.0, given.seconds / (2 * given.rounds))
    rates: dict[str, list[dict]] = {"gathered": [], "alone": []}
    with served(together, ports[0]) as ours, served(alone, ports[1]) as theirs:
        for _ in range(given.rounds):
            for name, server in (("gathered", ours), ("alone", theirs)):
                found = measured(server, requests, short, given.clients)
                show(name, found)
                rates[name].append(found)
        middle = {n: median(f["rate"] for f in found) for n, found in rates.items()}
        cpu = {n: median(f["cpu"] for f in found) for n, found in rates.items()}
        print(f"\nrequests a second: {middle['gathered'] / middle['alone']:.1f}x; CPU a "
              f"request: {cpu['alone'] / cpu['gathered']:.1f}x less\n")  # fmt: skip
        if given.peers:
            same = folder / "peer.json"
            peer_requests(requests, same)
            with peer(given.peers.absolute(), model, folder / "mlserver") as theirs:
                for _ in range(given.rounds):
                    show("gathered", measured(ours, requests, short, given.clients))
                    show("MLServer", measured(theirs, same, short, given.clients))
        whole = measured(ours, requests, given.seconds, given.clients)
        show("a minute", whole)
        counted = ours.metrics()
        rows = counted["mlopt_call_rows_sum"] / counted["mlopt_call_rows_count"]
        first, last = whole["memory"]
        print(f"memory: {first:.0f} MB before, {last:.0f} MB after; "
              f"{rows:.0f} rows a call\n")  # fmt: skip
        # more than have credits, or nobody would be refused
        credits = int(counted["mlopt_credit_rows"])
        clients = min(1000, max(8 * given.clients, 2 * credits))  # open files are bounded
        overload(ours, requests, given.seconds / 4, given.clients, clients)
        end(ours, requests, given.clients)


def ratio(over: dict, usual: dict) -> float:
    return over["latency"]["200"]["p99"] / usual["latency"]["200"]["p99"]


def end(server: Served, requests: Path, clients: int) -> None:
    """SIGTERM in the middle of a load."""
    asking = load(server.port, requests, 10, clients)
    time.sleep(3)
    before = server.metrics()
    begin = time.perf_counter()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(60)
    taken = time.perf_counter() - begin
    found = result(asking)
    print(f"SIGTERM: {before['mlopt_open_requests']:.0f} open a moment before; ended in "
          f"{taken:.2f} s, status {server.process.returncode}; clients got "
          f"{found['statuses']}, wrong {found['wrong']}; {server.said().splitlines()[-1]}; "
          f"{before['mlopt_answered_total']:.0f} answered before")  # fmt: skip


def serve_alone(model: str, port: str) -> None:
    """The same service, one call of the model a request."""
    from mlopt.serving.app import Limits
    from mlopt.serving.server import Where, serve
    from mlopt.serving.service import Service

    # as many as there are clients may wait, however slow each is
    service = Service(Path(model), gather=False, apart=True, latency=60.0)
    serve(service, Where(port=int(port)), Limits(), print)


def serve_asleep(model: str, port: str) -> None:
    """A service whose model sleeps."""
    from mlopt.serving import answering
    from mlopt.serving.app import Limits
    from mlopt.serving.server import Where, serve
    from mlopt.serving.service import Service

    true = answering.predictions

    def slowly(estimator, frame, **options):
        time.sleep(SLEEP[0] + SLEEP[1] * len(frame))
        return true(estimator, frame, **options)

    answering.predictions = slowly
    answering.time.process_time = time.perf_counter  # what it sleeps is what a call costs
    serve(Service(Path(model), latency=1.0), Where(port=int(port)), Limits(), print)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        serve_alone(*sys.argv[2:])
    elif sys.argv[1:2] == ["--asleep"]:
        serve_asleep(*sys.argv[2:])
    else:
        main()
