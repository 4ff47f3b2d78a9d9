"""The window's heartbeat: curves ten times a second, texts twice, and both slower when drawing gets dear."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QWidget

# Ten frames a second cost an in-process CPU training a third less than thirty (facts/qt.md §5); texts that change
# more often than twice a second cannot be read.
CURVES_MS: Final = 100
TEXTS_MS: Final = 500
SLOWEST_MS: Final = 1000
# A frame may take this share of its interval before the interval grows: what the window may cost a training that runs
# in this process (docs/decisions/008).
BUSY_SHARE: Final = 0.1
# Share of a new measurement in the running mean: slow frames count at once, one fast one does not.
_NEW_SHARE: Final = 0.3


def next_interval_ms(frame_s: float) -> int:
    """The interval in which a frame of ``frame_s`` takes no more than ``BUSY_SHARE``."""
    needed = 1e3 * frame_s / BUSY_SHARE
    return round(min(max(needed, CURVES_MS), SLOWEST_MS))


class Pulse(QObject):
    """Calls ``draw`` and ``write`` while ``window`` can be seen. Paints within the frame, so that its cost is known."""

    def __init__(
        self,
        window: QWidget,
        *,
        draw: Callable[[], None],
        write: Callable[[], None],
        news: Callable[[], object],
        note_frame: Callable[[float], None],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._draw = draw
        self._write = write
        self._news = news
        self._note_frame = note_frame
        self._known: object = None
        self._mean_s: float | None = None
        self._curves = QTimer(self, interval=CURVES_MS, timerType=Qt.TimerType.CoarseTimer)
        self._texts = QTimer(self, interval=TEXTS_MS, timerType=Qt.TimerType.CoarseTimer)
        self._curves.timeout.connect(self.beat)
        self._texts.timeout.connect(self._on_texts)

    def start(self) -> None:
        self._curves.start()
        self._texts.start()

    def stop(self) -> None:
        self._curves.stop()
        self._texts.stop()

    @property
    def interval_ms(self) -> int:
        return self._curves.interval()

    def beat(self) -> None:
        """One frame. What has changed of itself (states, alerts) is written at once, not at the next half second."""
        self._write_news()
        if self._hidden():
            return
        started_s = time.perf_counter()
        self._draw()
        # The paint events that drawing has asked for, now: else their cost would be nobody's.
        QCoreApplication.sendPostedEvents(self._window, QEvent.Type.UpdateRequest)
        self.count(time.perf_counter() - started_s)

    def count(self, frame_s: float) -> None:
        """Take the cost of one frame; the next ones come as often as that allows."""
        mean_s = frame_s if self._mean_s is None else self._mean_s + _NEW_SHARE * (frame_s - self._mean_s)
        self._mean_s = mean_s
        self._note_frame(frame_s)
        interval_ms = next_interval_ms(self._mean_s)
        if interval_ms != self._curves.interval():
            self._curves.setInterval(interval_ms)

    def _write_news(self) -> None:
        news = self._news()
        if news != self._known:
            self._known = news
            self._write()

    def _on_texts(self) -> None:
        if not self._hidden():
            self._write()

    def _hidden(self) -> bool:
        return not self._window.isVisible() or self._window.isMinimized()
