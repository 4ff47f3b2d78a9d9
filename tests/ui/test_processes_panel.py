from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from desktop_app.core.telemetry import ProcessSample, Reason
from desktop_app.ui.processes_panel import MEMORY, NAME, PID, ProcessesPanel, ProcessModel
from tests.ui.fake_workspace import FakeState, FakeWorkspace


def process(pid: int, memory_bytes: int | None, name: str = "python") -> ProcessSample:
    return ProcessSample(
        pid=pid,
        uuid="GPU-0",
        name=name,
        user=None,
        command=None,
        kind="compute",
        memory_bytes=memory_bytes,
        memory_reason=None if memory_bytes is not None else Reason.WDDM,
    )


def column(model: ProcessModel, index: int) -> list[object]:
    return [model.data(model.index(row, index)) for row in range(model.rowCount())]


def test_sizes_beyond_four_gibibytes_sort_as_numbers() -> None:
    """A proxy that compares 32-bit numbers puts 5 GiB below 2 GiB."""
    sizes = [2**31, 2**32 + 1, 2**32 - 1, 5 * 2**30, 80 * 2**30, 1, 900 * 2**20]
    processes = [process(pid, size) for pid, size in enumerate(sizes, start=1)]
    random.Random(5).shuffle(processes)
    model = ProcessModel()
    model.show_processes(tuple(processes))
    model.sort(MEMORY, Qt.SortOrder.AscendingOrder)
    assert [model.process(row).memory_bytes for row in range(len(sizes))] == sorted(sizes)
    model.sort(MEMORY, Qt.SortOrder.DescendingOrder)
    assert [model.process(row).memory_bytes for row in range(len(sizes))] == sorted(sizes, reverse=True)


@given(st.lists(st.one_of(st.none(), st.integers(min_value=0, max_value=2**48)), max_size=30))
def test_unknown_sizes_are_smaller_than_any_known_one(sizes: list[int | None]) -> None:
    model = ProcessModel()
    model.show_processes(tuple(process(pid, size) for pid, size in enumerate(sizes, start=1)))
    shown = [model.process(row).memory_bytes for row in range(model.rowCount())]
    known = [size for size in sizes if size is not None]
    assert shown == [*sorted(known, reverse=True), *[None] * (len(sizes) - len(known))]


def test_names_and_pids_sort_too() -> None:
    model = ProcessModel()
    model.show_processes((process(30, 1, "b"), process(4, 2, "A"), process(200, 3, "c")))
    model.sort(NAME, Qt.SortOrder.AscendingOrder)
    assert column(model, NAME) == ["A", "b", "c"]
    model.sort(PID, Qt.SortOrder.DescendingOrder)
    assert column(model, PID) == ["200", "30", "4"]


def test_unknown_memory_is_its_reason() -> None:
    model = ProcessModel()
    model.show_processes((process(1, None),))
    assert column(model, MEMORY) == ["hidden by Windows"]
    tip = model.data(model.index(0, MEMORY), Qt.ItemDataRole.ToolTipRole)
    assert "Windows manages the memory" in str(tip)


def test_refresh_of_the_same_processes_keeps_the_rows(qtbot: QtBot) -> None:
    model = ProcessModel()
    model.show_processes((process(1, 10), process(2, 20)))
    with qtbot.assertNotEmitted(model.modelReset):
        model.show_processes((process(1, 30), process(2, 20)))
    assert column(model, PID) == ["1", "2"]


@pytest.mark.parametrize(("state", "rows"), [(FakeState.HEALTHY, 3), (FakeState.NOTHING, 2), (FakeState.NO_GPU, 0)])
def test_panel_shows_the_card_of_the_run(qtbot: QtBot, state: FakeState, rows: int) -> None:
    panel = ProcessesPanel(FakeWorkspace(state))
    qtbot.addWidget(panel)
    assert panel.model.rowCount() == rows
