"""The forecast on the VRAM panel: a band and a dashed line from now to the brim, and the step at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QGraphicsObject, QStyleOptionGraphicsItem, QWidget

from desktop_app.core.forecasts import AlertSeverity, Cause, Forecast
from desktop_app.core.units import GIB
from desktop_app.ui.brush import Typeset
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.scales import Axis
from desktop_app.ui.charts.time_axis import View
from desktop_app.ui.texts.outlooks import BESIDE_THE_CARD
from desktop_app.ui.theme import Theme, color

_BAND_ALPHA: Final = 0.25
_DOT_LINES: Final = 0.35  # radius of the dot in label lines
# Causes that come at one moment; the others fill the card little by little.
_SUDDEN: Final = frozenset(
    {Cause.FIRST_OPTIMIZER_STEP, Cause.BATCH_SHAPE, Cause.VALIDATION, Cause.CHECKPOINT_SAVE, Cause.RESUME}
)
_ARROW: Final = "\N{RIGHTWARDS ARROW}"


@dataclass(frozen=True, slots=True)
class Course:
    """A forecast in pixels of the panel: where the line starts, and where it and its band meet the brim.

    ``sudden``: nothing grows until then; the line stays level and rises at its end.
    """

    start: QPointF
    end: QPointF
    early: QPointF
    late: QPointF
    text: str
    sudden: bool = False
    tint: str = "danger"  # the theme's colour

    @property
    def line(self) -> QPolygonF:
        bend = [QPointF(self.end.x(), self.start.y())] if self.sudden else []
        return QPolygonF([self.start, *bend, self.end])

    @property
    def band(self) -> QPolygonF:
        """Where the line may lie, 8 times of 10."""
        if not self.sudden:
            return QPolygonF([self.start, self.early, self.late])
        level = self.start.y()
        low, high = QPointF(self.early.x(), level), QPointF(self.late.x(), level)
        return QPolygonF([low, self.early, self.late, high])


def course(forecast: Forecast, *, view: View, plot: QRectF, axis: Axis) -> Course | None:
    """``None`` when nothing will run out here, or all of it lies in the past of the window."""
    if forecast.eta_s is None or forecast.cause in BESIDE_THE_CARD:
        return None
    x_scale = plot.width() / view.width

    def place(t_s: float, size_bytes: float) -> QPointF:
        x = plot.left() + (t_s - view.anchor_s - view.left) * x_scale
        return QPointF(x, plot.bottom() - axis.share(size_bytes / GIB) * plot.height())

    early = forecast.eta_s if forecast.eta_low_s is None else forecast.eta_low_s
    late = forecast.eta_s if forecast.eta_high_s is None else forecast.eta_high_s
    brim = forecast.capacity_bytes
    made = Course(
        start=place(forecast.t_s, forecast.device_bytes),
        end=place(forecast.t_s + forecast.eta_s, brim),
        early=place(forecast.t_s + early, brim),
        late=place(forecast.t_s + late, brim),
        text="" if forecast.eta_steps is None else texts.step(forecast.step + forecast.eta_steps),
        sudden=forecast.cause in _SUDDEN,
        tint="warn" if forecast.severity is AlertSeverity.WATCH else "danger",
    )
    return made if made.end.x() >= plot.left() and made.start.x() <= plot.right() else None


class ForecastItem(QGraphicsObject):
    """Drawn in pixels of the panel, smooth: it is one line and one dot."""

    def __init__(self, parent: QGraphicsItem, theme: Theme, types: Typeset) -> None:
        super().__init__(parent)
        self._theme = theme
        self._types = types
        self._plot = QRectF()
        self._course: Course | None = None

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def set_types(self, types: Typeset) -> None:
        self._types = types
        self.update()

    @property
    def course(self) -> Course | None:
        return self._course

    def set_course(self, made: Course | None, plot: QRectF) -> None:
        """Show ``made`` in the panel's ``plot``."""
        if plot != self._plot:
            self.prepareGeometryChange()
            self._plot = QRectF(plot)
        if made != self._course:
            self._course = made
            self.update()

    def boundingRect(self) -> QRectF:
        # The word stands above the brim, the dot on it.
        return self._plot.adjusted(0, -2 * self._types.line, 0, 0)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        del option, widget
        made = self._course
        if made is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setClipRect(self.boundingRect())
        tint = getattr(self._theme, made.tint)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(tint, _BAND_ALPHA))
        painter.drawPolygon(made.band)
        pen = QPen(color(tint), 1.4)
        pen.setDashPattern([4, 3])
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(made.line)
        self._paint_end(painter, made)

    def _paint_end(self, painter: QPainter, made: Course) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        tint = color(getattr(self._theme, made.tint))
        painter.setBrush(tint)
        inside = made.end.x() <= self._plot.right()
        if inside:
            radius = _DOT_LINES * self._types.line
            painter.drawEllipse(made.end, radius, radius)
        if not made.text:
            return
        text = made.text if inside else f"{made.text} {_ARROW}"
        kind = self._types.tick_bold
        width = kind.width(text)
        left = min(max(made.end.x() - width / 2, self._plot.left()), self._plot.right() - width)
        rect = QRectF(left, made.end.y() - kind.height - 0.5 * self._types.line, width + 1, kind.height)
        painter.setFont(kind.font)
        painter.setPen(tint)
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)
