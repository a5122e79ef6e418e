"""The examples of many requests at once run, and what they write is right."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from tests import forks
from tests.test_applications import DATA, drawn
from tests.test_examples import EXAMPLES, load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reads() -> ModuleType:
    pytest.importorskip("mappy")
    pytest.importorskip("pysam")
    return load("reads")


SMALL = ["--sets=3", "--reads=450", "--chunk=30", "--bases=90000", "--open=2"]


def test_reads_are_found_where_they_came_from(
    reads: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pysam

    share = reads.main([*SMALL, "--output", str(tmp_path)])
    assert share >= 0.995
    text = capsys.readouterr().out
    fused, apart = text.split("written: ")[1].split(" MB with")[:2]
    assert 1.3 * float(fused) < float(apart.split(", ")[1])
    assert drawn(tmp_path / "reads.png")
    files = sorted((tmp_path / "reads/aligned").iterdir())
    assert [path.name for path in files] == ["set0.bam", "set1.bam", "set2.bam"]
    contigs = (tmp_path / "reads/genome.fa").read_text().split("\n")[1::2]
    for path in files:
        with pysam.AlignmentFile(str(path), check_sq=False) as file:
            records = list(file.fetch(until_eof=True))
        assert len({one.query_name for one in records}) == 450
        placed = [(one.reference_id, one.reference_start) for one in records]
        assert placed == sorted(placed, key=lambda at: (at[0] < 0, at))
        same = [
            base == contigs[one.reference_id][at]
            for one in records
            for base, at in zip(
                one.query_alignment_sequence, one.get_reference_positions(), strict=False
            )
        ]
        assert np.mean(same) > 0.95


@pytest.mark.cluster
def test_reads_are_found_on_workers_too(reads: ModuleType, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    reads.main([*SMALL, "--output", str(here)])
    command = [sys.executable, str(EXAMPLES / "reads.py"), *SMALL, "--workers=2"]
    forks.run([*command, "--output", str(there)], check=True, timeout=120)
    for path in sorted((here / "reads/aligned").iterdir()):
        again = there / "reads/aligned" / path.name
        assert reads.rows_in(again) == reads.rows_in(path)


def test_an_output_that_is_not_right_is_refused(reads: ModuleType, tmp_path: Path) -> None:
    genome = tmp_path / "genome.fa"
    rng = np.random.default_rng(1)
    contigs = reads.draw_genome(genome, 30_000, rng)
    (chunk,) = reads.draw_reads(tmp_path / "set", contigs, 20, 20, rng)
    work = reads.Work(reads.Index(genome), tmp_path)
    name, rows = work.align(work.read(chunk))
    run = work.sort([(name, rows)])
    assert reads.checked(run.path, 20) >= 0.9
    with pytest.raises(RuntimeError, match="each of 21 reads once"):
        reads.checked(run.path, 21)
    with pytest.raises(RuntimeError, match="not sorted"):
        reads.checked(work.store((name, rows)).path, 20)
    moved = [row._replace(start=row.start + 1) for row in rows]
    assert reads.checked(work.sort([("moved", moved)]).path, 20) == 0


@pytest.mark.parametrize("real", [False, True])
def test_folders_of_pictures_are_read(real: bool, tmp_path: Path) -> None:
    if real and not (DATA / "usps").is_dir():
        pytest.skip(f"there is no {DATA / 'usps'}")
    given = ["--data", str(DATA if real else tmp_path), "--output", str(tmp_path)]
    accuracy = load("pictures").main([*given, "--pictures", "300", "--days", "3"])
    assert accuracy > 0.94
    tables = [pd.read_csv(path) for path in sorted((tmp_path / "pictures").glob("*.csv"))]
    table = pd.concat(tables)
    assert len(tables) == 3
    assert table["file"].is_unique
    right = table["file"].str[6:7].astype(int) == table["digit"]
    assert (len(table), right.mean()) == (300, pytest.approx(accuracy))


@pytest.mark.parametrize("real", [False, True])
def test_a_folder_of_files_is_scored_and_then_what_is_new(
    real: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if real and not (DATA / "adult").is_dir():
        pytest.skip(f"there is no {DATA / 'adult'}")
    given = ["--data", str(DATA if real else tmp_path), "--output", str(tmp_path)]
    accuracy = load("score_folder").main([*given, "--files", "5"])
    assert accuracy > (0.85 if real else 0.95)
    assert "again: 1 new, 4 were there already" in capsys.readouterr().out
    files = sorted((tmp_path / "scoring/scores").glob("*.csv"))
    rows = sum(len(pd.read_csv(path)) for path in files)
    assert rows == (16281 if real else 284)
