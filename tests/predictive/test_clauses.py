"""PREDICT ... GIVEN is found where it is one, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.errors import QuerySyntaxError
from mlopt.predictive.clauses import Column, clauses_of, quoted, replaced


def test_the_queries_of_the_paper() -> None:
    (voice,) = clauses_of(
        "SELECT vm.sender, vm.arrived, PREDICT(vm.text, vm.audio) GIVEN LabeledVoiceMails "
        "FROM VoiceMails vm WHERE vm.user='Bob' AND vm.listened IS NULL "
        "ORDER BY vm.arrived DESC LIMIT 50"
    )
    assert voice.target == Column('"vm".', "text")
    assert voice.predictors == (Column('"vm".', "audio"),)
    assert voice.relation == "LabeledVoiceMails"
    query = (
        "SELECT p.image FROM Pictures p WHERE PREDICT(p.tag, p.photo) = 'Plant' "
        "GIVEN LabeledPhotos AND p.likes > 500"
    )
    (plant,) = clauses_of(query)
    assert (plant.target.name, plant.relation) == ("tag", "LabeledPhotos")
    assert replaced(query, [plant], ["f(p)"]) == (
        "SELECT p.image FROM Pictures p WHERE f(p) = 'Plant'  AND p.likes > 500"
    )


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("predict(a)given r", "r"),
        ("PREDICT (a) GIVEN main.r x", "main.r"),
        ("PREDICT(a) GIVEN 'some file.csv' AS a", "'some file.csv'"),
        ("PREDICT(a) GIVEN (SELECT ')' FROM f(b)) + 1", "(SELECT ')' FROM f(b))"),
        ('PREDICT("a ""b""") GIVEN "r s"', '"r s"'),
        ("PREDICT(a) /* why */ GIVEN -- here\n r", "r"),
        ("PREDICT(a) > 2 GIVEN r OR b", "r"),
        ("PREDICT(a) IN ('GIVEN', 'x') GIVEN r", "r"),
        ("PREDICT(a) < (b + (c)) GIVEN r OR b", "r"),
    ],
)  # fmt: skip
def test_relations_end_where_they_do(text: str, relation: str) -> None:
    (clause,) = clauses_of(f"SELECT {text}")
    assert clause.relation == relation


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'PREDICT(a) GIVEN r'",
        "SELECT 1 -- PREDICT(a) GIVEN r",
        "SELECT /* PREDICT(a) GIVEN r */ predict FROM r",
        'SELECT "PREDICT"(a)',
        "SELECT $$PREDICT(a) GIVEN r$$",
        "",
    ],
)
def test_strings_comments_and_names_are_no_clauses(query: str) -> None:
    assert clauses_of(query) == []


@pytest.mark.parametrize(
    ("query", "needed", "place"),
    [
        ("SELECT PREDICT(a) FROM r", "GIVEN", (1, 19)),
        ("SELECT PREDICT(a), b GIVEN r", "GIVEN", (1, 18)),
        ("SELECT PREDICT(a) = PREDICT(b) GIVEN r", "GIVEN", (1, 21)),
        ("SELECT (PREDICT(a)) GIVEN r", "GIVEN", (1, 19)),
        ("SELECT PREDICT(a) = (b", "GIVEN", (1, 23)),
        ("SELECT é,\n PREDICT(1)", "names of columns", (2, 10)),
        ("SELECT PREDICT(a", "names of columns", (1, 17)),
        ("SELECT PREDICT()", "names of columns", (1, 16)),
        ("SELECT PREDICT(a b) GIVEN r", "names of columns", (1, 18)),
        ("SELECT PREDICT(a.) GIVEN r", "After the dot", (1, 18)),
        ("SELECT PREDICT(a) GIVEN", "GIVEN needs", (1, 24)),
        ("SELECT PREDICT(a) GIVEN 7", "GIVEN needs", (1, 25)),
        ("SELECT PREDICT(a) GIVEN (SELECT (1)", "must be closed", (1, 36)),
    ],
)
def test_errors_show_the_place(query: str, needed: str, place: tuple[int, int]) -> None:
    with pytest.raises(QuerySyntaxError, match=needed) as caught:
        clauses_of(query)
    assert (caught.value.line, caught.value.column) == place


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1))
def test_any_name_can_be_quoted(name: str) -> None:
    before = "SELECT 'ü', "
    (clause,) = clauses_of(f"{before}PREDICT({quoted(name)}) GIVEN {quoted(name)} FROM r")
    assert clause.target.name == name
    assert clause.relation == quoted(name)
    assert clause.span[0] == len(before.encode())
