"""The chart stack: everything about a run and its card on one time axis."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QToolTip, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.cursor import ReadOut
from desktop_app.ui.charts.load import Load
from desktop_app.ui.charts.panel import Panel
from desktop_app.ui.charts.shading import causes_at
from desktop_app.ui.charts.source import Source
from desktop_app.ui.charts.stage import Stage
from desktop_app.ui.charts.time_chart import TimeChart
from desktop_app.ui.texts import numbers
from desktop_app.ui.theme import Theme

_HAND: Final = Qt.CursorShape.PointingHandCursor
_ARROW: Final = Qt.CursorShape.ArrowCursor


class ChartStack(TimeChart):
    """Panels on one time axis with one cursor. Runs in: GUI thread."""

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(workspace, theme, parent)
        self._source = Source(workspace)
        self._compact = False
        self._load = Load.UTILIZATION
        self.stage = Stage(self, theme, self._types)
        self._hold(self.stage.canvas)
        self.stage.canvas.clicked.connect(self._on_clicked)
        self.set_theme(theme)
        self.retranslate()

    # -- what the window calls ------------------------------------------------------------------------------------

    def refresh_texts(self) -> None:
        if not self._on_screen():
            return
        heads = self._source.heads(self.load)
        for track in self.stage.shown:
            track.panel.set_head(heads.head(track.spec.key))
        if self._cursor_x is not None:
            self._show_cursor(self._cursor_x)
        if QAccessible.isActive():
            self.setAccessibleDescription(self.describe())

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.set_ring_color(theme.accent)
        self.stage.set_theme(theme)
        self._span_bar.set_theme(theme)
        self._redraw()

    def retranslate(self) -> None:
        self.setAccessibleName(texts.name())
        self.stage.lane.retranslate()
        super().retranslate()

    @property
    def load(self) -> Load:
        """What the panel of utilisation shows: the choice, or what the card has."""
        return self._source.load(self._load)

    def set_load(self, load: Load) -> None:
        """Choose what the panel of utilisation shows."""
        self._load = load
        self._redraw()

    def set_compact(self, compact: bool) -> None:  # noqa: FBT001  # a Qt slot
        """For small windows: without the panel of learning rate and gradient norm."""
        if compact != self._compact:
            self._compact = compact
            self._arrange()

    @property
    def hidden_panels(self) -> tuple[str, ...]:
        return self.stage.hidden

    def describe(self) -> str:
        """All heads in words, for screen readers."""
        heads = [track.panel.head for track in self.stage.shown]
        return "\n".join(f"{head.title}: {', '.join(key.text for key in head.keys) or head.hint}" for head in heads)

    # -- drawing --------------------------------------------------------------------------------------------------

    def _draw(self) -> bool:
        view = self.view
        frame = self._source.frame(view, theme=self._theme, load=self.load)
        self._bands = self._source.bands(view, self._causes, pixels=self._plot_width)
        self.stage.lane.add(self._source.new_events())
        self.stage.draw_time(view, self._ticks(), now_x=0.0 if view.live else self._window.now_x)
        return self.stage.draw(frame, forecast=self._source.forecast(), bands=self._bands)

    def _forget(self) -> None:
        self.stage.forget()

    # -- geometry -------------------------------------------------------------------------------------------------

    @property
    def _first_panel(self) -> Panel:
        return self.stage.shown[0].panel

    @property
    def _plot_width(self) -> float:
        return self.stage.lane.plot.width()

    @property
    def _stretch(self) -> QRectF:
        return self.stage.stretch

    @property
    def _future_s(self) -> float | None:
        return self._source.forecast_s

    def _place_panels(self) -> None:
        self.stage.arrange(compact=self._compact)
        for track in self.stage.tracks.values():
            track.panel.head_item.set_room_taken(0.0)

    def _take_types(self) -> None:
        self.stage.set_types(self._types)

    # -- cursor and mouse -----------------------------------------------------------------------------------------

    @property
    def cursor_t_s(self) -> float | None:
        """Session time at the cursor; ``None`` while there is none."""
        return None if self._cursor_x is None else self.view.anchor_s + self._cursor_x

    @property
    def read_out(self) -> ReadOut:
        """What the box at the cursor says."""
        return self.stage.box.said

    def _show_cursor(self, x: float) -> None:
        said = None
        if x <= self._window.now_x:  # nothing was measured in the future
            said = self._source.read_out(
                self.view.anchor_s + x,
                hidden=self.hidden_panels,
                load=self.load,
                throttles=causes_at(self._bands, x),
            )
        self.stage.show_cursor(x, self.view, said)

    def _clear_cursor(self) -> None:
        self.stage.hide_cursor()

    def _panel_at(self, position: QPointF) -> str:
        return self.stage.panel_at(position)

    def _on_hovered(self, position: QPointF) -> None:
        canvas, lane = self.stage.canvas, self.stage.lane
        rect = canvas.rect_of(lane)
        event = lane.event_at(position.x() - rect.left()) if rect.contains(position) else None
        if event is not None:
            text = texts.event_details(event, numbers.wall_time(self._source.wall_s(event.t_s)))
            QToolTip.showText(canvas.mapToGlobal(position.toPoint()), text, canvas)
        elif self.stage.panel_at(position, head=True) == "utilization":
            QToolTip.showText(canvas.mapToGlobal(position.toPoint()), texts.load_meaning(self.load), canvas)
        canvas.viewport().setCursor(_HAND if self._opens_choice(position) else _ARROW)
        super()._on_hovered(position)

    def _opens_choice(self, position: QPointF) -> bool:
        return self.stage.title_at(position) == "utilization"

    def _on_clicked(self, position: QPointF) -> None:
        if self._opens_choice(position):
            head = self.stage.tracks["utilization"].panel.head_item
            corner = head.mapToScene(head.title_rect.bottomLeft()).toPoint()
            self.menu_wanted.emit("utilization", self.stage.canvas.mapToGlobal(corner))
