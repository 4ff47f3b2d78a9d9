"""The words of the memory page: phases, blocks, modules, and how an estimate was made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Estimate, Verdict
from desktop_app.core.steps import Phase
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import fields, numbers

_PHASES: Final = {
    Phase.BUILD: QT_TRANSLATE_NOOP("PhaseNames", "Build"),
    Phase.FORWARD: QT_TRANSLATE_NOOP("PhaseNames", "Forward"),
    Phase.BACKWARD: QT_TRANSLATE_NOOP("PhaseNames", "Backward"),
    Phase.OPTIMIZER: QT_TRANSLATE_NOOP("PhaseNames", "Optimizer"),
    Phase.ZERO: QT_TRANSLATE_NOOP("PhaseNames", "Zero grad"),
    Phase.VALIDATION: QT_TRANSLATE_NOOP("PhaseNames", "Validation"),
    Phase.SAVE: QT_TRANSLATE_NOOP("PhaseNames", "Save"),
}
_RUNGS: Final = {
    "native": QT_TRANSLATE_NOOP("Memory", "traced as CUDA, with a card in sight"),
    "shim": QT_TRANSLATE_NOOP("Memory", "traced as CUDA"),
    "meta": QT_TRANSLATE_NOOP("Memory", "traced on meta tensors"),
    "trace": QT_TRANSLATE_NOOP("Memory", "traced on meta tensors"),
    "formula": QT_TRANSLATE_NOOP("Memory", "by formula: wide"),
    "none": QT_TRANSLATE_NOOP("Memory", "not traced"),
}
_KERNELS: Final = {
    "attention": QT_TRANSLATE_NOOP("Memory", "attention"),
    "optimizer": QT_TRANSLATE_NOOP("Memory", "optimizer"),
    "convolution": QT_TRANSLATE_NOOP("Memory", "convolution"),
}
_WARNINGS: Final = {
    "untraceable": QT_TRANSLATE_NOOP("Memory", "{0} cannot be traced without the card."),
    "returns_cache": QT_TRANSLATE_NOOP(
        "Memory", "It runs, but torch has to give its cache back to the driver again and again."
    ),
    "states_only": QT_TRANSLATE_NOOP("Memory", "Activations are not counted: the true peak is higher."),
    "shim_crashed": QT_TRANSLATE_NOOP("Memory", "The stand-in for CUDA crashed; traced on meta tensors instead."),
}
_SAID_WITH_THE_BATCH: Final = frozenset(
    {"pending", "batch_search_ended", "batch_search_limited", "batch_limited_by_data"}
)


def title() -> str:
    return QCoreApplication.translate("Memory", "Memory of one step")


def phase_name(phase: Phase) -> str:
    """One or two words: ``Backward``."""
    return QCoreApplication.translate("PhaseNames", _PHASES[phase])


# -- the answer -------------------------------------------------------------------------------------------------------


def kinds() -> Mapping[str, str]:
    """What is given as a distribution, by its field."""
    return {
        "device": QCoreApplication.translate("Memory", "Device"),
        "reserved": QCoreApplication.translate("Memory", "Reserved"),
        "live": QCoreApplication.translate("Memory", "Live"),
    }


def kind_help(kind: str) -> str:
    texts = {
        "device": QCoreApplication.translate(
            "Memory", "What this process takes of the card: torch's memory and the CUDA context."
        ),
        "reserved": QCoreApplication.translate("Memory", "What torch's allocator holds of the card, in use or idle."),
        "live": QCoreApplication.translate("Memory", "What tensors hold."),
    }
    return texts[kind]


def peak_heading() -> str:
    return QCoreApplication.translate("Memory", "Peak")


def quantile_help(which: str) -> str:
    texts = {
        "P50": QCoreApplication.translate("Memory", "As likely to be exceeded as not."),
        "P90": QCoreApplication.translate("Memory", "Nine of ten stay below."),
        "P95": QCoreApplication.translate("Memory", "Nineteen of twenty stay below."),
    }
    return texts[which]


def phases_heading() -> str:
    return QCoreApplication.translate("Memory", "Each phase on its own")


def phases_help() -> str:
    """Why the highest of them need not be the peak of the device."""
    return QCoreApplication.translate(
        "Memory",
        "The device's peak in each phase as if the cache were emptied before it. "
        "The peak of the step also holds what earlier phases left in the cache.",
    )


def how_heading() -> str:
    return QCoreApplication.translate("Memory", "How it was found")


def fits_probability(estimate: Estimate) -> str:
    """``Fits with a probability of 97 %.``; never 100 %. Empty where the verdict says it already."""
    if estimate.verdict in (Verdict.CANNOT_SAY, Verdict.TIGHT):
        return ""
    share = estimate.fits_probability
    if share > 0.99:
        return QCoreApplication.translate("Memory", "Fits with a probability of more than {0}.").format(
            numbers.percent(99)
        )
    if share < 0.01:
        return QCoreApplication.translate("Memory", "Fits with a probability of less than {0}.").format(
            numbers.percent(1)
        )
    return QCoreApplication.translate("Memory", "Fits with a probability of {0}.").format(
        numbers.percent(100.0 * share)
    )


def how(estimate: Estimate) -> str:
    """``Traced as CUDA, ± 1 %, in 0.8 s.``"""
    rung = QCoreApplication.translate("Memory", _RUNGS[estimate.rung]) if estimate.rung in _RUNGS else estimate.rung
    parts = [rung]
    if estimate.rung_width > 0:
        parts.append(
            QCoreApplication.translate("Memory", "uncertain by {0}").format(numbers.percent(100 * estimate.rung_width))
        )
    parts.append(QCoreApplication.translate("Memory", "in {0}").format(numbers.with_unit(estimate.seconds, "s", 1)))
    sentence = QCoreApplication.translate("Memory", ", ").join(parts)
    return QCoreApplication.translate("Memory", "{0}.").format(sentence[:1].upper() + sentence[1:])


def kernels(estimate: Estimate) -> str:
    """``Assumed: attention flash, optimizer foreach.``; empty where nothing had to be assumed."""
    if not estimate.kernels_assumed:
        return ""
    named = QCoreApplication.translate("Memory", ", ").join(map(_kernel, estimate.kernels_assumed))
    return QCoreApplication.translate("Memory", "Kernels assumed: {0}.").format(named)


def _kernel(code: str) -> str:
    what, _, which = code.partition(":")
    name = QCoreApplication.translate("Memory", _KERNELS[what]) if what in _KERNELS else what
    return f"{name} {which.strip()}".strip()


def guesses(estimate: Estimate) -> str:
    """Values of tensors that the trace had to make up."""
    if not estimate.guesses:
        return ""
    named = QCoreApplication.translate("Memory", ", ").join(
        f"{op} × {numbers.integer(count)}"
        for op, count in sorted(estimate.guesses.items(), key=lambda found: -found[1])
    )
    return QCoreApplication.translate("Memory", "Values made up: {0}.").format(named)


def warnings(estimate: Estimate) -> tuple[str, ...]:
    """Each as a sentence; what has no words of its own is shown as it came."""
    return tuple(_warning(code) for code in estimate.warnings if code not in _SAID_WITH_THE_BATCH)


def _warning(code: str) -> str:
    kind, _, detail = code.partition(":")
    if kind not in _WARNINGS:
        return QCoreApplication.translate("Memory", "{0}.").format(code[:1].upper() + code[1:])
    return QCoreApplication.translate("Memory", _WARNINGS[kind]).format(detail)


# -- states without a picture -----------------------------------------------------------------------------------------


def nothing_yet() -> str:
    return QCoreApplication.translate("Memory", "No estimate yet. It follows as soon as the form changes.")


def working() -> str:
    return QCoreApplication.translate("Memory", "Two training steps are traced without the card…")


def no_timeline() -> str:
    return QCoreApplication.translate("Memory", "This estimate comes without a step to draw.")


def no_modules() -> str:
    return QCoreApplication.translate("Memory", "This estimate does not tell modules apart.")


def recording() -> str:
    return QCoreApplication.translate("Memory", "The next whole step of the run is being written down…")


def reading(name: str) -> str:
    return QCoreApplication.translate("Memory", "{0} is being read…").format(name)


def not_recorded() -> str:
    return QCoreApplication.translate("Memory", "No step of this run has been written down.")


# -- blocks -----------------------------------------------------------------------------------------------------------


def block_owner(owner: str) -> str:
    return owner or QCoreApplication.translate("Memory", "the model itself")


def block_kind(category: str) -> str:
    return fields.category(category)


def block_rows() -> Mapping[str, str]:
    """Names of what is said of a block."""
    return {
        "kind": QCoreApplication.translate("Memory", "Kind"),
        "size": QCoreApplication.translate("Memory", "Size"),
        "op": QCoreApplication.translate("Memory", "Made by"),
        "life": QCoreApplication.translate("Memory", "Lives"),
        "live": QCoreApplication.translate("Memory", "Live here"),
        "reserved": QCoreApplication.translate("Memory", "Reserved"),
        "owner": QCoreApplication.translate("Memory", "Owner"),
    }


def event_place(event: int, count: int) -> str:
    return QCoreApplication.translate("Memory", "event {0} of {1}").format(
        numbers.integer(event), numbers.integer(count)
    )


def lifetime(born: int | None, died: int | None, *, begin: Phase | None, end: Phase | None) -> str:
    """From which phase to which, and over how many events. ``None`` is beyond the timeline, or without a phase."""
    if born is None and died is None:
        return QCoreApplication.translate("Memory", "throughout")
    if died is None:
        return QCoreApplication.translate("Memory", "from {0} on").format(_when(begin, born))
    if born is None:
        return QCoreApplication.translate("Memory", "until {0}").format(_when(end, died))
    count = numbers.integer(died - born)
    if begin is None or end is None:
        return QCoreApplication.translate("Memory", "{0} events").format(count)
    if begin is end:
        return QCoreApplication.translate("Memory", "{0}, {1} events").format(_when(begin, born), count)
    return QCoreApplication.translate("Memory", "{0} to {1}, {2} events").format(
        _when(begin, born), _when(end, died), count
    )


def _when(phase: Phase | None, event: int | None) -> str:
    if phase is not None:
        return phase_name(phase).lower()
    return QCoreApplication.translate("Memory", "event {0}").format(numbers.integer(event or 0))


def peak_mark(size_bytes: int) -> str:
    return QCoreApplication.translate("Memory", "peak {0}").format(numbers.size(size_bytes))


def reserved_mark() -> str:
    return QCoreApplication.translate("Memory", "reserved")


def room_mark() -> str:
    return QCoreApplication.translate("Memory", "room")


def room_help(size_bytes: int) -> str:
    """What the line across the picture is."""
    return QCoreApplication.translate(
        "Memory", "Room for this process: {0}. Capacity less other processes and the CUDA context."
    ).format(numbers.size(size_bytes))
