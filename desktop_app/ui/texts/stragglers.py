"""Which card lags, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.services.stragglers import Group, Lag, Pace, Standing, Work
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers

_SHORT: Final = {
    Lag.HEAT: QT_TRANSLATE_NOOP("Stragglers", "slowed by heat"),
    Lag.POWER: QT_TRANSLATE_NOOP("Stragglers", "slowed by its power limit"),
    Lag.CLOCK: QT_TRANSLATE_NOOP("Stragglers", "lower clock, no reason given"),
    Lag.LINK: QT_TRANSLATE_NOOP("Stragglers", "narrower PCIe link"),
    Lag.OTHER_PROCESS: QT_TRANSLATE_NOOP("Stragglers", "another process on it"),
    Lag.WAITS: QT_TRANSLATE_NOOP("Stragglers", "waits for work"),
}


def cause(lag: Lag) -> str:
    """A few words for a cell."""
    return QCoreApplication.translate("Stragglers", _SHORT[lag])


def keeps_pace() -> str:
    return QCoreApplication.translate("Stragglers", "keeps pace")


def columns() -> tuple[str, ...]:
    return (
        QCoreApplication.translate("Stragglers", "Card"),
        QCoreApplication.translate("Stragglers", "Pace"),
        QCoreApplication.translate("Stragglers", "Utilisation"),
        QCoreApplication.translate("Stragglers", "Power"),
        QCoreApplication.translate("Stragglers", "SM clock"),
        QCoreApplication.translate("Stragglers", "Temperature"),
    )


def table_name() -> str:
    return QCoreApplication.translate("Stragglers", "Cards of one job, the slowest first")


def explanation() -> str:
    return QCoreApplication.translate(
        "Stragglers",
        "Means of the last minute, each with its difference to the median of the other cards of the same job. "
        "A card is called slow only beyond the noise of that minute.",
    )


def one_card() -> str:
    return QCoreApplication.translate("Stragglers", "One card: there is nothing to compare it with.")


def nothing_to_compare() -> str:
    return QCoreApplication.translate(
        "Stragglers", "Nothing to compare: no two cards of one kind have been busy with one job for the last minute."
    )


def sentence(group: Group, name_of: Callable[[str], str]) -> str:
    """What to say of the cards of one job. ``name_of`` gives a card's name by its UUID."""
    if group.pace is Pace.UNEVEN:
        return QCoreApplication.translate(
            "Stragglers", "The {0} cards do different things, so none of them can be called slow."
        ).format(len(group.standings))
    if group.pace is Pace.EVEN:
        return QCoreApplication.translate(
            "Stragglers", "The {0} cards keep pace: no difference is beyond the noise of the last minute."
        ).format(len(group.standings))
    return numbers.sentences(*(_lags(standing, name_of(standing.work.uuid)) for standing in group.lagging))


def _lags(standing: Standing, name: str) -> str:
    writers: Mapping[Lag, Callable[[Standing, str], str]] = {
        Lag.HEAT: _heat,
        Lag.POWER: _power,
        Lag.CLOCK: _clock,
        Lag.LINK: _link,
        Lag.OTHER_PROCESS: _other_process,
        Lag.WAITS: _waits,
    }
    assert standing.cause is not None
    return writers[standing.cause](standing, name)


def _heat(standing: Standing, name: str) -> str:
    share = numbers.percent(standing.work.mean("throttle_thermal_percent") or 0.0)
    if not standing.lost:
        return QCoreApplication.translate(
            "Stragglers", "{0} lags: heat held it back for {1} of the last minute, the others not."
        ).format(name, share)
    return QCoreApplication.translate(
        "Stragglers",
        "{0} lags: its clock is {1} below the others', because heat held it back for {2} of the last minute.",
    ).format(name, numbers.percent(100 * standing.lost), share)


def _power(standing: Standing, name: str) -> str:
    return QCoreApplication.translate(
        "Stragglers", "{0} lags: its power limit keeps its clock {1} below the others'."
    ).format(name, numbers.percent(100 * standing.lost))


def _clock(standing: Standing, name: str) -> str:
    return QCoreApplication.translate(
        "Stragglers",
        "{0} lags: its clock is {1} below the others', and the driver reports no throttling. Was its clock or its "
        "power limit set by hand?",
    ).format(name, numbers.percent(100 * standing.lost))


def _link(standing: Standing, name: str) -> str:
    return QCoreApplication.translate(
        "Stragglers", "{0} lags: its PCIe link is {1}, the others' {2}. Look at the slot, the riser and the BIOS."
    ).format(name, link(standing.work), "" if standing.link_beside is None else link(standing.link_beside))


def _other_process(standing: Standing, name: str) -> str:
    return QCoreApplication.translate("Stragglers", "{0} lags: another process takes {1} of its SM time.").format(
        name, numbers.percent(standing.work.others_percent or 0.0)
    )


def _waits(standing: Standing, name: str) -> str:
    field = "utilization_percent"
    if abs(standing.difference(field) or 0.0) < 1.0:
        field = "sm_activity_percent"
    own, others = standing.work.mean(field) or 0.0, standing.beside.get(field, 0.0)
    text = (
        QCoreApplication.translate(
            "Stragglers",
            "{0} waits: its utilisation is {1}, the others' {2}. Its data come late, or it has less to do.",
        )
        if field == "utilization_percent"
        else QCoreApplication.translate(
            "Stragglers",
            "{0} waits: its SM activity is {1}, the others' {2}. Its data come late, or it has less to do.",
        )
    )
    return text.format(name, numbers.percent(own), numbers.percent(others))


def link(work: Work) -> str:
    """``gen 4 x16``."""
    if work.generation is None or work.width is None:
        return numbers.DASH
    return QCoreApplication.translate("Stragglers", "gen {0} x{1}").format(round(work.generation), round(work.width))
