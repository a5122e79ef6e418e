"""Files that promise more than can be read end in one sentence, not in a wait."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlopt.errors import InputError
from mlopt.readers import read_table


def header(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    """An array that promises a shape, and holds eight bytes."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue() + b"\0" * 8


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def sparse(path: Path, **changed: Any) -> Path:
    parts = {
        "data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2]),
        "shape": np.array([2, 2]), "format": np.array("csr"),
    }  # fmt: skip
    np.savez(path, **(parts | changed))
    return path


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="must be a file, but is a pipe or a device"):
        read_table(tmp_path / "pipe")


def test_a_line_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "line.csv"
    path.write_bytes(b"x" * 10_000_000)
    with pytest.raises(InputError, match=r"line\.csv.*first line is longer than 2 MB"):
        read_table(path)


def test_a_field_of_a_line_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "field.csv"
    path.write_bytes(b"a,b\n1," + b"x" * 500_000 + b"\n")
    with pytest.raises(InputError, match=r"field\.csv.*131,072 characters"):
        read_table(path)


def test_a_table_of_a_million_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    row = ",".join("1" * 1_000_000) + "\n"
    path.write_text(row * 2)
    with pytest.raises(InputError, match=r"wide\.csv.*at most 100,000 columns"):
        read_table(path)


def test_an_index_of_billions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.svm"
    path.write_text("1 1:1 2000000000:1\n0 2:1\n")
    with pytest.raises(InputError, match=r"wide\.svm.*2,000,000,000"):
        read_table(path)


@pytest.mark.parametrize("shape", [(8 << 40,), (1 << 20, 1 << 23), (1 << 62, 1 << 62)])
def test_an_array_that_promises_more_than_it_holds_is_refused(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    path = archive(tmp_path / "huge.npz", X=header(shape))
    with pytest.raises(InputError, match=r"huge\.npz.*`X` promises"):
        read_table(path)
    (tmp_path / "huge.npy").write_bytes(header(shape))
    with pytest.raises(InputError, match=r"huge\.npy.*promises"):
        read_table(tmp_path / "huge.npy")


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": np.array([2, 10**12])},
        {"shape": np.array([10**12, 2])},
        {"shape": np.array([10**12, 10**12])},
        {"shape": np.array([-1, 2])},
        {"indices": np.array([0, 7])},
        {"indices": np.array([-5, 1])},
        {"indptr": np.array([0, 5, 2])},
        {"shape": np.array("many")},
        {"format": np.array(1)},
    ],
)
def test_a_sparse_matrix_that_contradicts_itself_is_refused(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    path = sparse(tmp_path / "sparse.npz", **changed)
    with pytest.raises(InputError, match=r"sparse\.npz"):
        read_table(path)


def test_a_sparse_matrix_without_its_shape_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", data=np.ones(1), indices=[0], indptr=[0, 1])
    with pytest.raises(InputError, match=r"s\.npz"):
        read_table(tmp_path / "s.npz")


def test_too_many_open_files_are_named_for_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")

    def full(*_: object, **__: object) -> None:
        raise OSError(24, os.strerror(24), str(tmp_path / "a.csv"))

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(InputError, match=r"a\.csv.*open files.*ulimit -n") as caught:
        read_table(tmp_path / "a.csv")
    assert "permissions" not in str(caught.value)
