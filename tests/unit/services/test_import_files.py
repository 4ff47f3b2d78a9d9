"""What is named on the command line: one path that cannot be looked at costs no other; nothing is cut in silence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from desktop_app import cli
from desktop_app.services import import_files
from desktop_app.services.import_report import as_text
from desktop_app.services.log_import import import_logs

METRICS = "step,train_loss\n1,2.5\n"


def put(path: Path, text: str = METRICS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def forbid(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As if ``folder`` were another user's with 0700, whoever runs the test."""
    for name in ("stat", "open"):
        of_path = getattr(Path, name)

        def refused(self: Path, *arguments: Any, of_path: Any = of_path, **options: Any) -> Any:
            if folder in self.parents:
                raise PermissionError(13, "Permission denied", str(self))
            return of_path(self, *arguments, **options)

        monkeypatch.setattr(Path, name, refused)


def test_a_path_that_cannot_be_looked_at_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, good = put(tmp_path / "secret" / "a.csv"), put(tmp_path / "good.csv", "step,train_loss\n1,2.25\n")
    ring = tmp_path / "ring.csv"
    ring.symlink_to(ring)
    long = tmp_path / ("x" * 300)
    forbid(monkeypatch, secret.parent)
    result = import_logs([secret, long, ring, tmp_path / "sec*" / "a.csv", good], parent=tmp_path / "out")
    assert [run.name for run in result.runs] == ["good.csv"]
    problems = [file.problem or "" for file in result.files]
    assert [": Permission denied" in problems[0], ": File name too long" in problems[1], problems[-1]] == [
        True,
        True,
        "",
    ]
    assert all("check the path and its permissions" in problem for problem in problems[:-1])
    assert as_text(result).count("Not read: ") == 4


def test_a_folder_without_entry_and_files_in_it_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "logs" / "good.csv")
    hidden = put(tmp_path / "logs" / "closed" / "a.csv")
    walk = import_files.os.walk

    def refused(folder: Path, *, onerror: Any) -> Any:
        for place, folders, names in walk(folder):
            if Path(place) == hidden.parent:
                onerror(PermissionError(13, "Permission denied", place))
            else:
                yield place, folders, names

    monkeypatch.setattr(import_files.os, "walk", refused)
    result = import_logs([tmp_path / "logs"], parent=tmp_path / "out")
    assert [run.name for run in result.runs] == ["good.csv"]
    assert f"Not read: {hidden.parent}: Permission denied" in as_text(result)
    monkeypatch.undo()
    forbid(monkeypatch, hidden.parent)
    result = import_logs([tmp_path / "logs"], parent=tmp_path / "out")
    assert f"Not read: {hidden}: Permission denied" in as_text(result)
    assert "Passed over" not in as_text(result)


def test_how_many_files_of_a_folder_are_left_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_files, "_MOST_FILES", 3)
    for number in range(5):
        put(tmp_path / "logs" / f"{number}.csv", f"step,train_loss\n{number},2.5\n")
    put(tmp_path / "logs" / "z" / "6.csv")
    put(tmp_path / "logs" / ".hidden")
    result = import_logs([tmp_path / "logs"], parent=tmp_path / "out")
    assert [run.name for run in result.runs] == ["0.csv", "1.csv", "2.csv"]
    assert f"{tmp_path / 'logs'}: its first 3 files are read, 3 more are left out" in as_text(result)


def test_names_that_utf_8_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/loss\xff.jsonl"))
    try:
        put(path, '{"step": 1, "loss": 2.5, "\\ud800x": 3}\n')
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    for option in ("--json", "--debug"):
        assert cli.run(["import", str(path), option, "--out", str(tmp_path / "out")]) == 0
    assert "loss?.jsonl" in capsys.readouterr().out
    result = import_logs([path], parent=tmp_path / "out")
    assert list(result.runs[0].scalars) == ["loss", "?x"]
    assert result.sessions[0].read_facts()["import"]["run"] == "loss?.jsonl"
