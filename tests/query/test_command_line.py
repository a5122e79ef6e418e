"""``mlopt run`` and ``mlopt explain`` with a query: streams, statuses, carets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mlopt.cli import main
from mlopt.statuses import BAD_INPUT, DONE


def run(*arguments: str | Path) -> int:
    """The exit status of the command line."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def test_a_plan_and_a_model_are_printed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", "RUN classification ON people.csv; PERSIST Q1 ON m.txt") == DONE
    out = capsys.readouterr().out
    assert "RUN classification ON people.csv" in out
    assert "rejected: " in out
    assert "intercept" in out
    assert "model: m.txt" in out
    assert Path("m.txt").is_file()


def test_predictions_stand_alone_on_stdout(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "Q = RUN svm ON people.csv; PREDICT ON people.csv WITH Q"
    assert run("run", query) == DONE
    streams = capsys.readouterr()
    lines = streams.out.splitlines()
    assert len(lines) == 200
    assert set(lines) == {"no", "yes"}
    assert "svm" in streams.err
    assert run("run", query, "--output", "out.txt") == DONE
    assert Path("out.txt").read_text() == streams.out
    assert "predictions: out.txt" in capsys.readouterr().out


def test_numbers_are_written_in_full(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", "RUN regression ON people.csv:2-3; PERSIST Q1 ON m.txt") == DONE
    capsys.readouterr()
    from mlopt.query.run import Session

    expected = Session().run("PREDICT ON people.csv WITH m.txt")
    assert run("run", "PREDICT ON people.csv WITH m.txt") == DONE
    assert [float(line) for line in capsys.readouterr().out.split()] == expected.tolist()


@pytest.mark.parametrize("command", ["run", "explain"])
def test_an_error_shows_the_place_on_stderr(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run(command, "RUN svm ON a.csv\nHAVING EPSILN 0.1") == BAD_INPUT
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.splitlines() == [
        "mlopt: line 2, column 8: expected TIME, EPSILON or MAX_ITER after HAVING, found "
        "`EPSILN`. Did you mean `EPSILON`?",
        "    HAVING EPSILN 0.1",
        "           ^^^^^^",
    ]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("RUN svm ON nosuch.csv", "`nosuch.csv` does not exist"),
        ("RUN svm ON people.csv HAVING TIME 1ms", "TIME 1ms cannot be met"),
        ("RUN svm ON people.csv USING ALGORITHM lbfgs", "ALGORITHM lbfgs"),
    ],
)
def test_other_errors_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], query: str, says: str
) -> None:
    assert run("run", query) == BAD_INPUT
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_output_is_for_one_prediction(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", "RUN svm ON people.csv", "--output", "o.txt") == BAD_INPUT
    assert "the query has 0" in capsys.readouterr().err
    query = "RUN svm ON people.csv; PREDICT ON people.csv WITH Q1"
    assert run("run", query, "--output", "no/such/o.txt") == BAD_INPUT
    assert "folder that is there" in capsys.readouterr().err


def test_explain_shows_the_plan_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(folder.iterdir())
    assert run("explain", "RUN classification ON iris.npz HAVING TIME 1h") == DONE
    out = capsys.readouterr().out
    assert "predicted" in out
    assert "intercept" not in out
    assert run("explain", "run classification on iris.npz", "--json") == DONE
    plan = json.loads(capsys.readouterr().out)
    assert [choice["step"] for choice in plan["choices"]] == ["read", "fit"]
    assert set(folder.iterdir()) == before
    assert run("explain", "RUN svm ON iris.npz", "--target", "y") == BAD_INPUT
    assert "leave the settings out" in capsys.readouterr().err


def test_a_query_that_cannot_be_read_says_so_at_once() -> None:
    code = (
        "import sys; sys.argv = ['mlopt', 'run', 'RUN svm']\n"
        "from mlopt.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 2\n"
        "heavy = {'sklearn', 'optuna', 'pandas', 'numpy', 'distributed', 'numba'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
