"""The GPU page: all cards side by side, and which of them lags."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from desktop_app.core.telemetry import Reading
from desktop_app.ui.gpu.card_grid import columns_for
from desktop_app.ui.gpu.compare_model import Column
from desktop_app.ui.gpu.field_groups import FACT
from desktop_app.ui.gpu.gpu_page import GpuPage
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.parts import GpuPart
from tests.ui.fake_gpus import Gpus, gpu_workspace
from tests.ui.fake_workspace import FakeState, FakeWorkspace
from tests.ui.gpu_pages import open_page, page_of, row_of, said, words

MakeWindow = Callable[..., MainWindow]
MakePage = Callable[..., GpuPage]


@pytest.fixture
def make_page(show: Callable[..., QWidget]) -> MakePage:
    return partial(open_page, show)


# -- the cards --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "width", "columns"),
    [(1, 800, 1), (2, 800, 2), (8, 800, 4), (16, 800, 4), (5, 800, 3), (16, 480, 2), (3, 100, 1), (16, 1600, 8)],
)
def test_columns_follow_width_and_number(count: int, width: int, columns: int) -> None:
    assert columns_for(count, width=width, least=180, gap=8) == columns


@pytest.mark.parametrize(("gpus", "count"), [(Gpus.RICH, 1), (Gpus.TWO, 2), (Gpus.EIGHT, 8), (Gpus.SIXTEEN, 16)])
def test_every_card_has_a_tile(make_page: MakePage, gpus: Gpus, count: int) -> None:
    page = make_page(gpu_workspace(gpus), GpuPart.CARDS)
    assert len(page.grid.tiles) == count
    assert [tile.isChecked() for tile in page.grid.tiles] == [True] + [False] * (count - 1)
    tile = page.grid.tiles[0]
    name = said(tile.accessibleName())
    assert name.startswith("GPU 0, H100 80GB HBM3, torch 1 · 19:00.0, Util 9")
    assert "VRAM 64.87 GiB of 79.11 GiB" in name
    assert "/ 700 W" in name
    assert "/ 87 °C" in name
    assert len(tile.state.spark) > 20
    right = max(each.geometry().right() for each in page.grid.tiles)
    assert right < page.grid.viewport().width()


def test_a_tile_leads_to_the_fields_of_its_card(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = gpu_workspace(Gpus.EIGHT)
    page = page_of(make_window(workspace), GpuPart.CARDS)
    uuid = workspace.cards.get()[3].uuid
    qtbot.mouseClick(page.grid.tiles[3], Qt.MouseButton.LeftButton)
    assert page.part is GpuPart.FIELDS
    assert page.card is not None
    assert page.card.uuid == uuid
    assert row_of(page, FACT + "uuid").value == uuid
    assert page.choice.currentText() == "GPU 3 · H100 80GB HBM3"
    assert workspace.called("select_card") == [("select_card", uuid)]
    page.choice.setCurrentIndex(6)
    page.choice.activated.emit(6)
    assert page.card.uuid == workspace.cards.get()[6].uuid


def test_arrows_go_from_tile_to_tile(make_page: MakePage, qtbot: QtBot) -> None:
    page = make_page(gpu_workspace(Gpus.EIGHT), GpuPart.CARDS)
    tiles, columns = page.grid.tiles, page.grid.columns
    tiles[0].setFocus()
    qtbot.keyClick(tiles[0], Qt.Key.Key_Right)
    assert tiles[1].hasFocus()
    qtbot.keyClick(tiles[1], Qt.Key.Key_Down)
    assert tiles[1 + columns].hasFocus()
    qtbot.keyClick(tiles[1 + columns], Qt.Key.Key_Return)
    assert page.part is GpuPart.FIELDS


def test_tiles_are_painted_only_when_they_change(make_page: MakePage) -> None:
    workspace = gpu_workspace(Gpus.SIXTEEN)
    page = make_page(workspace, GpuPart.CARDS)
    QCoreApplication.processEvents()
    before = [tile.painted for tile in page.grid.tiles]
    tiles = list(page.grid.tiles)
    for _ in range(5):
        page.refresh_texts()
        QCoreApplication.processEvents()
    assert [tile.painted for tile in page.grid.tiles] == before
    uuid = workspace.cards.get()[4].uuid
    readings = dict(workspace.readings.get())
    readings[uuid] = dict(readings[uuid]) | {"power_w": Reading(333.0)}
    workspace.readings.set(readings)
    page.refresh_texts()
    QCoreApplication.processEvents()
    painted = [tile.painted - old for tile, old in zip(page.grid.tiles, before, strict=True)]
    assert painted == [0] * 4 + [1] + [0] * 11
    assert page.grid.tiles == tiles


def test_lost_card_says_why_and_since_when(make_page: MakePage) -> None:
    workspace = gpu_workspace(Gpus.LOST)
    page = make_page(workspace, GpuPart.CARDS)
    lost = page.grid.tiles[2].state.lost
    assert lost.startswith("GPU lost · last seen ")
    assert [bool(tile.state.lost) for tile in page.grid.tiles] == [False, False, True, False]
    assert lost in page.grid.tiles[2].accessibleName()
    page.grid.tiles[2].click()
    assert {row.value for row in page.fields.model.rows if row.has_history} == {"n/a · GPU lost"}
    assert "GPU lost" in words(page)
    assert page.detail.chart.panel.curves.content.lines  # what was measured before is still there


def test_throttled_card_has_a_mark(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.STRAGGLER), GpuPart.CARDS)
    assert [tile.state.mark for tile in page.grid.tiles] == ["", "", "", "", "", "heat", "", ""]
    assert "slowed by heat" in page.grid.tiles[5].accessibleName()
    assert page.grid.tiles[5].state.hot


def test_mig_instances_lie_under_their_card(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.MIG), GpuPart.CARDS)
    bars = page.grid.tiles[0].state.instances
    assert [bar.name for bar in bars] == ["3g.40gb · 1/0", "2g.20gb · 2/0", "1g.10gb · 3/0", "1g.10gb · 4/0"]
    assert [bar.share and round(bar.share, 2) for bar in bars] == [0.71, 0.42, 0.97, None]
    assert bars[3].text == "no permission"
    assert page.grid.tiles[0].sizeHint().height() > page.grid.tiles[1].sizeHint().height()
    page.open_part(GpuPart.FIELDS)
    assert said(row_of(page, "mig:MIG-0-0").value) == "27.83 GiB of 39.20 GiB"
    assert said(row_of(page, "mig:MIG-0-3").value) == "n/a · no permission · 9.80 GiB"
    assert row_of(page, "mig:MIG-0-3").why == "The driver gives it to administrators only."
    assert row_of(page, "utilization_percent").value == "n/a · not in MIG mode"


# -- the comparison ---------------------------------------------------------------------------------------------------


def test_the_card_that_lags_is_named_with_its_reason(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.STRAGGLER), GpuPart.COMPARE)
    assert said(page.comparison.verdict.text()) == (
        "GPU 5 lags: its clock is 20 % below the others', because heat held it back for 38 % of the last minute."
    )
    model = page.comparison.model
    first = [said(str(model.index(0, column).data())) for column in Column]
    assert first[:2] == ["GPU 5", "slowed by heat"]
    assert first[4] == "1,395 MHz  −360"
    assert model.rowCount() == 8
    assert {str(model.index(row, Column.PACE).data()) for row in range(1, 8)} == {"keeps pace"}


def test_cards_that_keep_pace(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.EIGHT), GpuPart.COMPARE)
    assert page.comparison.verdict.text().startswith("The 8 cards keep pace")


def test_two_jobs_have_a_letter_each(make_page: MakePage) -> None:
    workspace = gpu_workspace(Gpus.STRAGGLER)
    changed = dict(workspace.processes.get())
    for card in workspace.cards.get()[:3]:
        changed[card.uuid] = (dataclasses.replace(changed[card.uuid][0], command="python other.py"),)
    workspace.processes.set(changed)
    page = make_page(workspace, GpuPart.COMPARE)
    first, second = page.comparison.verdict.text().split("\n")
    assert first.startswith("A · GPU 5 lags")
    assert second.startswith("B · The 3 cards keep pace")
    assert page.comparison.model.lines[0].name == "A · GPU 5"
    assert {line.name[0] for line in page.comparison.model.lines} == {"A", "B"}


def test_one_card_is_not_compared(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    assert not page.tabs.isTabVisible(GpuPart.COMPARE)


def test_idle_cards_are_not_compared(make_page: MakePage) -> None:
    page = make_page(FakeWorkspace(FakeState.NOTHING), GpuPart.COMPARE)
    assert page.comparison.verdict.text() == "One card: there is nothing to compare it with."


@pytest.mark.parametrize("width", [420, 480, 820, 1400])
def test_columns_that_do_not_fit_are_left_out(make_page: MakePage, width: int) -> None:
    page = make_page(gpu_workspace(Gpus.STRAGGLER), GpuPart.COMPARE)
    page.resize(width, 700)
    QCoreApplication.processEvents()
    table = page.comparison.table
    assert sum(table.columnWidth(column) for column in Column) <= table.viewport().width()
    assert page.comparison.model.stacked == (width < 800)
    assert table.isColumnHidden(Column.TEMPERATURE) == (width < 460)  # all of them stand in a window of 1024 pixels
    row = [said(table.model().index(0, column).data()) for column in (Column.CARD, Column.CLOCK)]
    assert row == (["GPU 5\nslowed by heat", "1,395 MHz\n−360"] if width < 800 else ["GPU 5", "1,395 MHz  −360"])
    assert table.rowHeight(0) >= (2 if width < 800 else 1) * table.fontMetrics().lineSpacing()
