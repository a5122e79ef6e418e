"""IDX files: what was written comes back, whole or by blocks, and broken ones are named."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.library.image import ImageVectorizer, PixelScaler
from mlopt.pipeline.library.util import Cacher
from mlopt.readers import read_idx, read_idx_pair

CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
IMAGES = np.random.default_rng(0).integers(0, 255, (11, 5, 4)).astype(np.uint8)


def idx(array: Any) -> bytes:
    code = CODES[f"{array.dtype.kind}{array.dtype.itemsize}"]
    sizes = np.array(array.shape, ">u4").tobytes()
    values = array.astype(array.dtype.newbyteorder(">")).tobytes()
    return b"".join([bytes([0, 0, code, array.ndim]), sizes, values])


def written(tmp_path: Path, content: bytes, name: str = "images") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@given(
    st.sampled_from(sorted(CODES)).flatmap(
        lambda kind: arrays(kind, array_shapes(min_dims=1, max_dims=4, max_side=5))
    ),
    st.booleans(),
)
def test_arrays_come_back(
    tmp_path_factory: pytest.TempPathFactory, array: Any, packed: bool
) -> None:
    content = gzip.compress(idx(array)) if packed else idx(array)
    found = read_idx(written(tmp_path_factory.mktemp("idx"), content))

    assert found.dtype == array.dtype
    assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")


@pytest.mark.parametrize("rows", [1, 4, 11, 20])
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_blocks_are_read_when_they_are_needed(
    tmp_path: Path, rows: int, dtype: str
) -> None:
    path = written(tmp_path, idx(IMAGES.astype(dtype)))
    lazy = read_idx(path, block_rows=rows)

    assert lazy.chunks[0] == tuple(min(rows, 11 - at) for at in range(0, 11, rows))
    assert lazy.dtype == np.dtype(dtype)
    assert np.array_equal(lazy.compute(), IMAGES)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        lazy.compute()


def test_a_pipeline_reads_blocks_of_images(tmp_path: Path) -> None:
    lazy = read_idx(written(tmp_path, idx(IMAGES)), block_rows=4)
    steps = [PixelScaler(), ImageVectorizer(), Cacher(), StandardScaler()]
    found = mlopt.make_pipeline(*steps).fit_transform(lazy)

    rows = IMAGES.reshape(11, 20) / 255
    assert np.allclose(found, StandardScaler().fit_transform(rows), atol=1e-5)


def test_images_with_their_labels(tmp_path: Path) -> None:
    images = written(tmp_path, idx(IMAGES))
    labels = written(tmp_path, idx(np.arange(11, dtype="u1")), "labels")
    X, y = read_idx_pair(images, labels)

    assert X.shape == (11, 5, 4)
    assert y.tolist() == list(range(11))
    few = written(tmp_path, idx(np.arange(7, dtype="u1")), "labels")
    with pytest.raises(InputError, match=r"a label for each of 11 images.*\(7,\)"):
        read_idx_pair(images, few)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (idx(IMAGES)[:-3], "must hold 220 bytes of values by its header, but holds 217"),
        (idx(IMAGES) + b"more", "bytes of values by its header, but holds 22"),
        (idx(IMAGES)[:9], "must have a header of 16 bytes, but ends after 9"),
        (b"PNG" + idx(IMAGES), "must begin as IDX does"),
        (b"\0\0\7\1\0\0\0\1x", "but begins with [0, 0, 7, 1]"),
        (gzip.compress(idx(IMAGES))[:-20], "copied whole"),
        (b"", "is empty"),
    ],
    ids=["short", "long", "header", "magic", "type", "gzip", "empty"],
)  # fmt: skip
def test_broken_files_are_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError, match=re.escape(says)) as caught:
        read_idx(path)
    assert str(path) in str(caught.value)


def test_blocks_of_compressed_and_of_short_files_are_refused(tmp_path: Path) -> None:
    packed = written(tmp_path, gzip.compress(idx(IMAGES)))
    with pytest.raises(InputError, match="decompress it"):
        read_idx(packed, block_rows=4)
    short = written(tmp_path, idx(IMAGES)[:-1])
    with pytest.raises(InputError, match="but holds 219"):
        read_idx(short, block_rows=4)
    with pytest.raises(InputError, match="`block_rows` must be at least 1"):
        read_idx(written(tmp_path, idx(IMAGES)), block_rows=0)
