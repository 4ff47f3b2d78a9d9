"""Words of the post-mortem of an out-of-memory error."""

from __future__ import annotations

import re
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import MemoryStats, OomReport
from desktop_app.core.units import GIB, KIB, MIB
from desktop_app.ui.texts import fields, numbers, verdicts
from desktop_app.ui.texts.advice import for_cause

# "… of which 1.12 GiB is free": torch's own count, other processes included (CUDACachingAllocator.cpp, format_size).
_FREE: Final = re.compile(r"of which (\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB) is free")
# "this process has 290.00 MiB memory in use": CUDA context and all (same place).
_OWN: Final = re.compile(r"this process has (\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB) memory in use")
_ROUNDING: Final = 16 * MIB  # torch writes sizes to 0.01 GiB: three of them are up to 15 MiB off
_UNITS: Final = {"bytes": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}
_LONG_WORD: Final = 20  # characters; a longer one may be broken
_ZERO_WIDTH_SPACE: Final = "\N{ZERO WIDTH SPACE}"


def outcome(report: OomReport) -> str:
    """What became of the run."""
    if report.rescued_batch_size is None:
        return QCoreApplication.translate("PostMortem", "The run has ended here.")
    size = numbers.integer(report.rescued_batch_size)
    if report.rescued_batch_size == report.batch_size:
        return QCoreApplication.translate("PostMortem", "The run went on; it needs less memory at this place now.")
    if report.batch_size is None:
        return QCoreApplication.translate("PostMortem", "The run went on with a micro-batch of {0}.").format(size)
    return QCoreApplication.translate(
        "PostMortem", "The run went on with a micro-batch of {0} in place of {1}; the batch is as large as before."
    ).format(size, numbers.integer(report.batch_size))


def choice(report: OomReport) -> str:
    """``Step 1,840: went on with 16`` in the list of several."""
    step = numbers.integer(report.step)
    if report.rescued_batch_size is None:
        return QCoreApplication.translate("PostMortem", "Step {0}: the end").format(step)
    return QCoreApplication.translate("PostMortem", "Step {0}: went on with {1}").format(
        step, numbers.integer(report.rescued_batch_size)
    )


def what_was_full(report: OomReport) -> str:
    """What was asked for, what was free, and what the card has."""
    if report.capacity_bytes is None:
        return _asked(report)
    capacity = numbers.size(report.capacity_bytes)
    if report.requested_bytes is None:
        return QCoreApplication.translate("PostMortem", "The {0} of the card were full.").format(capacity)
    free = _free_bytes(report)
    if free is None or free >= report.requested_bytes:
        # Something else than the size of the card was in the way: a memory fraction, say.
        return _asked(report)
    return QCoreApplication.translate("PostMortem", "{0} of {1} were free when {2} more were needed.").format(
        numbers.size(free), capacity, numbers.size(report.requested_bytes)
    )


def _asked(report: OomReport) -> str:
    return verdicts.out_of_memory_help(report) if report.rescued_batch_size is None else verdicts.not_there(report)


def _free_bytes(report: OomReport) -> int | None:
    """What torch said was free, else the capacity less what this process held (others are not known then)."""
    said = _said(_FREE, report.message)
    if said is not None:
        return said
    if report.memory is None or report.capacity_bytes is None:
        return None
    return max(0, report.capacity_bytes - report.memory.reserved_bytes - report.memory.outside_bytes)


def _others_bytes(report: OomReport) -> int:
    """What other processes held by torch's own count; 0 where it does not tell, or no more than it rounds."""
    free, own = _said(_FREE, report.message), _said(_OWN, report.message)
    if free is None or own is None or report.capacity_bytes is None:
        return 0
    others = report.capacity_bytes - free - own
    return others if others > _ROUNDING else 0


def _said(pattern: re.Pattern[str], message: str) -> int | None:
    found = pattern.search(message)
    return None if found is None else round(float(found[1]) * _UNITS[found[2]])


def breakable(message: str) -> str:
    """``message`` with invisible places to break inside its long words (URLs, settings), for narrow columns."""
    return " ".join(_broken(word) if len(word) > _LONG_WORD else word for word in message.split(" "))


def _broken(word: str) -> str:
    pieces = re.findall(rf"[^_=:/.\-]{{1,{_LONG_WORD}}}[_=:/.\-]*|[_=:/.\-]+", word)
    return _ZERO_WIDTH_SPACE.join(pieces)


def holders(report: OomReport, memory: MemoryStats) -> list[tuple[str, int]]:
    """Who held the memory at the peak, largest first; what lay idle, outside the allocator and with others too."""
    sizes = {category.value: size for category, size in memory.peak_categories.items()}
    sizes["context"] = memory.outside_bytes
    sizes["others"] = _others_bytes(report)
    sizes["idle"] = max(0, memory.reserved_peak_bytes - memory.live_peak_bytes)
    named = [(fields.category(code), size) for code, size in sizes.items() if size > 0]
    return sorted(named, key=lambda entry: -entry[1])


def owners(report: OomReport) -> list[tuple[str, int]]:
    return [(fields.category(name), size) for name, size in report.largest_owners]


def advice(report: OomReport) -> str:
    """What to change, by cause; a general order of things to try where the cause is not known."""
    if report.cause in {cause.value for cause in Cause}:
        return for_cause(Cause(report.cause))
    return QCoreApplication.translate(
        "PostMortem",
        "The run needs more than the card has. A smaller batch with accumulation keeps the training as it is; "
        "bfloat16 halves the activations.",
    )


def as_text(report: OomReport) -> str:
    """The whole report as plain text."""
    lines = [verdicts.out_of_memory(report), what_was_full(report), outcome(report), ""]
    if report.memory is not None:
        lines += [f"{name}: {numbers.size(size)}" for name, size in holders(report, report.memory)]
    if report.largest_owners:
        lines += ["", *(f"{name}: {numbers.size(size)}" for name, size in owners(report))]
    lines += ["", advice(report), "", report.message]
    return "\n".join(lines).replace(numbers.NBSP, " ")
