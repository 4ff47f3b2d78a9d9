"""The table behind an alert: every figure of its evidence that has a name, and the probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Forecast
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers

Row = tuple[str, str]

# In the order of the table. What has no name here is for the report: fits, spreads and tests of significance.
_NAMES: Final = {
    "slope_bytes_per_step": QT_TRANSLATE_NOOP("Figures", "Growth per step"),
    "slope_bytes_per_s": QT_TRANSLATE_NOOP("Figures", "Growth per minute"),
    "grown_bytes": QT_TRANSLATE_NOOP("Figures", "Grown by"),
    "grown_steps": QT_TRANSLATE_NOOP("Figures", "over steps"),
    "grown_s": QT_TRANSLATE_NOOP("Figures", "over"),
    "grown_elsewhere_bytes": QT_TRANSLATE_NOOP("Figures", "of which other programs"),
    "jump_bytes": QT_TRANSLATE_NOOP("Figures", "Growth at a time"),
    "jump_distance_steps": QT_TRANSLATE_NOOP("Figures", "every so many steps"),
    "risen_bytes": QT_TRANSLATE_NOOP("Figures", "Risen by"),
    "demand_bytes": QT_TRANSLATE_NOOP("Figures", "Needed"),
    "demand_highest_bytes": QT_TRANSLATE_NOOP("Figures", "Needed at most so far"),
    "demand_allowed_bytes": QT_TRANSLATE_NOOP("Figures", "May be needed at most"),
    "demand_slope_bytes_per_step": QT_TRANSLATE_NOOP("Figures", "More needed per step"),
    "rising_steps": QT_TRANSLATE_NOOP("Figures", "for steps"),
    "longest_batch_step": QT_TRANSLATE_NOOP("Figures", "Largest batch at step"),
    "saves_to_go": QT_TRANSLATE_NOOP("Figures", "Checkpoints that still fit"),
    "validations_to_go": QT_TRANSLATE_NOOP("Figures", "Validations that still fit"),
    "epochs_to_go": QT_TRANSLATE_NOOP("Figures", "Epochs that still fit"),
    "need_bytes": QT_TRANSLATE_NOOP("Figures", "Needed"),
    "room_bytes": QT_TRANSLATE_NOOP("Figures", "Free for it"),
    "headroom_bytes": QT_TRANSLATE_NOOP("Figures", "Left before it is full"),
    "excess_bytes": QT_TRANSLATE_NOOP("Figures", "More than expected"),
    "earlier_demand_bytes": QT_TRANSLATE_NOOP("Figures", "Needed the last time"),
    "training_demand_bytes": QT_TRANSLATE_NOOP("Figures", "Needed by a training step"),
    "growth_bytes": QT_TRANSLATE_NOOP("Figures", "Growth until then"),
    "checkpoint_bytes": QT_TRANSLATE_NOOP("Figures", "Size of the checkpoint"),
    "slope_bytes_per_batch": QT_TRANSLATE_NOOP("Figures", "Growth per batch"),
    "batches_done": QT_TRANSLATE_NOOP("Figures", "Batches done"),
    "batches_left": QT_TRANSLATE_NOOP("Figures", "Batches to come"),
    "steps_to_validation": QT_TRANSLATE_NOOP("Figures", "Steps to the validation"),
    "steps_to_save": QT_TRANSLATE_NOOP("Figures", "Steps to the checkpoint"),
    "estimated_peak_bytes": QT_TRANSLATE_NOOP("Figures", "Estimated peak"),
    "batch_samples": QT_TRANSLATE_NOOP("Figures", "Samples in the batch"),
    "batch_tokens": QT_TRANSLATE_NOOP("Figures", "Tokens in the batch"),
    "batch_pixels": QT_TRANSLATE_NOOP("Figures", "Pixels in the batch"),
    "times_slower": QT_TRANSLATE_NOOP("Figures", "Slower by a factor of"),
    "slow_steps": QT_TRANSLATE_NOOP("Figures", "Slow steps in a row"),
    "usual_step_s": QT_TRANSLATE_NOOP("Figures", "A usual step takes"),
    "trough_bytes": QT_TRANSLATE_NOOP("Figures", "Live after a step"),
    "live_bytes": QT_TRANSLATE_NOOP("Figures", "Live"),
    "live_peak_bytes": QT_TRANSLATE_NOOP("Figures", "Live at the peak"),
    "reserved_bytes": QT_TRANSLATE_NOOP("Figures", "Held by the allocator"),
    "idle_split_bytes": QT_TRANSLATE_NOOP("Figures", "Idle in pieces"),
    "outside_bytes": QT_TRANSLATE_NOOP("Figures", "Outside the allocator"),
    "others_bytes": QT_TRANSLATE_NOOP("Figures", "Other processes"),
    "pid": QT_TRANSLATE_NOOP("Figures", "Process"),
    "children": QT_TRANSLATE_NOOP("Figures", "Loader workers"),
    "children_rss_bytes": QT_TRANSLATE_NOOP("Figures", "Memory of loader workers"),
    "own_rss_bytes": QT_TRANSLATE_NOOP("Figures", "Memory of this program"),
    "host_available_bytes": QT_TRANSLATE_NOOP("Figures", "Main memory that is free"),
    "host_used_bytes": QT_TRANSLATE_NOOP("Figures", "Main memory in use"),
    "host_total_bytes": QT_TRANSLATE_NOOP("Figures", "Main memory"),
    "device_bytes": QT_TRANSLATE_NOOP("Figures", "In use on the card"),
    "capacity_bytes": QT_TRANSLATE_NOOP("Figures", "Capacity of the card"),
    "first_step": QT_TRANSLATE_NOOP("Figures", "Seen since step"),
}
NAMED: Final = frozenset(_NAMES)


def table(evidence: Mapping[str, float]) -> list[Row]:
    """(name, value) of every figure that has a name."""
    return [
        (QCoreApplication.translate("Figures", name), _value(key, evidence[key]))
        for key, name in _NAMES.items()
        if key in evidence
    ]


def _value(key: str, figure: float) -> str:
    """The unit is the end of the key."""
    if key.endswith("_bytes_per_s"):
        return numbers.small_size(60.0 * figure)
    if key.endswith(("_bytes_per_step", "_bytes_per_batch")):
        return numbers.small_size(figure)
    if key.endswith("_bytes"):
        return numbers.size(figure)
    if key == "usual_step_s":
        return numbers.with_unit(figure, "s", 2)
    if key.endswith("_s"):
        return numbers.duration(figure)
    if key.startswith("times_"):
        return numbers.decimal(figure, 1)
    return str(round(figure)) if key == "pid" else numbers.integer(figure)


def probabilities(forecast: Forecast) -> list[Row]:
    """How likely an out-of-memory error is, from the next step to the end of the run."""
    rows = [
        (QCoreApplication.translate("Figures", "Probability in the next step"), forecast.p_oom.get(1)),
        (QCoreApplication.translate("Figures", "within 10 steps"), forecast.p_oom.get(10)),
        (QCoreApplication.translate("Figures", "within 100 steps"), forecast.p_oom.get(100)),
        (QCoreApplication.translate("Figures", "in this epoch"), forecast.p_oom_epoch),
        (QCoreApplication.translate("Figures", "in this run"), forecast.p_oom_run),
    ]
    return [(name, chance(share)) for name, share in rows if share is not None]


def chances(forecast: Forecast) -> str:
    """``Probability: 12 % in this epoch, 40 % in this run.``"""
    run = chance(forecast.p_oom_run)
    if forecast.p_oom_epoch is None:
        return QCoreApplication.translate("Figures", "Probability: {0} in this run.").format(run)
    return QCoreApplication.translate("Figures", "Probability: {0} in this epoch, {1} in this run.").format(
        chance(forecast.p_oom_epoch), run
    )


def chance(share: float) -> str:
    """A forecast is never certain: the ends are said as bounds."""
    if share < 0.01:
        return "<" + numbers.NBSP + numbers.percent(1)
    if share > 0.99:
        return ">" + numbers.NBSP + numbers.percent(99)
    return numbers.percent(100.0 * share)
