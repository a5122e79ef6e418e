"""Sources: every row once, every row equally likely, and no byte more than needed."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.gd.operators.cases import batch_of, problem, source, write_csv, write_libsvm

from mlopt.errors import InputError
from mlopt.gd.operators import (
    PLANS,
    Context,
    CsvSource,
    LibsvmSource,
    Settings,
    ShuffledPartition,
    Source,
    plan_row,
)
from mlopt.gd.operators.interfaces import stacked


def everything(of: Source) -> tuple[np.ndarray, np.ndarray]:
    batch = stacked([of.parser(units, Context()) for units in of.scan()])
    X = batch.X.toarray() if sp.issparse(batch.X) else batch.X
    return X, batch.y


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("text") / "data.csv"
    X, y = problem(200, 3)
    return write_csv(path, np.round(X, 3), y, header=True)


@given(st.integers(1, 9000))
def test_partitions_hold_every_line_once(lines: str, size: int) -> None:
    X, y = everything(CsvSource(lines, partition_bytes=size))
    expected, labels = problem(200, 3)
    np.testing.assert_array_equal(X, np.round(expected, 3))
    np.testing.assert_array_equal(y, labels)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("header", [True, False])
def test_csv_with_and_without_header(tmp_path: Path, header: bool, end: str) -> None:
    X, y = problem(50, 4)
    path = write_csv(tmp_path / "a.csv", X, y, header, end)
    found = CsvSource(path, partition_bytes=700)
    np.testing.assert_array_equal(everything(found)[0], X)
    assert (found.columns, found.n) == (4, 50)
    chosen = [49, 0, 17, 17]
    batch = found.parser(found.take(np.array(chosen)), Context())
    np.testing.assert_array_equal(batch.X, X[chosen])


def test_the_last_line_needs_no_end_and_blank_lines_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,2,3\n\n4,5,6\n   \n7,8,9")
    found = CsvSource(path, target=-1, partition_bytes=5)
    X, y = everything(found)
    assert X.tolist() == [[1, 2], [4, 5], [7, 8]]
    assert y.tolist() == [3, 6, 9]


def test_columns_and_labels_are_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("name,a,b,class\nann,1,2,3\nbob,4,5,6\n")
    X, y = everything(CsvSource(path, target="class", columns=["b", "a"], positive=6))
    assert X.tolist() == [[2, 1], [5, 4]]
    assert y.tolist() == [-1, 1]
    with pytest.raises(InputError, match=r"cannot be parsed.*transform"):
        everything(CsvSource(path, target="class"))


def test_libsvm_is_sparse_and_finds_its_columns(tmp_path: Path) -> None:
    X, y = problem(80, 6)
    X[np.abs(X) < 0.7] = 0
    path = write_libsvm(tmp_path / "a.txt", X, y)
    found = LibsvmSource(path, partition_bytes=300)
    assert found.columns == 6
    np.testing.assert_array_equal(everything(found)[0], X)
    np.testing.assert_array_equal(everything(found)[1], y)
    # A line that lacks the last columns has them all the same.
    batch = found.parser([b"+1 1:2.5"], Context())
    assert batch.X.shape == (1, 6)


def test_comments_of_libsvm_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("# made by hand\n1 1:2 # the first\n\n#\n-1 2:3\n# the end\n")
    source = LibsvmSource(path)
    assert (source.n, source.columns) == (2, 2)
    batch = source.parse(source.partition(0))
    assert batch.y.tolist() == [1.0, -1.0]
    assert len(source.take(np.array([1, 0]))) == 2
    drawn = source.random(np.random.default_rng(0), 9)
    assert all(b":" in line for line in drawn)


@pytest.mark.parametrize("wrong", ["1 1:2 2:inf", "1 1:nan", "nan 1:2"])
def test_values_of_libsvm_must_be_finite(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "a.svm").write_text(f"-1 1:1\n{wrong}\n")
    with pytest.raises(InputError, match=r"cannot be parsed: values must be finite numb"):
        everything(LibsvmSource(tmp_path / "a.svm"))


def test_rows_of_a_matrix_come_in_the_order_asked() -> None:
    X, y = problem(100, 3)
    for blocks in (None, 13):
        batch = batch_of(source(X, y, blocks).take(np.array([70, 3, 99, 3])))
        np.testing.assert_array_equal(batch.X, X[[70, 3, 99, 3]])
        np.testing.assert_array_equal(batch.y, y[[70, 3, 99, 3]])


def test_compressed_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(b"1,2\n3,4\n"))
    with pytest.raises(InputError, match=r"plain text.*Unpack"):
        CsvSource(packed)
    with pytest.raises(InputError, match="there is none"):
        CsvSource(tmp_path / "none.csv")
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(InputError, match="empty"):
        CsvSource(empty)


@pytest.mark.slow
def test_random_lines_are_equally_likely_whatever_their_length(tmp_path: Path) -> None:
    # Long lines are ten times as long as short ones, and the file is sorted.
    path = tmp_path / "a.csv"
    rows = [f"{i},1" if i < 20 else f"{i},1.{'0' * 30}" for i in range(10, 50)]
    path.write_text("\n".join(rows) + "\n")
    found = CsvSource(path, partition_bytes=100)
    drawn = found.random(np.random.default_rng(0), 4000)
    counts = np.bincount([int(line.split(b",")[0]) - 10 for line in drawn], minlength=40)
    assert chisquare(counts).pvalue > 0.001


def test_a_shuffled_partition_is_used_up_before_another_is_read() -> None:
    X = np.arange(90.0)[:, None]
    data = source(X, np.ones(90), block_rows=30)
    sampler, context = ShuffledPartition(size=8), Context(seed=3, iteration=1)
    seen = []
    for _ in range(8):
        batch = batch_of(sampler.draw(data, context))
        seen.append(batch.X[:, 0])
    # 30 rows by 8 are four iterations, the last with the six rows left.
    assert [len(rows) for rows in seen] == [8, 8, 8, 6] * 2
    for visit in (seen[:4], seen[4:]):
        rows = np.concatenate(visit)
        first = rows.min()
        assert first % 30 == 0
        assert sorted(rows) == list(np.arange(first, first + 30))
        assert list(rows) != sorted(rows)


def test_lazy_and_eager_plans_give_the_same_weights(tmp_path: Path) -> None:
    X, y = problem(300, 3)
    path = write_csv(tmp_path / "a.csv", X, y)
    settings = Settings(max_iter=40, tolerance=0)
    name = "sgd/{}/shuffled-partition"
    one = CsvSource(path, partition_bytes=1 << 20)
    lazy = plan_row(name.format("lazy")).build(settings).run(one)
    eager = plan_row(name.format("eager")).build(settings).run(one)
    np.testing.assert_array_equal(lazy.weights, eager.weights)


@pytest.mark.slow
def test_a_thousand_lazy_steps_read_a_twentieth_of_the_file(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    n, path = 200_000, tmp_path / "large.csv"
    kinds = np.round(random.standard_normal((1000, 8)), 6)
    texts = [
        f"{1 if row[0] > 0 else -1}," + ",".join(map(str, row)) for row in kinds.tolist()
    ]
    chosen = random.integers(1000, size=n)
    path.write_text("\n".join([texts[i] for i in chosen]) + "\n")
    settings, read = Settings(max_iter=1000, tolerance=0), {}
    for row in PLANS:
        if row.algorithm != "sgd" or row.sampling == "bernoulli":
            continue
        result = row.build(settings).run(CsvSource(path), seed=1)
        assert result.n_iter == 1000
        read[row.name] = result.history[-1]
    size = path.stat().st_size
    for sampling in ("random-partition", "shuffled-partition"):
        eager, lazy = read[f"sgd/eager/{sampling}"], read[f"sgd/lazy/{sampling}"]
        assert eager.bytes_read >= size
        assert eager.rows_parsed == n
        assert lazy.rows_parsed == 1000
        assert lazy.bytes_read < 0.05 * eager.bytes_read
