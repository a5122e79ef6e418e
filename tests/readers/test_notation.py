"""Numbers as people write them are read in one notation a column, and it is said."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlopt.readers import read_table
from mlopt.readers.layout import _distinct
from mlopt.readers.notation import cells_of, decimal_of, numbers_of
from mlopt.readers.table import Known

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


POINTS = "y;weight;pay\n" + "".join(f"{i % 2};{60 + i}.5;{10 + i},500\n" for i in range(40))


def test_a_point_in_one_column_tells_of_commas_in_another(write: Write) -> None:
    table = read_table(write(POINTS))
    np.testing.assert_array_equal(table.X["weight"], 60.5 + np.arange(40))
    np.testing.assert_array_equal(table.X["pay"], 10_500 + 1000 * np.arange(40))
    assert table.decimal == "."


def test_a_point_within_a_number_of_text_tells_of_commas_in_another(write: Write) -> None:
    rows = "".join(f"{1 + i % 9},{i:03d}.25\t{1 + i % 7},{i:03d}\n" for i in range(40))
    table = read_table(write("price\tn\n" + rows))
    places = np.arange(40)
    np.testing.assert_array_equal(table.X["price"], 1000 * (1 + places % 9) + places + 0.25)
    np.testing.assert_array_equal(table.X["n"], 1000 * (1 + places % 7) + places)


def test_a_point_of_the_training_tells_of_commas_in_a_file_to_predict(write: Write) -> None:
    known = Known(("y", "weight", "pay"), decimal=".")
    text = "y;weight;pay\n0;61;4,500\n1;62;5,500\n"
    np.testing.assert_array_equal(
        read_table(write(text), known=known).X["pay"], [4500, 5500]
    )
    np.testing.assert_array_equal(read_table(write(text)).X["pay"], [4.5, 5.5])


def test_a_comma_in_one_column_tells_of_quoted_ones_in_another(write: Write) -> None:
    table = read_table(write('a,b,n\n"1,125","3,25",1\n"2,250","4,75",2\n'))
    np.testing.assert_array_equal(table.X["a"], [1.125, 2.25])
    np.testing.assert_array_equal(table.X["b"], [3.25, 4.75])
    assert table.decimal == ","


def test_columns_of_one_name_get_names_that_are_free(write: Write) -> None:
    rows = "".join(f"{9 * i},{8 * i},{7 * i},{i * 0.5},{i % 2}\n" for i in range(1, 9))
    names = read_table(write(",Unnamed: 0.1,Unnamed: 0,x,y\n" + rows)).names
    assert names == ("Unnamed: 0", "Unnamed: 0.1", "Unnamed: 0.2", "x", "y")
    assert read_table(write("a,a,a.1\n1,2,3\n4,5,6\n")).names == ("a", "a.2", "a.1")


def test_a_column_that_counts_rows_stays_where_the_training_had_it(write: Write) -> None:
    path = write(",x\n0,1.5\n1,2.5\n")
    known = Known(("Unnamed: 0", "x"))
    assert read_table(path, known=known).names == ("Unnamed: 0", "x")
    assert read_table(path).names == ("x",)


def test_targets_beyond_whole_numbers_of_64_bits_stay_floats(write: Write) -> None:
    path = write("1e20 1:1\n2e20 1:2\n3e20 1:3\n")
    np.testing.assert_array_equal(read_table(path).y, [1e20, 2e20, 3e20])


def test_a_point_in_a_cell_tells_of_commas_in_others(write: Write) -> None:
    table = read_table(write("y;pay\n0;1,500\n1;12.5\n0;2,250\n1;9.75\n"))
    np.testing.assert_array_equal(table.X["pay"], [1500, 12.5, 2250, 9.75])


def test_digits_behind_a_zero_are_no_thousands(write: Write) -> None:
    table = read_table(write('a,b\n"0,125",1\n"0,250",2\n'))
    np.testing.assert_array_equal(table.X["a"], [0.125, 0.25])
    known = Known(("a", "b"), decimal=",")
    plain = read_table(write("a,b\n0.123,1\n0.456,2\n"), known=known)
    np.testing.assert_array_equal(plain.X["a"], [0.123, 0.456])


def test_points_of_plain_numbers_are_known_of_a_training(write: Write) -> None:
    table = read_table(write("y;weight;pay\n0;60.5;10500\n1;61.5;4500\n"))
    assert table.decimal == "."
    known = Known(table.names, decimal=table.decimal)
    found = read_table(write("y;weight;pay\n0;61;4,500\n1;62;5,500\n"), known=known)
    np.testing.assert_array_equal(found.X["pay"], [4500, 5500])


def test_what_nothing_tells_is_a_doubt(write: Write) -> None:
    table = read_table(write("y;pay\n0;1,500\n1;2,250\n"))
    assert table.doubts == ("`pay`: '1,500' is read as 1.5",)
    assert not read_table(write("y;pay;share\n0;1500;5%\n1;2250;7%\n")).doubts
    assert not read_table(write(POINTS)).doubts


def test_many_columns_of_one_name_are_told_apart_at_once() -> None:
    assert len({*_distinct(["0"] * 50_000)}) == 50_000


def test_categories_of_numbers_are_read_as_numbers() -> None:
    every: list[list[Any]] = [[3, 10, 17], [0.5, 2.5, 3.5], [1, 2, "3"]]
    for categories in every:
        column = pd.Series(pd.Categorical([*categories, None, categories[0]]))
        expected = [*map(float, categories), np.nan, float(categories[0])]
        np.testing.assert_array_equal(cells_of(column, "."), expected)


def test_a_cell_is_read_for_itself_whoever_is_beside_it() -> None:
    for first in (True, 1):
        cells: list[Any] = [first, *{True}, 1, True, "2", None]
        found = cells_of(pd.Series(cells, dtype=object), ".")
        for cell, number in zip(cells, found, strict=True):
            if cell is True or cell is None:  # what True means, others say
                assert np.isnan(number)
            else:
                assert number == float(cell)
