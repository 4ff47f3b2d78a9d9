"""What the numbers of NVIDIA's pushed errors (Xid) mean and what to do, in our words.

Source: NVIDIA, "Xid Errors" and its Xid catalogue (docs.nvidia.com/deploy/xid-errors). A number is a hint and no proof:
most have several causes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers

_NAMES: Final = {
    8: QT_TRANSLATE_NOOP("Xid", "the GPU stopped processing"),
    13: QT_TRANSLATE_NOOP("Xid", "a kernel failed"),
    31: QT_TRANSLATE_NOOP("Xid", "illegal memory access"),
    32: QT_TRANSLATE_NOOP("Xid", "bad command stream"),
    43: QT_TRANSLATE_NOOP("Xid", "a program was stopped"),
    45: QT_TRANSLATE_NOOP("Xid", "work was cleaned up"),
    48: QT_TRANSLATE_NOOP("Xid", "memory error, not correctable"),
    61: QT_TRANSLATE_NOOP("Xid", "internal controller halted"),
    62: QT_TRANSLATE_NOOP("Xid", "internal controller halted"),
    63: QT_TRANSLATE_NOOP("Xid", "bad memory was put aside"),
    64: QT_TRANSLATE_NOOP("Xid", "bad memory could not be put aside"),
    74: QT_TRANSLATE_NOOP("Xid", "NVLink error"),
    79: QT_TRANSLATE_NOOP("Xid", "the GPU has fallen off the bus"),
    92: QT_TRANSLATE_NOOP("Xid", "many corrected memory errors"),
    94: QT_TRANSLATE_NOOP("Xid", "memory error, contained"),
    95: QT_TRANSLATE_NOOP("Xid", "memory error, not contained"),
    119: QT_TRANSLATE_NOOP("Xid", "the GPU's firmware does not answer"),
    120: QT_TRANSLATE_NOOP("Xid", "the GPU's firmware failed"),
}
_RESTART_RUN: Final = QT_TRANSLATE_NOOP("Xid", "Start the run again; other programs are not affected.")
_RESET: Final = QT_TRANSLATE_NOOP(
    "Xid", "Save what can be saved, then reset the GPU (nvidia-smi --gpu-reset) or restart the computer."
)
_MEANINGS: Final = {
    8: (QT_TRANSLATE_NOOP("Xid", "A piece of work did not end in time, and the driver gave it up."), _RESTART_RUN),
    13: (
        QT_TRANSLATE_NOOP("Xid", "A kernel did something illegal, such as an index out of range. Seldom the hardware."),
        QT_TRANSLATE_NOOP("Xid", "Look for the traceback of the run; CUDA_LAUNCH_BLOCKING=1 names the operation."),
    ),
    31: (
        QT_TRANSLATE_NOOP("Xid", "A program used GPU memory that is not its own. Mostly a mistake in a kernel."),
        QT_TRANSLATE_NOOP("Xid", "Look for the traceback of the run; CUDA_LAUNCH_BLOCKING=1 names the operation."),
    ),
    32: (
        QT_TRANSLATE_NOOP("Xid", "The commands that reached the GPU were damaged: driver, PCIe or RAM."),
        QT_TRANSLATE_NOOP("Xid", "If it comes again, check the PCIe seat of the card and the computer's RAM."),
    ),
    43: (
        QT_TRANSLATE_NOOP("Xid", "A program made an error and its work on the GPU was stopped. The GPU is well."),
        _RESTART_RUN,
    ),
    45: (
        QT_TRANSLATE_NOOP(
            "Xid", "Work was thrown away because its program ended or after an error before. A consequence, no cause."
        ),
        QT_TRANSLATE_NOOP("Xid", "Look for the error before it, if the end was not wanted."),
    ),
    48: (QT_TRANSLATE_NOOP("Xid", "Two bits of one word were wrong; results may be, too."), _RESET),
    61: (QT_TRANSLATE_NOOP("Xid", "A small processor inside the GPU stopped with a warning."), _RESET),
    62: (
        QT_TRANSLATE_NOOP("Xid", "A small processor inside the GPU halted. Heat or overclocking can be the cause."),
        _RESET,
    ),
    63: (
        QT_TRANSLATE_NOOP("Xid", "The GPU replaces a bad row of its memory by a spare one. It goes on."),
        QT_TRANSLATE_NOOP("Xid", "It takes effect at the next reset of the GPU; reset it when the run has ended."),
    ),
    64: (
        QT_TRANSLATE_NOOP("Xid", "A bad row of memory could not be replaced: perhaps no spare one is left."),
        QT_TRANSLATE_NOOP("Xid", "Reset the GPU. If it comes again, the card should be replaced."),
    ),
    74: (
        QT_TRANSLATE_NOOP("Xid", "The connection to another GPU failed."),
        QT_TRANSLATE_NOOP("Xid", "Reset the connected GPUs. If it comes again, check the bridge or the board."),
    ),
    79: (
        QT_TRANSLATE_NOOP("Xid", "The computer can no longer reach the card: power, heat, slot, or the card itself."),
        QT_TRANSLATE_NOOP("Xid", "Restart the computer. If it comes again, check power cables, cooling and the slot."),
    ),
    92: (
        QT_TRANSLATE_NOOP("Xid", "The memory corrects single bits unusually often. Results are right."),
        QT_TRANSLATE_NOOP("Xid", "Watch the ECC counters; let the card cool."),
    ),
    94: (
        QT_TRANSLATE_NOOP("Xid", "A memory error that hit one program only, which was stopped."),
        QT_TRANSLATE_NOOP("Xid", "Start that program again, and reset the GPU when all have ended."),
    ),
    95: (
        QT_TRANSLATE_NOOP("Xid", "A memory error that may have hit every program on the GPU."),
        QT_TRANSLATE_NOOP("Xid", "End all programs on the GPU and reset it. Do not trust what they computed last."),
    ),
    119: (
        QT_TRANSLATE_NOOP("Xid", "The processor on the card that runs the driver's firmware (GSP) does not answer."),
        _RESET,
    ),
    120: (QT_TRANSLATE_NOOP("Xid", "The firmware on the card's own processor (GSP) had an error."), _RESET),
}
KNOWN: Final = frozenset(_NAMES)


def short(params: Mapping[str, object]) -> str:
    """``Xid 79: the GPU has fallen off the bus``, with how often where it is not once."""
    xid, count = params.get("xid"), params.get("count")
    number = str(xid) if isinstance(xid, int) else "?"
    name = _NAMES.get(xid) if isinstance(xid, int) else None
    words = QCoreApplication.translate("Xid", "Xid {0}").format(number)
    if name is not None:
        words = QCoreApplication.translate("Xid", "Xid {0}: {1}").format(
            number, QCoreApplication.translate("Xid", name)
        )
    if isinstance(count, int) and count > 1:
        return QCoreApplication.translate("Xid", "{0} ({1} times)").format(words, numbers.integer(count))
    return words


def explained(params: Mapping[str, object]) -> str:
    """What it means and what to do, a line each; of an unknown number, where to look."""
    xid = params.get("xid")
    known = _MEANINGS.get(xid) if isinstance(xid, int) else None
    if known is None:
        return QCoreApplication.translate("Xid", "The driver reports an error; NVIDIA's Xid catalogue has its number.")
    return "\n".join(QCoreApplication.translate("Xid", sentence) for sentence in known)
