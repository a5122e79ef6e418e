"""Bytes of tables as text: of any encoding, with lines that end where pandas ends them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from mlopt.readers import read_table
from mlopt.readers.blocks import read_blocks


def test_old_encodings_are_read(write: Callable[..., str]) -> None:
    table = read_table(write("name,v\nJos\u00e9,1\nAda,2\n".encode("latin-1")))
    assert table.X["name"].tolist() == ["Jos\u00e9", "Ada"]


def test_a_byte_that_is_no_utf_8_changes_no_other_cell(write: Callable[..., str]) -> None:
    path = write("Größe;Ort\n1;Köln\n2;".encode() + b"K\xf6ln\n")
    whole = read_table(path).X
    assert [*whole.columns] == ["Größe", "Ort"]
    assert whole["Ort"].tolist() == ["Köln", "Köln"]
    pd.testing.assert_frame_equal(pd.concat(read_blocks(path, 100)), whole)


def test_names_are_read_in_the_encoding_of_the_rows(write: Callable[..., str]) -> None:
    path = write("Größe,Ort\n1,Köln\n2,Bonn\n".encode("latin-1"))
    table = read_table(path, target="Größe")
    assert table.target == "Größe"


@pytest.mark.parametrize("sign", ["\u2028", "\x0b", "\x0c", "\x85"])
def test_lines_end_where_pandas_ends_them(sign: str, write: Callable[..., str]) -> None:
    table = read_table(write(f"# one{sign}line\nx,y\n1,2\n3,4\n"))
    assert table.names == ("x", "y")
    assert table.X.to_numpy().tolist() == [[1, 2], [3, 4]]
