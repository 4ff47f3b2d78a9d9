"""How high each panel is: shares of the room, no less than can be read, and who yields when there is too little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Need:
    """What one panel asks for. Heights in lines of a label; ``yields``: who is hidden first has the highest."""

    key: str
    least: float
    share: float
    yields: int


# The design pictures' proportions (184 : 178 : 92 px); the least is a head and two figures one can read.
NEEDS: Final = (
    Need("loss", least=6.4, share=184, yields=1),
    Need("optimizer", least=4.8, share=92, yields=6),
    Need("vram", least=6.4, share=178, yields=0),
    Need("utilization", least=4.1, share=92, yields=3),
    Need("temperature", least=4.1, share=92, yields=4),
    Need("power", least=4.1, share=92, yields=5),
)
LANE_LINES: Final = 3.1
# The optimizer's panel is shown only where nobody has to shrink for it.
_COMFORT: Final = 1.25


def arrange(
    height: float, *, line: float, spacing: float, compact: bool, needs: Sequence[Need] = NEEDS
) -> Mapping[str, float]:
    """Heights in pixels by key, in order; a panel that is not there is hidden. The lane's is ``"events"``."""
    lane = round(LANE_LINES * line)
    shown = list(needs)
    if compact:
        shown.remove(max(shown, key=lambda need: need.yields))
    while len(shown) > 1 and _least(shown, line, spacing, lane) > height:
        shown.remove(max(shown, key=lambda need: need.yields))
    room = height - lane - len(shown) * spacing
    heights = _share_out(room, shown, line)
    return {**heights, "events": float(lane)}


def _least(shown: Sequence[Need], line: float, spacing: float, lane: float) -> float:
    optional = max(shown, key=lambda need: need.yields).yields == max(need.yields for need in NEEDS)
    comfort = _COMFORT if optional else 1.0
    return sum(need.least for need in shown) * line * comfort + len(shown) * spacing + lane


def _share_out(room: float, shown: Sequence[Need], line: float) -> dict[str, float]:
    """Shares of ``room``; who would get less than its least gets just that, and the others share the rest."""
    fixed: dict[str, float] = {}
    open_needs = list(shown)
    while open_needs:
        rest = room - sum(fixed.values())
        total = sum(need.share for need in open_needs)
        short = [need for need in open_needs if rest * need.share / total < need.least * line]
        if not short:
            fixed.update({need.key: rest * need.share / total for need in open_needs})
            break
        fixed.update({need.key: need.least * line for need in short})
        open_needs = [need for need in open_needs if need not in short]
    return _whole_pixels({need.key: fixed[need.key] for need in shown}, room)


def _whole_pixels(heights: dict[str, float], room: float) -> dict[str, float]:
    """Edges on whole pixels, so that one-pixel lines stay one pixel."""
    whole: dict[str, float] = {}
    exact = placed = 0.0
    for key, height in heights.items():
        exact += height
        whole[key] = round(min(exact, max(room, exact))) - placed
        placed += whole[key]
    return whole
