"""The choice of how much time is shown, and the way back to now."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QAction, QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLabel, QMenu, QToolButton, QWidget

from desktop_app.ui.brush import Typeset
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.time_axis import SPANS_S
from desktop_app.ui.theme import Theme, color


class SpanBar(QWidget):
    """Presets as small buttons, or as one button with a menu where there is little room."""

    chosen = Signal(float)
    live_wanted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._span_s = SPANS_S[-1]
        self._live = True
        self._hidden: tuple[str, ...] = ()
        self._small = False
        self._background = QColor()
        self._group = QButtonGroup(self)
        self._group.setExclusive(False)
        self._hint = QLabel(self)
        self._hint.setProperty("role", "muted")
        self._hint.hide()
        self._buttons = {span: self._segment() for span in SPANS_S}
        self._menu_button = self._segment(checkable=False)
        self._menu_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._menu = QMenu(self)
        self._actions = {span: self._action(span) for span in SPANS_S}
        self._menu_button.setMenu(self._menu)
        self._live_button = self._segment()
        self._live_button.clicked.connect(self._on_live_clicked)
        for span, button in self._buttons.items():
            self._group.addButton(button)
            button.clicked.connect(lambda _checked=False, span=span: self._on_span_clicked(span))
        self._lay_out()
        self.retranslate()
        self.set_small(small=False)

    def _segment(self, *, checkable: bool = True) -> QToolButton:
        button = QToolButton(self)
        button.setProperty("kind", "segment")
        button.setCheckable(checkable)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button

    def _action(self, span_s: float) -> QAction:
        action = self._menu.addAction("")
        action.setCheckable(True)
        action.triggered.connect(lambda _checked=False: self._on_span_clicked(span_s))
        return action

    def _lay_out(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(1)
        row.addWidget(self._hint)
        row.addSpacing(6)
        for button in (*self._buttons.values(), self._menu_button, self._live_button):
            row.addWidget(button)

    def retranslate(self) -> None:
        for span, button in self._buttons.items():
            button.setText(texts.span(span))
            button.setToolTip(texts.span_help())
            button.setAccessibleName(f"{texts.span_help()}: {texts.span(span)}")
            self._actions[span].setText(texts.span(span))
        self._live_button.setText(texts.go_live())
        self._live_button.setToolTip(texts.go_live_help())
        self._menu_button.setToolTip(texts.span_help())
        self._menu_button.setAccessibleName(texts.span_help())
        self._show()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange:
            self._use_label_font()
        super().changeEvent(event)

    def _use_label_font(self) -> None:
        label = Typeset(self.font()).label.font
        for child in (self._hint, *self._buttons.values(), self._menu_button, self._live_button):
            if child.font() != label:
                child.setFont(label)

    def set_theme(self, theme: Theme) -> None:
        """Its own background keeps the line of now from running through the words."""
        self._background = color(theme.surface)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), self._background)
        painter.end()

    def set_small(self, *, small: bool) -> None:
        """One button with a menu instead of one for each preset."""
        self._small = small
        for button in self._buttons.values():
            button.setVisible(not small)
        self._menu_button.setVisible(small)
        self._use_label_font()
        self._show()

    def set_state(self, *, span_s: float, live: bool, hidden: tuple[str, ...]) -> None:
        """``hidden``: keys of the panels that there is no room for."""
        if (span_s, live, hidden) != (self._span_s, self._live, self._hidden):
            self._span_s, self._live, self._hidden = span_s, live, hidden
            self._show()

    def _show(self) -> None:
        for span, button in self._buttons.items():
            button.setChecked(span == self._span_s and self._live)
            self._actions[span].setChecked(span == self._span_s and self._live)
        self._menu_button.setText(f"{texts.span(self._span_s)} \N{BLACK DOWN-POINTING SMALL TRIANGLE}")
        self._live_button.setChecked(self._live)
        self._live_button.setVisible(not (self._small and self._live))
        self._hint.setVisible(bool(self._hidden))
        self._hint.setText(texts.hidden_panels(len(self._hidden), short=self._small))
        self._hint.setToolTip(texts.hidden_panels_help(self._hidden))
        self.adjustSize()

    def _on_span_clicked(self, span_s: float) -> None:
        self._show()  # a click must not uncheck the chosen one
        self.chosen.emit(span_s)

    def _on_live_clicked(self) -> None:
        self._show()
        self.live_wanted.emit()
