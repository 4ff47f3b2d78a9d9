"""Time in which the card was held back is shaded in every panel, at any zoom, with the reason; and what load means."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QCoreApplication, QPointF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QMenu, QWidget

from desktop_app.core.store import History
from desktop_app.core.telemetry import DETAIL_FIELDS, GPU_FIELDS, Reading
from desktop_app.ui.brush import Typeset
from desktop_app.ui.charts import shades
from desktop_app.ui.charts.chart_stack import ChartStack
from desktop_app.ui.charts.shades import Band, Look
from desktop_app.ui.charts.throttling import THRESHOLD_PERCENT, Throttle, episodes, spans_above
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.theme import DARK, LIGHT, Theme
from tests.ui.fake_workspace import FakeState, FakeWorkspace, replace_history

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")
HEAT, POWER = Throttle.HEAT, Throttle.POWER
NAN = math.nan
MakeWindow = Callable[..., MainWindow]


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
