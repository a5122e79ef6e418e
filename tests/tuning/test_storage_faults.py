"""A database in a file that cannot be used is named with the true reason."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest
import sqlalchemy

from mlopt.errors import StudyError
from mlopt.tuning.storage.database_store import _explained


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EMFILE])
def test_what_a_database_cannot_tell_the_folder_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "TemporaryFile", fails)
    url = sqlalchemy.make_url(f"sqlite:///{tmp_path / 'study.db'}")
    with pytest.raises(StudyError, match=r"study\.db") as caught, _explained(url):
        raise sqlalchemy.exc.OperationalError("", {}, Exception("disk I/O error"))
    assert os.strerror(number) in str(caught.value)
    assert "Check the address" not in str(caught.value)


def test_where_the_folder_is_well_the_database_has_the_word(tmp_path: Path) -> None:
    url = sqlalchemy.make_url(f"sqlite:///{tmp_path / 'study.db'}")
    with pytest.raises(StudyError, match=r"disk I/O error\. Check the address"):  # noqa: SIM117
        with _explained(url):
            raise sqlalchemy.exc.OperationalError("", {}, Exception("disk I/O error"))
