"""The words on the tank. Every function follows the language."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from desktop_app.services.facade import EstimateState
from desktop_app.ui.tank_model import Level, Said, Segment, TankSource, TankState
from desktop_app.ui.texts import errors, numbers, reasons


def title(state: TankState) -> str:
    if state.source is TankSource.ESTIMATE:
        return QCoreApplication.translate("Tank", "VRAM, estimated")
    if state.ended:
        return QCoreApplication.translate("Tank", "VRAM at the last step")
    if state.shared_memory:
        return QCoreApplication.translate("Tank", "VRAM, shared with the processor")
    return QCoreApplication.translate("Tank", "VRAM")


def segment(which: Segment) -> str:
    names = {
        Segment.OTHERS: QCoreApplication.translate("Tank", "Other processes"),
        Segment.CONTEXT: QCoreApplication.translate("Tank", "CUDA context"),
        Segment.PARAMETERS: QCoreApplication.translate("Tank", "Parameters"),
        Segment.GRADIENTS: QCoreApplication.translate("Tank", "Gradients"),
        Segment.OPTIMIZER: QCoreApplication.translate("Tank", "Optimizer state"),
        Segment.ACTIVATIONS: QCoreApplication.translate("Tank", "Activations"),
        Segment.WORKSPACE: QCoreApplication.translate("Tank", "Workspace"),
        Segment.IDLE: QCoreApplication.translate("Tank", "Cached, idle"),
    }
    return names[which]


def row_name(segments: tuple[Segment, ...]) -> str:
    """One layer, or several merged into one row where there is little room."""
    if len(segments) == 1:
        return segment(segments[0])
    if Segment.PARAMETERS in segments:
        return QCoreApplication.translate("Tank", "Model and optimizer")
    return QCoreApplication.translate("Tank", "Everything else")


def amount(size_bytes: int | None) -> str:
    return QCoreApplication.translate("Tank", "n/a") if size_bytes is None else numbers.size(size_bytes)


def brim() -> str:
    return QCoreApplication.translate("Tank", "brim")


def flood_mark() -> str:
    return QCoreApplication.translate("Tank", "flood mark")


def flood_range(state: TankState) -> str:
    """``6.2 – 6.5 GiB``."""
    return numbers.size_range(state.flood_low_bytes or 0, state.flood_high_bytes or 0)


def flood_labels(state: TankState) -> tuple[str, ...]:
    """The flood mark's words from the longest to the shortest: the name goes before the unit does."""
    return f"{flood_mark()}  {flood_range(state)}", flood_range(state)


def free_now(state: TankState) -> str:
    """After the end the tank stands as at the last step; by then the memory is free again."""
    if state.ended:
        return QCoreApplication.translate("Tank", "free then")
    return QCoreApplication.translate("Tank", "free now")


def heading(state: TankState) -> str:
    """The first line of the card under the tank."""
    if state.source is TankSource.RUN:
        return QCoreApplication.translate("Tank", "Before the first step we said")
    return short_heading()


def short_heading() -> str:
    return QCoreApplication.translate("Tank", "Estimated peak")


def said(what: Said) -> str:
    """``4.31 GiB`` or why there is no number."""
    if what.p50_bytes is not None:
        return numbers.size(what.p50_bytes)
    if what.state is EstimateState.WORKING:
        return QCoreApplication.translate("Tank", "Estimating…")
    return QCoreApplication.translate("Tank", "No estimate")


def said_range(what: Said) -> str:
    """``up to 4.60``: the P95 beside the middle."""
    if what.p95_bytes is None or what.p50_bytes is None or what.p95_bytes <= what.p50_bytes:
        return ""
    return QCoreApplication.translate("Tank", "up to {0}").format(numbers.size(what.p95_bytes))


def verdict_line(state: TankState) -> str:
    """What was measured against what was said, or what the estimate means for this card."""
    if state.measured_bytes is not None and state.error_share is not None:
        error = numbers.decimal(100.0 * state.error_share, 1)
        sign = "+" if state.error_share >= 0.0005 else ""
        return QCoreApplication.translate("Tank", "measured {0}, error {1} %").format(
            numbers.size(state.measured_bytes), sign + error
        )
    return _fit_line(state)


def _fit_line(state: TankState) -> str:
    what = state.said
    if what.state is EstimateState.FAILED and what.error:
        return errors.text(what.error_code, what.error)
    if what.state is EstimateState.WORKING and what.p50_bytes is not None:
        return QCoreApplication.translate("Tank", "Estimating…")
    if what.p50_bytes is None or state.capacity_bytes is None:
        return ""
    room = state.capacity_bytes - what.others_bytes
    if what.p50_bytes > room:
        short = numbers.size(what.p50_bytes - room)
        return QCoreApplication.translate("Tank", "{0} too much for this card").format(short)
    spare = room - (what.p95_bytes or what.p50_bytes)  # as the verdict counts it
    return QCoreApplication.translate("Tank", "{0} to spare").format(numbers.size(spare)) if spare >= 0 else ""


def largest_batch() -> str:
    return QCoreApplication.translate("Tank", "Largest batch that fits")


def largest_batch_value(what: Said) -> str:
    if what.p50_bytes is None:
        return numbers.DASH
    if what.searching:
        return "…"
    if what.largest_batch is None:
        return QCoreApplication.translate("Tank", "none")
    return numbers.integer(what.largest_batch)


def no_card(state: TankState) -> str:
    if state.no_card_reason is None:
        return QCoreApplication.translate("Tank", "No card")
    return reasons.short(state.no_card_reason)


def tooltip(level: Level, capacity_bytes: int | None) -> str:
    """``Activations: 1.35 GiB, 22 %`` or why it is not known."""
    name = segment(level.segment)
    if level.size_bytes is None:
        return f"{name}: {reasons.sentence(level.reason)}"
    if not capacity_bytes:
        return f"{name}: {numbers.size(level.size_bytes)}"
    share = numbers.percent(100.0 * level.size_bytes / capacity_bytes)
    return f"{name}: {numbers.size(level.size_bytes)}, {share}"


def summary(state: TankState) -> str:
    """The whole tank in words, for screen readers."""
    parts = [f"{segment(level.segment)} {amount(level.size_bytes)}" for level in state.levels]
    if state.capacity_bytes is not None:
        parts.append(f"{brim()} {numbers.size(state.capacity_bytes)}")
    if state.flood_low_bytes is not None:
        parts.append(f"{flood_mark()} {numbers.size_range(state.flood_low_bytes, state.flood_high_bytes or 0)}")
    parts.append(f"{free_now(state)} {amount(state.free_bytes)}")
    return ", ".join(parts)
