from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from desktop_app.ui.pulse import BUSY_SHARE, CURVES_MS, SLOWEST_MS, Pulse, next_interval_ms


class Heart:
    """Counts what a pulse asks for; ``draw`` takes as long as told."""

    def __init__(self, qtbot: QtBot) -> None:
        self.window = QWidget()
        qtbot.addWidget(self.window)
        self.drawn = self.written = 0
        self.frames: list[float] = []
        self.news = 0
        self.pulse = Pulse(
            self.window, draw=self.draw, write=self.write, news=lambda: self.news, note_frame=self.frames.append
        )

    def draw(self) -> None:
        self.drawn += 1

    def write(self) -> None:
        self.written += 1


@pytest.fixture
def heart(qtbot: QtBot) -> Heart:
    return Heart(qtbot)


@pytest.mark.parametrize(
    ("frame_s", "interval_ms"), [(0.001, 100), (0.010, 100), (0.015, 150), (0.05, 500), (3.0, 1000)]
)
def test_interval(frame_s: float, interval_ms: int) -> None:
    assert next_interval_ms(frame_s) == interval_ms


@given(st.floats(min_value=0.0, max_value=100.0))
def test_frame_never_takes_more_than_its_share(frame_s: float) -> None:
    interval_ms = next_interval_ms(frame_s)
    assert CURVES_MS <= interval_ms <= SLOWEST_MS
    assert interval_ms == SLOWEST_MS or 1e3 * frame_s <= BUSY_SHARE * interval_ms + 0.5


def test_hidden_window_draws_nothing_and_still_hears_news(heart: Heart) -> None:
    heart.pulse.beat()
    assert (heart.drawn, heart.written) == (0, 1)
    heart.pulse.beat()
    assert heart.written == 1
    heart.news = 7
    heart.pulse.beat()
    assert (heart.drawn, heart.written) == (0, 2)


def test_visible_window_is_drawn_and_the_cost_is_noted(heart: Heart, qtbot: QtBot) -> None:
    with qtbot.waitExposed(heart.window):
        heart.window.show()
    heart.pulse.beat()
    assert heart.drawn == 1
    assert len(heart.frames) == 1


def test_timers_beat_by_themselves(heart: Heart, qtbot: QtBot) -> None:
    with qtbot.waitExposed(heart.window):
        heart.window.show()
    heart.pulse.start()
    qtbot.waitUntil(lambda: heart.drawn >= 2 and heart.written >= 2)
    heart.pulse.stop()


def test_dear_frames_slow_the_pulse_and_cheap_ones_bring_it_back(heart: Heart) -> None:
    for _ in range(30):
        heart.pulse.count(0.05)
    assert heart.pulse.interval_ms == pytest.approx(500, abs=5)
    for _ in range(60):
        heart.pulse.count(0.002)
    assert heart.pulse.interval_ms == CURVES_MS
