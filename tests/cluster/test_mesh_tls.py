"""Where Dask encrypts, so do the lines of a mesh, and jobs."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.cluster.desk import Desk, total, work

import mlopt
from mlopt.cluster import MeshDask
from mlopt.cluster.connect import dask_default_kept
from mlopt.cluster.lines import Line
from mlopt.errors import WireError

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def security(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of Dask, with a certificate that is its own authority."""
    tmp_path = tmp_path_factory.mktemp("certificates")
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made by openssl, which is not here")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "1", "-subj", "/CN=mesh"],
        check=True, capture_output=True,
    )  # fmt: skip
    roles = {
        f"tls_{role}_{what}": path
        for role in ("client", "scheduler", "worker")
        for what, path in (("key", key), ("cert", certificate))
    }
    return distributed.Security(tls_ca_file=certificate, require_encryption=True, **roles)


@pytest.fixture(scope="module")
def client(security: Any) -> Iterator[Any]:
    with (
        dask_default_kept(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, security=security, protocol="tls://",
            host="127.0.0.1", dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


def test_where_workers_use_tls_so_do_lines(security: Any, client: Any) -> None:
    with MeshDask(client) as mesh:
        mesh.serve(Desk)
        first, second = mesh.members
        assert first.startswith("tls://")
        assert mesh.start(second, work, first, 2).result(60) == (second, 0)
        X = np.arange(500_000.0)
        np.testing.assert_array_equal(mesh.ask(first, "echo", arrays=[X])[1][0], X)

        address, secret = mesh._joined[first].address, mesh._secret
        with socket.create_connection(address, timeout=30) as plain:
            heard = b""
            with contextlib.suppress(ConnectionError):
                plain.sendall(bytes(100))
                heard = plain.recv(100)
            assert len(heard) != 16  # no nonce; an alert of TLS is shorter
        without = ssl.create_default_context(cafile=security.tls_ca_file)
        without.check_hostname = False
        with pytest.raises((OSError, WireError)):  # no certificate
            Line(first, address, secret, context=without)
        with pytest.raises(WireError, match="secret"):
            Line(first, address, b"a guess", context=mesh._context)
        assert total(mesh, first) == 2


def test_a_job_reaches_its_pool_where_that_uses_tls(client: Any, tmp_path: Path) -> None:
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20) > 9
    search = mlopt.ModelSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2)
    job = mlopt.submit(search, X, y, scheduler=client, storage=tmp_path)
    assert job.result(60).best_score_ == search.fit(X, y).best_score_
    assert job.record.worker.startswith("tls://")
