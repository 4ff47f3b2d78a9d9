"""How far a run is."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from desktop_app.core.steps import RunStatus
from desktop_app.ui.texts import numbers, verdicts


def epoch(status: RunStatus) -> str:
    """``Epoch 14 of 100``."""
    return QCoreApplication.translate("Progress", "Epoch {0} of {1}").format(
        numbers.integer(status.epoch), numbers.integer(status.epochs)
    )


def eta(status: RunStatus) -> str:
    """``ETA 1 h 12 min ± 4``; how long it took, when it has ended."""
    if status.ended_t_s is not None and status.started_t_s is not None:
        took = numbers.duration(status.ended_t_s - status.started_t_s)
        return QCoreApplication.translate("Progress", "took {0}").format(took)
    if status.eta_s is None:
        return QCoreApplication.translate("Progress", "ETA not known yet")
    half_s = 0.0
    if status.eta_low_s is not None and status.eta_high_s is not None:
        half_s = (status.eta_high_s - status.eta_low_s) / 2
    return QCoreApplication.translate("Progress", "ETA {0}").format(numbers.with_uncertainty(status.eta_s, half_s))


def batch(status: RunStatus) -> str:
    """``Micro-batch 16 × 4, 64 samples a step``; empty while a step is one micro-step and nothing was changed."""
    if status.accumulation <= 1 and not status.rescues:
        return ""
    text = QCoreApplication.translate("Progress", "Micro-batch {0}, {1} samples a step").format(
        verdicts.micro_batch(status.batch_size, status), numbers.integer(status.batch_size * status.accumulation)
    )
    if not status.rescues:
        return text
    step = numbers.integer(status.rescues[-1].step)
    return QCoreApplication.translate("Progress", "{0}, since step {1}").format(text, step)
