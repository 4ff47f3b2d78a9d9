"""Where the parts of the tank lie: pure geometry, so that nothing is clipped at any size. Logical pixels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from PySide6.QtCore import QPointF, QRectF

from desktop_app.ui.tank_model import Level, Segment

# Lengths of the design pictures in label lines (14 px at 11.5 px type), so that large type has room.
_FLOOD_ZONE: Final = 1.9
_TANK_WIDTH: Final = 120 / 14
_TANK_SHARE: Final = 0.42  # of the whole width at most, so that the flood mark's words fit beside it
_NARROW_TANK_WIDTH: Final = 68 / 14
_LEAST_TANK_WIDTH: Final = 2.8
_ROW_WIDTH: Final = 14.2  # "Other processes  317 MiB" with swatch and gaps
_CARD_LINES: Final = 8.2
_SMALL_CARD_LINES: Final = 3.0
_MODEL: Final = (Segment.PARAMETERS, Segment.GRADIENTS, Segment.OPTIMIZER)
_REST: Final = (Segment.OTHERS, Segment.CONTEXT, Segment.IDLE)


class Density(Enum):
    """How much the legend says, most first. The value: (lines a row, may rows merge)."""

    FULL = 2.86  # name above value, as in the pictures
    LINES = 1.4  # name and value on one line
    TIGHT = 1.15


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the legend: the layers it stands for, and the summed size; ``None`` when one is unknown."""

    segments: tuple[Segment, ...]
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class TankLayout:
    """All rectangles of one tank. ``scale`` is the height of one label line."""

    scale: float
    density: Density
    title: QPointF  # top left
    tank: QRectF
    flood_zone: QRectF  # above the brim
    column: QRectF  # the legend's, from the top of the flood zone down
    rows: tuple[tuple[Row, QRectF], ...]
    free: QRectF | None
    card: QRectF | None
    small_card: bool


def merged_rows(levels: tuple[Level, ...], *, merge_model: bool, merge_rest: bool) -> tuple[Row, ...]:
    """Legend rows from the top down; the layers of the model, then all else that is not the run's, in one row each."""
    groups: list[tuple[Segment, ...]] = []
    for level in reversed(levels):
        group: tuple[Segment, ...] = (level.segment,)
        if merge_model and level.segment in _MODEL:
            group = _MODEL
        elif merge_rest and level.segment in _REST:
            group = _REST
        if group not in groups:
            groups.append(group)
    if _REST in groups:
        groups.append(groups.pop(groups.index(_REST)))
    sizes = {level.segment: level.size_bytes for level in levels}
    return tuple(Row(group, _sum([sizes.get(segment) for segment in group])) for group in groups)


def _sum(sizes: list[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def lay_out(width: float, height: float, *, line: float, levels: tuple[Level, ...], flood_row: bool) -> TankLayout:
    """Place everything in ``width`` × ``height``. ``line``: height of a label line; ``flood_row``: the flood mark
    lies in the tank and needs a line of its own below the brim's."""
    small_card = height < 36 * line
    card_height = (_SMALL_CARD_LINES if small_card else _CARD_LINES) * line
    if height < 20 * line:
        card_height = 0.0
    gap = 1.2 * line if card_height else 0.0
    title_height = 1.6 * line
    # Edges on whole pixels, so that lines of one and two pixels are sharp.
    top = float(round(title_height + _FLOOD_ZONE * line))
    tank_height = float(max(round(4 * line), int(height - top - gap - card_height)))
    head = (2.9 if flood_row else 1.6) * line
    room = tank_height - head
    rows, density, free_height = _fitting(levels, room, line)
    overhang = float(round(0.43 * line))
    tank_width = _tank_width(width, line, density)
    tank = QRectF(overhang, top, tank_width, tank_height)
    left = tank.right() + overhang + 0.57 * line
    column = QRectF(left, title_height, max(0.0, width - left), height - title_height)
    pitch = density.value * line
    # As in the pictures, the legend starts a little below the brim where there is room for that.
    spare = room - len(rows) * pitch - free_height
    y = top + head + min(1.4 * line, max(0.0, spare))
    placed = []
    for row in rows:
        placed.append((row, QRectF(left, y, column.width(), pitch)))
        y += pitch
    free = QRectF(left, y + 0.5 * line, column.width(), free_height - 0.5 * line) if free_height else None
    card_width = width - overhang - 1
    card_top = float(int(height - card_height)) + 0.5
    card = QRectF(overhang + 0.5, card_top, card_width, int(card_height) - 1) if card_height else None
    zone = QRectF(0, title_height, tank.right() + overhang, top - title_height - 2)
    return TankLayout(
        scale=line,
        density=density,
        title=QPointF(overhang, 0),
        tank=tank,
        flood_zone=zone,
        column=column,
        rows=tuple(placed),
        free=free,
        card=card,
        small_card=small_card,
    )


def _tank_width(width: float, line: float, density: Density) -> float:
    """As in the pictures where name and value lie below each other; else what the lines leave of ``width``."""
    if density is Density.FULL:
        return float(round(min(_TANK_WIDTH * line, _TANK_SHARE * width)))
    return float(round(min(_NARROW_TANK_WIDTH * line, max(_LEAST_TANK_WIDTH * line, width - _ROW_WIDTH * line))))


def _fitting(levels: tuple[Level, ...], room: float, line: float) -> tuple[tuple[Row, ...], Density, float]:
    """The most telling legend that fits in ``room``: rows, density, height of the "free now" block below them."""
    whole = merged_rows(levels, merge_model=False, merge_rest=False)
    model = merged_rows(levels, merge_model=True, merge_rest=False)
    least = merged_rows(levels, merge_model=True, merge_rest=True)
    choices = (
        (whole, Density.FULL, 3.6),
        (whole, Density.LINES, 3.6),
        (model, Density.LINES, 3.6),
        (model, Density.TIGHT, 1.7),
        (least, Density.TIGHT, 1.7),
        (least, Density.TIGHT, 0.0),
    )
    for rows, density, free in choices:
        if len(rows) * density.value * line + free * line <= room:
            return rows, density, free * line
    fits = max(0, int(room / (Density.TIGHT.value * line)))
    return least[:fits], Density.TIGHT, 0.0
