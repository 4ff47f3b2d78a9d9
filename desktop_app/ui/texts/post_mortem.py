"""Words of the post-mortem of an out-of-memory error."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import MemoryStats, OomReport
from desktop_app.ui.texts import fields, numbers, outlooks, verdicts


def what_was_full(report: OomReport) -> str:
    """What was asked for and what the card has."""
    if report.capacity_bytes is None:
        return verdicts.out_of_memory_help(report)
    capacity = numbers.size(report.capacity_bytes)
    if report.requested_bytes is None:
        return QCoreApplication.translate("PostMortem", "The {0} of the card were full.").format(capacity)
    return QCoreApplication.translate("PostMortem", "The {0} of the card were full when {1} more were needed.").format(
        capacity, numbers.size(report.requested_bytes)
    )


def holders(memory: MemoryStats) -> list[tuple[str, int]]:
    """Who held the memory at the peak, largest first; what lay idle and outside the allocator too."""
    sizes = {category.value: size for category, size in memory.peak_categories.items()}
    sizes["context"] = memory.outside_bytes
    sizes["idle"] = max(0, memory.reserved_peak_bytes - memory.live_peak_bytes)
    named = [(fields.category(code), size) for code, size in sizes.items() if size > 0]
    return sorted(named, key=lambda entry: -entry[1])


def owners(report: OomReport) -> list[tuple[str, int]]:
    return [(fields.category(name), size) for name, size in report.largest_owners]


def advice(report: OomReport) -> str:
    """What to change, by cause; a general order of things to try where the cause is not known."""
    if report.cause in {cause.value for cause in Cause}:
        return outlooks.advice(Cause(report.cause))
    return QCoreApplication.translate(
        "PostMortem",
        "The run needs more than the card has. A smaller batch with accumulation keeps the training as it is; "
        "bfloat16 halves the activations.",
    )


def as_text(report: OomReport) -> str:
    """The whole report as plain text."""
    lines = [verdicts.out_of_memory(report), what_was_full(report), ""]
    if report.memory is not None:
        lines += [f"{name}: {numbers.size(size)}" for name, size in holders(report.memory)]
    if report.largest_owners:
        lines += ["", *(f"{name}: {numbers.size(size)}" for name, size in owners(report))]
    lines += ["", advice(report), "", report.message]
    return "\n".join(lines).replace(numbers.NBSP, " ")
