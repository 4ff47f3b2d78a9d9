"""Everything that is drawn in the stack's one view: panels, lane, lines and the read-out, and where they lie."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtWidgets import QWidget

from desktop_app.core.forecasts import Forecast
from desktop_app.ui.brush import Typeset
from desktop_app.ui.charts.arrangement import arrange
from desktop_app.ui.charts.cursor import ReadOut, ReadOutBox, VerticalLine
from desktop_app.ui.charts.event_lane import MARK_ROW, EventLane
from desktop_app.ui.charts.forecast_item import ForecastItem, course
from desktop_app.ui.charts.panel import Panel
from desktop_app.ui.charts.shades import Band
from desktop_app.ui.charts.stack_view import SPACING, StackView
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.charts.time_axis import TimeTick, View
from desktop_app.ui.charts.tracks import PANELS, Frame, Track
from desktop_app.ui.theme import Theme, color

_BOX_TOP = 2.4  # label lines below the top of the first panel
# Each reason is written where its cause is measured, or in the next panel that is there.
_NAMED_IN = {
    Throttle.HEAT: ("temperature", "utilization", "vram", "loss"),
    Throttle.POWER: ("power", "utilization", "vram", "loss"),
}


class Stage:
    """Owns the view and its items. It is told what to draw and reads nothing itself."""

    def __init__(self, parent: QWidget, theme: Theme, types: Typeset) -> None:
        self.canvas = StackView(parent)
        self.tracks = {spec.key: Track(spec, Panel(theme, types)) for spec in PANELS}
        self.lane = EventLane(theme, types)
        self.forecast = ForecastItem(self.tracks["vram"].panel, theme, types)
        self.now_line = VerticalLine(dotted=False)
        self.cursor_line = VerticalLine(dotted=True)
        self.box = ReadOutBox(theme, types)
        self.hidden: tuple[str, ...] = ()  # keys of the panels that there is no room for
        self._types = types
        for key, track in self.tracks.items():
            self.canvas.add_panel(key, track.panel)
        self.canvas.add_panel("events", self.lane)
        heads = [track.panel.head_item for track in self.tracks.values()]
        for item in (*heads, self.now_line, self.cursor_line, self.box):
            self.canvas.scene().addItem(item)
        self.set_types(types)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        self.canvas.setBackground(color(theme.window))
        for track in self.tracks.values():
            track.panel.set_theme(theme)
        self.lane.set_theme(theme)
        self.forecast.set_theme(theme)
        self.box.set_theme(theme)
        self.now_line.set_color(theme.line)
        self.cursor_line.set_color(theme.muted)

    def set_types(self, types: Typeset) -> None:
        self._types = types
        for track in self.tracks.values():
            track.set_line_height(types.tick.height)
            track.panel.set_types(types)
        for part in (self.lane, self.forecast, self.box):
            part.set_types(types)

    @property
    def shown(self) -> list[Track]:
        """The panels that there is room for, from the top."""
        return [track for key, track in self.tracks.items() if key not in self.hidden]

    def forget(self) -> None:
        """Draw everything anew at the next frame."""
        for track in self.tracks.values():
            track.forget()

    # -- geometry -------------------------------------------------------------------------------------------------

    def arrange(self, *, compact: bool) -> None:
        """Share out the view's height."""
        heights = arrange(self.canvas.height(), line=self._types.line, spacing=SPACING, compact=compact)
        self.hidden = tuple(key for key in self.tracks if key not in heights)
        self.canvas.set_heights(heights)
        for track in self.tracks.values():
            track.panel.head_item.setVisible(track.panel.isVisible())
            track.panel.head_item.setPos(self.canvas.rect_of(track.panel).topLeft())
        places = {cause: next(key for key in keys if key in heights) for cause, keys in _NAMED_IN.items()}
        for key, track in self.tracks.items():
            track.panel.name_shades(frozenset(cause for cause, place in places.items() if place == key))

    def panel_at(self, position: QPointF, *, head: bool = False) -> str:
        """Key of the panel at a pixel of the scene, or of its ``head``; empty beside them."""
        for track in self.shown:
            panel = track.panel
            item = panel.head_item if head else panel
            if item.mapRectToScene(item.boundingRect()).contains(position):
                return track.spec.key
        return ""

    def title_at(self, position: QPointF) -> str:
        """Key of the panel whose name is at a pixel of the scene; empty beside them."""
        for track in self.shown:
            head = track.panel.head_item
            if head.mapRectToScene(head.title_rect).contains(position):
                return track.spec.key
        return ""

    @property
    def stretch(self) -> QRectF:
        """The time axis in pixels of the scene, from the top of the panels to the marks of the lane."""
        lane = self.canvas.rect_of(self.lane)
        top = self.canvas.rect_of(self.shown[0].panel).top() + 1
        bottom = lane.top() + 2 * MARK_ROW * self._types.line  # above the figures of the axis
        return QRectF(lane.left() + self.lane.plot.left(), top, self.lane.plot.width(), bottom - top)

    def x_of(self, seconds: float, view: View) -> float:
        """Pixel of the scene for seconds from the anchor."""
        stretch = self.stretch
        return stretch.left() + (seconds - view.left) / view.width * stretch.width()

    # -- drawing --------------------------------------------------------------------------------------------------

    def draw(self, frame: Frame, *, forecast: Forecast | None, bands: tuple[Band, ...] = ()) -> bool:
        """Bring every panel up to date; whether one had to be."""
        changed = [track.update(frame) for track in self.shown]
        for track in self.shown:
            track.panel.curves.set_bands(bands)
        panel = self.tracks["vram"].panel
        made = None
        if forecast is not None and panel.isVisible():
            made = course(forecast, view=frame.view, plot=panel.plot, axis=panel.left_axis)
        self.forecast.set_course(made, panel.plot)
        return any(changed)

    def draw_time(self, view: View, ticks: tuple[TimeTick, ...], *, now_x: float) -> None:
        """The figures below, and the line of now where it is within the window."""
        self.lane.set_view(view, ticks)
        if view.left < now_x < view.right:
            stretch = self.stretch
            self.now_line.place(self.x_of(now_x, view), stretch.top(), stretch.bottom())
        else:
            self.now_line.setVisible(False)

    def show_cursor(self, seconds: float, view: View, said: ReadOut | None) -> None:
        """The cursor, and its box unless there is nothing to say."""
        stretch, x = self.stretch, self.x_of(seconds, view)
        self.cursor_line.place(x, stretch.top(), stretch.bottom())
        if said is None:
            self.box.setVisible(False)
            return
        self.box.say(said)
        bounds = QRectF(0, stretch.top(), self.canvas.width(), stretch.height())
        self.box.place(x, stretch.top() + _BOX_TOP * self._types.line, bounds)

    def hide_cursor(self) -> None:
        self.cursor_line.setVisible(False)
        self.box.setVisible(False)
