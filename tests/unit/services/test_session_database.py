"""The session file, read as any SQLite tool reads it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.store import Store
from desktop_app.core.telemetry import GPU_FIELDS
from desktop_app.services.session_database import Block, SessionDatabase

from .doubles import make_alert


def block(store: Store, name: str) -> Block:
    return Block(name, store.history(name).since(0))


def ask(path: Path, question: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(question).fetchall()


def test_rows_keep_their_columns_and_missing_values_are_null(tmp_path: Path) -> None:
    store = Store()
    store.declare("steps", ("step", "loss")).append(0.5, (1, None))
    store.history("steps").append(1.25, (2, 0.75))
    store.declare("gpu:GPU-7", GPU_FIELDS).append(0.25, {"power_w": 61.5, "temperature_c": float("nan")})
    store.declare("gpu:GPU-8", GPU_FIELDS).append(0.25, {"memory_used_bytes": float(2**52 + 1)})
    path = tmp_path / "samples.db"
    database = SessionDatabase.open(path)
    database.write([block(store, name) for name in store.names()], [])
    database.close()
    assert ask(path, "SELECT t_s, step, loss FROM steps") == [(0.5, 1.0, None), (1.25, 2.0, 0.75)]
    assert ask(path, "SELECT uuid, t_s, power_w, temperature_c FROM telemetry JOIN gpus USING (gpu) ORDER BY gpu") == [
        ("GPU-7", 0.25, 61.5, None),
        ("GPU-8", 0.25, None, None),
    ]
    assert ask(path, "SELECT memory_used_bytes FROM telemetry WHERE gpu = 2") == [(2.0**52 + 1,)]
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]
    assert ask(path, "PRAGMA user_version") == [(1,)]


def test_events_are_json_and_alerts_have_a_view(tmp_path: Path) -> None:
    events = EventQueue()
    alert = make_alert(eta_s=float("inf"))
    events.post(
        Event(0.5, EventKind.CHECKPOINT, Level.INFO, "checkpoint.saved", {"step": 3, "path": Path("a/last.pt")})
    )
    params = {
        "step": alert.step,
        "cause": alert.cause,
        "severity": alert.severity,
        "eta_steps": alert.eta_steps,
        "eta_s": alert.eta_s,
        "evidence": {"slope": float("nan"), "lags": (1.0, float("nan"))},
    }
    events.post(Event(3.0, EventKind.ALERT, Level.WARNING, "forecast.leak", params))
    path = tmp_path / "samples.db"
    database = SessionDatabase.open(path)
    database.write([], events.since(0)[0])
    database.write([], events.since(0)[0])  # the same again, as after a commit whose answer was lost
    database.close()
    assert ask(path, "SELECT seq, t_s, kind, level, code FROM events") == [
        (1, 0.5, "checkpoint", "info", "checkpoint.saved"),
        (2, 3.0, "alert", "warning", "forecast.leak"),
    ]
    assert ask(path, "SELECT * FROM alerts") == [(2, 3.0, 30, "leak", "likely", 120.0, None)]
    (text,) = ask(path, "SELECT params FROM events WHERE seq = 2")[0]
    assert json.loads(str(text))["evidence"] == {"slope": None, "lags": [1.0, None]}


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    store = Store()
    store.declare("steps", ("step",)).append(0.5, (1,))
    store.declare("gpu:GPU-7", GPU_FIELDS).append(0.5, {})
    path = tmp_path / "samples.db"
    database = SessionDatabase.open(path)
    wrong = Event(1.0, EventKind.EPOCH, Level.INFO, "run.epoch", {"set": {1: "mixed"}}, seq=1)
    broken = Event(None, EventKind.EPOCH, Level.INFO, object(), {})  # type: ignore[arg-type]
    with pytest.raises(sqlite3.Error):
        database.write([block(store, "steps"), block(store, "gpu:GPU-7")], [wrong, broken])
    assert ask(path, "SELECT count(*) FROM sqlite_master WHERE name = 'steps'") == [(0,)]
    database.write([block(store, "steps"), block(store, "gpu:GPU-7")], [wrong])
    database.close()
    assert ask(path, "SELECT step FROM steps") == [(1.0,)]
    assert ask(path, "SELECT count(*) FROM telemetry JOIN gpus USING (gpu)") == [(1,)]
    assert ask(path, "SELECT count(*) FROM events") == [(1,)]


def test_a_file_that_is_no_database_is_an_error_and_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "samples.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        SessionDatabase.open(path)
    path.unlink()
