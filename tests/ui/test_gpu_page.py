"""The GPU page: all fields with their reasons and history, all cards, and which of them lags."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from desktop_app.core.telemetry import ALL_GPU_FIELDS, Card, Reading, Reason
from desktop_app.ui import i18n
from desktop_app.ui.charts.scales import Limits
from desktop_app.ui.gpu.card_grid import columns_for
from desktop_app.ui.gpu.compare_model import Column
from desktop_app.ui.gpu.field_groups import FACT, GROUPS, XID
from desktop_app.ui.gpu.field_panel import RELATED
from desktop_app.ui.gpu.field_rows import Row
from desktop_app.ui.gpu.field_series import COUNTERS, FLAGS, STEPPED, Series, axis_of, series_of, unit_of
from desktop_app.ui.gpu.gpu_page import GpuPage
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.parts import GpuPart
from desktop_app.ui.side_panel import Tab
from desktop_app.ui.texts import cards, field_help
from desktop_app.ui.texts.numbers import NBSP
from desktop_app.ui.theme import DARK, ThemeMode
from tests.ui.clipping import clipped_texts
from tests.ui.fake_gpus import Gpus, gpu_workspace, sample
from tests.ui.fake_workspace import FakeState, FakeWorkspace
from tests.ui.test_accessibility import controls

MakeWindow = Callable[..., MainWindow]
MakePage = Callable[..., GpuPage]


def page_of(window: MainWindow, part: GpuPart = GpuPart.FIELDS) -> GpuPage:
    window.centre.show_gpu(part)
    QCoreApplication.processEvents()
    page = window.centre.gpu
    assert page is not None
    return page


@pytest.fixture
def make_page(show: Callable[..., QWidget]) -> Callable[..., GpuPage]:
    """The page without its window, which takes four times as long to make."""

    def made(workspace: FakeWorkspace, part: GpuPart = GpuPart.FIELDS) -> GpuPage:
        page = GpuPage(workspace, DARK)
        show(page, width=820, height=700)
        page.open_part(part)
        QCoreApplication.processEvents()
        return page

    return made


def row_of(page: GpuPage, key: str) -> Row:
    return next(row for row in page.fields.model.rows if row.key == key)


def said(text: str) -> str:
    return text.replace(NBSP, " ")


def words(widget: QWidget) -> str:
    return said("\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible()))


def one_more_second(workspace: FakeWorkspace, gpus: Gpus) -> None:
    workspace.manual.now_s += 1.0
    sample(workspace, gpus, workspace.manual.now_s)


# -- names ------------------------------------------------------------------------------------------------------------


def test_every_field_and_every_fact_is_on_the_page_once_with_a_name() -> None:
    keys = [key for group in GROUPS for key in group.keys]
    assert len(keys) == len(set(keys))
    fields = {key for key in keys if not key.startswith(FACT)} - {XID}
    assert fields == set(ALL_GPU_FIELDS)
    assert all(cards.known_field(field) for field in ALL_GPU_FIELDS)
    facts = {key.removeprefix(FACT) for key in keys if key.startswith(FACT)}
    assert facts == {field.name for field in dataclasses.fields(Card)} - {"instances", "reasons"}
    assert facts == set(cards.FACT_NAMES)


def test_no_two_names_are_the_same() -> None:
    names = [cards.reading_name(field) for field in ALL_GPU_FIELDS] + [
        cards.fact_name(name) for name in cards.FACT_NAMES
    ]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("sm_activity_percent", 74.2, "74 %"),
        ("nvlink_rx_bytes_per_s", 41.0 * 2**30, "41.00 GiB/s"),
        ("power_module_w", 812.4, "812 W"),
        ("temperature_margin_c", 21.0, "21 °C"),
        ("video_clock_mhz", 1545.0, "1,545 MHz"),
        ("energy_j", 7.2e6, "2.000 kWh"),
        ("remapping_pending", 1.0, "yes"),
        ("remapping_failed", 0.0, "no"),
        ("throttle_reasons", 0.0, "nothing"),
        ("throttle_reasons", 36.0, "heat, power limit"),
        ("throttle_reasons", 1.0, "nothing to do"),
        ("throttle_reasons", 0x1000, "0x1000"),
        ("ecc_corrected_total", 19.0, "19"),
        ("performance_state", 8.0, "P8"),
    ],
)
def test_values_have_the_right_unit(field: str, value: float, text: str) -> None:
    assert said(cards.reading_value(field, Reading(value))) == text


def test_facts_are_words(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    texts = {key: said(row_of(page, FACT + key).value) for key in cards.FACT_NAMES}
    assert texts["persistence_mode"] == "on"
    assert texts["compute_mode"] == "shared by processes"
    assert texts["memory_bus_bits"] == "5,120 bit"
    assert texts["energy_source"] == "the driver's counter"
    assert texts["spills"] == "no"
    assert texts["compute_capability"] == "9.0"
    assert texts["vendor"] == "NVIDIA"


def test_tables_of_the_page_name_fields_that_exist() -> None:
    assert set(STEPPED) | set(COUNTERS) | set(FLAGS) <= set(ALL_GPU_FIELDS)
    assert {field for fields in RELATED.values() for field in fields} | set(RELATED) <= set(ALL_GPU_FIELDS)
    assert set(field_help._HELP) <= {*ALL_GPU_FIELDS, *cards.FACT_NAMES, XID}


# -- the way there and back -------------------------------------------------------------------------------------------


def test_page_is_made_when_it_is_first_wanted(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(gpu_workspace(Gpus.RICH))
    assert window.centre.gpu is None
    QTest.keyClick(window, Qt.Key.Key_G, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert window.centre.shows_gpu
    assert window.actions_["view.gpu_page"].isChecked()
    page = window.centre.gpu
    assert page is not None
    assert page.fields.search.hasFocus()
    qtbot.keyClick(page.fields.view, Qt.Key.Key_Escape)
    assert not window.centre.shows_gpu
    assert window.actions_["view.curves"].isChecked()


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("view.gpu_page", GpuPart.FIELDS),
        ("view.gpu_cards", GpuPart.CARDS),
        ("view.gpu_compare", GpuPart.COMPARE),
    ],
)
def test_each_part_has_a_command(make_window: MakeWindow, command: str, part: GpuPart) -> None:
    window = make_window(gpu_workspace(Gpus.EIGHT))
    window.actions_.trigger(command)
    assert window.centre.gpu is not None
    assert window.centre.gpu.part is part


def test_panel_at_the_side_leads_to_the_page(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(gpu_workspace(Gpus.RICH))
    window.open_tab(Tab.GPU)
    qtbot.mouseClick(window.side_panel.gpu.more, Qt.MouseButton.LeftButton)
    assert window.centre.shows_gpu


# -- the list ---------------------------------------------------------------------------------------------------------


def test_every_field_has_a_value_or_its_reason(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    for row in page.fields.model.rows:
        assert row.value, row.key
        assert row.there == (not row.value.startswith("n/a")), row.key
    assert said(row_of(page, "sm_clock_mhz").value).endswith("MHz")
    fan = row_of(page, "fan_percent")
    assert (fan.value, fan.why) == ("n/a · not supported", "This card does not report it.")
    index = page.fields.model.index_of("fan_percent")
    assert "This card does not report it." in index.data(Qt.ItemDataRole.ToolTipRole)
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "Fan: n/a · not supported"


def test_search_finds_by_name_group_and_field(make_page: MakePage, qtbot: QtBot) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    search = page.fields.search
    for query, first, others in (
        ("nvlink", "nvlinks_active", 3),
        ("pcie_width", "pcie_width", 2),
        ("health ecc errors", "ecc_uncorrected", 2),
        ("SM CLOCK", "sm_clock_mhz", 2),
    ):
        search.setText(query)
        shown = [row.key for row in page.fields.model.shown]
        assert first in shown, query
        assert len(shown) <= 10, query
        assert len(shown) >= others - 1, query
    search.setText("no such field")
    assert page.fields.model.shown == ()
    assert "No field has “no such field” in it." in words(page.fields)
    qtbot.keyClick(search, Qt.Key.Key_Escape)
    assert search.text() == ""
    assert len(page.fields.model.shown) == len(page.fields.model.rows)


def test_only_what_is_there(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.WINDOWS))
    before = len(page.fields.model.shown)
    page.fields.only_there.setChecked(True)
    shown = page.fields.model.shown
    assert 20 < len(shown) < before
    assert all(row.there for row in shown)
    assert f"{len(shown)} of {before} reported" in words(page.fields)


def test_copies_one_value_and_all(make_page: MakePage, qtbot: QtBot) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    page.fields.choose("pcie_width")
    QTest.keyClick(page.fields.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "PCIe lanes\t16"
    page.fields.search.setText("pcie lanes")
    qtbot.mouseClick(page.fields.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "PCIe and NVLink\nPCIe lanes\t16\nMost PCIe lanes\t16"


def test_list_goes_by_keys_and_skips_headings(make_page: MakePage, qtbot: QtBot) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    qtbot.keyClick(page.fields.search, Qt.Key.Key_Down)
    assert page.fields.view.hasFocus()
    seen = [page.fields.key]
    for _ in range(len(page.fields.model.rows) - 1):
        qtbot.keyClick(page.fields.view, Qt.Key.Key_Down)
        seen.append(page.fields.key)
    assert seen == [row.key for row in page.fields.model.rows]


def test_new_values_change_only_their_rows(make_page: MakePage) -> None:
    workspace = gpu_workspace(Gpus.RICH)
    page = make_page(workspace)
    page.fields.choose("sm_clock_mhz")
    changed: list[str] = []
    resets: list[int] = []
    model = page.fields.model
    model.dataChanged.connect(lambda top, _bottom: changed.append(row.key if (row := model.row_at(top)) else ""))
    model.modelReset.connect(lambda: resets.append(1))
    page.refresh_texts()
    assert changed == []
    uuid = workspace.cards.get()[0].uuid
    readings = dict(workspace.readings.get()[uuid]) | {"sm_clock_mhz": Reading(1200.0)}
    workspace.readings.set({uuid: readings})
    page.refresh_texts()
    assert changed == ["sm_clock_mhz"]
    assert resets == []
    assert page.fields.key == "sm_clock_mhz"


def test_what_is_wrong_stands_out(make_page: MakePage) -> None:
    workspace = gpu_workspace(Gpus.RICH)
    page = make_page(workspace)
    assert row_of(page, "throttle_reasons").tone == ""  # the power limit is how cards are meant to run
    assert row_of(page, XID).value.startswith("63 · last ")
    assert row_of(page, XID).tone == "danger"
    assert "Xid 63: bad memory was put aside" in row_of(page, XID).help
    uuid = workspace.cards.get()[0].uuid
    bad = {
        "ecc_uncorrected": Reading(3.0),
        "pcie_width": Reading(8.0),
        "throttle_reasons": Reading(float(0x20)),
        "remapping_failed": Reading(1.0),
    }
    workspace.readings.set({uuid: dict(workspace.readings.get()[uuid]) | bad})
    page.refresh_texts()
    tones = {key: row_of(page, key).tone for key in bad}
    assert tones == {
        "ecc_uncorrected": "danger",
        "pcie_width": "warn",
        "throttle_reasons": "warn",
        "remapping_failed": "danger",
    }


# -- the history ------------------------------------------------------------------------------------------------------


def test_utilisation_is_explained_first_and_offers_what_says_more(make_page: MakePage, qtbot: QtBot) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    assert page.fields.key == "utilization_percent"
    assert "not how much of the card it used" in words(page.detail)
    assert "not how much of the card" in page.fields.model.index_of("utilization_percent").data(
        Qt.ItemDataRole.ToolTipRole
    )
    page.fields.search.setText("utilisation")
    link = page.detail._links[0]
    assert link.text() == "SM activity"
    qtbot.mouseClick(link, Qt.MouseButton.LeftButton)
    assert page.fields.key == "sm_activity_percent"
    assert page.fields.search.text() == ""


@pytest.mark.parametrize("key", ["utilization_percent", "sm_activity_percent", "throttle_reasons", "energy_j"])
def test_a_field_shows_its_history(make_page: MakePage, key: str) -> None:
    workspace = gpu_workspace(Gpus.RICH)
    page = make_page(workspace)
    page.fields.choose(key)
    QCoreApplication.processEvents()
    chart = page.detail.chart
    assert chart.series is not None
    assert chart.series.history.startswith("details:" if key in {"sm_activity_percent", "throttle_reasons"} else "gpu:")
    assert chart.panel.curves.content.lines
    assert not chart.panel.curves.content.lines[0].path.isEmpty()
    assert chart.panel.head.title == cards.reading_name(key)
    assert chart.accessibleName() == f"History of {cards.reading_name(key)}"


def test_every_reading_can_be_drawn(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    for key in ALL_GPU_FIELDS:
        page.fields.choose(key)
        there = row_of(page, key).there
        assert bool(page.detail.chart.panel.curves.content.lines) == there, key
        assert bool(page.detail.chart.panel.head.hint) != there, key


def test_facts_have_no_chart(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    page.fields.choose(FACT + "persistence_mode")
    assert not page.detail.chart.isVisible()
    shown = words(page.detail)
    assert "Persistence" in shown
    assert "It does not change, so it has no history." in shown


def test_figures_are_those_of_the_span(make_page: MakePage) -> None:
    workspace = gpu_workspace(Gpus.RICH)
    page = make_page(workspace)
    page.fields.choose("power_w")
    page.detail.chart.set_span_s(60.0)
    page.refresh_texts()
    uuid, now_s = workspace.cards.get()[0].uuid, workspace.manual.now_s
    rows = workspace.store.history(f"gpu:{uuid}").tail(10_000, ("power_w",))
    values = rows.values[0][rows.t_s >= page.detail.chart.span[0]]
    assert page.detail.chart.span[1] == pytest.approx(now_s, abs=1.0)
    assert 55 <= values.size <= 62
    shown = words(page.detail)
    assert f"lowest\n{values.min():.0f} W" in shown or f"{values.min():.0f} W" in shown
    assert f"{np.mean(values):.0f} W" in shown
    assert f"{values.max():.0f} W" in shown


def test_counters_show_what_was_added(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    page.fields.choose("energy_j")
    shown = words(page.detail)
    assert "change" in shown
    assert "+0.021 kWh" in shown  # 640 J a second for 119 s


def test_limit_of_a_field_is_drawn(make_page: MakePage) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    for key, figure in (("power_w", "700"), ("memory_used_bytes", "79.11"), ("temperature_c", "87")):
        page.fields.choose(key)
        assert len(page.detail.chart.panel.curves.content.limits) == 1, key
        assert [each.text for each in page.detail.chart.panel._right] == [figure]


def test_cursor_reads_the_value(make_page: MakePage, qtbot: QtBot) -> None:
    page = make_page(gpu_workspace(Gpus.RICH))
    page.fields.choose("memory_clock_mhz")
    chart = page.detail.chart
    chart.setFocus()
    qtbot.keyClick(chart, Qt.Key.Key_Left)
    assert [(row[0], said(row[1])) for row in chart.box.said.rows] == [("Memory clock", "2,619 MHz")]
    qtbot.keyClick(chart, Qt.Key.Key_Escape)
    assert not chart.box.isVisible()
    before = chart.view.width
    qtbot.keyClick(chart, Qt.Key.Key_Plus)
    assert chart.view.width < before
    qtbot.keyClick(chart, Qt.Key.Key_PageUp)
    assert not chart.view.live
    qtbot.keyClick(chart, Qt.Key.Key_Home)
    assert chart.view.live


def test_axes_have_fitting_units_and_whole_counts() -> None:
    def axis(key: str, *values: float, limit: float | None = None) -> tuple[str, ...]:
        series = Series("x", key, limit)
        drawn = series.drawn(np.array(values))
        return axis_of(series, drawn, unit_of(key, max(values)), Limits(), at_most=4).labels

    assert axis("utilization_percent", 3.0, 20.0) == ("0", "50", "100")
    assert axis("performance_state", 0.0, 8.0) == ("P15", "P10", "P5", "P0")
    assert axis("throttle_reasons", 1.0, 36.0) == ("no", "yes")
    assert unit_of("pcie_rx_bytes_per_s", 3 * 2**20).text == "MiB/s"
    assert unit_of("memory_used_bytes", 5 * 2**30).text == "GiB"
    assert all(label == "" or float(label) == int(label) for label in axis("ecc_corrected", 0.0, 1.0))
    assert Series("x", "throttle_reasons").drawn(np.array([0.0, 1.0, 4.0, 0x40, np.nan]))[:4].tolist() == [0, 0, 1, 1]


def test_limit_follows_the_reading() -> None:
    card = gpu_workspace(Gpus.RICH).cards.get()[0]
    assert series_of(card, "power_w", {"power_limit_w": Reading(450.0)}).limit == 450.0
    assert series_of(card, "power_w", {"power_limit_w": Reading(None, Reason.NO_PERMISSION)}).limit == 700.0
    assert series_of(card, "fan_percent", {}).limit is None


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


# -- work, states, looks ----------------------------------------------------------------------------------------------


def test_hidden_page_does_nothing(make_window: MakeWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = gpu_workspace(Gpus.EIGHT)
    window = make_window(workspace)
    page = page_of(window)
    window.centre.show_curves()
    drawn = page.detail.chart.drawn

    def forbidden(*_: object) -> None:
        raise AssertionError("a hidden page works")

    monkeypatch.setattr(page.fields, "set_rows", forbidden)
    monkeypatch.setattr(page.grid, "refresh", forbidden)
    monkeypatch.setattr(page.comparison, "refresh", forbidden)
    one_more_second(workspace, Gpus.EIGHT)
    window.refresh_texts()
    window.centre.refresh()
    page.refresh_texts()
    page.refresh()
    assert page.detail.chart.drawn == drawn


def test_still_chart_is_not_drawn_again(make_page: MakePage) -> None:
    workspace = gpu_workspace(Gpus.RICH)
    page = make_page(workspace)
    page.refresh()
    drawn = page.detail.chart.drawn
    for _ in range(5):
        page.refresh()
        page.refresh_texts()
    assert page.detail.chart.drawn == drawn
    for _ in range(3):
        one_more_second(workspace, Gpus.RICH)
    page.refresh()
    assert page.detail.chart.drawn == drawn + 1


@pytest.mark.parametrize("state", [FakeState.NO_DRIVER, FakeState.NO_GPU])
def test_without_a_card_the_reason_stands_there(make_page: MakePage, state: FakeState) -> None:
    workspace = FakeWorkspace(state)
    page = make_page(workspace)
    assert workspace.telemetry.get().detail in words(page)
    for part in GpuPart:
        page.open_part(part)
    assert not page.fields.isVisible()


def test_simulated_card_gives_simulation_as_the_reason(make_page: MakePage) -> None:
    page = make_page(FakeWorkspace(FakeState.HEALTHY))
    assert row_of(page, FACT + "driver_version").value == "n/a · simulated card"
    assert row_of(page, FACT + "simulated").value == "yes"
    assert row_of(page, XID).value == "n/a · simulated card"


def test_cards_that_come_and_go(make_page: MakePage) -> None:
    workspace = gpu_workspace(Gpus.TWO)
    page = make_page(workspace, GpuPart.CARDS)
    workspace.cards.set(workspace.cards.get()[1:])
    page.refresh_texts()
    assert [tile.state.index for tile in page.grid.tiles] == ["GPU 1"]
    workspace.cards.set(())
    page.refresh_texts()
    assert not page.grid.isVisible()


@pytest.mark.parametrize("part", list(GpuPart))
@pytest.mark.parametrize("size", [(1440, 900), (1024, 640)])
def test_nothing_is_clipped(make_window: MakeWindow, part: GpuPart, size: tuple[int, int]) -> None:
    for gpus in (Gpus.STRAGGLER, Gpus.LOST):
        page = page_of(make_window(gpu_workspace(gpus), width=size[0], height=size[1]), part)
        assert clipped_texts(page) == []


@pytest.mark.parametrize("part", list(GpuPart))
def test_nothing_is_clipped_in_longer_words(make_window: MakeWindow, part: GpuPart, pseudo_qm: str) -> None:
    window = make_window(gpu_workspace(Gpus.STRAGGLER), width=1024, height=640)
    assert window.appearance.install(pseudo_qm)
    QCoreApplication.processEvents()
    page = page_of(window, part)
    assert clipped_texts(page) == []


@pytest.mark.parametrize("part", list(GpuPart))
def test_controls_have_names_and_take_the_focus(make_page: MakePage, part: GpuPart) -> None:
    page = make_page(gpu_workspace(Gpus.EIGHT), part)
    found = list(controls(page))
    assert found
    for control in found:
        named = control.accessibleName() or getattr(control, "text", str)()
        assert named, f"no name: {type(control).__name__} {control.objectName()}"
        assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, named


def test_language_theme_and_size_change_while_it_is_open(make_window: MakeWindow) -> None:
    window = make_window(gpu_workspace(Gpus.STRAGGLER))
    page = page_of(window)
    for part in GpuPart:
        page.open_part(part)
        window.set_language(i18n.CHINESE)
        window.set_theme_mode(ThemeMode.LIGHT)
        window.resize(1024, 640)
        QCoreApplication.processEvents()
        assert not page._title.isVisible()
        window.set_language(i18n.ENGLISH)
        window.set_theme_mode(ThemeMode.DARK)
        window.resize(1440, 900)
        QCoreApplication.processEvents()
        assert page._title.isVisible()


@pytest.mark.parametrize("width", [420, 480, 820, 1400])
def test_columns_that_do_not_fit_are_left_out(make_page: MakePage, width: int) -> None:
    page = make_page(gpu_workspace(Gpus.STRAGGLER), GpuPart.COMPARE)
    page.resize(width, 700)
    QCoreApplication.processEvents()
    table = page.comparison.table
    assert sum(table.columnWidth(column) for column in Column) <= table.viewport().width()
    assert table.isColumnHidden(Column.TEMPERATURE) == (width < 800)
