"""Shades behind the curves for the time in which the card was held back: a tint and a pattern for each reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QPainter, QPen, QPixmap

from desktop_app.ui.brush import LEFT, Typeset, write
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.theme import Theme, color

_TILE: Final = 8  # logical pixels: the grid of everything
TINTS: Final = {Throttle.HEAT: "temperature", Throttle.POWER: "power"}
_TINT_ALPHA: Final = 0.11
_PATTERN_ALPHA: Final = 0.30
_PLAIN_WIDTH: Final = 2 * _TILE  # pixels; a narrower shade has no pattern
_PLAIN_ALPHA: Final = 0.20  # of tint and pattern together
_BEHIND_ALPHA: Final = 0.7  # of a word, over the pattern
_SHEET_STEP: Final = 256  # a sheet serves until a shade or panel has grown by so many pixels
_Place = tuple[Throttle, int, int]  # of a shade on the screen: why, left edge, width; logical pixels
_LEAST_WIDTH: Final = 2  # pixels: one throttled tick in thirty days can still be seen


@dataclass(frozen=True, slots=True)
class Band:
    """One shade, in seconds from the anchor."""

    left: float
    right: float
    cause: Throttle


@dataclass(frozen=True, slots=True)
class Look:
    """How shades are drawn. ``labelled``: the reasons that are named in this panel."""

    theme: Theme
    types: Typeset
    labelled: frozenset[Throttle] = frozenset()


@lru_cache(maxsize=16)
def _sheet(theme: Theme, cause: Throttle, ratio: float, width: int, height: int) -> QPixmap:
    """The tint and pattern of a reason, ``width`` by ``height`` logical pixels. Heat is hatched, power is dotted.

    Parts of one large picture are copied: tiling a small one costs five times as much, 2 ms for all panels.
    """
    tint = getattr(theme, TINTS[cause])
    tile = _transparent(_TILE, _TILE, ratio)
    tile.fill(color(tint, _TINT_ALPHA))
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if cause is Throttle.HEAT:
        painter.setPen(QPen(color(tint, _PATTERN_ALPHA), 1.0))
        for shift in (-_TILE, 0, _TILE):
            painter.drawLine(QPointF(shift, _TILE), QPointF(shift + _TILE, 0))
    else:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(tint, 1.5 * _PATTERN_ALPHA))
        painter.drawEllipse(QPointF(2, 2), 0.9, 0.9)
        painter.drawEllipse(QPointF(6, 6), 0.9, 0.9)
    painter.end()
    made = _transparent(width, height, ratio)
    painter = QPainter(made)
    painter.drawTiledPixmap(QRectF(0, 0, width, height), tile)
    painter.end()
    return made


def _transparent(width: int, height: int, ratio: float) -> QPixmap:
    made = QPixmap(round(width * ratio), round(height * ratio))
    made.setDevicePixelRatio(ratio)
    made.fill(Qt.GlobalColor.transparent)
    return made


def paint(painter: QPainter, bands: tuple[Band, ...], look: Look, *, ratio: float) -> None:
    """Draw ``bands`` over the height 0 to 1 of the painter's coordinates; patterns stand still while time moves."""
    if not bands:
        return
    world = painter.worldTransform()
    scale, shift, top, bottom = world.m11(), world.dx(), world.dy() + world.m22(), world.dy()
    top, height = min(top, bottom), abs(bottom - top)
    places = []
    for band in bands:
        left = round(shift + scale * band.left)
        places.append((band.cause, left, max(_LEAST_WIDTH, round(shift + scale * band.right) - left)))
    wide = [place for place in places if place[2] >= _PLAIN_WIDTH]
    painter.save()
    painter.setWorldMatrixEnabled(False)
    _paint_narrow(painter, [place for place in places if place[2] < _PLAIN_WIDTH], look.theme, top, height, ratio=ratio)
    if wide:
        _paint_wide(painter, wide, look, top, height, ratio=ratio)
    painter.restore()


def _paint_narrow(
    painter: QPainter, places: list[_Place], theme: Theme, top: float, height: float, *, ratio: float
) -> None:
    """Too narrow for a pattern, and where there are such there are hundreds: one picture, the same in every panel."""
    if not places:
        return
    first = min(left for _, left, _ in places)
    moved = tuple((cause, left - first, width) for cause, left, width in places)
    strip = _strip(theme, moved, ratio, _SHEET_STEP * math.ceil(height / _SHEET_STEP))
    painter.drawPixmap(QPointF(first, top), strip, QRectF(0, 0, strip.width(), height * ratio))


@lru_cache(maxsize=4)
def _strip(theme: Theme, places: tuple[_Place, ...], ratio: float, height: int) -> QPixmap:
    """Plain tints at ``places``, ``height`` logical pixels high. A rectangle for each costs ten times as much."""
    row = np.zeros(math.ceil(ratio * max(left + width for _, left, width in places)), np.uint32)
    for cause, left, width in places:
        row[round(ratio * left) : round(ratio * (left + width))] = _premultiplied(getattr(theme, TINTS[cause]))
    lines = np.ascontiguousarray(np.broadcast_to(row, (round(ratio * height), row.size)))
    bytes_a_line = lines.strides[0]
    image = QImage(lines.data, row.size, lines.shape[0], bytes_a_line, QImage.Format.Format_ARGB32_Premultiplied)
    made = QPixmap.fromImage(image)
    made.setDevicePixelRatio(ratio)
    return made


def _premultiplied(value: str) -> int:
    """A colour at the strength of a plain shade, as a pixel of ``Format_ARGB32_Premultiplied``."""
    tint = color(value)
    red, green, blue = (round(_PLAIN_ALPHA * part) for part in (tint.red(), tint.green(), tint.blue()))
    return round(255 * _PLAIN_ALPHA) << 24 | red << 16 | green << 8 | blue


def _paint_wide(
    painter: QPainter, places: list[_Place], look: Look, top: float, height: float, *, ratio: float
) -> None:
    widest = _SHEET_STEP * math.ceil((max(width for _, _, width in places) + _TILE) / _SHEET_STEP)
    tallest = _SHEET_STEP * math.ceil((height + _TILE) / _SHEET_STEP)
    down = top % _TILE
    for cause, left, width in places:
        sheet = _sheet(look.theme, cause, ratio, widest, tallest)
        part = QRectF((left % _TILE) * ratio, down * ratio, width * ratio, height * ratio)
        painter.drawPixmap(QPointF(left, top), sheet, part)
        if cause in look.labelled:
            _label(painter, QRectF(left, top, width, height), cause, look)


def _label(painter: QPainter, place: QRectF, cause: Throttle, look: Look) -> None:
    """The reason at the foot of its shade, where the curve of a card at its limit is not."""
    kind = look.types.tick
    word = texts.throttle(cause)
    room = QRectF(place.left() + 4, place.bottom() - kind.height - 1, kind.width(word) + 2, kind.height)
    if room.right() + 2 <= place.right():
        painter.fillRect(room.adjusted(-2, 0, 1, 0), color(look.theme.surface, _BEHIND_ALPHA))
        write(painter, room, word, kind, color(look.theme.muted), align=LEFT)
