"""Settings are strict: what is not allowed is named, with the file and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlopt.errors import ConfigError
from mlopt.sweep.config import Config, load, override, settled


def write(folder: Path, text: str) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def test_a_full_file_is_read(tmp_path: Path) -> None:
    config = load(
        write(
            tmp_path,
            """
            [data]
            path = "a.csv"
            target = "y"
            drop = ["id"]
            [search]
            timeout = 5
            cv = 4
            [families.linear]
            [families.forest]
            estimator = "RandomForestClassifier"
            params = { n_estimators = 7 }
            space.max_features = { low = 0.1, high = 1.0 }
            """,
        )
    )
    assert config.data.drop == ("id",)
    assert config.search.timeout == 5.0
    assert config.search.cv == 4
    assert config.families["forest"].params == {"n_estimators": 7}


def test_files_are_looked_for_beside_the_configuration(tmp_path: Path) -> None:
    config = load(write(tmp_path, '[data]\npath = "a.csv"\ntest = "/elsewhere/b.csv"'))
    assert config.data.path == str(tmp_path / "a.csv")
    assert config.data.test == "/elsewhere/b.csv"


def test_bundled_data_are_no_file(tmp_path: Path) -> None:
    assert (
        load(write(tmp_path, '[data]\npath = "sklearn:iris"')).data.path == "sklearn:iris"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[data]\npath = \nx = 1", "line 2"),
        ('[data]\npath = "a"\ntragte = "y"', "`data.tragte`.*Did you mean `target`"),
        ('[data]\npath = "a"\n[serch]', "`serch`.*Did you mean `search`"),
        ('[data]\npath = "a"\n[search]\ntimeout = -1', "`search.timeout`.*> 0.*-1"),
        ('[data]\npath = "a"\n[search]\ntimeout = "60"', "`search.timeout`.*float.*'60'"),
        ('[data]\npath = "a"\n[search]\ntimeout = "2x"', "`search.timeout`.*1h30m.*'2x'"),
        ('[data]\npath = "a"\n[search]\nsampler = "tpo"', "Did you mean `tpe`"),
        ('[data]\npath = "a"\n[search]\ncv = "aut"', "at least 2.*'aut'"),
        ('[data]\npath = "a"\n[families.x]\nspce = 1', "`families.x.spce`.*`space`"),
        ("[search]\ntimeout = 3", "`data.path` must name the data"),
        ('[data]\npath = "a"\ndrop = "id"', "`data.drop`.*array"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        load(write(tmp_path, text))
    assert "sweep.toml" in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.toml cannot be read"):
        load(tmp_path / "none.toml")


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_bytes(b"[data]\npath = '\xff'")
    with pytest.raises(ConfigError, match="UTF-8"):
        load(path)


def test_the_command_line_wins_and_none_leaves_alone(tmp_path: Path) -> None:
    config = load(write(tmp_path, '[data]\npath = "a"\n[search]\ntimeout = 5\nseed = 3'))
    changed = override(config, timeout=9.0, seed=None, directory="out")
    assert (changed.search.timeout, changed.search.seed) == (9.0, 3)
    assert changed.output.directory == "out"


def test_no_time_limit_can_be_asked_for() -> None:
    assert settled(None, n_trials=3).search.timeout == 60.0
    assert settled(None, n_trials=3, timeout=None).search.timeout is None


def test_an_overriding_value_is_checked_too() -> None:
    with pytest.raises(ConfigError, match=r"`n_trials`.*>= 1.*0"):
        override(Config(), n_trials=0)


def test_a_time_limit_that_is_no_duration_is_told_how_to_write_one() -> None:
    with pytest.raises(ConfigError, match=r"^`timeout`.*1h30m.*'2 parsecs'"):
        settled(None, timeout="2 parsecs")
    assert settled(None, timeout="1m30s").search.timeout == 90.0
