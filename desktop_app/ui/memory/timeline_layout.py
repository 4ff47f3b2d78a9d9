"""Where every block of a timeline lies in a picture of it. Pure numpy: no Qt, no text.

Blocks are stacked in the order of their birth, as memory_viz does: when one dies, those above it come down. The picture
is worked out column by column at the resolution of the screen, so that its cost follows the pixels and not the blocks:

* a column stands for the event with the most live bytes of those it covers, so that no peak is lost between columns;
* blocks side by side of one kind that are too small to be told apart are one band. Its height in every column is the
  exact sum of what lives of it, so every pixel has the kind that lies under its centre.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from desktop_app.core.estimates import Timeline
from desktop_app.core.steps import Category

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Shades = npt.NDArray[np.uint8]

# One byte a pixel: the position of the category, and two marks.
EDGE: Final = 8  # the lowest row of a block that is large enough to be told apart
DIMMED: Final = 16  # not of the owners that are looked for
EMPTY: Final = 32
SHADES: Final = 33

_OTHER: Final = tuple(Category).index(Category.OTHER)
_OWNER_COLOURS: Final = _OTHER  # all of them but the one of what is nobody's
_TOLD_APART_ROWS: Final = 2.5  # a block as high as this is a band of its own
_EDGE_ROWS: Final = 4.0  # and has an edge where it is as high as this
_MOST_BANDS: Final = 1536  # beyond, kinds are mixed within a band: a thousand pixels do not show as many
_CHUNK_CELLS: Final = 20_000  # bands × columns worked out at once: half a millisecond, within the cache


def block_shades(timeline: Timeline) -> Ints:
    """Which colour each block has: that of its kind; of recordings that know no kinds, one by owner."""
    if knows_kinds(timeline):
        return np.asarray(timeline.category, dtype=np.int64)
    return np.asarray(timeline.owner, dtype=np.int64) % _OWNER_COLOURS


def knows_kinds(timeline: Timeline) -> bool:
    """A snapshot of torch says who allocated a block, and not what for."""
    return len(timeline.category) == 0 or bool(np.any(timeline.category != _OTHER))


@dataclass(frozen=True, slots=True)
class Extent:
    """What a picture shows: events ``first`` to ``last`` and bytes ``low`` to ``high``, in columns and rows."""

    first: float
    last: float
    low: float
    high: float
    columns: int
    rows: int

    @property
    def bytes_per_row(self) -> float:
        return (self.high - self.low) / self.rows

    @property
    def events_per_column(self) -> float:
        return (self.last - self.first) / self.columns


class Layout:
    """One timeline, ready to be drawn at any extent. Nothing in here changes after it is made."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._live = np.asarray(timeline.live_bytes, dtype=np.int64)
        self._born = np.asarray(timeline.born, dtype=np.int64)
        self._died = np.minimum(np.asarray(timeline.died, dtype=np.int64), timeline.event_count)
        self._size = np.asarray(timeline.size_bytes, dtype=np.int64)
        self.shades: Final = block_shades(timeline)  # of each block, the position of a category's colour

    @property
    def blocks(self) -> int:
        return len(self._size)

    @property
    def peak_event(self) -> int:
        return int(np.argmax(self._live)) if len(self._live) else 0

    @property
    def top_bytes(self) -> int:
        """The highest line of the picture: reserved, or live where nothing is known of reserved."""
        reserved = self.timeline.reserved_bytes
        return max(int(reserved.max(initial=0)), int(self._live.max(initial=0)), 1)

    def alive(self, event: int) -> Ints:
        """The blocks that live after ``event``, from the bottom up."""
        return np.flatnonzero((self._born <= event) & (self._died > event))

    def block_at(self, event: int, height_bytes: float) -> int | None:
        """The block that lies ``height_bytes`` above the ground after ``event``."""
        if not 0 <= event < len(self._live) or height_bytes < 0:
            return None
        alive = self.alive(event)
        tops = np.cumsum(self._size[alive])
        place = int(np.searchsorted(tops, height_bytes, side="right"))
        return int(alive[place]) if place < len(alive) else None

    def bottom_at(self, block: int, event: int) -> int:
        """Bytes below ``block`` after ``event``."""
        below = (self._born[:block] <= event) & (self._died[:block] > event)
        return int(self._size[:block][below].sum())

    def column_events(self, extent: Extent) -> Ints:
        """The event each column stands for: the one with the most live bytes of those it covers."""
        count = len(self._live)
        if not count:
            return np.zeros(extent.columns, dtype=np.int64)
        edges = extent.first + extent.events_per_column * np.arange(extent.columns + 1)
        starts = np.clip(np.floor(edges[:-1]).astype(np.int64), 0, count - 1)
        if extent.events_per_column <= 1.0:
            middle = (edges[:-1] + edges[1:]) / 2
            return np.clip(np.floor(middle).astype(np.int64), 0, count - 1)
        end = min(count, max(int(np.ceil(edges[-1])), int(starts[-1]) + 1))
        return np.asarray(starts[0] + _first_largest(self._live[starts[0] : end], starts - starts[0]), dtype=np.int64)

    def columns_of(self, extent: Extent) -> tuple[Ints, Ints]:
        """For each block its first column and the column after its last one, in the events of ``column_events``."""
        events = self.column_events(extent)
        counts = np.bincount(events, minlength=len(self._live) + 1)
        before = np.concatenate(([0], np.cumsum(counts)))  # columns whose event comes before event i
        return before[self._born], before[self._died]

    def outline(self, block: int, extent: Extent) -> tuple[int, Floats]:
        """The first column of ``block`` and the bytes below it in each of its columns; no column: not on show."""
        first, after = self.columns_of(extent)
        begin, end = int(first[block]), int(after[block])
        below = slice(0, block)
        more = np.bincount(first[below], weights=self._size[below], minlength=extent.columns + 1)
        less = np.bincount(after[below], weights=self._size[below], minlength=extent.columns + 1)
        return begin, np.cumsum(more.astype(np.float64) - less)[begin:end]

    def picture(self, extent: Extent, *, owners: frozenset[int] | None = None) -> Picture:
        """Begin a picture. ``owners``: the only ones that are not dimmed."""
        return Picture(self, extent, owners)


class Picture:
    """A picture under way: ``columns`` gives it in slices of a few milliseconds, from the left."""

    def __init__(self, layout: Layout, extent: Extent, owners: frozenset[int] | None) -> None:
        self.extent = extent
        first, after = layout.columns_of(extent)
        seen = np.flatnonzero(first < after)
        size = layout._size[seen].astype(np.float64)  # noqa: SLF001 - one file, one matter
        shade = layout.shades[seen].copy()
        if owners is not None:
            owner = np.asarray(layout.timeline.owner)[seen]
            shade[~np.isin(owner, list(owners))] += DIMMED
        band, told_apart = _bands(shade, size, extent.bytes_per_row)
        self._bands = int(band[-1]) + 1 if len(band) else 0
        self._shade = np.full(self._bands + 1, EMPTY, dtype=np.uint8)
        self._shade[:-1] = _commonest(band, shade, size, self._bands)
        self._edged = np.zeros(self._bands, dtype=bool)
        self._edged[band[told_apart]] = True
        column = np.concatenate((first[seen], after[seen]))
        order = np.argsort(column.astype(np.int16 if extent.columns < 2**15 else np.int64), kind="stable")
        self._column = column[order]
        self._band = np.concatenate((band, band))[order]
        self._change = np.concatenate((size, -size))[order]

    @property
    def bands(self) -> int:
        return self._bands

    def columns(self) -> Iterator[tuple[int, Shades]]:
        """Slices: the first column, and shades by (column, row), row 0 at the bottom."""
        extent, bands = self.extent, self._bands
        width = max(1, _CHUNK_CELLS // max(bands, extent.rows, 1))
        heights = np.zeros(bands)
        for begin in range(0, extent.columns, width):
            end = min(begin + width, extent.columns)
            low, high = np.searchsorted(self._column, (begin, end))
            cell = (self._column[low:high] - begin) * bands + self._band[low:high]
            counted = np.bincount(cell, weights=self._change[low:high], minlength=(end - begin) * bands)
            steps: Floats = counted.astype(np.float64, copy=False).reshape(
                end - begin, bands
            )  # of nothing, it counts in ints
            if bands:
                steps[0] += heights
                np.cumsum(steps, axis=0, out=steps)
                heights = steps[-1].copy()
            yield begin, self._shades(steps)

    def _shades(self, heights: Floats) -> Shades:
        """Of columns whose bands are ``heights`` bytes high, (column, band)."""
        extent, bands = self.extent, self._bands
        count, rows = len(heights), extent.rows
        tops = np.zeros((count, bands + 1))
        np.cumsum(heights, axis=1, out=tops[:, 1:])
        # A row belongs to the band under its centre, so a band begins at the first centre that is not below it.
        begins = np.ceil((tops - extent.low) / extent.bytes_per_row - 0.5)
        begins = np.clip(begins, 0, rows).astype(np.intp)
        line = np.arange(count)[:, None] * (rows + 1)
        flat_which = np.zeros(count * (rows + 1), dtype=np.int32)
        flat_which[(begins + line).reshape(-1)] = np.tile(
            np.arange(bands + 1, dtype=np.int32), count
        )  # the last one stays
        which = flat_which.reshape(count, rows + 1)
        np.maximum.accumulate(which, axis=1, out=which)
        shades: Shades = self._shade[which]
        edged = np.flatnonzero(self._edged)
        if len(edged):
            high = heights[:, edged] >= _EDGE_ROWS * extent.bytes_per_row
            place = (begins[:, edged] + line)[high]
            place = place[begins[:, edged][high] > 0]  # the ground is no edge
            flat = shades.reshape(-1)
            flat[place] |= EDGE
        return shades[:, :rows]


def _first_largest(values: Ints, starts: Ints) -> Ints:
    """For each stretch of ``values`` from one start to the next (never empty) the place of its first maximum."""
    whole = np.append(starts, len(values))
    lengths = np.maximum(np.diff(whole), 1)
    largest = np.maximum.reduceat(values, starts)
    stretch = np.repeat(np.arange(len(starts)), lengths)[: len(values)]
    hits = np.flatnonzero(values == largest[stretch])
    found = starts.copy()
    found[stretch[hits[::-1]]] = hits[::-1]
    return found


def _bands(shade: Ints, size: Floats, bytes_per_row: float) -> tuple[Ints, Ints]:
    """The band of each block in order, and the blocks that have one for themselves."""
    if not len(size):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    own = size >= _TOLD_APART_ROWS * bytes_per_row
    if own.sum() > _MOST_BANDS // 4:
        least = np.partition(size, -(_MOST_BANDS // 4))[-(_MOST_BANDS // 4)]
        own &= size >= least
        if own.sum() > _MOST_BANDS // 4:  # many of the same size
            own &= np.cumsum(own) <= _MOST_BANDS // 4
    begins = np.ones(len(size), dtype=bool)
    begins[1:] = (shade[1:] != shade[:-1]) | own[1:] | own[:-1]
    band = np.cumsum(begins) - 1
    if band[-1] >= _MOST_BANDS:
        band = _fewer(band, size, own)
    return band, np.flatnonzero(own)


def _fewer(band: Ints, size: Floats, own: npt.NDArray[np.bool_]) -> Ints:
    """Bands of mixed kinds, of about the same bytes each, between the blocks that have their own."""
    small = np.where(own, 0.0, size)
    share = small.sum() / (_MOST_BANDS // 4) or 1.0
    piece = (np.cumsum(small) / share).astype(np.int64)
    begins = np.ones(len(band), dtype=bool)
    begins[1:] = (piece[1:] != piece[:-1]) | own[1:] | own[:-1]
    return np.asarray(np.cumsum(begins) - 1)


def _commonest(band: Ints, shade: Ints, size: Floats, bands: int) -> Shades:
    """The kind of each band: that of most of its bytes."""
    weights = np.bincount(band * EMPTY + shade, weights=size, minlength=bands * EMPTY)
    kinds: Shades = weights.reshape(bands, EMPTY).argmax(axis=1).astype(np.uint8)
    return kinds
