"""The GPU page: all fields with their reasons and history; its states, looks and keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from desktop_app.core.telemetry import ALL_GPU_FIELDS, Card, Reading, Reason
from desktop_app.ui import i18n
from desktop_app.ui.charts.scales import Limits
from desktop_app.ui.gpu.field_groups import FACT, GROUPS, XID
from desktop_app.ui.gpu.field_panel import RELATED
from desktop_app.ui.gpu.field_series import COUNTERS, FLAGS, STEPPED, Series, axis_of, series_of, unit_of
from desktop_app.ui.gpu.gpu_page import GpuPage
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.parts import GpuPart
from desktop_app.ui.side_panel import Tab
from desktop_app.ui.texts import cards, field_help
from desktop_app.ui.theme import ThemeMode
from tests.ui.clipping import clipped_texts
from tests.ui.fake_gpus import Gpus, gpu_workspace
from tests.ui.fake_workspace import FakeState, FakeWorkspace
from tests.ui.gpu_pages import one_more_second, open_page, page_of, row_of, said, words
from tests.ui.test_accessibility import controls

MakeWindow = Callable[..., MainWindow]
MakePage = Callable[..., GpuPage]


@pytest.fixture
def make_page(show: Callable[..., QWidget]) -> MakePage:
    return partial(open_page, show)


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
    assert row_of(page, FACT + "persistence_mode").value == "n/a · simulated card"
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


def test_a_small_window_shows_ten_fields_below_their_history(make_window: MakeWindow) -> None:
    window = make_window(gpu_workspace(Gpus.RICH), width=1024, height=640)
    page = page_of(window)
    view, chart = page.fields.view, page.detail.chart
    rows = [view.visualRect(view.model().index(row, 0)) for row in range(view.model().rowCount())]
    assert sum(view.viewport().rect().contains(rect) for rect in rows) >= 10
    assert chart.panel.plot.height() >= 60
    assert [said(key.text) for key in chart.panel.head.keys] == ["99 %", "95 % – 99 %", "mean 97 %"]
