"""Where things are kept, and what is said when they cannot be."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from desktop_app.services import locations
from desktop_app.services.locations import data_folder, sessions_folder, writable_problem


def test_the_data_folder_is_the_one_that_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOODMARK_DATA", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data"
    assert sessions_folder() == tmp_path / "data" / "sessions"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FLOODMARK_DATA", "~/runs")
    assert data_folder() == tmp_path / "runs"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOODMARK_DATA", "here")
    assert data_folder() == tmp_path / "here"


@pytest.mark.parametrize("chosen", ["", None])
def test_without_a_choice_it_is_the_platforms(chosen: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if chosen is None:
        monkeypatch.delenv("FLOODMARK_DATA")
    else:
        monkeypatch.setenv("FLOODMARK_DATA", chosen)
    assert data_folder().is_absolute()
    assert "floodmark" in str(data_folder()).lower()


def test_a_folder_that_can_be_written_is_made_and_left_empty(tmp_path: Path) -> None:
    assert writable_problem(tmp_path / "a" / "b") is None
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_path_below_a_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    problem = writable_problem(tmp_path / "file" / "data")
    assert problem is not None
    assert problem.code == "data_folder.unwritable"
    assert problem.exit_code == 1
    assert str(problem) == (
        f"Cannot write to the data folder {tmp_path}/file/data: Not a directory. "
        "Set FLOODMARK_DATA to a folder you can write to."
    )


def test_a_folder_that_takes_no_files_is_a_problem() -> None:
    problem = writable_problem(Path("/proc/self"))
    assert problem is not None
    assert problem.code == "data_folder.unwritable"


def test_a_full_disk_is_a_problem_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = {"bytes": locations.LEAST_FREE_BYTES}
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free["bytes"]))
    assert writable_problem(tmp_path) is None
    free["bytes"] = 41 * 1024**2
    problem = writable_problem(tmp_path)
    assert problem is not None
    assert problem.code == "data_folder.full"
    assert str(problem).startswith(f"Only 41 MiB are free in the data folder {tmp_path}. Free some space")


def test_no_space_while_probing_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(**_: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", no_space)
    problem = writable_problem(tmp_path)
    assert problem is not None
    assert "No space left on device" in str(problem)
