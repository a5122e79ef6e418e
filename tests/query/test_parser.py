"""Queries mean what ML4all's Appendix A says; wrong ones are shown where they are wrong."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.errors import QuerySyntaxError
from mlopt.query.ast import (
    Call,
    Columns,
    Having,
    Name,
    Path,
    Persist,
    Predict,
    Run,
    Script,
    Source,
    Statement,
    Using,
)
from mlopt.query.durations import format_duration, parse_duration
from mlopt.query.parser import is_query, parse
from mlopt.query.words import ALGORITHMS, RESERVED, SAMPLERS, TASKS


def only(text: str) -> Statement:
    """The one statement of a query."""
    (statement,) = parse(text).statements
    return statement


CLASSIFICATION = Name("classification")

APPENDIX = {
    "Q1 = RUN classification ON training_data.txt;": Run(
        CLASSIFICATION, (Source(Path("training_data.txt")),), name=Name("Q1")
    ),
    "RUN classification ON training_data.txt\n"
    "HAVING TIME 1h30m, EPSILON 0.01, MAX_ITER 1000;": Run(
        CLASSIFICATION, (Source(Path("training_data.txt")),), Having(5400.0, 0.01, 1000)
    ),
    "Q2 = RUN classification\nON input_data.txt:2, input_data.txt:4-20,\n"
    "HAVING TIME 1h30m, EPSILON 0.01, MAX_ITER 1000;": Run(
        CLASSIFICATION,
        (
            Source(Path("input_data.txt"), Columns(2, 2)),
            Source(Path("input_data.txt"), Columns(4, 20)),
        ),
        Having(5400.0, 0.01, 1000),
        name=Name("Q2"),
    ),
    "Q3 = RUN classification ON input_data.txt\n"
    "USING ALGORITHM SGD, CONVERGENCE cnvg(), STEP 1,\nSAMPLER my_sampler();": Run(
        CLASSIFICATION,
        (Source(Path("input_data.txt")),),
        using=Using(Name("SGD"), Call("cnvg"), 1.0, Call("my_sampler")),
        name=Name("Q3"),
    ),
    "PERSIST Q1 ON my_model.txt.": Persist(Name("Q1"), Path("my_model.txt")),
    "result = PREDICT ON test_data WITH my_model.txt;": Predict(
        (Source(Path("test_data")),), Path("my_model.txt"), name=Name("result")
    ),
    "RUN hinge() ON libsvm(training_data.txt);": Run(
        Call("hinge"), (Source(Path("training_data.txt"), parser=Name("libsvm")),)
    ),
}


@pytest.mark.parametrize("query", APPENDIX)
def test_the_queries_of_the_paper_mean_what_it_says(query: str) -> None:
    assert only(query) == APPENDIX[query]


def test_clauses_come_in_any_order_and_keywords_in_any_case() -> None:
    plain = only("RUN svm ON a.csv HAVING TIME 30s, MAX_ITER 5 USING STEP 0.5")
    mixed = only("run SVM using step 5e-1, having max_iter 5, time 30 sec on a.csv")
    assert plain == mixed


def test_the_empty_clauses_are_the_defaults() -> None:
    run = only("RUN svm ON a.csv")
    assert isinstance(run, Run)
    assert run.having == Having()
    assert run.using == Using()


def test_comments_and_several_statements() -> None:
    script = parse(
        "-- first\nA = RUN svm ON a.csv; -- then\nPERSIST A ON a.txt;\n"
        "PREDICT WITH a.txt ON b.csv"
    )
    assert [type(one) for one in script.statements] == [Run, Persist, Predict]


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("~/data/my-file_1.v2.csv.gz", "~/data/my-file_1.v2.csv.gz"),
        ("'with blank.csv'", "with blank.csv"),
        ('"a ""quoted"" name"', 'a "quoted" name'),
        ("'it''s.csv'", "it's.csv"),
        ("../a--b.csv", "../a--b.csv"),
        ("'HAVING'", "HAVING"),
        ("'4-20'", "4-20"),
        ("données.csv", "données.csv"),
        ("time", "time"),
    ],
)
def test_names_of_files(written: str, path: str) -> None:
    run = only(f"RUN svm ON {written}:2-3")
    assert isinstance(run, Run)
    assert run.sources == (Source(Path(path), Columns(2, 3)),)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h30m", 5400.0),
        ("30s", 30.0),
        ("500ms", 0.5),
        ("2 min", 120.0),
        ("1h 30m 5s", 5405.0),
        ("1.5 hours", 5400.0),
        ("1d", 86400.0),
        ("2e-3s", 0.002),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    run = only(f"RUN svm ON a.csv HAVING TIME {text}, EPSILON 1")
    assert isinstance(run, Run)
    assert run.having.time == pytest.approx(seconds, rel=1e-15)


BROKEN = [
    ("", 1, 1, "expected RUN, PREDICT or PERSIST, found the end"),
    ("SELECT x", 1, 1, "expected RUN, PREDICT or PERSIST, found `SELECT`"),
    ("RUM svm ON a.csv", 1, 1, "Did you mean `RUN`"),
    ("RUN clasification ON a.csv", 1, 5, "Did you mean `classification`"),
    ("RUN my_gradient ON a.csv", 1, 5, r"parentheses: `my_gradient\(\)`"),
    ("RUN svm", 1, 8, "expected ON and a file, found the end of the query"),
    ("RUN svm ON", 1, 11, "expected a file, found the end"),
    ("RUN svm ON HAVING TIME 1h", 1, 12, "expected a file, found `HAVING`"),
    ("RUN svm ON a.csv:20-4", 1, 18, "upwards, got `20-4`: write `4-20`"),
    ("RUN svm ON a.csv:0", 1, 18, "columns count from 1, got 0"),
    ("RUN svm ON a.csv:x", 1, 18, "expected a column or a range"),
    (f"RUN svm ON a:{'9' * 20}", 1, 14, "expected a column or a range"),
    ("RUN svm ON sklearn:iris", 1, 20, r"written `sklearn\(iris\)`"),
    ("RUN svm ON a.csv:1, 2-4", 1, 21, "Columns follow their file: `data.csv:2-4`"),
    ("RUN svm\nON a.csv\nHAVNG TIME 1h", 3, 1, "Did you mean `HAVING`"),
    ("RUN svm ON a.csv\nHAVING EPSILN 0.01", 2, 8, "Did you mean `EPSILON`"),
    ("RUN svm ON a.csv HAVING STEP 1", 1, 25, "STEP is an item of USING"),
    ("RUN svm ON a.csv HAVING TIME 90", 1, 30, "no unit: write `90s`"),
    ("RUN svm ON a.csv HAVING TIME 1h30", 1, 30, "found `1h30`"),
    ("RUN svm ON a.csv HAVING TIME soon", 1, 30, "expected a duration"),
    ("RUN svm ON a.csv HAVING TIME -5s", 1, 30, "TIME must be positive"),
    ("RUN svm ON a.csv HAVING TIME 0s", 1, 30, "TIME must be positive"),
    ("RUN svm ON a.csv HAVING EPSILON 0", 1, 33, "EPSILON must be positive"),
    ("RUN svm ON a.csv HAVING EPSILON 1e999", 1, 33, "finite, got 1e999"),
    ("RUN svm ON a.csv HAVING EPSILON nan", 1, 33, "expected a number"),
    ("RUN svm ON a.csv HAVING MAX_ITER -3", 1, 34, "MAX_ITER must be positive"),
    ("RUN svm ON a.csv HAVING MAX_ITER 1.5", 1, 34, "expected a whole number"),
    ("RUN svm ON a.csv HAVING TIME 1h, TIME 2h", 1, 34, "TIME stands twice"),
    ("RUN svm ON a HAVING TIME 1h HAVING EPSILON 1", 1, 29, "HAVING stands twice"),
    ("RUN svm ON a HAVING TIME 1h EPSILON 1", 1, 29, "expected `,` between items"),
    ("RUN svm ON a.csv USING ALGORITHM SDG", 1, 34, "Did you mean `SGD`"),
    ("RUN svm ON a.csv USING STEP 0", 1, 29, "STEP must be positive"),
    ("RUN svm ON a.csv USING CONVERGENCE f", 1, 37, r"expected `\(\)` after `f`"),
    ("RUN svm ON a.csv USING SAMPLER bernouli", 1, 32, "Did you mean `bernoulli`"),
    ("RUN f(3) ON a.csv", 1, 7, "without arguments"),
    ("RUN svm ON libsvm(a.txt", 1, 24, r"expected `\)` after the file"),
    ("RUN svm ON 'a.csv", 1, 12, "quote is not closed"),
    ("RUN svm ON a&b.csv", 1, 13, "`&` has no meaning here"),
    ("RUN svm ON a.csv Q2 = RUN svm ON b.csv", 1, 18, "expected `;` between"),
    ("1st = RUN svm ON a.csv", 1, 1, "letters, digits and `_`"),
    ("RUN = RUN svm ON a.csv", 1, 1, "expected a name for the result, found `RUN`"),
    ("Q1 = PERSIST Q1 ON a.txt", 1, 6, "expected RUN or PREDICT"),
    ("PERSIST Q1", 1, 11, "expected ON and the file to write"),
    ("PREDICT ON a.csv", 1, 17, "expected WITH and a model"),
    ("PREDICT WITH m.txt", 1, 19, "expected ON and a file"),
    ("RUN svm ON a.csv;\n\n  PERSITS Q1 ON m", 3, 3, "Did you mean `PERSIST`"),
    ("RUN svm ON .", 1, 12, "expected a file, found `.`"),
]


@pytest.mark.parametrize(("query", "line", "column", "says"), BROKEN)
def test_a_wrong_query_is_shown_where_it_is_wrong(
    query: str, line: int, column: int, says: str
) -> None:
    with pytest.raises(QuerySyntaxError, match=says) as caught:
        parse(query)
    error = caught.value
    assert (error.line, error.column) == (line, column)
    message, source, carets = str(error).rsplit("\n", 2)
    assert message.startswith(f"line {line}, column {column}: ")
    assert source == f"    {query.split(chr(10))[line - 1]}"
    assert carets.index("^") == 4 + column - 1
    assert set(carets.strip()) == {"^"}


def test_an_error_survives_pickling() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse("RUN svm\nON")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.line, again.column) == (2, 3)


def test_tabs_stay_and_long_lines_are_cut_around_the_place() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse("RUN svm ON a.csv\n\tHAVING\tTIM 1h")
    assert str(caught.value).endswith("\n    \tHAVING\tTIM 1h\n    \t      \t^^^")
    with pytest.raises(QuerySyntaxError) as caught:
        parse(f"RUN svm ON {'x' * 300}.csv HAVIN TIME 1h{' ' * 10}-- {'y' * 300}")
    _, source, carets = str(caught.value).split("\n")
    assert len(source) < 100
    assert source[carets.index("^") : carets.rindex("^") + 1] == "HAVIN"


def test_only_what_begins_like_run_is_a_query() -> None:
    assert is_query("RUN svm ON a.csv")
    assert is_query("-- why\n Q1 = run\nsvm ON a.csv")
    assert not is_query("run.csv")
    assert not is_query("data/RUN 1.csv")
    assert not is_query("sweep.toml")


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name.upper() not in RESERVED
)
paths = st.text(
    st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1
).map(Path)
positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
columns = st.tuples(st.integers(1, 10**6), st.integers(0, 99)).map(
    lambda pair: Columns(pair[0], sum(pair))
)
sources = st.lists(
    st.builds(Source, paths, st.none() | columns, st.none() | names.map(Name)), min_size=1
).map(tuple)
calls = names.map(Call)
having = st.builds(
    Having, st.none() | positive, st.none() | positive, st.none() | st.integers(1, 10**9)
)
using = st.builds(
    Using,
    st.none() | st.sampled_from(ALGORITHMS).map(Name),
    st.none() | calls,
    st.none() | positive | calls,
    st.none()
    | st.sampled_from(SAMPLERS).map(Name)
    | calls.filter(lambda call: call.name.lower() not in SAMPLERS),
)
results = st.none() | names.map(Name)
statements = st.one_of(
    st.builds(
        Run, st.sampled_from([*TASKS]).map(Name) | calls, sources, having, using, results
    ),
    st.builds(Persist, names.map(Name), paths),
    st.builds(Predict, sources, paths, results),
)


@given(st.lists(statements, min_size=1, max_size=3).map(tuple).map(Script))
def test_what_is_written_is_read_as_the_same(script: Script) -> None:
    assert parse(str(script)) == script


@given(positive)
def test_a_duration_is_read_as_it_was_written(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.text("RUNsvm ONab.csv:1-20,;()='\"\n\t-TIME \\&", max_size=60))
def test_any_text_is_a_query_or_a_syntax_error(text: str) -> None:
    try:
        script = parse(text)
    except QuerySyntaxError as error:
        lines, shown = text.count("\n") + 1, str(error)
        good = 1 <= error.line <= lines and "^" in shown
    else:
        good = parse(str(script)) == script
    assert good


def test_a_file_may_be_called_as_what_ends_a_statement() -> None:
    script = parse("PREDICT ON 'a', ';' WITH ';'")
    (statement,) = script.statements
    assert isinstance(statement, Predict)
    assert [source.path.value for source in statement.sources] == ["a", ";"]
