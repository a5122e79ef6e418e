"""Bodies: every type says the same, and rows beside a row never change it."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from tests.serving.served import ROW, people

from mlopt.errors import InputError
from mlopt.serving.bodies import (
    ARROW,
    ARROW_FILE,
    CSV,
    JSON,
    TSV,
    WRITERS,
    frame_of,
    read_rows,
    write_rows,
)
from mlopt.serving.model import ServedModel, load_served
from mlopt.sweep.models import dump_model
from mlopt.sweep.roles import roles_of
from mlopt.sweep.tabular import for_linear


@pytest.fixture(scope="module")
def model(model_path: Path) -> ServedModel:
    """The model behind the service."""
    return load_served(model_path)


def arrow(frame: pd.DataFrame, file: bool = False) -> bytes:
    """Arrow's IPC."""
    table, sink = pa.Table.from_pandas(frame), pa.BufferOutputStream()
    with (pa.ipc.new_file if file else pa.ipc.new_stream)(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def read(model: ServedModel, content: str | bytes, media: str = JSON) -> pd.DataFrame:
    """What the first step of the model makes of a body."""
    raw = content.encode() if isinstance(content, str) else content
    rows = read_rows(raw, media, model)
    assert model.reads is not None
    return model.reads.transform(frame_of([rows], model))


def test_every_type_of_body_says_the_same(model: ServedModel) -> None:
    frame = people(20, seed=1).assign(more="left out")
    frame.loc[3, ["wage", "city"]] = None
    assert model.reads is not None
    expected = model.reads.transform(frame)
    bodies = {
        JSON: frame.to_json(orient="records"),
        CSV: frame.to_csv(index=False),
        TSV: frame.to_csv(index=False, sep="\t"),
        ARROW: arrow(frame),
        ARROW_FILE: arrow(frame, file=True),
    }
    for media, content in bodies.items():
        pd.testing.assert_frame_equal(read(model, content, media), expected, obj=media)
    columns = json.dumps(json.loads(frame.to_json(orient="split", index=False)))
    given = json.loads(columns)
    lists = {n: [row[k] for row in given["data"]] for k, n in enumerate(given["columns"])}
    pd.testing.assert_frame_equal(read(model, json.dumps(lists)), expected)


def test_cells_of_arrow_are_what_they_are_in_files(model: ServedModel) -> None:
    frame = people(3)
    columns = {name: pa.array(frame[name]) for name in frame}
    columns["wage"] = pa.array([Decimal("20.50"), None, Decimal("3.25")])
    columns["age"] = pa.array(np.array([41, 42, 43], np.float16))
    columns["city"] = pa.array([datetime.time(1, 30), None, datetime.time(2)])
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    found = read(model, bytes(sink.getvalue()), ARROW)
    assert found["wage"].fillna(-1).tolist() == [20.5, -1, 3.25]
    assert found["age"].tolist() == [41, 42, 43]
    assert found["city"].fillna("").tolist() == ["01:30:00", "", "02:00:00"]


def test_numbers_in_a_text_are_read_as_the_model_learned_to(model: ServedModel) -> None:
    text = f"{','.join(ROW)}\n41,20.5,oslo,3,1.200,2020-03-01\n"
    assert read(model, text, CSV)["price"].tolist() == [1200.0]


def test_a_category_alone_in_a_text_is_what_it_is_in_json(tmp_path: Path) -> None:
    model = read_categories(tmp_path / "model.skops")
    columns = ["flag", "zip", "known"]
    rows = [["true", "007", True], ["unknown", "1.0", None], ["false", "A12", False]]
    for row in [[row] for row in rows] + [rows]:
        frame = pd.DataFrame(row, columns=columns, dtype=object)
        text = frame.to_csv(index=False).replace("True", "true").replace("False", "false")
        expected = read(model, frame.to_json(orient="records"))
        pd.testing.assert_frame_equal(read(model, text, CSV), expected)
        assert expected["zip"].tolist() == frame["zip"].tolist()
        known = expected["known"].fillna("").tolist()
        assert known == ["" if cell is None else str(cell) for cell in frame["known"]]


@pytest.mark.parametrize("last", [1.5, "x", 1 << 60, True, None])
def test_a_part_of_a_request_is_read_as_in_the_whole(last: Any, tmp_path: Path) -> None:
    model = read_categories(tmp_path / "model.skops")
    body = {"flag": [1, 1.0, 2, last], "zip": [2.0, 3.0, None, last], "known": [1] * 4}
    rows = read_rows(json.dumps(body).encode(), JSON, model)
    assert model.reads is not None
    whole = model.reads.transform(frame_of([rows], model))
    parts = [frame_of([rows.between(k, k + 1)], model) for k in range(4)]
    found = pd.concat([model.reads.transform(part) for part in parts], ignore_index=True)
    pd.testing.assert_frame_equal(found.astype(object), whole.astype(object))


def read_categories(path: Path) -> ServedModel:
    """A model of texts that look like numbers and truths, and of truths with gaps."""
    n, random = 60, np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "flag": random.choice(["true", "false", "unknown"], n),
            "zip": random.choice(["007", "1.0", "A12"], n),
            "known": random.choice(np.array([True, False, None]), n),
        }
    )
    steps = for_linear(roles_of(frame), "binary", n, 0)
    model = Pipeline([*steps, ("model", LogisticRegression())])
    path.write_bytes(dump_model(model.fit(frame, frame["flag"] == "true")))
    return load_served(path)


CELLS: dict[str, list[Any]] = {
    "age": [1, 2.5, 7.0, None, "3", "x", True, 2**60],
    "wage": [1, 2.5, None, "1,5"],
    "city": ["rome", None, 1, 1.0, 1.5, "1", True, 2**60 + 1, 0.0],
    "code": [1, 3.0, 2.5, None, "3", False],
    "price": ["1.200,5", None, 3, 2.5],
    "since": ["2020-03-01", None, "?"],
}
ROWS = st.lists(st.fixed_dictionaries({n: st.sampled_from(v) for n, v in CELLS.items()}),
                min_size=1, max_size=3)  # fmt: skip


@pytest.mark.filterwarnings("ignore::mlopt.errors.InputWarning")
@settings(max_examples=15)
@given(requests=st.lists(ROWS, min_size=2, max_size=6))
def test_rows_beside_a_row_never_change_how_it_is_read(
    requests: list[list[dict[str, Any]]], model: ServedModel
) -> None:
    assert model.reads is not None
    rows = [read_rows(json.dumps(request).encode(), JSON, model) for request in requests]
    for kinds in {one.kinds for one in rows}:
        group = [one for one in rows if one.kinds == kinds]
        whole = model.reads.transform(frame_of(group, model))
        alone = [model.reads.transform(frame_of([r], model)) for r in group]
        apart = pd.concat(alone, ignore_index=True)
        for name in whole:
            a, b = whole[name].to_numpy(object), apart[name].to_numpy(object)
            missing = pd.isna(a)
            assert (missing == pd.isna(b)).all()
            assert a[~missing].tolist() == b[~missing].tolist(), name


def test_usual_rows_are_all_of_one_kind(model: ServedModel) -> None:
    rows = [ROW, ROW | {"age": 41.5}, ROW | {"age": None, "city": None, "wage": 1}]
    kinds = {read_rows(json.dumps([row]).encode(), JSON, model).kinds for row in rows}
    assert len(kinds) == 1


def without(name: str) -> str:
    """A body that lacks a column."""
    return json.dumps([{key: value for key, value in ROW.items() if key != name}])


BAD: list[tuple[str, str | bytes, str]] = [
    (JSON, "", "no JSON"),
    (JSON, "[{", "no JSON"),
    (JSON, b"\xff\xfe", "no JSON"),
    (JSON, b'[{"city": "\xff"}]', "no JSON"),
    (JSON, "[" * 100_000, "no JSON"),
    (JSON, "[1]", "list of objects"),
    (JSON, "3", "list of objects"),
    (JSON, "[]", "at least 1 row"),
    (JSON, json.dumps(ROW), "object of lists"),
    (JSON, json.dumps({name: [] for name in ROW}), "at least 1 row"),
    (JSON, json.dumps({n: [v] * (1 + (n == "age")) for n, v in ROW.items()}), "one length"),
    (JSON, without("city"), "'city' is missing"),
    (JSON, json.dumps([ROW, {}]), "'age' is missing"),
    (JSON, json.dumps([ROW | {"age": [1]}]), r"`age` must hold numbers.*row 1 has \[1\]"),
    (JSON, json.dumps([ROW | {"age": 2**70}]), "64 bits"),
    (JSON, json.dumps([ROW]).replace("41", "NaN"), "no JSON"),
    (CSV, "", "must name the columns"),
    (CSV, "age,city\r41,oslo\r", "must name the columns"),
    (CSV, ",".join(ROW), "rows below"),
    (CSV, f"{','.join(ROW)}\n", "rows below"),
    (CSV, "age,age\n1,2\n", "name of its own"),
    (CSV, "age,\n1,2\n", "name of its own"),
    (CSV, "age,city\n1,rome\n", "is missing and 3 more"),
    (CSV, f"{','.join(ROW)}\n1,2,3,4,5,6,7,8\n", "cannot be read"),
    (CSV, b"age,\xff\n1,2\n", "UTF-8"),
    (ARROW, "", "no Arrow IPC"),
    (ARROW, b"\x00" * 100, "no Arrow IPC"),
    (ARROW, arrow(people(3))[:-200], "no Arrow IPC"),
    (ARROW, arrow(people(3)).replace(b"city", b"ci\xffy"), "no Arrow IPC"),
    (ARROW, arrow(people(3).drop(columns="city")), "'city' is missing"),
]


@pytest.mark.parametrize(("media", "content", "says"), BAD)
def test_a_body_that_is_not_what_it_should_be_is_named(
    media: str, content: str | bytes, says: str, model: ServedModel
) -> None:
    with pytest.raises(InputError, match=says):
        read(model, content, media)


@pytest.mark.parametrize("media", WRITERS)
def test_predictions_come_back_in_every_type(media: str) -> None:
    columns: dict[str, list[Any]] = {
        "prediction": ["no", "yes"],
        "probability_yes": [0.25, 0.5],
    }
    content = write_rows(columns, media)
    if media == JSON:
        found = json.loads(content)
    elif media == ARROW:
        found = pa.ipc.open_stream(content).read_all().to_pydict()
    else:
        found = pd.read_csv(pa.BufferReader(content)).to_dict("list")
    assert found == columns


def test_a_column_of_predictions_is_more_than_what_is_said_beside_it() -> None:
    found = json.loads(write_rows({"model": [1.5], "price": [2]}, JSON, model="token"))
    assert found == {"model": [1.5], "price": [2]}


@pytest.mark.parametrize("packed", [None, "zstd", "lz4"])
def test_a_small_body_of_arrow_has_no_more_rows_than_it_holds(
    packed: str | None, model: ServedModel
) -> None:
    values = pa.nulls(100_000) if packed is None else pa.array(np.zeros(100_000))
    table, sink = pa.table(dict.fromkeys(ROW, values)), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=packed)
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    with pytest.raises(InputError, match="100,000 rows unpacked"):
        read_rows(bytes(sink.getvalue()), ARROW, model)


def test_batches_of_arrow_may_share_a_dictionary(model: ServedModel) -> None:
    frame = people(400)
    city = pa.DictionaryArray.from_arrays(pa.array([0] * 400), ["oslo" + 1000 * "o"])
    table, sink = pa.table({n: pa.array(frame[n]) for n in frame}), pa.BufferOutputStream()
    table = table.set_column(table.column_names.index("city"), "city", city)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=10)
    assert len(read(model, bytes(sink.getvalue()), ARROW)) == 400


def test_what_is_no_number_is_null_in_json() -> None:
    assert json.loads(write_rows({"prediction": [np.nan]}, JSON)) == {"prediction": [None]}
