"""The command line keeps its promises: statuses, streams, files, one line of error."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests import forks

from mlopt.cli import main
from mlopt.errors import ClusterError
from mlopt.resources import Resources, cache
from mlopt.settings import stem_of
from mlopt.statuses import BAD_INPUT, DONE, FAILED, INTERRUPTED, status_of

MLOPT = [sys.executable, "-m", "mlopt"]
QUICK = ["--families", "linear", "--n-trials", "4", "--timeout", "60"]


def run(*arguments: str | Path) -> int:
    """The exit status of the command line."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A CSV file with a category, a number and the target ``buys``."""
    random = np.random.default_rng(0)
    age = random.integers(18, 80, 200)
    city = random.choice(["rome", "oslo"], 200)
    buys = np.where(age + 20 * (city == "oslo") > 55, "yes", "no")
    path = tmp_path / "people.csv"
    pd.DataFrame({"age": age, "city": city, "buys": buys}).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_a_sweep_writes_tells_on_stderr_and_prints_on_stdout(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert run("sweep", people, "--target", "buys", "--output", output, *QUICK) == DONE
    streams = capsys.readouterr()
    assert "sweep people.csv" in streams.out
    assert "report.html" in streams.out
    told = [json.loads(line) for line in streams.err.splitlines()]
    assert any(record["event"] == "RungDone" for record in told)
    assert (output / "result.json").is_file()


@pytest.mark.slow
def test_json_prints_the_result_and_nothing_else(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    arguments = ["--target", "buys", "--output", str(output), "--json", *QUICK]
    assert run("sweep", people, *arguments) == DONE
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((output / "result.json").read_text())


def test_a_model_predicts_a_file(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, output = tmp_path / "model.skops", tmp_path / "out.csv"
    assert run("fit", people, "--target", "buys", "--output", model) == DONE
    assert run("predict", model, people, "--proba", "--output", output) == DONE
    predicted = pd.read_csv(output)
    truth = pd.read_csv(people)["buys"]
    assert list(predicted.columns) == ["prediction", "probability_no", "probability_yes"]
    assert (predicted["prediction"] == truth).mean() > 0.9
    capsys.readouterr()
    assert run("predict", model, people) == DONE
    assert capsys.readouterr().out.splitlines()[0] == "prediction"


def test_explain_shows_a_plan_and_leaves_no_trace(
    people: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("explain", people, "--target", "buys") == DONE
    assert "linear" in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.slow
def test_a_configuration_runs_and_flags_win_over_it(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "sweep.toml"
    config.write_text(
        f"""
        [data]
        path = "{people.name}"
        target = "buys"
        [search]
        n_trials = 50
        timeout = 60
        [output]
        directory = "{tmp_path / "out"}"
        trials = "csv"
        [families.linear]
        space.C = [0.1, 1.0]
        [families.tree]
        estimator = "DecisionTreeClassifier"
        space.max_depth = {{ low = 2, high = 6 }}
        """
    )
    assert run("sweep", config, "--n-trials", "3", "--json") == DONE
    printed = json.loads(capsys.readouterr().out)
    assert printed["n_trials"] == 3
    assert printed["families"] == ["linear", "tree"]
    assert (tmp_path / "out" / "trials.csv").is_file()


@pytest.mark.slow
def test_the_environment_stands_between_flags_and_file(
    people: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLOPT_SWEEP_N_TRIALS", "2")
    monkeypatch.setenv("OPTUNA_STORAGE", f"sqlite:///{tmp_path / 'elsewhere.db'}")
    arguments = ["--target", "buys", "--families", "linear", "--json"]
    assert run("sweep", people, *arguments, "--output", tmp_path / "out") == DONE
    assert json.loads(capsys.readouterr().out)["n_trials"] == 2
    assert (tmp_path / "elsewhere.db").is_file()
    assert not (tmp_path / "out" / "study.db").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sweep", "none.csv", "--target", "y"], "none.csv"),
        (["sweep", "people.csv"], "`target` must name the column.*`buys`"),
        (["sweep", "people.csv", "--target", "buyz"], "Did you mean `buys`"),
        (["sweep", "people.csv", "--target", "buys", "--timeout", "-1"], "`timeout`.*-1"),
        (["sweep", "people.csv", "--target", "buys", "--timeout", "x"], "timeout"),
        (["sweep", "people.csv", "--target", "buys", "--tiemout", "3"], "tiemout"),
        (["sweep", "people.csv", "--target", "buys", "--cv", "few"], "`cv` must be one of"),
        (
            ["sweep", "people.csv", "--target", "buys", "--sampler", "tp"],
            "Did you mean `tpe`",
        ),
        (["sweep", "people.csv", "--target", "buys", "--scoring", "auc"], "`scoring` must"),
        (["sweep", "people.csv", "--target", "buys", "--families", "lin"], "'lin'"),
        (["sweep", "people.csv", "--target", "age", "--test", "no.csv"], "no.csv"),
        (["sweep", "empty.csv", "--target", "y"], "empty.csv"),
        (["sweep", "broken.toml"], "broken.toml is not valid TOML.*line 2"),
        (["sweep", "typo.toml"], "typo.toml: unknown key `data.pth`.*`path`"),
        (["sweep", "constant.csv", "--target", "y"], "at least two classes"),
        (["sweep", "people.csv", "--target", "buys", "--storage", "nosuch://x"], "nosuch"),
        (["predict", "people.csv", "people.csv"], "must be a .skops file"),
        (["fit", "people.csv", "--target", "buys"], "output"),
        (["resuorces"], "resuorces"),
    ],
)
def test_bad_input_is_one_clear_line_and_status_two(
    people: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    import re

    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "broken.toml").write_text("[data]\npath = \n")
    (tmp_path / "typo.toml").write_text('[data]\npth = "people.csv"\n')
    pd.DataFrame({"x": range(60), "y": 1}).to_csv("constant.csv", index=False)
    before = {p.name for p in tmp_path.iterdir()}
    assert run(*arguments) == BAD_INPUT
    streams = capsys.readouterr()
    complaint = [line for line in streams.err.splitlines() if not line.startswith("{")]
    assert len(complaint) == 1
    assert re.search(says, complaint[0])
    assert streams.out == ""
    assert {p.name for p in tmp_path.iterdir()} == before


def test_a_failure_that_is_not_the_users_is_status_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> int:
        raise ClusterError("no workers\nfor 60 s")

    assert status_of(fail) == FAILED
    assert capsys.readouterr().err == "mlopt: no workers for 60 s\n"


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("can't start new thread"), ImportError("lib.so")]
)
def test_a_process_that_may_have_no_more_says_which_limits_to_look_at(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise error

    assert status_of(fail) == FAILED
    said = capsys.readouterr().err
    assert said.startswith("mlopt: ")
    assert said.endswith("`ulimit -v` and `ulimit -u`?\n")


def test_resources_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlopt.resources import Resources

    monkeypatch.setattr(Resources, "probe", lambda **_: Resources(workers=3))
    assert run("resources") == DONE
    assert "flop/s" in capsys.readouterr().out


def test_help_is_fast_because_it_imports_little() -> None:
    code = (
        "import sys; sys.argv = ['mlopt', '--help']\n"
        "from mlopt.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'sklearn', 'optuna', 'pandas', 'numpy', 'distributed', 'numba'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "sweep" in done.stdout


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("sweep", "fit", "predict", "serve", "explain", "run", "resources"):
        assert run(command, "--help") == DONE
        assert "Usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--timeout", "0.01"),
        ("--n-trials", "500"),
        ("--families", "linear"),
        ("--cv", "3"),
        ("--sampler", "random"),
        ("--bandit", "none"),
        ("--storage", "sqlite:///study.db"),
        ("--scheduler", "tcp://127.0.0.1:1"),
    ],
)
def test_a_fit_refuses_what_only_a_search_has(
    people: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
) -> None:
    model = tmp_path / "m.skops"
    fit = ["fit", str(people), "--target", "buys", "--output", str(model)]
    assert run(*fit, option, value) == BAD_INPUT
    assert re.search(f"`{option}` is an option.*mlopt sweep", capsys.readouterr().err)
    assert not (tmp_path / "m.skops").exists()
    assert run("fit", "--help") == DONE
    assert option not in capsys.readouterr().out


def test_a_fit_reads_a_configuration_of_a_sweep(people: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        f'[data]\npath = "{people.name}"\ntarget = "buys"\n'
        "[search]\ntimeout = 60\nn_trials = 3\ncv = 4\n"
    )
    assert run("fit", config, "--output", tmp_path / "m.skops") == DONE
    assert (tmp_path / "m.skops").is_file()


def test_what_submit_shares_with_predict_is_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("submit", "--help") == DONE
    assert capsys.readouterr().out.count("As of `mlopt predict`.") == 2


def test_the_default_folder_is_named_after_the_data() -> None:
    assert stem_of("a/b/adult.data.gz") == "adult"
    assert stem_of("sklearn:iris") == "iris"
    assert stem_of("sales.2024-01.csv") == "sales.2024-01"
    assert stem_of("v1.2") == "v1.2"


def _hear_interrupts() -> None:
    """What a shell starts in the background is told to ignore Ctrl-C, and so are we."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_an_interrupted_sweep_keeps_all_and_goes_on(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    arguments = ["sweep", str(people), "--target", "buys", "--output", str(output)]
    arguments += ["--families", "linear,extra_trees", "--timeout", "60"]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    process = forks.Popen(
        [*MLOPT, *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment, preexec_fn=_hear_interrupts,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if '"RungDone"' in line:
            break
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)  # SIGINT at thirty moments: `make compat`
    _, rest = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, rest
    assert "To go on: mlopt sweep" in rest
    result = json.loads((output / "result.json").read_text())
    assert result["interrupted"] is True
    assert run(*arguments, "--n-trials", str(result["n_trials"] + 1), "--json") == DONE
    again = json.loads(capsys.readouterr().out)
    assert again["n_trials"] == result["n_trials"] + 1


def test_a_command_whose_reader_of_stderr_left_goes_on() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    command = [*MLOPT, "predict", "model.skops"]
    done = subprocess.run(command, stderr=writes, stdout=subprocess.PIPE, text=True)
    os.close(writes)
    assert (done.returncode, done.stdout) == (BAD_INPUT, "")


def test_a_calibration_prints_residuals_and_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "directory", lambda: tmp_path / "cache")
    arguments = ["--calibrate", "--tiny", "--operators", "PCA, Convolver"]
    assert run("resources", *arguments) == DONE
    streams = capsys.readouterr()
    assert "predicted / measured" in streams.out
    for name in ("PCA/tsqr", "PCA/arpack", "Convolver/separable", "Convolver/fft"):
        (line,) = [line for line in streams.out.splitlines() if line.startswith(name)]
        quantiles = re.findall(r"\d+\.\d\d\b", line)
        assert len(quantiles) >= 10  # five as counted, and five calibrated
    assert "Ridge/" not in streams.out
    assert "PCA: " in streams.err
    names = [name for name, _ in Resources.remembered().calibration.entries]
    assert "Convolver/fft" in names
    assert "Ridge/svd" not in names


def test_an_operator_that_cannot_be_calibrated_is_bad_input(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("resources", "--calibrate", "--operators", "Lasso") == BAD_INPUT
    assert "no experiments with ['Lasso']" in capsys.readouterr().err
