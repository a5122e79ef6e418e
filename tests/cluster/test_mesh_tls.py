"""Where Dask encrypts, so do the lines of a mesh."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest
from tests.cluster.desk import Desk, total, work

from mlopt.cluster import MeshDask
from mlopt.cluster.connect import dask_default_kept
from mlopt.cluster.lines import Line
from mlopt.errors import WireError


@pytest.fixture
def security(tmp_path: Path) -> Any:
    """Of Dask, with a certificate that is its own authority."""
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


@pytest.mark.cluster
@pytest.mark.slow
def test_where_workers_use_tls_so_do_lines(security: Any) -> None:
    with (
        dask_default_kept(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, security=security, protocol="tls://",
            host="127.0.0.1", dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
        MeshDask(client) as mesh,
    ):  # fmt: skip
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
