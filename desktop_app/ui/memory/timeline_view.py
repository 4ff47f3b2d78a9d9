"""The view of a timeline: keeps what is shown, has its picture worked out in slices, and paints it."""

from __future__ import annotations

import time
from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from desktop_app.core.estimates import Timeline
from desktop_app.ui.brush import CENTRE, Typeset
from desktop_app.ui.focus_ring import MARGIN, RingedWidget
from desktop_app.ui.memory import canvas_texts
from desktop_app.ui.memory.block_facts import middle_event
from desktop_app.ui.memory.canvas_painter import PHASE_STRIP, CanvasPainter
from desktop_app.ui.memory.colors import picture_palette
from desktop_app.ui.memory.picture import TimelinePicture
from desktop_app.ui.memory.scene import Point, Scene
from desktop_app.ui.memory.stretch import Stretch
from desktop_app.ui.memory.timeline_layout import Layout
from desktop_app.ui.theme import Theme, color

# Of the 16 ms of a frame (design.md §11): what is not ready by then is drawn in the next one.
_SLICE_S: Final = 0.005
_LEFT_GUTTER: Final = 3.4  # label lines
_FOOT: Final = 0.6
_ROOM_SHARE: Final = 1.6  # the room's line is part of the picture while it is at most so much higher than the rest


class TimelineView(RingedWidget):
    """``pinned`` follows a block that is pinned (its number) or let go (``None``). Runs in: GUI thread."""

    pinned = Signal(object)
    stretch_changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._types = Typeset(self.font())
        self._layout: Layout | None = None
        self._stretch = Stretch.whole(1, 1.0)
        self._room_bytes: int | None = None
        self._hint = ""
        self._owners: frozenset[int] | None = None
        self._cursor: Point | None = None
        self._near = QPointF()  # where the box goes
        self._hovered: int | None = None
        self._pinned: int | None = None
        self._dragging = False
        self._scene: Scene | None = None
        self._picture = TimelinePicture()
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self._go_on)
        self.setMouseTracking(True)
        self.set_theme(theme)
        self.retranslate()

    # -- what the page calls --------------------------------------------------------------------------------------

    @property
    def timeline(self) -> Timeline | None:
        return self._layout.timeline if self._layout is not None else None

    @property
    def layout_of_blocks(self) -> Layout | None:
        return self._layout

    @property
    def stretch(self) -> Stretch:
        return self._stretch

    @property
    def pinned_block(self) -> int | None:
        return self._pinned

    @property
    def hovered_block(self) -> int | None:
        return self._hovered

    def set_timeline(self, timeline: Timeline | None, *, room_bytes: int | None = None, hint: str = "") -> None:
        """Show another step. ``hint`` stands where there is none."""
        known = (self.timeline, self._room_bytes)
        self._hint, self._room_bytes = hint, room_bytes
        if timeline is not self.timeline:
            self._layout = Layout(timeline) if timeline is not None and timeline.event_count else None
            self._picture.clear()
            self._cursor = self._hovered = None
            self._set_pinned(None)
            self._owners = None
        if (self.timeline, room_bytes) != known:
            self.show_whole()
        self._changed()

    def show_whole(self) -> None:
        """The whole step."""
        if self._layout is not None:
            top = self._layout.top_bytes
            if self._room_bytes is not None and self._room_bytes <= _ROOM_SHARE * top:
                top = max(top, self._room_bytes)
            self._set_stretch(Stretch.whole(self._layout.timeline.event_count, top))
        self._changed()

    def show_stretch(self, stretch: Stretch) -> None:
        """A part of the step, as ``stretch`` came from here."""
        self._set_stretch(stretch)

    @property
    def is_sharp(self) -> bool:
        """The picture is worked out to the last column."""
        return self._picture.ready

    def zoom(self, factor: float) -> None:
        """``factor`` times as much of the step, around the cursor, or the peak."""
        if self._layout is not None:
            event = self._cursor.event if self._cursor is not None else self._layout.peak_event
            self._set_stretch(self._stretch.zoomed(factor, event=event + 0.5))

    def set_owners(self, owners: frozenset[int] | None) -> None:
        """Dim all blocks but those of these owners."""
        if owners != self._owners:
            self._owners = owners
            self._changed()

    def pin(self, block: int | None) -> None:
        """Pin a block, and bring it on show."""
        if block is not None and self._layout is not None:
            event = middle_event(self._layout.timeline, block)
            height = self._layout.bottom_at(block, event) + int(self._layout.timeline.size_bytes[block]) / 2
            self._set_stretch(self._stretch.showing(event, height))
            self._cursor = Point(event, height)
            self._near = self._position_of(self._cursor)
        self._set_pinned(block)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.set_ring_color(theme.accent)
        self._picture.set_palette(picture_palette(theme))
        self.update()

    def retranslate(self) -> None:
        self.setAccessibleName(canvas_texts.name())
        self._describe()
        self.update()

    def scene(self) -> Scene | None:
        """What is shown now; ``None`` without a timeline."""
        if self._layout is None:
            return None
        if self._scene is None:
            self._scene = Scene(
                self._layout,
                self._stretch,
                self.plot,
                self.devicePixelRatioF(),
                room_bytes=self._room_bytes,
                hovered=self._hovered,
                pinned=self._pinned,
                cursor=self._cursor,
                owners=self._owners,
            )
        return self._scene

    @property
    def plot(self) -> QRectF:
        """Where the picture is, on whole pixels."""
        line = self._types.line
        left, top = round(_LEFT_GUTTER * line), round((PHASE_STRIP + 0.2) * line) + MARGIN
        width = max(8, self.width() - left - MARGIN - round(0.6 * line))
        return QRectF(left, top, width, max(8, self.height() - top - MARGIN - round(_FOOT * line)))

    # -- state ----------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        self._scene = None
        self.update()

    def _set_stretch(self, stretch: Stretch) -> None:
        if stretch != self._stretch:
            self._stretch = stretch
            self._changed()
            self.stretch_changed.emit()

    def _set_pinned(self, block: int | None) -> None:
        if block != self._pinned:
            self._pinned = block
            self._describe()
            self.pinned.emit(block)
        self._changed()

    def _set_cursor(self, point: Point | None, near: QPointF) -> None:
        self._near = near
        hovered = None
        if point is not None and self._layout is not None:
            hovered = self._layout.block_at(point.event, point.height_bytes)
        if point != self._cursor or hovered != self._hovered:
            self._cursor, self._hovered = point, hovered
            self._changed()

    def _position_of(self, point: Point) -> QPointF:
        self._scene = None
        scene = self.scene()
        return QPointF() if scene is None else QPointF(scene.x(point.event + 0.5), scene.y(point.height_bytes))

    def _describe(self) -> None:
        """In words, for screen readers."""
        if not QAccessible.isActive() and self.accessibleDescription():
            return
        self.setAccessibleDescription(self.describe())

    def describe(self) -> str:
        """The block that is pinned or under the cursor, else the step."""
        if self._layout is None:
            return self._hint
        return canvas_texts.describe(self._layout, self._pinned if self._pinned is not None else self._hovered)

    # -- painting -------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        return QSize(round(40 * self._types.line), round(12 * self._types.line))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(14 * self._types.line), round(9 * self._types.line))

    def paintEvent(self, event: QPaintEvent) -> None:
        scene = self.scene()
        painter = QPainter(self)
        if scene is None:
            painter.setFont(self._types.label.font)
            painter.setPen(color(self._theme.muted))
            painter.drawText(QRectF(self.rect()).adjusted(16, 0, -16, 0), CENTRE | Qt.TextFlag.TextWordWrap, self._hint)
        else:
            begun_s = time.perf_counter()
            self._picture.ask(scene.layout, scene.extent, scene.owners)
            if not self._picture.work(_SLICE_S - (time.perf_counter() - begun_s)):
                self._later.start()
            brush = CanvasPainter(painter, scene=scene, theme=self._theme, types=self._types)
            brush.paint(self._picture)
            block = scene.pinned if scene.pinned is not None else scene.hovered
            if scene.cursor is not None and not self._dragging:
                title, rows = canvas_texts.box(scene.layout, block, scene.cursor.event, self._theme)
                brush.box(title, rows, self._near)
        painter.end()
        super().paintEvent(event)

    def _go_on(self) -> None:
        """Another slice of the picture, between two events of the window."""
        self._picture.work(_SLICE_S)
        self.update(self.plot.toAlignedRect())

    # -- events ---------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._changed()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange:
            self._types = Typeset(self.font())
            self._changed()
            self.updateGeometry()
        super().changeEvent(event)
