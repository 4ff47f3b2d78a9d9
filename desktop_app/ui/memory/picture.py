"""The picture of a timeline as pixels: worked out in slices, kept, and drawn from what is there until it is ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from desktop_app.ui.memory.timeline_layout import EMPTY, SHADES, Extent, Layout, Shades

Palette = npt.NDArray[np.uint32]  # (SHADES,) as 0xAARRGGBB, premultiplied

_FORMAT: Final = QImage.Format.Format_ARGB32_Premultiplied


class _Drawn:
    """Pixels of one extent. Shades are kept, so that another theme needs no other layout."""

    def __init__(self, extent: Extent, palette: Palette) -> None:
        self.extent = extent
        self.shades: Shades = np.full((extent.rows, extent.columns), EMPTY, dtype=np.uint8)
        self.pixels = np.full((extent.rows, extent.columns), palette[EMPTY], dtype=np.uint32)
        self.image = QImage(
            self.pixels.data, extent.columns, extent.rows, 4 * extent.columns, _FORMAT
        )  # a view of the array
        self.columns = 0  # ready, from the left

    def add(self, begin: int, shades: Shades, palette: Palette) -> None:
        end = begin + len(shades)
        upright = shades[:, ::-1].T
        self.shades[:, begin:end] = upright
        self.pixels[:, begin:end] = palette[upright]
        self.columns = end

    def recolor(self, palette: Palette) -> None:
        self.pixels[:] = palette[self.shades]


class TimelinePicture:
    """Holds the newest whole picture and the one under way.

    ``work`` goes on with it for a few milliseconds; ``paint`` stretches what is there over what is wanted.
    """

    def __init__(self) -> None:
        self._palette: Palette = np.zeros(SHADES, dtype=np.uint32)
        self._whole: _Drawn | None = None
        self._begun: _Drawn | None = None
        self._slices: Iterator[tuple[int, Shades]] | None = None
        self._asked: object = None

    @property
    def ready(self) -> bool:
        """Nothing is left to work out."""
        return self._slices is None

    def clear(self) -> None:
        self._whole = self._begun = self._slices = self._asked = None

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        for drawn in (self._whole, self._begun):
            if drawn is not None:
                drawn.recolor(palette)

    def ask(self, layout: Layout, extent: Extent, owners: frozenset[int] | None) -> None:
        """Begin the picture of an extent, unless it is what there is or what is under way."""
        asked = (layout, extent, owners)
        if asked == self._asked:
            return
        self._asked = asked
        self._begun = _Drawn(extent, self._palette)
        self._slices = layout.picture(extent, owners=owners).columns()

    def work(self, budget_s: float, *, clock: Callable[[], float] = time.perf_counter) -> bool:
        """Go on for about ``budget_s``; whether it is ready."""
        until_s = clock() + budget_s
        while self._slices is not None and self._begun is not None:
            piece = next(self._slices, None)
            if piece is None:
                self._whole, self._begun, self._slices = self._begun, None, None
            else:
                self._begun.add(*piece, self._palette)
                if clock() >= until_s:
                    break
        return self.ready

    def paint(self, painter: QPainter, plot: QRectF, wanted: Extent) -> None:
        """What is there, at its place in ``plot``: the last picture stretched, over it what is ready of the next."""
        if self._whole is not None:
            _place(painter, plot, wanted, self._whole, self._whole.extent.columns)
        if self._begun is not None and self._begun.columns:
            _place(painter, plot, wanted, self._begun, self._begun.columns)


def _place(painter: QPainter, plot: QRectF, wanted: Extent, drawn: _Drawn, columns: int) -> None:
    extent = drawn.extent
    if extent == wanted and columns == extent.columns:
        painter.drawImage(plot, drawn.image, QRectF(0, 0, columns, extent.rows))
        return
    across = plot.width() / (wanted.last - wanted.first)
    up = plot.height() / (wanted.high - wanted.low)
    left = plot.left() + (extent.first - wanted.first) * across
    top = plot.bottom() - (extent.high - wanted.low) * up
    width = columns * extent.events_per_column * across
    target = QRectF(left, top, width, (extent.high - extent.low) * up)
    painter.drawImage(target, drawn.image, QRectF(0, 0, columns, extent.rows))
