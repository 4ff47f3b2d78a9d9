"""The place of the charts: empty at the first paint, so that the window need not wait for pyqtgraph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.ui.charts.load import Load
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.theme import Theme

if TYPE_CHECKING:
    from desktop_app.ui.charts.chart_stack import ChartStack


class ChartSlot(QWidget):
    """Holds the ``ChartStack`` once it is placed; before that it remembers what it was told. ``placed`` comes once."""

    placed = Signal()
    menu_wanted = Signal(str, QPoint)  # key of the panel, and where on the screen

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._theme = theme
        self._compact = False
        self._span_s: float | None = None
        self._load: Load | None = None
        self._shades: frozenset[Throttle] | None = None
        self._stack: ChartStack | None = None
        self._timer = QTimer(self, singleShot=True, interval=0)
        self._timer.timeout.connect(self.place)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    @property
    def stack(self) -> ChartStack | None:
        return self._stack

    def place_soon(self) -> None:
        """Place the charts when the events that are waiting, the first paint among them, are done."""
        if self._stack is None:
            self._timer.start()

    def place(self) -> None:
        """Place the charts now; 0.4 s the first time, which is the import of pyqtgraph."""
        if self._stack is not None:
            return
        from desktop_app.ui.charts.chart_stack import ChartStack

        stack = ChartStack(self._workspace, self._theme)
        self._stack = stack
        self._layout.addWidget(stack)
        stack.set_compact(self._compact)
        if self._span_s is not None:
            stack.set_span_s(self._span_s)
        if self._load is not None:
            stack.set_load(self._load)
        if self._shades is not None:
            stack.set_shades(self._shades)
        stack.menu_wanted.connect(self.menu_wanted)
        stack.refresh()
        stack.refresh_texts()
        self.placed.emit()

    def refresh(self) -> None:
        if self._stack is not None:
            self._stack.refresh()

    def refresh_texts(self) -> None:
        if self._stack is not None:
            self._stack.refresh_texts()

    def retranslate(self) -> None:
        if self._stack is not None:
            self._stack.retranslate()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        if self._stack is not None:
            self._stack.set_theme(theme)

    def set_compact(self, *, compact: bool) -> None:
        if compact != self._compact:
            self._compact = compact
            if self._stack is not None:
                self._stack.set_compact(compact)

    def set_span_s(self, span_s: float) -> None:
        """Seconds of history on show."""
        self._span_s = span_s
        if self._stack is not None:
            self._stack.set_span_s(span_s)

    def set_load(self, load: Load) -> None:
        """What the panel of utilisation shows."""
        self._load = load
        if self._stack is not None:
            self._stack.set_load(load)

    def set_shades(self, causes: frozenset[Throttle]) -> None:
        """Shade the time in which one of ``causes`` held the card back."""
        self._shades = causes
        if self._stack is not None:
            self._stack.set_shades(causes)

    def go_live(self) -> None:
        if self._stack is not None:
            self._stack.go_live()
