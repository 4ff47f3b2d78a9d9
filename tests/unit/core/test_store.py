"""Histories by name, cells, and one version over all of them."""

from __future__ import annotations

import threading

import pytest

from desktop_app.core.store import Cell, Store

WAIT_S = 30.0


def test_a_history_is_declared_once() -> None:
    store = Store()
    steps = store.declare("steps", ("step", "loss"), capacity=16)
    assert store.declare("steps", ["step", "loss"]) is steps
    assert store.history("steps") is steps
    store.declare("host", ("cpu_percent",))
    assert store.names() == ("steps", "host")
    with pytest.raises(ValueError, match="history 'steps' has the columns"):
        store.declare("steps", ("loss", "step"))
    with pytest.raises(KeyError, match="validation"):
        store.history("validation")


def test_the_version_grows_with_every_change() -> None:
    store = Store()
    versions = [store.version]
    history, cell = store.declare("steps", ("loss",)), store.watch(Cell("idle"))
    alone = Cell(0)
    for change in (
        lambda: history.append(1.0, (0.5,)),
        lambda: cell.set("running"),
        lambda: cell.set("running"),
        lambda: history.append_gap(2.0),
        lambda: store.declare("host", ("cpu_percent",)).append(1.0, (3.0,)),
    ):
        change()
        versions.append(store.version)
    assert versions == [0, 1, 2, 3, 4, 5]
    alone.set(1)
    assert store.version == 5


def test_a_cell_holds_the_latest_value() -> None:
    cell: Cell[str | None] = Cell(None)
    assert cell.read() == (None, 0)
    cell.set("a")
    cell.set("b")
    assert cell.get() == "b"
    assert cell.version == 2
    assert cell.read() == ("b", 2)


def test_a_reader_sees_a_value_with_its_own_version() -> None:
    cell = Cell(0)
    writers, sets = 3, 2000
    started, finished = threading.Barrier(writers + 1), threading.Event()
    seen: list[tuple[int, int]] = []

    def write() -> None:
        started.wait(WAIT_S)
        for _ in range(sets):
            with lock:
                cell.set(cell.version + 1)

    def read() -> None:
        started.wait(WAIT_S)
        while not finished.is_set():
            seen.append(cell.read())

    lock = threading.Lock()  # makes "value = version" true for the test; the cell does not need it
    reader = threading.Thread(target=read, daemon=True)
    threads = [threading.Thread(target=write, daemon=True) for _ in range(writers)]
    for thread in (*threads, reader):
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    finished.set()
    reader.join(WAIT_S)
    assert cell.read() == (writers * sets, writers * sets)
    assert all(value == version for value, version in seen)
    assert seen == sorted(seen)


def test_concurrent_declarations_give_one_history() -> None:
    store, started, found = Store(), threading.Barrier(8), []

    def declare() -> None:
        started.wait(WAIT_S)
        found.append(store.declare("steps", ("loss",)))

    threads = [threading.Thread(target=declare, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
