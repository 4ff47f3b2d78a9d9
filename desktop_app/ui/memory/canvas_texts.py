"""What the canvas says of a block or of the step, as text and as rows of its box."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from desktop_app.ui.memory.block_facts import BlockFacts, block_facts
from desktop_app.ui.memory.canvas_painter import Row
from desktop_app.ui.memory.colors import shade_color
from desktop_app.ui.memory.timeline_layout import Layout
from desktop_app.ui.texts import memory as texts
from desktop_app.ui.texts import numbers
from desktop_app.ui.theme import Theme


def name() -> str:
    return QCoreApplication.translate("Memory", "Live bytes over one step")


def recording_name() -> str:
    return QCoreApplication.translate("Memory", "Live bytes of the recording")


def box(layout: Layout, block: int | None, event: int, theme: Theme) -> tuple[str, list[Row]]:
    """Title and rows for ``block``, or for the event alone where the cursor is above all blocks."""
    timeline, names = layout.timeline, texts.block_rows()
    rows: list[Row] = []
    title = texts.event_place(event, timeline.event_count)
    if block is not None:
        facts = block_facts(timeline, block)
        title = texts.block_owner(facts.owner)
        rows += [
            (names["size"], numbers.small_size(facts.size_bytes), None),
            (names["kind"], texts.block_kind(facts.category.value), shade_color(theme, int(layout.shades[block]))),
            (names["op"], facts.op, None),
            (names["life"], life(facts), None),
        ]
    else:
        rows.append((names["reserved"], numbers.size(int(timeline.reserved_bytes[event])), None))
    rows.append((names["live"], numbers.size(int(timeline.live_bytes[event])), None))
    return title, rows


def life(facts: BlockFacts) -> str:
    return texts.lifetime(facts.born, facts.died, begin=facts.begin, end=facts.end)


def describe(layout: Layout, block: int | None) -> str:
    """One line for screen readers."""
    if block is None:
        peak = int(layout.timeline.live_bytes[layout.peak_event])
        return texts.peak_mark(peak)
    facts = block_facts(layout.timeline, block)
    owner = texts.block_owner(facts.owner)
    kind = texts.block_kind(facts.category.value)
    return f"{owner}, {numbers.small_size(facts.size_bytes)}, {kind}, {facts.op}, {life(facts)}"
