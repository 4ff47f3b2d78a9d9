"""What is known of one block of a timeline, apart from where it is drawn. No Qt, no text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from desktop_app.core.estimates import Timeline
from desktop_app.core.steps import Category, Phase

_KINDS: Final = tuple(Category)


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """``born`` and ``died`` are events, ``None`` for what was there before and for what outlives the timeline.

    ``begin`` and ``end`` are their phases, where the timeline has phases.
    """

    owner: str
    op: str
    category: Category
    size_bytes: int
    born: int | None
    died: int | None
    begin: Phase | None
    end: Phase | None


def phase_at(timeline: Timeline, event: int) -> Phase | None:
    """The phase that an event is part of."""
    return next((span.phase for span in timeline.phases if span.first <= event <= span.last), None)


def block_facts(timeline: Timeline, block: int) -> BlockFacts:
    """Everything about ``block``."""
    born, died = int(timeline.born[block]), int(timeline.died[block])
    begins, ends = born > 0, died < timeline.event_count
    return BlockFacts(
        owner=timeline.owners[timeline.owner[block]],
        op=timeline.ops[timeline.op[block]],
        category=_KINDS[timeline.category[block]],
        size_bytes=int(timeline.size_bytes[block]),
        born=born if begins else None,
        died=died if ends else None,
        begin=phase_at(timeline, born) if begins else None,
        end=phase_at(timeline, died) if ends else None,
    )


def largest_blocks(timeline: Timeline, count: int) -> npt.NDArray[np.int64]:
    """The ``count`` largest blocks, the largest first."""
    size = timeline.size_bytes
    several = len(size) > count
    chosen = np.argpartition(size, len(size) - count)[-count:] if several else np.arange(len(size))
    return np.asarray(chosen[np.argsort(-size[chosen], kind="stable")], dtype=np.int64)


def middle_event(timeline: Timeline, block: int) -> int:
    """An event in the life of a block: the one with the most live bytes, where it is wanted to be seen."""
    born = int(timeline.born[block])
    died = min(int(timeline.died[block]), timeline.event_count)
    return born + int(np.argmax(timeline.live_bytes[born:died])) if died > born else born
