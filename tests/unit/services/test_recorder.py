"""What the recorder promises: nothing lost that the rings still have, at most a second behind, kill -9 survived."""

from __future__ import annotations

import queue
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.store import Store
from desktop_app.services import recorder as recorders
from desktop_app.services.recorder import Recorder
from desktop_app.services.session_database import SessionDatabase
from desktop_app.services.session_folder import SessionFolder

from .doubles import PATIENCE_S

COLUMNS = ("step", "loss")


class Bench:
    """A recorder, what it records, and what it complains about."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.folder = SessionFolder(folder)
        self.store = Store()
        self.events = EventQueue()
        self.steps = self.store.declare("steps", COLUMNS, capacity=64)
        self.troubles: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.options = options

    def recorder(self, **options: object) -> Recorder:
        given = {"interval_s": 0.01, "first_event": 0, "start_at": {}, **self.options, **options}
        return Recorder(
            self.folder,
            store=self.store,
            events=self.events,
            on_trouble=self.troubles.put,
            **given,  # type: ignore[arg-type]
        )

    def ask(self, question: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.folder.database_path)) as connection:
            return connection.execute(question).fetchall()

    def wait_for_rows(self, count: int) -> None:
        pause = threading.Event()
        for _ in range(int(PATIENCE_S / 0.005)):
            if self.folder.database_path.exists():
                try:
                    if self.ask("SELECT count(*) FROM steps") == [(count,)]:
                        return
                except sqlite3.OperationalError:  # no table yet
                    pass
            pause.wait(0.005)
        raise AssertionError(f"never {count} rows")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_interval_keeps_the_promise_of_one_second() -> None:
    assert recorders.INTERVAL_S <= 0.5


def test_new_rows_are_written_while_others_read(bench: Bench) -> None:
    recorder = bench.recorder()
    recorder.start()
    try:
        for number in range(1, 4):
            bench.steps.append(0.1 * number, (number, None if number == 2 else 0.5))
            bench.wait_for_rows(number)
    finally:
        assert recorder.stop()
    assert bench.ask("SELECT step, loss FROM steps") == [(1, 0.5), (2, None), (3, 0.5)]
    assert bench.troubles.empty()
    assert not Path(f"{bench.folder.database_path}-wal").exists()  # one file when it has ended


def test_what_was_before_the_session_is_left_out_and_stop_writes_the_rest(bench: Bench) -> None:
    bench.steps.append(0.1, (1, 0.5))
    bench.events.post(Event(0.1, EventKind.EPOCH, Level.INFO, "before"))
    recorder = bench.recorder(start_at={"steps": bench.steps.version}, first_event=bench.events.seq, interval_s=60.0)
    recorder.start()
    bench.steps.append(0.2, (2, 0.25))
    bench.store.declare("late", ("x",)).append(0.3, (7,))
    bench.events.post(Event(0.2, EventKind.EPOCH, Level.INFO, "after"))
    assert recorder.stop()
    assert bench.ask("SELECT step FROM steps") == [(2.0,)]
    assert bench.ask("SELECT x FROM late") == [(7.0,)]
    assert bench.ask("SELECT code FROM events") == [("after",)]


def tiny_database(pages: dict[str, int]) -> object:
    """Databases that hold no more than ``pages["most"]`` pages: SQLite itself says that the disk is full."""

    def open_tiny(path: Path) -> SessionDatabase:
        database = SessionDatabase.open(path)
        database._connection.execute(f"PRAGMA max_page_count = {pages['most']}")
        return database

    return open_tiny


def test_a_full_disk_is_told_and_nothing_is_lost(bench: Bench) -> None:
    bench.recorder().stop()
    SessionDatabase.open(bench.folder.database_path).close()
    (used,) = bench.ask("PRAGMA page_count")[0]
    pages = {"most": int(str(used)) + 1}
    recorder = bench.recorder(open_database=tiny_database(pages))
    events = [f"event {i}" for i in range(40)]
    for number in range(1, 41):
        bench.steps.append(0.1 * number, (number, 0.5))
        bench.events.post(Event(0.1 * number, EventKind.ERROR, Level.ERROR, events[number - 1], {"text": "x" * 400}))
    recorder.start()
    try:
        told = bench.troubles.get(timeout=PATIENCE_S)
        assert told is not None
        assert "database or disk is full" in told
        assert str(bench.folder.path) in told
        assert recorder.in_trouble
        pages["most"] = 10_000
        assert bench.troubles.get(timeout=PATIENCE_S) is None
        bench.steps.append(5.0, (41, 0.5))
    finally:
        assert recorder.stop()
    assert bench.troubles.empty()
    assert bench.ask("SELECT step FROM steps ORDER BY rowid") == [(float(n),) for n in range(1, 42)]
    assert bench.ask("SELECT code FROM events ORDER BY seq") == [(code,) for code in events]
    assert recorder.rows_missed == 0


def test_a_disk_that_stays_full_is_told_once_and_stop_says_so(bench: Bench) -> None:
    SessionDatabase.open(bench.folder.database_path).close()
    (used,) = bench.ask("PRAGMA page_count")[0]
    attempts = threading.Semaphore(0)
    tiny = tiny_database({"most": int(str(used))})

    def counted(path: Path) -> SessionDatabase:
        attempts.release()
        return tiny(path)  # type: ignore[operator,no-any-return]

    recorder = bench.recorder(open_database=counted)
    for number in range(30):
        bench.events.post(Event(float(number), EventKind.ERROR, Level.ERROR, "e", {"text": "x" * 400}))
    recorder.start()
    for _ in range(3):
        assert attempts.acquire(timeout=PATIENCE_S)
    assert not recorder.stop()
    assert bench.troubles.get_nowait() is not None
    assert bench.troubles.empty()


def test_rows_that_the_ring_no_longer_had_are_counted_once(bench: Bench) -> None:
    """64 rows are held (and no more): of 200 that came while the file could not be opened, 136 are gone."""
    blocked = threading.Event()
    tried = threading.Semaphore(0)

    def open_database(path: Path) -> SessionDatabase:
        tried.release()
        if not blocked.is_set():
            raise sqlite3.OperationalError("unable to open database file")
        return SessionDatabase.open(path)

    recorder = bench.recorder(open_database=open_database)
    recorder.start()
    try:
        for number in range(200):
            bench.steps.append(float(number), (number, 0.5))
        held = bench.steps.since(0).t_s.size
        for _ in range(3):
            assert tried.acquire(timeout=PATIENCE_S)
        blocked.set()
        bench.wait_for_rows(held)
    finally:
        assert recorder.stop()
    assert recorder.rows_missed == 200 - held


def test_an_error_of_our_own_does_not_end_the_recorder(bench: Bench) -> None:
    mended = threading.Event()

    def open_database(path: Path) -> SessionDatabase:
        if not mended.is_set():
            raise TypeError("a mistake")
        return SessionDatabase.open(path)

    bench.steps.append(1.0, (1, 0.5))
    recorder = bench.recorder(open_database=open_database)
    recorder.start()
    assert "a mistake" in str(bench.troubles.get(timeout=PATIENCE_S))
    mended.set()
    assert bench.troubles.get(timeout=PATIENCE_S) is None
    assert recorder.stop()
    assert bench.ask("SELECT step FROM steps") == [(1.0,)]


def test_a_recorder_that_was_never_started_stops(bench: Bench) -> None:
    assert bench.recorder().stop()


WRITER = """
import sys, threading
from pathlib import Path
from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.store import Store
from desktop_app.services.recorder import Recorder
from desktop_app.services.session_folder import SessionFolder

store, events, clock = Store(), EventQueue(), SessionClock()
steps = store.declare("steps", ("step", "loss"))
Recorder(SessionFolder(Path(sys.argv[1])), store=store, events=events, start_at={}, first_event=0,
         on_trouble=lambda text: print("trouble", text, flush=True)).start()
pause = threading.Event()
number = 0
while True:
    number += 1
    now_s = clock.now_s()
    steps.append(now_s, (number, 0.5))
    events.post(Event(now_s, EventKind.ALERT, Level.WARNING, "forecast.leak", {"step": number}))
    print(number, now_s, flush=True)
    pause.wait(0.01)
"""


def test_kill_9_costs_the_last_second_at_most(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    lines = []
    assert child.stdout is not None
    try:
        for line in child.stdout:
            assert not line.startswith("trouble"), line
            lines.append(line.split())
            if float(lines[-1][1]) > 2.2:
                break
    finally:
        child.kill()  # SIGKILL
        rest, _ = child.communicate(timeout=PATIENCE_S)
    lines += [line.split() for line in rest.splitlines() if len(line.split()) == 2]
    last_s = float(lines[-1][1])
    with closing(sqlite3.connect(tmp_path / "samples.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("SELECT step, t_s FROM steps ORDER BY rowid").fetchall()
        alerts = connection.execute("SELECT count(*) FROM alerts").fetchall()
    assert [step for step, _ in rows] == [float(n) for n in range(1, len(rows) + 1)]
    assert [f"{t_s}" for _, t_s in rows] == [t_s for _, t_s in lines[: len(rows)]]
    assert last_s - rows[-1][1] <= 1.0
    assert alerts == [(len(rows),)]
