"""Readers: whatever a table's format, the same values; and errors that say what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_breast_cancer

from mlopt.errors import InputError
from mlopt.readers import Table, read_table
from mlopt.readers.blocks import read_blocks
from mlopt.readers.table import column
from mlopt.sweep.target import align, target_of

FRAME = pd.DataFrame(
    {"size": [1.5, 2.5, None, 4.0], "kind": ["a", "b, c", "a", np.nan], "y": [0, 1, 1, 0]}
)


def same(table: Table) -> None:
    assert table.names == ("size", "kind")
    assert table.target == "y"
    assert table.rows == 4
    pd.testing.assert_frame_equal(table.X, FRAME[["size", "kind"]])
    pd.testing.assert_series_equal(table.y, FRAME["y"])


def zipped(content: bytes, name: str = "table.csv") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


CSV = FRAME.to_csv(index=False)
PARQUET = FRAME.to_parquet()


SPELLINGS: dict[str, bytes | str] = {
    "plain": CSV,
    "tabs": FRAME.to_csv(index=False, sep="\t"),
    "semicolons": FRAME.to_csv(index=False, sep=";"),
    "bars": FRAME.to_csv(index=False, sep="|"),
    "blanks": FRAME.to_csv(index=False, sep=" ", na_rep="NA", quoting=2),
    "question_marks": FRAME.to_csv(index=False, na_rep="?"),
    "windows_lines": FRAME.to_csv(index=False, lineterminator="\r\n"),
    "row_numbers": FRAME.to_csv(),
    "trailing_separator": CSV.replace("\n", ",\n"),
    "no_last_newline": CSV.rstrip("\n"),
    "byte_order_mark": "\ufeff" + CSV,
    "remarks": "# a remark\n\n% another, with, commas\n" + CSV,
    "adult_test": "|1x3 Cross validator\n" + CSV,
    "title": "A title\n\n" + CSV + "\n\n",
    "spaces": CSV.replace(",", ", ").replace('"b,  c"', '"b, c"').replace("\n", " \n"),
    "gzip": gzip.compress(CSV.encode()),
    "bz2": bz2.compress(CSV.encode()),
    "xz": lzma.compress(CSV.encode()),
    "zip": zipped(CSV.encode()),
    "parquet": PARQUET,
    "parquet_gz": gzip.compress(PARQUET),
    "parquet_zip": zipped(PARQUET),
}


@pytest.mark.parametrize("content", SPELLINGS.values(), ids=SPELLINGS)
def test_every_format_gives_the_same_table(
    content: bytes | str, write: Callable[..., str]
) -> None:
    # Whatever the file is called: what is in it counts.
    path = write(content, "anything.dat")
    same(read_table(path, target="y"))
    same(read_table(path, target="last"))
    whole = read_table(path)
    assert (whole.y, whole.target, whole.names) == (None, None, ("size", "kind", "y"))


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("1,2\n3,4\n", ("c0", "c1"), 2),
        ("5.1,a\n4.9,b\n", ("c0", "c1"), 2),
        ("e,x\np,x\ne,b\n", ("c0", "c1"), 3),
        ("?,x\nNA,x\n", ("c0", "c1"), 2),
        ("text,label\ngood,pos\nbad,neg\n", ("text", "label"), 2),
        ("a,b\n1,x\n2,y\n", ("a", "b"), 2),
        ("a,a,b\n1,2,3\n", ("a", "a.1", "b"), 1),
        ("a,b\nr1,1,2\nr2,3,4\n", ("Unnamed: 0", "a", "b"), 2),
        (",a\n0,5\n1,6\n", ("a",), 2),
        (",a\n7,5\n1,6\n", ("Unnamed: 0", "a"), 2),
        ("A11 6 A34\nA12  8 A32\n", ("c0", "c1", "c2"), 2),
        ("word\nother\n", ("word",), 1),
        ("3\n4\n", ("c0",), 2),
        ("1,2", ("c0", "c1"), 1),
        ("0,1,2\n.5,1.0,7\n1.5,0.0,8\n", ("0", "1", "2"), 2),
        (",0,1\n0,5,6\n1,7,8\n", ("0", "1"), 2),
        ("y,0\n3,4\n5,6\n", ("y", "0"), 2),
        ("None,color,y\n1,red,2\n3,blue,4\n", ("None", "color", "y"), 2),
        ("NA,red\n1,blue\n2,red\n", ("c0", "c1"), 3),
        ("0,1,y\n2,3,4\n5,6,7\n", ("0", "1", "y"), 2),
        ("y,1,2,3\nb,.5,.5,1\na,.5,.5,1\n", ("y", "1", "2", "3"), 2),
        (
            "land,2019,2020,2021\nfr,.5,,.1\nit,.5,1.,.5\n",
            ("land", "2019", "2020", "2021"),
            2,
        ),
        ("0,1\n.5,.9\n1.,.7\n", ("c0", "c1"), 3),
        ("0,1,2\n3,4,5\n6,7,8\n", ("c0", "c1", "c2"), 3),
        ("a,0,1,2\nb,.5,.5,1\na,.5,.5,1\n", ("c0", "c1", "c2", "c3"), 3),
        (",0\n7,5\n1,6\n", ("c0", "c1"), 3),
        ("when,v\n2020-01-01 10:00,1\n2020-01-02 11:00,2\n", ("when", "v"), 2),
    ],
)
def test_headers_are_told_from_values(
    text: str, names: tuple[str, ...], rows: int, write: Callable[..., str]
) -> None:
    table = read_table(write(text))
    assert table.names == names
    assert table.rows == rows


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**60), 2**60)
        ),
        min_size=2,
        max_size=30,
    )
)
def test_numbers_come_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, int]]
) -> None:
    path = tmp_path_factory.mktemp("numbers") / "n.csv"
    frame = pd.DataFrame(rows, columns=["f", "i"])
    frame.to_csv(path, index=False)
    found = read_table(str(path)).X
    np.testing.assert_allclose(found["f"], frame["f"], rtol=1e-14)
    assert (found["i"] == frame["i"]).all()


@pytest.mark.slow
def test_a_column_that_turns_to_text_late_is_text(write: Callable[..., str]) -> None:
    rows = [f"{number},{number}" for number in range(400_000)]
    rows[-1] = "x1,7"
    found = read_table(write("a,b\n" + "\n".join(rows))).X
    assert found["a"].map(type).eq(str).all()
    assert found["b"].dtype == np.int64


def test_quoted_line_ends_belong_to_the_value(write: Callable[..., str]) -> None:
    table = read_table(write('text,v\n"two\nlines",1\n"one",2\n'))
    assert table.X["text"].tolist() == ["two\nlines", "one"]


@pytest.mark.slow
def test_wide_tables_are_read(write: Callable[..., str]) -> None:
    header = ",".join(f"gene{number}" for number in range(5_000))
    row = ",".join(["0.123"] * 5_000)
    assert read_table(write(f"{header}\n{row}\n{row}\n")).X.shape == (2, 5_000)


@pytest.mark.parametrize("target", ["c2", "last", "2", 2, "-1", -1])
def test_a_target_is_a_name_a_number_or_the_last(
    target: str | int, write: Callable[..., str]
) -> None:
    table = read_table(write("1,2,3\n4,5,6\n"), target=target)
    assert table.target == "c2"
    assert table.y.tolist() == [3, 6]


def test_a_name_goes_before_a_number() -> None:
    assert column(["1", "0"], "0", "x") == "0"


def test_a_missing_target_lists_the_columns_and_the_closest() -> None:
    with pytest.raises(InputError, match=r"Did you mean `Income`\? Columns: `age`, `Inc"):
        column(["age", "Income"], "incme", "x")
    with pytest.raises(InputError, match=r"`17`.*`c0`.*`c16`, \.\.\., `c38`, `c39`"):
        column([f"c{number}" for number in range(40)], "c40x", "`17`")


def test_libsvm_is_sparse_and_can_be_widened(write: Callable[..., str]) -> None:
    X = sp.random_array((20, 6), density=0.4, format="csr", rng=np.random.default_rng(0))
    y = np.arange(20) % 3 - 1
    buffer = io.BytesIO()
    dump_svmlight_file(X, y, buffer, zero_based=False)
    path = write(gzip.compress(buffer.getvalue()), "train")
    table = read_table(path)
    assert isinstance(table.X, sp.csr_array)
    np.testing.assert_allclose(table.X.toarray(), X.toarray())
    assert np.array_equal(table.y, y)
    assert table.y.dtype == np.int64
    assert (table.target, table.names[0]) == ("label", "f1")
    assert read_table(path, columns=9).X.shape == (20, 9)
    with pytest.raises(InputError, match="cannot be read"):
        read_table(path, columns=3)
    with pytest.raises(InputError, match="leave `target` out"):
        read_table(path, target="income")


def test_a_libsvm_file_without_a_column_0_is_numbered_as_it_is_told(
    write: Callable[..., str],
) -> None:
    path = write(b"0 1:1 2:1\n", "late")
    for first, row in ((None, [1, 1, 0]), (1, [1, 1, 0]), (0, [0, 1, 1])):
        table = read_table(path, columns=3, numbered_from=first)
        assert table.X.toarray().tolist() == [row]
        assert table.numbered_from == (1 if first is None else first)
    both = write(b"0 0:1\n0 2:1\n", "both")
    assert read_table(both).numbered_from == 0
    with pytest.raises(InputError, match="from 1, as the rows that were trained on"):
        read_table(both, numbered_from=1)


def test_libsvm_may_begin_with_a_comment(write: Callable[..., str]) -> None:
    buffer, X = io.BytesIO(), np.array([[1.0, 0.0], [0.5, 2.0]])
    dump_svmlight_file(X, np.array([1, -1]), buffer, zero_based=False, comment="a: b")
    table = read_table(write(buffer.getvalue()))
    np.testing.assert_array_equal(table.X.toarray(), X)
    np.testing.assert_array_equal(table.y, [1, -1])


def test_queries_of_libsvm_are_left_out(write: Callable[..., str]) -> None:
    rows = write(b"2 qid:1 1:0.5 3:2\n0 qid:1 2:1 # a remark\n1 qid:2 1:4\n", "ranked")
    table = read_table(rows)
    assert table.X.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0], [4, 0, 0]]
    assert list(table.y) == [2, 0, 1]


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


IMAGES = np.arange(24.0).reshape(3, 2, 4)


@pytest.mark.parametrize(
    ("arrays", "target"),
    [
        ({"X": IMAGES, "y": [1, 0, 1]}, None),
        ({"pixels": IMAGES, "labels": [1, 0, 1]}, None),
        ({"pixels": IMAGES, "digit": [1, 0, 1], "other": [9, 9, 9]}, "digit"),
        ({"X": IMAGES, "other": IMAGES, "y": [1, 0, 1]}, None),
    ],
)
def test_npz_holds_a_matrix_and_a_target(
    arrays: dict[str, Any], target: str | None, write: Callable[..., str]
) -> None:
    for content in (npz(**arrays), gzip.compress(npz(**arrays))):
        table = read_table(write(content, "data.npz"), target=target)
        assert np.array_equal(table.X, IMAGES.reshape(3, 8))
        assert table.y.tolist() == [1, 0, 1]
        assert table.names[-1] == "c7"


def test_npz_may_hold_columns_or_one_array_or_csr(write: Callable[..., str]) -> None:
    columns = read_table(write(npz(a=[1, 2], b=[3.0, 4.0])), target="b")
    assert (columns.names, columns.y.tolist()) == (("a",), [3.0, 4.0])
    buffer = io.BytesIO()
    np.save(buffer, IMAGES[0])
    single = read_table(write(buffer.getvalue()), target="last")
    assert (single.names, single.y.tolist()) == (("c0", "c1", "c2"), [3.0, 7.0])
    buffer = io.BytesIO()
    sp.save_npz(buffer, sp.csc_array(np.eye(3)))
    assert np.array_equal(read_table(write(buffer.getvalue())).X.toarray(), np.eye(3))


def test_bundled_sets_have_their_target() -> None:
    table = read_table("sklearn:breast_cancer")
    expected = load_breast_cancer()
    assert np.array_equal(table.X.to_numpy(), expected.data)
    assert np.array_equal(table.y, expected.target)
    assert table.path == "sklearn:breast_cancer"
    other = read_table("sklearn:iris", target="petal width (cm)")
    assert "target" in other.names
    with pytest.raises(InputError, match="Did you mean `iris`"):
        read_table("sklearn:irsi")


GZIPPED = gzip.compress(CSV.encode() * 1000)

BROKEN = [
    (b"", "must hold data, but is empty"),
    (gzip.compress(b""), "must hold data, but is empty"),
    ("\n\n", "must hold rows"),
    ("a,b,c\n", "must have rows"),
    ("# only\n# remarks\n", "remarks"),
    ("a,b\n1,2\n3,4,5\n", "cannot be read as a table of 2 columns"),
    (GZIPPED[: len(GZIPPED) // 2], "copied whole"),
    (b"\x1f\x8bjunk", "copied whole"),
    (b"PK\x03\x04junk", "copied whole"),
    (PARQUET[:-50], "as Parquet: .*[^.]\\. If .*copy it again"),
    (b"PAR1", "as Parquet: "),
    (b"\x00\x01\x02\x03 junk", "binary"),
    ('{"a": 1}\n{"a": 2}\n', r"JSON.*read_json\(path, lines=True\)"),
    ('[{"a": 1}]\n', r"JSON.*read_json\(path\)"),
    ("<html></html>", "JSON or XML"),
    (npz(X=np.array([[object()]], dtype=object)), "pickled objects"),
    (npz(a=IMAGES, b=IMAGES), "one named `X`"),
    (npz(X=IMAGES, y=[1, 2]), "as many targets as rows"),
    (zipped(b"a"), "must have rows"),
]


@pytest.mark.parametrize(("content", "message"), BROKEN, ids=range(len(BROKEN)))
def test_what_cannot_be_read_is_refused_by_path(
    content: bytes | str, message: str, write: Callable[..., str]
) -> None:
    path = write(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert path in str(caught.value)


def test_an_archive_of_several_files_is_refused(write: Callable[..., str]) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)
    with pytest.raises(InputError, match=r"archive of `a.csv`, `b.csv`: unpack"):
        read_table(write(buffer.getvalue()))


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "adult.csv").write_text(CSV)
    with pytest.raises(InputError, match=r"does not exist\. Did you mean `adult.csv`"):
        read_table(tmp_path / "adlt.csv")
    with pytest.raises(InputError, match="Nor does the folder"):
        read_table(tmp_path / "no" / "adult.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)


def test_only_a_target_is_not_enough(write: Callable[..., str]) -> None:
    with pytest.raises(InputError, match="beside the target"):
        read_table(write("a\n1\n2\n"), target="a")


@pytest.mark.parametrize(
    "content",
    [CSV, gzip.compress(b"0,1\n" * 10_000), PARQUET],
    ids=["plain", "gzip", "parquet"],
)
def test_more_than_memory_allows_is_refused(
    content: bytes | str, write: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlopt.readers.files.memory_limit", lambda: 100)
    with pytest.raises(InputError, match="may be read at once"):
        read_table(write(content))


def test_adult_has_the_same_labels_in_both_files(data: Path) -> None:
    train = read_table(data / "adult/adult.data.gz", target="14")
    test = read_table(data / "adult/adult.test.gz", target="last")
    assert train.X.shape == (32_561, 14)
    assert test.X.shape == (16_281, 14)
    assert set(train.y) == {"<=50K", ">50K"}
    target, _ = target_of(train.y)
    labels, said = align(test.y, target)
    assert set(labels) == set(train.y)
    assert "full stop" in said
    assert (train.X.dtypes == test.X.dtypes).all()
    assert train.X["c1"].isna().sum() == 1_836
    assert "State-gov" in set(train.X["c1"])


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("california_housing/housing.csv.gz", (20_640, 10)),
        ("diamonds/diamonds.csv.gz", (53_940, 10)),
        ("german_credit/german.data.gz", (1_000, 21)),
        ("spambase/spambase.data.gz", (4_601, 58)),
        ("a9a/a9a.gz", (32_561, 123)),
    ],
)
def test_real_files_have_the_shapes_their_readmes_say(
    data: Path, name: str, shape: tuple[int, int]
) -> None:
    table = read_table(data / name)
    assert table.X.shape == shape
    assert not sp.issparse(table.X) or table.X.nnz == 451_592


@pytest.mark.slow
def test_covtype_is_read_as_integers(data: Path) -> None:
    table = read_table(data / "covtype/covtype.csv.gz", target="Cover_Type")
    assert table.X.shape == (581_012, 54)
    assert (table.X.dtypes == np.int64).all()
    assert table.y.value_counts().sort_index().tolist() == [
        211840,
        283301,
        35754,
        2747,
        9493,
        17367,
        20510,
    ]


def odd_archive(flags: int = 0, method: int = 0) -> bytes:
    """An archive of a table that says to be encrypted, or of another method."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.csv", "a,b\n1,2\n3,4\n")
    raw = bytearray(buffer.getvalue())
    for at, where in ((raw.index(b"PK\x03\x04"), 6), (raw.index(b"PK\x01\x02"), 8)):
        raw[at + where] |= flags
        raw[at + where + 2] = method
    return bytes(raw)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (odd_archive(flags=1), "password"),
        (odd_archive(method=9), "compression method is not supported"),
        (npz(X=np.empty((0, 5)), y=np.empty(0)), r"`X` is of shape \(0, 5\)"),
        (npz(a=np.arange(3), b=np.arange(4)), "columns of one length"),
    ],
)
def test_archives_that_cannot_be_read_are_refused_in_a_sentence(
    write: Callable[..., str], content: bytes, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        read_table(write(content, "archive"))


@pytest.mark.parametrize("header", ["PK,age,y", "<DATE>,<OPEN>,<CLOSE>"])
def test_a_header_may_begin_as_another_format_does(
    write: Callable[..., str], header: str
) -> None:
    table = read_table(write(f"{header}\n1,41,0\n2,42,1\n".encode(), "table"))
    assert (table.names, table.rows) == (tuple(header.split(",")), 2)


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ('"first\nname",b,c\n1,2,3\n4,5,6\n7,8,9\n', ("first\nname", "b", "c"), 3),
        ('# steps of 5" each\na,b\n1,2\n3,4\n', ("a", "b"), 2),
        ('widths in 5" steps\n\na,b\n1,2\n3,4\n', ("a", "b"), 2),
        ("|3|4\n|5|6\n.5|7|8\n", ("c0", "c1", "c2"), 3),
        ("|a remark\nage,y\n1,2\n3,4\n", ("age", "y"), 2),
        ("% fat,age,y\n1,41,0\n2,42,1\n", ("% fat", "age", "y"), 2),
        ("%fat,age,y\n1,41,0\n2,42,1\n", ("fat", "age", "y"), 2),
        ("% made by hand\nage,y\n1,2\n3,4\n", ("age", "y"), 2),
    ],
)
def test_what_stands_above_the_rows_is_counted_in_lines(
    write: Callable[..., str], text: str, names: tuple[str, ...], rows: int, block: bool
) -> None:
    for encoding in ("utf-8", "utf-16"):
        path = write(text.encode(encoding), encoding)
        if block:
            frames = list(read_blocks(path, 18))
            assert (tuple(frames[0].columns), sum(map(len, frames))) == (names, rows)
        else:
            table = read_table(path)
            assert (table.names, table.rows) == (names, rows)


def test_bars_may_stand_in_front_of_a_header(write: Callable[..., str]) -> None:
    frame = pd.DataFrame({"age": [41, 42], "y": [0, 1]})
    table = read_table(write(frame.to_csv(sep="|").encode(), "bars"))
    assert (table.names, table.rows) == (("age", "y"), 2)
