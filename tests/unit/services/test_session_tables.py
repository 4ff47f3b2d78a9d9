"""A session's tables as CSV files: what is in the database is in the files, and what is not there is an empty cell."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from desktop_app.cli import run
from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.store import Rows
from desktop_app.core.telemetry import GPU_FIELDS
from desktop_app.services.session_database import Block, SessionDatabase
from desktop_app.services.session_tables import export_tables


def rows(t_s: list[float], **columns: list[float]) -> Rows:
    values = np.array(list(columns.values()), dtype=np.float64)
    return Rows(len(t_s), np.array(t_s, dtype=np.float64), values, 0, tuple(columns))


@pytest.fixture
def session(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    database = SessionDatabase.open(folder / "samples.db")
    steps = rows(t_s=[1.5, 2.0], step=[1, 2], loss=[0.1, float("nan")], live_after_bytes=[2**33 + 512, 2**33 + 1024])
    power = {name: [float("nan")] for name in GPU_FIELDS} | {"power_w": [71.25]}
    alert = Event(2.0, EventKind.ALERT, Level.WARNING, "alert", {"cause": "leak", "note": 'a "quoted", line\nand one'})
    database.write([Block("steps", steps), Block("gpu:GPU-1", rows(t_s=[1.0], **power))], [alert])
    database.close()
    return folder


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_rows_are_those_of_the_database(session: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "tables"
    counts = export_tables(session, out)
    with closing(sqlite3.connect(session / "samples.db")) as connection:
        assert counts == {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in counts}
    assert {"steps", "telemetry", "gpus", "events", "alerts"} <= set(counts)
    assert sorted(path.name for path in out.iterdir()) == sorted(f"{name}.csv" for name in counts)
    first, second = read(out / "steps.csv")
    assert (first["t_s"], first["step"], first["loss"], first["live_after_bytes"]) == ("1.5", "1", "0.1", "8589935104")
    assert second["loss"] == ""
    (telemetry,) = read(out / "telemetry.csv")
    (card,) = read(out / "gpus.csv")
    assert telemetry["power_w"] == "71.25"
    assert "GPU-1" in card.values()
    assert telemetry["gpu"] in card.values()
    assert read(out / "alerts.csv")[0]["cause"] == "leak"
    assert r"a \"quoted\", line\nand one" in read(out / "events.csv")[0]["params"]


def test_nothing_is_written_over(session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tables"
    out.mkdir()
    (out / "steps.csv").write_text("mine")
    assert run(["export", str(session), "--csv", str(out)]) == 2
    assert "holds files already" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["steps.csv"]
    assert (out / "steps.csv").read_text() == "mine"


def test_a_session_that_is_being_written(session: Path, tmp_path: Path) -> None:
    """A transaction of the recorder that is under way is not part of it, and is not waited for."""
    writer = sqlite3.connect(session / "samples.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM steps")
    try:
        assert export_tables(session, tmp_path / "tables")["steps"] == 2
    finally:
        writer.execute("ROLLBACK")
        writer.close()


def test_by_the_command(session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tables"
    assert run(["export", str(session), "--csv", str(out)]) == 0
    assert f"tables in {out}" in capsys.readouterr().out
    assert len(read(out / "steps.csv")) == 2


@pytest.mark.parametrize("damaged", [False, True])
def test_what_is_no_session(tmp_path: Path, capsys: pytest.CaptureFixture[str], *, damaged: bool) -> None:
    folder = tmp_path / "nothing"
    folder.mkdir()
    if damaged:
        (folder / "samples.db").write_bytes(b"no database, whatever its name says" * 100)
    assert run(["export", str(folder), "--csv", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert str(folder) in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_one_kind_at_a_time(session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--csv", str(tmp_path / "out"), "--forecast-trace", str(tmp_path / "trace.csv")]
    with pytest.raises(SystemExit, match="2"):
        run(["export", str(session), *both])
    assert "not allowed with" in capsys.readouterr().err


def test_an_export_that_fails_leaves_no_half_of_itself(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from desktop_app.services import session_tables

    write, done = session_tables._write, []

    def full(connection: sqlite3.Connection, table: str, path: Path) -> int:
        if done:
            path.write_text("half")
            raise OSError(28, "No space left on device")
        done.append(table)
        return write(connection, table, path)

    monkeypatch.setattr(session_tables, "_write", full)
    out = tmp_path / "tables"
    assert run(["export", str(session), "--csv", str(out)]) == 1
    assert list(out.iterdir()) == []
    monkeypatch.undo()
    assert run(["export", str(session), "--csv", str(out)]) == 0
