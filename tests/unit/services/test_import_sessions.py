"""Sessions of an import: one clock whatever the order of the files, one database at a time, its cards' rows in each."""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.errors import FloodmarkError
from desktop_app.services.import_database import ImportDatabase
from desktop_app.services.import_report import as_text
from desktop_app.services.import_result import Import
from desktop_app.services.log_import import import_logs
from desktop_app.telemetry.logs.record import Stamp

HEAD = "timestamp, index, uuid, utilization.gpu [%], memory.used [MiB]\n"
UUID = "GPU-11111111-2222-3333-4444-555555555555"
NINE_LOCAL_S = datetime(2026, 7, 14, 9, tzinfo=UTC).timestamp()
NINE_S = datetime(2026, 7, 14, 13, tzinfo=UTC).timestamp()  # in New York, four hours behind


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def cards(clock: str, seconds: range, zone: str = "") -> str:
    rows = (f"2026/07/14 {clock}:{second:02}{zone}, 0, {UUID}, {second} %, 1000 MiB\n" for second in seconds)
    return HEAD + "".join(rows)


def steps(clock: str, zone: str = "") -> str:
    rows = (f"{step},2026-07-14 {clock}:{step:02}{zone},1.{step}\n" for step in range(1, 40))
    return "step,timestamp,train_loss\n" + "".join(rows)


def table(result: Import, query: str, session: int = 0) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(result.sessions[session].database_path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def walls(result: Import, name: str) -> tuple[list[float], list[float]]:
    """Seconds since 1970 of the cards' rows and of the steps of the run ``name``."""
    session = [run.name for run in result.runs].index(name)
    anchor = result.sessions[session].read_facts()["clock_anchor_wall_s"]
    found = [table(result, f"SELECT t_s FROM {rows} ORDER BY t_s", session) for rows in ("telemetry", "steps")]
    return [anchor + t_s for (t_s,) in found[0]], [anchor + t_s for (t_s,) in found[1]]


@pytest.mark.usefixtures("new_york")
def test_every_order_of_the_files_is_the_same_time(tmp_path: Path) -> None:
    files = [
        put(tmp_path, "gpu.csv", cards("09:00", range(0, 50, 10))),
        put(tmp_path, "a.csv", steps("09:00")),
        put(tmp_path, "b.csv", steps("13:00", "Z")),
    ]
    for number, order in enumerate(itertools.permutations(files)):
        result = import_logs(order, parent=tmp_path / f"out{number}")
        for name in ("a.csv", "b.csv"):
            rows, taken = walls(result, name)
            assert rows == [NINE_S + second for second in range(0, 50, 10)], (order, name)
            assert taken == [NINE_S + second for second in range(1, 40)], (order, name)
        assert result.assumes_zone
        assert [run.remarks for run in result.runs] == [[], []]
        assert (result.first_s, result.last_s) == (NINE_S, NINE_S + 40)


@pytest.mark.usefixtures("new_york")
def test_a_start_that_is_said_is_one_of_the_times(tmp_path: Path) -> None:
    files = [
        put(tmp_path, "gpu.csv", cards("09:00", range(0, 50, 10))),
        put(tmp_path, "a.csv", "step,train_loss\n" + "".join(f"{step},1.{step}\n" for step in range(1, 11))),
        put(tmp_path, "b.csv", steps("13:00", "Z")),
    ]
    for start in (Stamp(NINE_LOCAL_S + 5), Stamp(NINE_S + 5, zoned=True)):
        for number, order in enumerate(itertools.permutations(files)):
            parent = tmp_path / f"out{number}{start.zoned}"
            result = import_logs(order, parent=parent, start=start, interval_s=2.0)
            assert walls(result, "a.csv")[1] == [NINE_S + 5 + 2 * row for row in range(10)]
            assert walls(result, "b.csv")[1] == [NINE_S + second for second in range(1, 40)]


@pytest.mark.usefixtures("new_york")
def test_the_zone_that_would_help_is_that_of_what_is_local(tmp_path: Path) -> None:
    local_cards = import_logs(
        [put(tmp_path, "gpu.csv", cards("15:00", range(50))), put(tmp_path, "b.csv", steps("13:00", "Z"))],
        parent=tmp_path / "1",
    )
    assert "with --zone +02:00 they would share 38 s" in as_text(local_cards)
    local_steps = import_logs(
        [put(tmp_path, "gpu.csv", cards("13:00", range(50), "Z")), put(tmp_path, "a.csv", steps("15:00"))],
        parent=tmp_path / "2",
    )
    assert "with --zone +02:00 they would share 38 s" in as_text(local_steps)
    both = import_logs(
        [put(tmp_path, n, text) for n, text in (("gpu.csv", cards("09:00", range(50))), ("a.csv", steps("15:00")))]
        + [put(tmp_path, "b.csv", steps("13:00", "Z"))],
        parent=tmp_path / "3",
    )
    assert "no step lies in the time of the cards' rows" in as_text(both)
    assert "--zone +" not in as_text(both), "a zone moves both alike"


def test_sixty_runs_with_few_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_now = most = 0
    made, closed = ImportDatabase.__init__, ImportDatabase.close

    def count(self: ImportDatabase, path: Path) -> None:
        nonlocal open_now, most
        made(self, path)
        open_now += 1
        most = max(most, open_now)

    def uncount(self: ImportDatabase) -> None:
        nonlocal open_now
        closed(self)
        open_now -= 1

    monkeypatch.setattr(ImportDatabase, "__init__", count)
    monkeypatch.setattr(ImportDatabase, "close", uncount)
    gpu = put(tmp_path, "gpu.csv", cards("09:00", range(50)))
    folder = tmp_path / "runs"
    folder.mkdir()
    for number in range(60):
        put(folder, f"r{number:02}.csv", f"step,train_loss\n1,{number}\n2,1.5\n")
    result = import_logs([folder, gpu], parent=tmp_path / "out")
    assert len(result.sessions) == 60
    assert (open_now, most) == (0, 2)
    assert table(result, "SELECT step, loss FROM steps", 59) == [(1, 59.0), (2, 1.5)]
    held = [table(result, "SELECT count(*) FROM telemetry", session)[0][0] for session in range(60)]
    assert held == [50] + [0] * 59, "steps that do not say when they were have no rows beside them"
    assert f"the cards' rows are in {result.sessions[0].path.name} only" in as_text(result)


def test_a_run_has_the_cards_rows_of_its_time_with_the_reasons_that_held(tmp_path: Path) -> None:
    rows = [
        f"2026/07/14 {9 + minute // 60:02}:{minute % 60:02}:00, {card}, "
        f"{'[N/A]' if card else f'{minute % 60} %'}, {minute} MiB, {'hot' if minute < 30 else 'cold'}\n"
        for minute in range(180)
        for card in range(2)
    ]
    gpu = put(tmp_path, "gpu.csv", "timestamp, index, utilization.gpu [%], memory.used [MiB], mood\n" + "".join(rows))
    files = [gpu, *(put(tmp_path, f"{name}.csv", steps(clock)) for name, clock in (("a", "09:10"), ("b", "11:00")))]
    result = import_logs(files, parent=tmp_path / "out")
    assert table(result, "SELECT count(*), max(t_s) FROM telemetry") == [(360, 179 * 60.0)]
    # From ten minutes before 11:00:01 to ten minutes after 11:00:39.
    minutes = range(111, 131)
    origin = minutes[0] * 60.0
    found = table(result, "SELECT t_s, memory_used_bytes FROM telemetry WHERE gpu = 1 ORDER BY t_s", 1)
    assert found == [(minute * 60 - origin, minute * 1024**2) for minute in minutes]
    assert table(result, "SELECT min(t_s), max(t_s) FROM steps", 1) == [(120 * 60 + 1 - origin, 120 * 60 + 39 - origin)]
    reasons = table(result, "SELECT gpu, t_s, field, reason FROM import_reasons WHERE reason NOT NULL", 1)
    assert reasons == [(2, 0.0, "utilization_percent", "not_supported")]
    assert table(result, "SELECT gpu, t_s, text FROM import_raw ORDER BY gpu", 1) == [
        (1, 0.0, "cold"),
        (2, 0.0, "cold"),
    ]
    said = "40 of the 360 rows of cards are here, those of its time and 10 minutes around it; all are in "
    assert said + result.sessions[0].path.name in as_text(result)


def test_a_database_that_cannot_be_made_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Full(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            if str(arguments[0]).startswith("CREATE TABLE import_reasons"):
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(*arguments)

        def close(self) -> None:
            closed.append(self)
            super().close()

    connect, made = sqlite3.connect, []

    def full(*arguments: Any, **options: Any) -> sqlite3.Connection:
        made.append(connect(*arguments, **options, factory=Full))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", full)
    with pytest.raises(FloodmarkError, match="disk is full"):
        import_logs([put(tmp_path, "a.csv", steps("09:00"))], parent=tmp_path / "out")
    assert made
    assert closed == made
    assert list((tmp_path / "out").iterdir()) == []
