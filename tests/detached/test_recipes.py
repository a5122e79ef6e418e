"""The recipes of docs/jobs.md, as far as one machine can run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.interrupted import write_people

EXAMPLES = Path(__file__).parents[2] / "examples"


def manifests() -> dict[tuple[str, str], Any]:
    """What the file for Kubernetes declares, by kind and name."""
    found = list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def test_the_parts_of_the_pool_on_kubernetes_fit() -> None:
    found = manifests()
    service = found["Service", "mlopt-scheduler"]["spec"]
    scheduler = found["Deployment", "mlopt-scheduler"]["spec"]
    worker = found["Deployment", "mlopt-worker"]["spec"]
    assert scheduler["replicas"] == 1
    for one in (scheduler, worker):
        labels = one["template"]["metadata"]["labels"]
        assert labels == one["selector"]["matchLabels"]
    assert service["selector"] == scheduler["selector"]["matchLabels"]
    pods = [one["template"]["spec"] for one in (scheduler, worker)]
    for what in ("volumes",):
        assert pods[0][what] == pods[1][what]
    (first,), (second,) = (pod["containers"] for pod in pods)
    for what in ("image", "env", "volumeMounts"):
        assert first[what] == second[what]
    declared = {volume["name"] for volume in pods[0]["volumes"]}
    assert {mount["name"] for mount in first["volumeMounts"]} == declared
    port = service["ports"][0]["port"]
    assert f"tls://mlopt-scheduler:{port}" in second["args"]
    assert "tls://" in first["args"]
    assert str(port) in first["args"]
    limit = second["args"][second["args"].index("--memory-limit") + 1]
    assert limit == f"{second['resources']['limits']['memory']}B"


def test_certificates_on_kubernetes_are_those_that_dask_asks_for() -> None:
    held = manifests()["ConfigMap", "mlopt-dask"]["data"]["tls.yaml"]
    comm = yaml.safe_load(held)["distributed"]["comm"]
    assert comm["require-encryption"] is True
    files = {comm["tls"]["ca-file"]}
    for role in ("client", "scheduler", "worker"):
        files |= set(comm["tls"][role].values())
    assert files == {f"/certificates/{name}.pem" for name in ("ca", "cert", "key")}


@pytest.mark.cluster
@pytest.mark.slow
def test_a_sweep_runs_on_the_stand_in_for_slurm(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue", reason="a recipe, and no dependency")
    command = [sys.executable, str(EXAMPLES / "slurm_pool.py"), "--here", "--nodes", "1"]
    command += [str(write_people(tmp_path)), "buys", "--storage", str(tmp_path / "jobs")]
    done = subprocess.run([*command, "--timeout", "10"], capture_output=True, text=True)
    assert "people-" in done.stdout, done.stderr
