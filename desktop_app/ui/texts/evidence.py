"""The numbers behind an alert: one line for the banner, and a table for whoever wants all of them.

Every figure may be missing: a cause says what it knows, and old recordings know less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Cause
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers
from desktop_app.ui.texts.outlooks import Outlook

Facts = Mapping[str, float]


def line(outlook: Outlook) -> str:
    """The numbers and the usual cause, in one line."""
    return _LINES[outlook.cause](outlook.evidence)


def _known(facts: Facts, *names: str) -> list[float] | None:
    """The figures of these names; ``None`` unless all are there."""
    found = [facts[name] for name in names if name in facts]
    return found if len(found) == len(names) else None


def _text(source: str, *parts: str) -> str:
    return QCoreApplication.translate("Outlook", source).format(*parts)


def _first_step(facts: Facts) -> str:
    if found := _known(facts, "demand_bytes", "room_bytes"):
        return _text(_FIRST_STEP_ROOM, *map(numbers.size, found))
    if found := _known(facts, "estimated_peak_bytes"):
        return _text(_FIRST_STEP_PEAK, numbers.size(found[0]))
    return _text(_FIRST_STEP)


def _leak(facts: Facts) -> str:
    usual = _text(_LEAK_USUAL)
    if found := _known(facts, "jump_bytes", "jump_distance_steps"):
        jumps = _text(_LEAK_STAIRS, numbers.small_size(found[0]), numbers.integer(found[1]))
        return numbers.sentences(jumps, usual)
    found = _known(facts, "slope_bytes_per_step", "grown_steps")
    if found is None:
        return numbers.sentences(_text(_LEAK_UNKNOWN), usual)
    source = _LEAK_SAME_SHAPE if "batch_samples" in facts else _LEAK
    return numbers.sentences(_text(source, numbers.small_size(found[0]), numbers.integer(found[1])), usual)


def _batch_shape(facts: Facts) -> str:
    if found := _known(facts, "demand_slope_bytes_per_step", "rising_steps"):
        return _text(_SHAPES_RISE, numbers.small_size(found[0]), numbers.integer(found[1]))
    if found := _known(facts, "demand_highest_bytes", "demand_allowed_bytes"):
        return _text(_SHAPES_VARY, *map(numbers.size, found))
    parts = [_text(_SHAPE)]
    for key, source in _SHAPES.items():
        if found := _known(facts, key):
            parts = [_text(source, numbers.integer(found[0]))]
    return numbers.sentences(*parts, _call(facts))


def _fragmentation(facts: Facts) -> str:
    parts = []
    if found := _known(facts, "idle_split_bytes"):
        parts.append(_text(_PIECES, numbers.size(found[0])))
    if found := _known(facts, "slope_bytes_per_step"):
        parts.append(_text(_PIECES_GROW, numbers.small_size(found[0])))
    return numbers.sentences(*(parts or [_text(_FRAGMENTED)]), _text(_SAME_LIVE))


def _neighbour(facts: Facts) -> str:
    source = _OWNER_UNKNOWN if "owner_unknown" in facts else _NEIGHBOUR
    return _rising(facts, source, _NEIGHBOUR_ROSE)


def _outside(facts: Facts) -> str:
    return _rising(facts, _OUTSIDE, _OUTSIDE_ROSE)


def _rising(facts: Facts, plain: str, rose: str) -> str:
    """Something beside the allocator takes memory: by how much, how fast, and what is left for the run."""
    parts = [_text(plain)]
    if found := _known(facts, "risen_bytes"):
        parts = [_text(rose, numbers.size(found[0]))]
    if found := _known(facts, "slope_bytes_per_s"):
        parts.append(_text(_EVERY_MINUTE, numbers.small_size(60.0 * found[0])))
    if found := _known(facts, "need_bytes", "room_bytes"):
        parts.append(_text(_RUN_NEEDS, *map(numbers.size, found)))
    return numbers.sentences(*parts)


def _validation(facts: Facts) -> str:
    if found := _known(facts, "jump_bytes", "validations_to_go"):
        return _text(_VALIDATIONS_LEAVE, numbers.small_size(found[0]), numbers.integer(found[1]))
    if found := _known(facts, "slope_bytes_per_batch", "batches_done", "batches_left"):
        return _text(_BATCHES_LEAVE, numbers.small_size(found[0]), *map(numbers.integer, found[1:]))
    return numbers.sentences(_text(_VALIDATION), _call(facts))


def _save(facts: Facts) -> str:
    if found := _known(facts, "jump_bytes", "saves_to_go"):
        return _text(_SAVES_LEAVE, numbers.small_size(found[0]), numbers.integer(found[1]))
    if found := _known(facts, "checkpoint_bytes", "host_available_bytes"):
        return _text(_SAVE_IN_RAM, *map(numbers.size, found))
    return numbers.sentences(_text(_SAVE), _call(facts))


def _resume(facts: Facts) -> str:
    found = _known(facts, "excess_bytes")
    left = _text(_RESUME) if found is None else _text(_RESUME_KEPT, numbers.size(found[0]))
    return numbers.sentences(left, _call(facts, source=_RUN_NEEDS))


def _call(facts: Facts, *, source: str = "") -> str:
    """What a single thing to come needs with what is live already, and what there is for all of it."""
    found = _known(facts, "demand_bytes", "live_bytes", "room_bytes")
    return "" if found is None else _text(source or _NEEDS, numbers.size(found[0] + found[1]), numbers.size(found[2]))


def _host(facts: Facts) -> str:
    if found := _known(facts, "checkpoint_bytes", "host_available_bytes"):
        return _text(_SAVE_IN_RAM, *map(numbers.size, found))
    parts = [_text(_HOST)]
    if found := _known(facts, "headroom_bytes", "host_total_bytes"):
        source = _COMMIT_LEFT if facts.get("commit") else _HOST_LEFT
        parts = [_text(source, *map(numbers.size, found))]
    if found := _known(facts, "slope_bytes_per_s"):
        parts.append(_text(_EVERY_MINUTE, numbers.small_size(60.0 * found[0])))
    if (found := _known(facts, "children", "children_rss_bytes")) and found[0] >= 1:
        parts.append(_text(_WORKERS, numbers.integer(found[0]), numbers.size(found[1])))
    return numbers.sentences(*parts)


def _spill(facts: Facts) -> str:
    if found := _known(facts, "times_slower"):
        return _text(_SPILL_SLOW, numbers.decimal(found[0], 1))
    return _text(_SPILL)


_FIRST_STEP_ROOM: Final = QT_TRANSLATE_NOOP(
    "Outlook", "The optimizer makes its state in this step: it needs {0}, and {1} are free."
)
_FIRST_STEP_PEAK: Final = QT_TRANSLATE_NOOP(
    "Outlook", "The optimizer makes its state in this step; the estimate puts the peak at {0}."
)
_FIRST_STEP: Final = QT_TRANSLATE_NOOP("Outlook", "The optimizer makes its state in this step.")
_LEAK_USUAL: Final = QT_TRANSLATE_NOOP("Outlook", "Typical cause: a loss kept with its graph.")
_LEAK_UNKNOWN: Final = QT_TRANSLATE_NOOP("Outlook", "Memory that is never freed.")
_LEAK_SAME_SHAPE: Final = QT_TRANSLATE_NOOP(
    "Outlook", "Memory that is never freed: +{0} a step for {1} steps, batch shape unchanged."
)
_LEAK: Final = QT_TRANSLATE_NOOP("Outlook", "Memory that is never freed: +{0} a step for {1} steps.")
_LEAK_STAIRS: Final = QT_TRANSLATE_NOOP("Outlook", "Memory that is never freed: +{0} every {1} steps.")
_SHAPES: Final = {
    "batch_samples": QT_TRANSLATE_NOOP("Outlook", "A batch of {0} samples is to come."),
    "batch_pixels": QT_TRANSLATE_NOOP("Outlook", "A batch of {0} pixels is to come."),
    "batch_tokens": QT_TRANSLATE_NOOP("Outlook", "A batch of {0} tokens is to come."),
}
_SHAPE: Final = QT_TRANSLATE_NOOP("Outlook", "A batch is to come that is larger than those so far.")
_SHAPES_RISE: Final = QT_TRANSLATE_NOOP(
    "Outlook", "Batches become larger: every step needs {0} more than the one before, for {1} steps."
)
_SHAPES_VARY: Final = QT_TRANSLATE_NOOP(
    "Outlook", "Batches vary by chance: the largest so far needed {0}, and there is room for {1}."
)
_NEEDS: Final = QT_TRANSLATE_NOOP("Outlook", "It needs {0}, and there is room for {1}.")
_PIECES: Final = QT_TRANSLATE_NOOP("Outlook", "{0} are free but in pieces that no request fits into.")
_PIECES_GROW: Final = QT_TRANSLATE_NOOP("Outlook", "They grow by {0} a step.")
_FRAGMENTED: Final = QT_TRANSLATE_NOOP("Outlook", "Free memory lies in pieces that no request fits into.")
_SAME_LIVE: Final = QT_TRANSLATE_NOOP("Outlook", "What the training itself holds stays level.")
_NEIGHBOUR: Final = QT_TRANSLATE_NOOP("Outlook", "Another process takes memory of this card.")
_NEIGHBOUR_ROSE: Final = QT_TRANSLATE_NOOP("Outlook", "Other processes have taken {0} more of this card.")
_OWNER_UNKNOWN: Final = QT_TRANSLATE_NOOP(
    "Outlook", "Something takes memory of this card; the driver does not say who."
)
_EVERY_MINUTE: Final = QT_TRANSLATE_NOOP("Outlook", "It grows by {0} every minute.")
_RUN_NEEDS: Final = QT_TRANSLATE_NOOP("Outlook", "This run needs {0}, and there is room for {1}.")
_VALIDATION: Final = QT_TRANSLATE_NOOP("Outlook", "What validation holds comes on top of the training.")
_VALIDATIONS_LEAVE: Final = QT_TRANSLATE_NOOP("Outlook", "Every validation leaves {0} behind; {1} more will fit.")
_BATCHES_LEAVE: Final = QT_TRANSLATE_NOOP(
    "Outlook", "Every batch of this validation leaves {0} behind: {1} are done, {2} are to come."
)
_SAVE_IN_RAM: Final = QT_TRANSLATE_NOOP(
    "Outlook", "A checkpoint is put together in main memory: it needs {0}, and {1} are free."
)
_SAVE: Final = QT_TRANSLATE_NOOP("Outlook", "Saving makes a copy of the state on the card.")
_SAVES_LEAVE: Final = QT_TRANSLATE_NOOP("Outlook", "Every saved checkpoint leaves {0} behind; {1} more will fit.")
_RESUME: Final = QT_TRANSLATE_NOOP("Outlook", "The loaded checkpoint is still on the card.")
_RESUME_KEPT: Final = QT_TRANSLATE_NOOP("Outlook", "The loaded checkpoint has left {0} on the card.")
_OUTSIDE: Final = QT_TRANSLATE_NOOP("Outlook", "Context, libraries or communication take more of the card.")
_OUTSIDE_ROSE: Final = QT_TRANSLATE_NOOP("Outlook", "Context, libraries or communication have taken {0} more.")
_HOST: Final = QT_TRANSLATE_NOOP("Outlook", "Processes of this run take more and more main memory.")
_HOST_LEFT: Final = QT_TRANSLATE_NOOP("Outlook", "{0} of {1} of main memory are left.")
_COMMIT_LEFT: Final = QT_TRANSLATE_NOOP("Outlook", "{0} of {1} are left of what the system may promise (commit limit).")
_WORKERS: Final = QT_TRANSLATE_NOOP("Outlook", "{0} loader workers hold {1}.")
_SPILL: Final = QT_TRANSLATE_NOOP("Outlook", "The driver moves memory of the card to main memory and back.")
_SPILL_SLOW: Final = QT_TRANSLATE_NOOP(
    "Outlook", "The driver moves memory of the card to main memory and back: a step takes {0} times as long."
)
_LINES: Final[Mapping[Cause, Callable[[Facts], str]]] = {
    Cause.FIRST_OPTIMIZER_STEP: _first_step,
    Cause.BATCH_SHAPE: _batch_shape,
    Cause.LEAK: _leak,
    Cause.FRAGMENTATION: _fragmentation,
    Cause.NEIGHBOUR: _neighbour,
    Cause.VALIDATION: _validation,
    Cause.CHECKPOINT_SAVE: _save,
    Cause.RESUME: _resume,
    Cause.OUTSIDE_ALLOCATOR: _outside,
    Cause.HOST_MEMORY: _host,
    Cause.SPILL: _spill,
}
