"""The words on the charts. Every function follows the language."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.events import Event, EventKind
from desktop_app.core.telemetry import Reason
from desktop_app.ui.charts.load import Load
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.charts.time_axis import ALL, TimeWords
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers, outlooks, reasons, xid


def name() -> str:
    return QCoreApplication.translate("Charts", "Charts")


_LOADS: Final = {
    Load.UTILIZATION: QT_TRANSLATE_NOOP("Charts", "Utilisation"),
    Load.SM_ACTIVITY: QT_TRANSLATE_NOOP("Charts", "SM activity"),
    Load.POWER: QT_TRANSLATE_NOOP("Charts", "Power, share of its limit"),
}
_MEANINGS: Final = {
    Load.UTILIZATION: QT_TRANSLATE_NOOP(
        "Charts",
        "Share of the time in which at least one kernel ran. A kernel that uses a fraction of the card counts as much "
        "as one that uses all of it: 100 % does not mean that the card is used up.",
    ),
    Load.SM_ACTIVITY: QT_TRANSLATE_NOOP(
        "Charts",
        "Share of the multiprocessors (SMs) that had work, over time and over all of them; and the share of time in "
        "which their tensor cores worked. Says how much of the card is used, where utilisation only says that it is.",
    ),
    Load.POWER: QT_TRANSLATE_NOOP(
        "Charts",
        "Power as a share of the limit of the card. It rises with the work that is really done, and needs no support "
        "by the card.",
    ),
}
_THROTTLES: Final = {
    Throttle.HEAT: QT_TRANSLATE_NOOP("Charts", "heat"),
    Throttle.POWER: QT_TRANSLATE_NOOP("Charts", "power limit"),
}


def load(choice: Load) -> str:
    """The name of the panel of utilisation, by what it shows."""
    return QCoreApplication.translate("Charts", _LOADS[choice])


def load_meaning(choice: Load) -> str:
    """What its figures say, and what they do not."""
    return QCoreApplication.translate("Charts", _MEANINGS[choice])


def load_missing(choice: Load, reason: Reason) -> str:
    """Why a choice is not offered, in a few words."""
    if choice is Load.SM_ACTIVITY and reason is Reason.NOT_SUPPORTED:
        return QCoreApplication.translate("Charts", "Hopper and newer only")
    return reasons.short(reason)


def throttle(cause: Throttle) -> str:
    """What held the card back."""
    return QCoreApplication.translate("Charts", _THROTTLES[cause])


def throttled(cause: Throttle, share: float | None, threshold: float) -> str:
    """``heat, 35 %``; without the share in the short pauses of an episode."""
    if share is None or share < threshold:
        return throttle(cause)
    return QCoreApplication.translate("Charts", "{0}, {1}").format(throttle(cause), numbers.percent(share))


def slowed_now(share: str) -> str:
    return QCoreApplication.translate("Charts", "slowed {0}").format(share)


def sm(value: str) -> str:
    return QCoreApplication.translate("Charts", "SM {0}").format(value)


def tensor(value: str) -> str:
    return QCoreApplication.translate("Charts", "tensor {0}").format(value)


def share_of(share: str, limit: str) -> str:
    return QCoreApplication.translate("Charts", "{0} of {1}").format(share, limit)


def title(key: str) -> str:
    titles = {
        "loss": QCoreApplication.translate("Charts", "Loss and accuracy"),
        "optimizer": QCoreApplication.translate("Charts", "Learning rate and gradient"),
        "vram": QCoreApplication.translate("Charts", "VRAM"),
        "utilization": QCoreApplication.translate("Charts", "Utilisation"),
        "temperature": QCoreApplication.translate("Charts", "Temperature"),
        "power": QCoreApplication.translate("Charts", "Power"),
        "events": QCoreApplication.translate("Charts", "Events"),
    }
    return titles[key]


def train(value: str) -> str:
    return QCoreApplication.translate("Charts", "train {0}").format(value)


def validation(value: str) -> str:
    return QCoreApplication.translate("Charts", "validation {0}").format(value)


def accuracy(value: str) -> str:
    return QCoreApplication.translate("Charts", "accuracy {0}").format(value)


def learning_rate(value: str) -> str:
    return QCoreApplication.translate("Charts", "learning rate {0}").format(value)


def grad_norm(value: str) -> str:
    return QCoreApplication.translate("Charts", "gradient norm {0}").format(value)


def device(value: str) -> str:
    return QCoreApplication.translate("Charts", "device {0}").format(value)


def live(value: str) -> str:
    return QCoreApplication.translate("Charts", "live {0}").format(value)


def capacity(value: str) -> str:
    return QCoreApplication.translate("Charts", "capacity {0}").format(value)


def slows_at(value: str) -> str:
    return QCoreApplication.translate("Charts", "slows at {0}").format(value)


def limit(value: str) -> str:
    return QCoreApplication.translate("Charts", "limit {0}").format(value)


def step(number: float) -> str:
    return QCoreApplication.translate("Charts", "step {0}").format(numbers.integer(number))


def no_run() -> str:
    return QCoreApplication.translate("Charts", "No run yet")


def preparing() -> str:
    return QCoreApplication.translate("Charts", "Preparing…")


def no_step() -> str:
    return QCoreApplication.translate("Charts", "No step was finished")


def no_card() -> str:
    return QCoreApplication.translate("Charts", "No card")


def no_data() -> str:
    return QCoreApplication.translate("Charts", "No data yet")


def hidden_panels(count: int, *, short: bool) -> str:
    if short:
        return f"+{count}"
    return QCoreApplication.translate("Charts", "+{0} hidden").format(count)


def hidden_panels_help(keys: tuple[str, ...]) -> str:
    names = ", ".join(title(key) for key in keys)
    return QCoreApplication.translate("Charts", "A higher window also shows: {0}").format(names)


def go_live() -> str:
    return QCoreApplication.translate("Charts", "Live")


def go_live_help() -> str:
    return QCoreApplication.translate("Charts", "Back to now (Home)")


def span(span_s: float) -> str:
    """The name of a preset."""
    names = {
        60.0: QCoreApplication.translate("Charts", "1 min"),
        300.0: QCoreApplication.translate("Charts", "5 min"),
        900.0: QCoreApplication.translate("Charts", "15 min"),
        3600.0: QCoreApplication.translate("Charts", "1 h"),
        ALL: QCoreApplication.translate("Charts", "All"),
    }
    return names.get(span_s) or numbers.duration(span_s)


def span_help() -> str:
    return QCoreApplication.translate("Charts", "How much time is shown")


def readout(key: str) -> str:
    """The names of the read-out's lines."""
    names = {
        "loss": QCoreApplication.translate("Charts", "train loss"),
        "validation": QCoreApplication.translate("Charts", "validation"),
        "accuracy": QCoreApplication.translate("Charts", "accuracy"),
        "grad_norm": QCoreApplication.translate("Charts", "gradient norm"),
        "device": QCoreApplication.translate("Charts", "device"),
        "utilization": QCoreApplication.translate("Charts", "utilisation"),
        "temperature": QCoreApplication.translate("Charts", "temperature"),
        "power": QCoreApplication.translate("Charts", "power"),
        "sm_activity": QCoreApplication.translate("Charts", "SM activity"),
        "tensor_activity": QCoreApplication.translate("Charts", "tensor activity"),
        "throttle": QCoreApplication.translate("Charts", "slowed by"),
    }
    return names[key]


def event(what: Event) -> str:
    """A few words for the lane: by its cause or code where that says more than its kind."""
    cause = what.params.get("cause")
    if what.kind is EventKind.ALERT and isinstance(cause, str):
        return QCoreApplication.translate("Charts", "forecast: {0}").format(outlooks.short_cause(cause))
    if what.kind is EventKind.XID:
        return xid.short(what.params)
    if what.kind is EventKind.OUTAGE and (reason := _reason(what)) is not None:
        return reasons.short(reason)
    if (words := _SHRUNK.get(what.code)) is not None:
        size = what.params.get("batch_after")
        return QCoreApplication.translate("Charts", words).format(
            numbers.integer(size) if isinstance(size, int) else "?"
        )
    return _event_by_code(what.code) or _event_by_kind(what.kind)


# Codes of ``training.rescue``.
_SHRUNK: Final = {
    "rescue.training": QT_TRANSLATE_NOOP("Charts", "rescued, batch {0}"),
    "rescue.validation": QT_TRANSLATE_NOOP("Charts", "rescued, validation {0}"),
    "run.shrunk": QT_TRANSLATE_NOOP("Charts", "batch {0}"),
}


# Codes of ``services.process_control`` that are no refusals.
_PROCESS_ENDS: Final = frozenset({"process.asked", "process.killed", "process.ended", "process.still_there"})


def _event_by_code(code: str) -> str | None:
    if code.startswith("process.") and code not in _PROCESS_ENDS:
        return QCoreApplication.translate("Charts", "process not ended")
    names = {
        "telemetry.thermal_throttle": QCoreApplication.translate("Charts", "slowed by heat"),
        "run.finished": QCoreApplication.translate("Charts", "finished"),
        "run.stopped": QCoreApplication.translate("Charts", "stopped"),
        "run.failed": QCoreApplication.translate("Charts", "failed"),
        "learning.not_learning": QCoreApplication.translate("Charts", "not learning"),
        "learning.learning_again": QCoreApplication.translate("Charts", "learning again"),
        "rule.pause": QCoreApplication.translate("Charts", "rule: pause"),
        "rule.save": QCoreApplication.translate("Charts", "rule: save"),
        "rule.save_and_pause": QCoreApplication.translate("Charts", "rule: save and pause"),
        "rule.shrink": QCoreApplication.translate("Charts", "rule: shrink"),
        "rule.stop": QCoreApplication.translate("Charts", "rule: stop"),
        "process.asked": QCoreApplication.translate("Charts", "process told to end"),
        "process.killed": QCoreApplication.translate("Charts", "process ended by force"),
        "process.ended": QCoreApplication.translate("Charts", "process ended"),
        "process.still_there": QCoreApplication.translate("Charts", "process has not ended"),
        "run.not_shrunk": QCoreApplication.translate("Charts", "cannot shrink"),
        "checkpoint.failed": QCoreApplication.translate("Charts", "checkpoint failed"),
        "checkpoint.not_finite": QCoreApplication.translate("Charts", "checkpoint failed"),
    }
    if code.startswith("process."):  # a refusal, for one of many reasons
        return names.get(code) or QCoreApplication.translate("Charts", "process not ended")
    return names.get(code)


def _event_by_kind(kind: EventKind) -> str:
    names = {
        EventKind.RUN_STATE: QCoreApplication.translate("Charts", "run"),
        EventKind.EPOCH: QCoreApplication.translate("Charts", "epoch"),
        EventKind.VALIDATION: QCoreApplication.translate("Charts", "validation"),
        EventKind.CHECKPOINT: QCoreApplication.translate("Charts", "checkpoint"),
        EventKind.THROTTLE: QCoreApplication.translate("Charts", "throttled"),
        EventKind.XID: QCoreApplication.translate("Charts", "Xid error"),
        EventKind.ALLOC_RETRY: QCoreApplication.translate("Charts", "allocator retry"),
        EventKind.ALERT: QCoreApplication.translate("Charts", "forecast"),
        EventKind.ALERT_CLEARED: QCoreApplication.translate("Charts", "all clear"),
        EventKind.OOM: QCoreApplication.translate("Charts", "out of memory"),
        EventKind.RESCUE: QCoreApplication.translate("Charts", "rescued"),
        EventKind.CHANGE: QCoreApplication.translate("Charts", "changed"),
        EventKind.OUTAGE: QCoreApplication.translate("Charts", "GPU lost"),
        EventKind.BACK: QCoreApplication.translate("Charts", "GPU back"),
        EventKind.DATA_SKIPPED: QCoreApplication.translate("Charts", "files skipped"),
        EventKind.LEARNING: QCoreApplication.translate("Charts", "learning"),
        EventKind.ERROR: QCoreApplication.translate("Charts", "error"),
    }
    return names[kind]


def event_details(what: Event, wall_time: str) -> str:
    """``14:32:08  checkpoint, step 1,480``."""
    line = f"{wall_time}  {event(what)}"
    number = what.params.get("step")
    if isinstance(number, int | float):
        line += f", {step(number)}"
    epoch = what.params.get("epoch")
    if isinstance(epoch, int | float):
        line += " " + numbers.integer(epoch) if what.kind is EventKind.EPOCH else ""
    if what.kind is EventKind.OUTAGE and (reason := _reason(what)) is not None:
        return f"{line}\n{reasons.sentence(reason)}"
    return f"{line}\n{xid.explained(what.params)}" if what.kind is EventKind.XID else line


def _reason(what: Event) -> Reason | None:
    """Why a card cannot be read; ``None`` for one that a newer version has written."""
    value = what.params.get("reason")
    return next((reason for reason in Reason if reason.value == value), None)


def time_words() -> TimeWords:
    return TimeWords(
        now=QCoreApplication.translate("Charts", "now"),
        ago=lambda length: QCoreApplication.translate("Charts", "{0} ago").format(length),
        ahead=lambda number: QCoreApplication.translate("Charts", "+{0}").format(number),
        seconds=lambda number: QCoreApplication.translate("Charts", "{0} s").format(number),
        minutes=lambda number: QCoreApplication.translate("Charts", "{0} min").format(number),
        hours=lambda number: QCoreApplication.translate("Charts", "{0} h").format(number),
        days=lambda number: QCoreApplication.translate("Charts", "{0} d").format(number),
    )
