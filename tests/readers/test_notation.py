"""Numbers as people write them are read in one notation a column, and it is said."""

from __future__ import annotations

import codecs
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from mlopt.readers import read_table
from mlopt.readers.notation import cells_of, decimal_of, numbers_of

Write = Callable[[bytes | str], str]


@pytest.mark.parametrize(
    ("texts", "decimal", "values"),
    [
        (["1,5", "-2", "1.234,50"], ",", [1.5, -2, 1234.5]),
        (["1 234,5", "7,25"], ",", [1234.5, 7.25]),
        (["1.234", "999"], ",", [1234, 999]),
        (["$70,123.00", "$5"], ".", [70123, 5]),
        (["-$1,000", "$-2.50"], ".", [-1000, -2.5]),
        (["12,50 €", "1.000 €"], ",", [12.5, 1000]),
        (["12%", "7.5 %", None], ".", [12, 7.5, np.nan]),
        (["1,500", "2,125"], ".", [1500, 2125]),
        (["1,500", "2,125"], ",", [1.5, 2.125]),
    ],
)
def test_a_column_of_numbers_is_read(
    texts: list[str], decimal: str, values: list[float]
) -> None:
    found = numbers_of(pd.Series(texts), decimal)
    assert found is not None
    np.testing.assert_array_equal(found.values, values)


@pytest.mark.parametrize(
    "texts",
    [
        ["$5", "unknown"],
        ["$5", "€5"],
        ["5%", "5"],
        ["110 001", "110 002"],
        ["a", "b"],
        ["1,2,3", "4"],
        ["2020-01-01", "2020-01-02"],
        ["01.02.2020", "3,5"],
        [None, None],
    ],
)
@pytest.mark.parametrize("decimal", [".", ","])
def test_what_may_be_something_else_stays_text(
    texts: list[str | None], decimal: str
) -> None:
    assert numbers_of(pd.Series(texts, dtype=object), decimal) is None


def test_single_cells_are_read_by_the_sign_of_their_column() -> None:
    column = pd.Series(["1,5", "?", "unknown", None, "2,5", "1e3"])
    assert decimal_of(column) == ","
    np.testing.assert_array_equal(
        cells_of(column, ","), [1.5, np.nan, np.nan, np.nan, 2.5, 1000]
    )
    assert decimal_of(pd.Series(["1,500", "2,000"])) == "."


EUROPEAN = "a;b;y\n" + "".join(f"{i},5;1.{i:03d},25;{i % 2}\n" for i in range(40))
SPELLINGS = {
    "plain": EUROPEAN.encode(),
    "byte order mark": codecs.BOM_UTF8 + EUROPEAN.encode(),
    "UTF-16": EUROPEAN.encode("utf-16"),
    "UTF-16, big end first": codecs.BOM_UTF16_BE + EUROPEAN.encode("utf-16-be"),
    "UTF-32": EUROPEAN.encode("utf-32"),
    "tabs": EUROPEAN.replace(";", "\t").encode(),
    "Windows": EUROPEAN.replace("\n", "\r\n").encode(),
    "a title": ("Sales of 2024\n\n" + EUROPEAN).encode(),
    "short": "".join(EUROPEAN.splitlines(True)[:41]).encode(),
}


@pytest.mark.parametrize("content", SPELLINGS.values(), ids=SPELLINGS)
def test_a_european_table_is_read_with_its_header_and_decimals(
    content: bytes, write: Write
) -> None:
    table = read_table(write(content), target="y")
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.X["a"], np.arange(40) + 0.5)
    np.testing.assert_array_equal(table.X["b"], 1000 + np.arange(40) + 0.25)
    assert any("decimal comma" in remark for remark in table.remarks)


def test_the_smallest_european_table(write: Write) -> None:
    table = read_table(write("a;b;y\n1,5;1,25;1\n2,5;3,25;0\n"))
    assert table.names == ("a", "b", "y")
    np.testing.assert_array_equal(table.X, [[1.5, 1.25, 1], [2.5, 3.25, 0]])


def test_a_european_table_without_a_header(write: Write) -> None:
    table = read_table(write("1,5;1,25;1\n2,5;3,25;0\n2,75;4,25;0\n"))
    assert table.names == ("c0", "c1", "c2")
    np.testing.assert_array_equal(table.X["c1"], [1.25, 3.25, 4.25])


def test_thousands_of_a_european_table_are_not_decimals(write: Write) -> None:
    table = read_table(write("a;n\n1,5;1.234\n2,5;999\n3,5;12.500\n"))
    np.testing.assert_array_equal(table.X["n"], [1234, 999, 12500])


def test_dates_of_a_european_table_stay_dates(write: Write) -> None:
    table = read_table(write("a;day\n1,5;01.02.2020\n2,5;15.03.2021\n"))
    assert table.X["day"].tolist() == ["01.02.2020", "15.03.2021"]


def test_commas_within_text_do_not_make_a_european_table(write: Write) -> None:
    table = read_table(write("a,b\n1;x,2\n3;y,4\n"))
    assert table.names == ("a", "b")
    assert table.X["a"].tolist() == ["1;x", "3;y"]


def test_currencies_and_percents_are_numbers_and_it_is_said(write: Write) -> None:
    rows = "".join(f'"${70 + i},123.00",{i}%,{i}\n' for i in range(9))
    table = read_table(write("price,share,y\n" + rows), target="y")
    np.testing.assert_array_equal(table.X["price"], 70123 + 1000 * np.arange(9))
    np.testing.assert_array_equal(table.X["share"], np.arange(9))
    said = " ".join(table.remarks)
    assert "`price`: '$70,123.00' is read as 70123" in said
    assert "`share`: '0%' is read as 0" in said


def test_a_header_behind_a_hash_is_the_header(write: Write) -> None:
    table = read_table(write("# a remark\n#id;a;y\nx1;2;0\nx2;3;1\n"))
    assert table.names == ("id", "a", "y")


def test_a_title_that_is_skipped_is_said(write: Write) -> None:
    table = read_table(write("Sales of 2024\na,b\n1,2\n3,4\n"))
    assert table.names == ("a", "b")
    assert any("'Sales of 2024'" in remark for remark in table.remarks)


def test_a_full_stop_behind_every_text_stays(write: Write) -> None:
    rows = "".join(f"{i},it is {i}.,{'no' if i % 2 else 'yes'}.\n" for i in range(9))
    table = read_table(write("n,text,y\n" + rows), target="y")
    assert table.X["text"][0] == "it is 0."
    assert table.y[0] == "yes."
