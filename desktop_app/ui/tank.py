"""The tank: VRAM filled from the bottom, the brim, and the mark that the water will reach."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QSize, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QToolTip, QWidget

from desktop_app.services.facade import EstimateState
from desktop_app.ui import tank_texts as texts
from desktop_app.ui.brush import Typeset
from desktop_app.ui.focus_ring import RingedWidget
from desktop_app.ui.tank_layout import TankLayout, lay_out
from desktop_app.ui.tank_model import Said, Segment, TankSource, TankState
from desktop_app.ui.tank_painter import TankPainter, segment_rects
from desktop_app.ui.theme import Theme

_LEVEL_CHANGE_MS: Final = 200
# Levels that move by less than this share of the tank jump: a still picture costs nothing.
_ANIMATED_SHARE: Final = 0.01
_NOTHING: Final = TankState(TankSource.NO_CARD, Said(EstimateState.NONE))


class TankWidget(RingedWidget):
    """Draws one ``TankState``. It reads nothing itself: ``set_state`` gives it what ``TankReader.read`` made.

    ``clicked``: somebody wants to know more, by mouse, Enter or Space.
    """

    clicked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._state = _NOTHING
        self._types = Typeset(self.font())
        self._layout: TankLayout | None = None
        self._shown: dict[Segment, float] = {}
        self._from: dict[Segment, float] = {}
        self._animation = QVariantAnimation(self)
        self._animation.setDuration(_LEVEL_CHANGE_MS)
        self._animation.setStartValue(0.0)
        self._animation.setEndValue(1.0)
        self._animation.valueChanged.connect(self._on_animation_value)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.set_ring_color(theme.accent)
        self._describe()

    @property
    def state(self) -> TankState:
        return self._state

    def set_state(self, state: TankState) -> None:
        """Show ``state``; nothing is painted when it equals the one on show."""
        if state == self._state:
            return
        previous, self._state = self._state, state
        self._layout = None
        self._move_levels(previous.source)
        self._describe()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.set_ring_color(theme.accent)
        self.update()

    def retranslate(self) -> None:
        """Take the texts of a new language."""
        self._describe()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(21 * self._types.line), round(48 * self._types.line))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(15 * self._types.line), round(18 * self._types.line))

    def _describe(self) -> None:
        self.setAccessibleName(texts.title(self._state))
        self.setAccessibleDescription(texts.summary(self._state))

    # -- levels ---------------------------------------------------------------------------------------------------

    def _target(self) -> dict[Segment, float]:
        """Shares of the capacity; all zero where that is not known."""
        capacity = self._state.capacity_bytes
        if not capacity:
            return {}
        return {level.segment: (level.size_bytes or 0) / capacity for level in self._state.levels}

    def _move_levels(self, previous: TankSource) -> None:
        target = self._target()
        moved = max(abs(target.get(name, 0.0) - self._shown.get(name, 0.0)) for name in Segment)
        settled = previous is self._state.source is TankSource.RUN
        self._animation.stop()
        if self.isVisible() and not settled and moved > _ANIMATED_SHARE:
            self._from = dict(self._shown)
            self._animation.start()
        else:
            self._shown = target

    def _on_animation_value(self, progress: float) -> None:
        eased = 1 - (1 - progress) ** 3
        target = self._target()
        for name in Segment:
            start = self._from.get(name, 0.0)
            self._shown[name] = start + (target.get(name, 0.0) - start) * eased
        self.update()

    # -- events ---------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._layout = None
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange:
            self._types = Typeset(self.font())
            self._layout = None
            self.updateGeometry()
        super().changeEvent(event)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.text_at(event.pos().x(), event.pos().y()), self)
            return True
        return super().event(event)

    def text_at(self, x: float, y: float) -> str:
        """What the layer or legend row at a point is: name, size, share of the card, or why it is not known."""
        layout = self.layout_now()
        levels = {level.segment: level for level in self._state.levels}
        for row, rect in layout.rows:
            if rect.contains(x, y):
                return "\n".join(texts.tooltip(levels[name], self._state.capacity_bytes) for name in row.segments)
        for name, rect in segment_rects(layout, self._shown):
            if rect.contains(x, y) and name in levels:
                return texts.tooltip(levels[name], self._state.capacity_bytes)
        return ""

    def layout_now(self) -> TankLayout:
        """The layout at the present size and state."""
        if self._layout is None:
            self._layout = lay_out(
                self.width(),
                self.height(),
                line=self._types.line,
                levels=self._state.levels,
                flood_row=self._state.flood_low_bytes is not None and not self._state.overflows,
            )
        return self._layout

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setClipRect(event.rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        TankPainter(
            painter,
            theme=self._theme,
            types=self._types,
            layout=self.layout_now(),
            state=self._state,
            shares=self._shown,
        ).paint()
        painter.end()
        super().paintEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.clicked.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.clicked.emit()
        else:
            super().keyPressEvent(event)
