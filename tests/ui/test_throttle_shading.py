"""Time in which the card was held back is shaded in every panel, at any zoom, with the reason; and what load means."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QCoreApplication, QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QMenu, QToolTip, QWidget

from desktop_app.core.store import History
from desktop_app.core.telemetry import DETAIL_FIELDS, GPU_FIELDS, Reading, Reason
from desktop_app.ui.brush import Typeset
from desktop_app.ui.charts import shades, texts
from desktop_app.ui.charts.chart_stack import ChartStack
from desktop_app.ui.charts.load import Load, shown, why_not
from desktop_app.ui.charts.shades import Band, Look
from desktop_app.ui.charts.throttling import THRESHOLD_PERCENT, Throttle, episodes, spans_above
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.qt_settings import Settings
from desktop_app.ui.theme import DARK, LIGHT, Theme
from tests.ui.fake_workspace import FakeState, FakeWorkspace

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")
HEAT, POWER = Throttle.HEAT, Throttle.POWER
NAN = math.nan


# -- episodes -------------------------------------------------------------------------------------------------------


def spans(points: Iterable[tuple[float, float]], *, longest_s: float = 1.0, pause_s: float = 2.0) -> list[list[float]]:
    x, y = np.array(list(points), np.float64).reshape(-1, 2).T
    found: list[list[float]] = spans_above(x, y, longest_s=longest_s, pause_s=pause_s).tolist()
    return found


def test_a_share_belongs_to_the_time_before_it() -> None:
    assert spans([(1.0, 0.0), (2.0, 50.0), (3.0, 0.0)]) == [[1.0, 2.0]]
    assert spans([(1.0, 0.0), (2.0, 50.0), (3.0, 60.0), (4.0, 0.0)]) == [[1.0, 3.0]]


def test_pauses_join_and_longer_ones_part() -> None:
    assert spans([(1.0, 0.0), (2.0, 9.0), (3.0, 0.0), (4.0, 9.0)]) == [[1.0, 4.0]]
    assert spans([(1.0, 0.0), (2.0, 9.0), (3.0, 0.0), (6.0, 0.0), (7.0, 9.0)]) == [[1.0, 2.0], [6.0, 7.0]]


def test_a_gap_is_not_shaded() -> None:
    """Nothing is known of the ten minutes without a reading; the first tick after them covers a tick, not the gap."""
    assert spans([(1.0, 0.0), (2.0, NAN), (600.0, 80.0)]) == [[599.0, 600.0]]


def test_a_little_is_nothing() -> None:
    below = THRESHOLD_PERCENT - 0.01
    assert spans([(1.0, below), (2.0, below)]) == []
    assert spans([(1.0, 0.0), (2.0, THRESHOLD_PERCENT)]) == [[1.0, 2.0]]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.booleans(), min_size=1, max_size=400),
    st.floats(min_value=0.1, max_value=50.0),
)
def test_every_throttled_tick_is_shaded_and_nothing_far_from_one(ticks: list[bool], pause_s: float) -> None:
    x = np.arange(1, len(ticks) + 1) * 0.2
    y = np.where(ticks, 30.0, 0.0)
    found = spans_above(x, y, longest_s=1.0, pause_s=pause_s)
    hits = x[np.array(ticks)]
    for hit in hits:
        assert any(start <= hit <= end for start, end in found)
    for _, end in found:
        assert np.any(np.abs(hits - end) < 1e-9)
    assert np.all(found[1:, 0] - found[:-1, 1] > pause_s)


def history_of(seconds: float, throttled: Callable[[float], bool], *, step_s: float = 0.2, rows: int = 4096) -> History:
    history = History(("throttle_thermal_percent", "throttle_power_percent"), capacity=rows)
    for index in range(round(seconds / step_s)):
        t_s = (index + 1) * step_s
        history.append(t_s, [40.0 if throttled(t_s) else 0.0, 0.0])
    return history


def test_the_same_episodes_at_every_zoom() -> None:
    """Rows that have left the ring are known from the pyramid: to a pixel or two of the window."""
    history = history_of(3600.0, lambda t_s: 600.0 < t_s <= 660.0 or 3000.0 < t_s <= 3030.0)
    for pixels in (200.0, 800.0):
        found = episodes(history, HEAT, 0.0, 3600.0, pixels=pixels)
        slack = 3 * 3600.0 / pixels
        assert [(e.start_s, e.end_s) for e in found] == [
            (pytest.approx(600.0, abs=slack), pytest.approx(660.0, abs=slack)),
            (pytest.approx(3000.0, abs=slack), pytest.approx(3030.0, abs=slack)),
        ]
    near = episodes(history, HEAT, 2990.0, 3050.0, pixels=800.0)
    assert [(e.start_s, e.end_s) for e in near] == [(pytest.approx(3000.0, abs=0.3), pytest.approx(3030.0, abs=0.3))]
    assert episodes(history, HEAT, 700.0, 2900.0, pixels=800.0) == ()
    assert episodes(history, POWER, 0.0, 3600.0, pixels=800.0) == ()


def test_one_tick_of_hours_is_not_lost() -> None:
    history = history_of(4 * 3600.0, lambda t_s: abs(t_s - 5000.0) < 0.05)
    found = episodes(history, HEAT, 0.0, 4 * 3600.0, pixels=700.0)
    assert len(found) == 1
    assert found[0].start_s == pytest.approx(5000.0, abs=3 * 4 * 3600 / 700)


# -- drawing --------------------------------------------------------------------------------------------------------


def drawn(bands: tuple[Band, ...], *, theme: Theme = DARK, named: frozenset[Throttle] = frozenset()) -> QImage:
    """Bands over 100 seconds on 200 × 80 pixels of a panel."""
    image = QImage(200, 80, QImage.Format.Format_RGB32)
    image.fill(QColor(theme.surface))
    painter = QPainter(image)
    painter.translate(0, 80)
    painter.scale(2.0, -80.0)
    from PySide6.QtWidgets import QApplication

    shades.paint(painter, bands, Look(theme, Typeset(QApplication.font()), named), ratio=1.0)
    painter.end()
    return image


def columns_changed(image: QImage, theme: Theme = DARK) -> list[int]:
    plain = QColor(theme.surface).rgb()
    return [x for x in range(image.width()) if any(image.pixel(x, y) != plain for y in range(image.height()))]


def test_a_shade_covers_its_time_and_no_more(qapp: object) -> None:
    assert columns_changed(drawn((Band(10.0, 30.0, HEAT),))) == list(range(20, 60))


def test_the_shortest_episode_can_be_seen(qapp: object) -> None:
    assert columns_changed(drawn((Band(50.0, 50.001, HEAT),))) == [100, 101]


def patterns(image: QImage, x: int) -> set[int]:
    return {image.pixel(x + dx, y) for dx in range(8) for y in range(30, 46)}


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_reasons_differ_by_pattern_and_not_by_colour_alone(qapp: object, theme: Theme) -> None:
    """In grey: which pixels of a tile stand out is another for each reason."""
    image = drawn((Band(5.0, 45.0, HEAT), Band(55.0, 95.0, POWER)), theme=theme)

    def raised(left: int) -> set[tuple[int, int]]:
        grey = {(dx, dy): QColor(image.pixel(left + dx, 40 + dy)).lightness() for dx in range(8) for dy in range(8)}
        base = max(set(grey.values()), key=list(grey.values()).count)
        return {place for place, light in grey.items() if abs(light - base) > 3}

    heat, power = raised(40), raised(144)
    assert heat
    assert power
    assert heat != power


def test_the_reason_is_written_where_there_is_room(qapp: object) -> None:
    named = frozenset({HEAT})
    plain, worded = (drawn((Band(10.0, 90.0, HEAT),), named=which) for which in (frozenset(), named))
    assert plain != worded
    assert drawn((Band(10.0, 12.0, HEAT),), named=named) == drawn((Band(10.0, 12.0, HEAT),))


def contrast(one: QColor, other: QColor) -> float:
    def luminance(value: QColor) -> float:
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in value.getRgbF()[:3]]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
@pytest.mark.parametrize("cause", Throttle)
def test_curves_and_words_can_be_read_on_a_shade(qapp: object, theme: Theme, cause: Throttle) -> None:
    image = drawn((Band(0.0, 100.0, cause),), theme=theme)
    values = [image.pixel(x, y) for x in range(64, 72) for y in range(32, 40)]
    usual = QColor(max(set(values), key=values.count))
    assert contrast(QColor(theme.muted), usual) >= 4.5
    for token in ("loss", "validation", "utilization", "temperature", "power"):
        assert contrast(QColor(getattr(theme, token)), usual) >= 3.0, token


# -- in the charts --------------------------------------------------------------------------------------------------


def replace_history(workspace: FakeWorkspace, **columns: Callable[[float], float]) -> None:
    """The card's history again with other values, by seconds before now."""
    uuid = workspace.cards.get()[0].uuid
    old = workspace.store.history(f"gpu:{uuid}")
    rows = old.since(0)
    new = History(old.columns)
    for index, t_s in enumerate(rows.t_s.tolist()):
        row = rows.values[:, index].copy()
        for name, value in columns.items():
            row[old.columns.index(name)] = value(workspace.manual.now_s - t_s)
        new.append(t_s, row)
    workspace.store._histories[f"gpu:{uuid}"] = new
    workspace.store._versioned = tuple(new if part is old else part for part in workspace.store._versioned)


@pytest.fixture
def hot() -> FakeWorkspace:
    """Slowed by heat from 300 to 240 s ago, at its power limit all the time."""
    workspace = FakeWorkspace(FakeState.HEALTHY)
    replace_history(
        workspace,
        throttle_thermal_percent=lambda ago_s: 35.0 if 240.0 <= ago_s <= 300.0 else 0.0,
        throttle_power_percent=lambda _ago_s: 60.0,
    )
    return workspace


@pytest.fixture
def build(show: Callable[..., QWidget]) -> Callable[..., ChartStack]:
    def built(workspace: FakeWorkspace) -> ChartStack:
        stack = ChartStack(workspace, DARK)
        show(stack, width=900, height=760)
        stack.refresh()
        stack.refresh_texts()
        return stack

    return built


Build = Callable[..., ChartStack]


def test_every_panel_has_the_shade_of_heat_and_none_of_power(build: Build, hot: FakeWorkspace) -> None:
    stack = build(hot)
    assert len(stack.stage.shown) == 6
    for track in stack.stage.shown:
        (band,) = track.panel.curves.bands
        assert band.cause is HEAT
        assert band.left == pytest.approx(-300.0, abs=3.0)
        assert band.right == pytest.approx(-240.0, abs=3.0)


def test_power_is_shaded_when_asked_for(build: Build, hot: FakeWorkspace) -> None:
    stack = build(hot)
    stack.set_shades(frozenset(Throttle))
    assert {band.cause for band in stack.bands} == {HEAT, POWER}
    stack.set_shades(frozenset())
    assert stack.bands == ()
    assert all(track.panel.curves.bands == () for track in stack.stage.shown)


def test_a_quiet_card_has_no_shades(build: Build) -> None:
    assert build(FakeWorkspace(FakeState.HEALTHY)).bands == ()
    assert build(FakeWorkspace(FakeState.NO_GPU)).bands == ()


def test_the_box_at_the_cursor_names_the_reason(build: Build, hot: FakeWorkspace) -> None:
    stack = build(hot)

    def rows(x: float) -> dict[str, str]:
        stack.move_cursor(x)
        return {name: value.replace("\N{NO-BREAK SPACE}", " ") for name, value, _ in stack.read_out.rows}

    assert rows(-270.0)["slowed by"] == "heat, 35 %"
    assert "slowed by" not in rows(-100.0)


def test_the_reason_is_written_in_the_panel_of_its_cause(build: Build, hot: FakeWorkspace) -> None:
    stack = build(hot)
    named = {key: track.panel.curves._look.labelled for key, track in stack.stage.tracks.items()}  # type: ignore[union-attr]
    assert named["temperature"] == {HEAT}
    assert named["power"] == {POWER}
    assert named["loss"] == frozenset()
    stack.resize(900, 300)
    QCoreApplication.processEvents()
    assert "temperature" in stack.hidden_panels
    assert any(HEAT in track.panel.curves._look.labelled for track in stack.stage.shown)  # type: ignore[union-attr]


def test_the_head_says_that_it_is_slowed_now(build: Build, hot: FakeWorkspace) -> None:
    stack = build(hot)
    uuid = hot.cards.get()[0].uuid
    hot.readings.set({uuid: {**hot.readings.get()[uuid], "throttle_thermal_percent": Reading(12.0)}})
    stack.refresh_texts()
    words = [key.text.replace("\N{NO-BREAK SPACE}", " ") for key in stack.stage.tracks["temperature"].panel.head.keys]
    assert "slowed 12 %" in words


def test_shades_of_a_long_history_cost_little() -> None:
    """One look at the extremes where nothing was slowed, and one coarse curve more where something was."""
    quiet = history_of(20_000.0, lambda _t_s: False)
    busy = history_of(20_000.0, lambda t_s: t_s % 600 < 60)
    took = []
    for history in (quiet, busy):
        best = math.inf
        for _ in range(5):
            began = time.process_time()
            for _ in range(20):
                episodes(history, HEAT, 0.0, 20_000.0, pixels=800.0)
            best = min(best, (time.process_time() - began) / 20)
        took.append(best)
    assert took[0] < 0.002
    assert took[1] < 0.004


# -- what the panel of utilisation shows ----------------------------------------------------------------------------


def with_activity(workspace: FakeWorkspace, *, sm: float = 54.0, tensor: float = 21.0) -> None:
    """Readings and history of a card that measures the activity of its SMs."""
    uuid = workspace.cards.get()[0].uuid
    values = {"sm_activity_percent": sm, "tensor_activity_percent": tensor}
    workspace.readings.set(
        {uuid: {**workspace.readings.get()[uuid], **{name: Reading(value) for name, value in values.items()}}}
    )
    history = workspace.store.declare(f"details:{uuid}", DETAIL_FIELDS)
    for second in range(600):
        row = dict.fromkeys(DETAIL_FIELDS, NAN)
        history.append(workspace.manual.now_s - 600 + second, {**row, **values})


def curve_keys(stack: ChartStack) -> int:
    return len(stack.stage.tracks["utilization"].panel.curves.content.lines)


def test_the_activity_of_sms_and_tensor_cores_in_its_place(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    with_activity(workspace)
    stack = build(workspace)
    stack.set_load(Load.SM_ACTIVITY)
    head = stack.stage.tracks["utilization"].panel.head
    assert head.title == "SM activity"
    assert head.menu
    assert [key.text.replace("\N{NO-BREAK SPACE}", " ") for key in head.keys] == ["SM 54 %", "tensor 21 %"]
    assert curve_keys(stack) == 2
    stack.move_cursor(-100.0)
    rows = {name: value.replace("\N{NO-BREAK SPACE}", " ") for name, value, _ in stack.read_out.rows}
    assert rows["SM activity"] == "54 %"
    assert rows["tensor activity"] == "21 %"


def test_power_as_a_share_of_the_limit(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    replace_history(workspace, power_w=lambda _ago_s: 90.0)
    uuid = workspace.cards.get()[0].uuid
    workspace.readings.set({uuid: {**workspace.readings.get()[uuid], "power_w": Reading(90.0)}})
    stack = build(workspace)
    stack.set_load(Load.POWER)
    panel = stack.stage.tracks["utilization"].panel
    assert [key.text.replace("\N{NO-BREAK SPACE}", " ") for key in panel.head.keys] == ["75 % of 120 W"]
    (line,) = panel.curves.content.lines
    bounds: QRectF = line.path.boundingRect()
    assert bounds.top() == pytest.approx(0.75)
    assert bounds.bottom() == pytest.approx(0.75)
    assert panel.left_axis.high == 100.0


def test_a_card_over_its_limit_stays_in_the_picture(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    replace_history(workspace, power_w=lambda _ago_s: 135.0)
    stack = build(workspace)
    stack.set_load(Load.POWER)
    assert stack.stage.tracks["utilization"].panel.left_axis.high == 120.0


def card_readings(**changes: Reading) -> tuple[object, dict[str, Reading]]:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    card = workspace.cards.get()[0]
    return card, {**workspace.readings.get()[card.uuid], **changes}


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (Reading(50.0), None),
        (Reading(0.0), None),
        (Reading(None, Reason.NOT_SUPPORTED), Reason.NOT_SUPPORTED),
        (Reading(None, Reason.SIMULATED), Reason.SIMULATED),
        (Reading(None, Reason.MIG), Reason.MIG),
        (Reading(None, Reason.GPU_LOST), None),  # it comes back: the choice stays
        (Reading(None, Reason.TIMED_OUT), None),
    ],
)
def test_when_the_activity_is_offered(reading: Reading, expected: Reason | None) -> None:
    card, readings = card_readings(sm_activity_percent=reading)
    assert why_not(Load.SM_ACTIVITY, card, readings) is expected  # type: ignore[arg-type]
    fallback = Load.SM_ACTIVITY if expected is None else Load.UTILIZATION
    assert shown(Load.SM_ACTIVITY, card, readings) is fallback  # type: ignore[arg-type]


def test_a_card_without_a_limit_has_no_share_of_it() -> None:
    card, readings = card_readings(power_limit_w=Reading(None, Reason.NOT_SUPPORTED))
    unlimited = dataclasses.replace(card, power_limit_w=None)  # type: ignore[type-var]
    assert why_not(Load.POWER, unlimited, readings) is Reason.NOT_SUPPORTED  # type: ignore[arg-type]
    assert why_not(Load.POWER, card, readings) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("load", Load)
def test_every_measure_says_what_it_means(load: Load) -> None:
    assert texts.load(load)
    assert texts.load_meaning(load).endswith(".")


def test_the_tooltip_says_what_utilisation_means(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _where, text, _widget: said.append(text))
    stack = build(FakeWorkspace(FakeState.HEALTHY))
    head = stack.stage.tracks["utilization"].panel.head_item
    stack.stage.canvas.hovered.emit(head.mapToScene(QPointF(30, 8)))
    assert len(said) == 1
    assert "at least one kernel ran" in said[0]


# -- choices of the window ------------------------------------------------------------------------------------------

MakeWindow = Callable[..., MainWindow]


def test_choices_are_remembered(make_window: MakeWindow, settings_path: Path) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    with_activity(workspace)
    window = make_window(workspace)
    assert window.actions_["view.shade_heat"].isChecked()
    assert not window.actions_["view.shade_power"].isChecked()
    for command in ("view.shade_power", "view.shade_heat", "view.load_sm_activity"):
        assert window.actions_.trigger(command)
    window.settings.sync()
    again = Settings(settings_path)
    assert again.shades == {POWER}
    assert again.load is Load.SM_ACTIVITY
    stack = window.charts.stack
    assert stack is not None
    assert stack.load is Load.SM_ACTIVITY
    assert window.actions_["view.load_sm_activity"].isChecked()
    assert not window.actions_["view.shade_heat"].isChecked()


def test_nonsense_in_the_settings_is_the_usual_view(settings_path: Path) -> None:
    settings_path.write_text("[charts]\nload=nonsense\nshade_heat=perhaps\n", encoding="utf-8")
    found = Settings(settings_path)
    assert found.load is Load.UTILIZATION
    assert POWER not in found.shades


def test_what_the_card_cannot_is_offered_disabled_with_its_reason(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    uuid = workspace.cards.get()[0].uuid
    missing = Reading(None, Reason.NOT_SUPPORTED)
    workspace.readings.set({uuid: {**workspace.readings.get()[uuid], "sm_activity_percent": missing}})
    window = make_window(workspace)
    window.refresh_texts()
    action = window.actions_["view.load_sm_activity"]
    assert not action.isEnabled()
    assert action.text().endswith("(Hopper and newer only)")
    assert window.actions_["view.load_power_share"].isEnabled()
    workspace.readings.set({uuid: {**workspace.readings.get()[uuid], "sm_activity_percent": Reading(3.0)}})
    window.refresh_texts()
    assert action.isEnabled()
    assert "(" not in action.text()


def test_the_name_of_the_panel_opens_the_choice(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.HEALTHY))
    stack = window.charts.stack
    assert stack is not None
    head = stack.stage.tracks["utilization"].panel.head_item
    stack.stage.canvas.clicked.emit(head.mapToScene(head.title_rect.center()))
    menu = window.findChild(QMenu, "chartMenu")
    assert menu is not None
    listed = [action.objectName() for action in menu.actions() if action.objectName()]
    assert listed == [
        "view.load_utilization",
        "view.load_sm_activity",
        "view.load_power_share",
        "view.shade_heat",
        "view.shade_power",
    ]
    menu.close()
    stack.stage.canvas.menu_wanted.emit(stack.stage.canvas.rect_of(stack.stage.tracks["vram"].panel).center())
    other = [found for found in window.findChildren(QMenu, "chartMenu") if found.isVisible()]
    assert [action.objectName() for action in other[0].actions()] == ["view.shade_heat", "view.shade_power"]
    other[0].close()


def test_the_fields_that_are_read_exist() -> None:
    assert {cause.column for cause in Throttle} <= set(GPU_FIELDS)
    assert {"sm_activity_percent", "tensor_activity_percent"} <= set(DETAIL_FIELDS)


# -- the chart of one field -------------------------------------------------------------------------------------------


def test_the_history_of_a_field_is_shaded_too(make_window: MakeWindow, hot: FakeWorkspace) -> None:
    """With the reasons chosen for the dashboard, written into their shades, said at the cursor, and chosen there."""
    window = make_window(hot)
    window.centre.show_gpu()
    QCoreApplication.processEvents()
    page = window.centre.gpu
    assert page is not None
    chart = page.detail.chart
    (band,) = chart.panel.curves.bands
    assert (band.cause, round(band.left, -1), round(band.right, -1)) == (HEAT, -300.0, -240.0)
    chart.move_cursor(-270.0)
    assert [row[0] for row in chart.box.said.rows] == ["Utilisation", "slowed by"]
    chart.move_cursor(-100.0)
    assert [row[0] for row in chart.box.said.rows] == ["Utilisation"]
    window.actions_.trigger("view.shade_power")
    assert {band.cause for band in chart.bands} == {HEAT, POWER}
    window.actions_.trigger("view.shade_heat")
    window.actions_.trigger("view.shade_power")
    assert chart.panel.curves.bands == ()
    chart.canvas.menu_wanted.emit(QPointF(40, 60))
    menu = window.findChild(QMenu, "chartMenu")
    assert menu is not None
    assert [action.isChecked() for action in menu.actions()] == [False, False]
    menu.close()
