"""Words of the process table."""

from __future__ import annotations

import time
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.telemetry import ProcessSample
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers

_COLUMNS: Final = {
    "name": QT_TRANSLATE_NOOP("Processes", "Process"),
    "pid": QT_TRANSLATE_NOOP("Processes", "PID"),
    "user": QT_TRANSLATE_NOOP("Processes", "User"),
    "memory": QT_TRANSLATE_NOOP("Processes", "VRAM"),
    "gpu": QT_TRANSLATE_NOOP("Processes", "GPU"),
    "bus": QT_TRANSLATE_NOOP("Processes", "Memory bus"),
    "cpu": QT_TRANSLATE_NOOP("Processes", "CPU"),
    "rss": QT_TRANSLATE_NOOP("Processes", "RAM"),
    "started": QT_TRANSLATE_NOOP("Processes", "Started"),
    "slice": QT_TRANSLATE_NOOP("Processes", "MIG slice"),
    "container": QT_TRANSLATE_NOOP("Processes", "Container"),
}
_MEANINGS: Final = {
    "name": QT_TRANSLATE_NOOP("Processes", "Name of the program; the whole command is in the tooltip of its row."),
    "pid": QT_TRANSLATE_NOOP("Processes", "Number of the process in this system."),
    "user": QT_TRANSLATE_NOOP("Processes", "Whose process it is."),
    "memory": QT_TRANSLATE_NOOP("Processes", "What the driver books on the process, its CUDA context included."),
    "gpu": QT_TRANSLATE_NOOP(
        "Processes",
        "Share of the last second or so in which kernels of this process ran. How much of the card they used it does "
        "not say.",
    ),
    "bus": QT_TRANSLATE_NOOP(
        "Processes", "Share of the last second or so in which this process read or wrote the card's memory."
    ),
    "cpu": QT_TRANSLATE_NOOP("Processes", "Processor time; 100 % is one core."),
    "rss": QT_TRANSLATE_NOOP("Processes", "Main memory that the process has resident (RSS), shared pages included."),
    "started": QT_TRANSLATE_NOOP("Processes", "When the process was started."),
    "slice": QT_TRANSLATE_NOOP("Processes", "The GPU instance of a card in MIG mode."),
    "container": QT_TRANSLATE_NOOP("Processes", "What kind of container it runs in."),
}
_KINDS: Final = {
    "compute": QT_TRANSLATE_NOOP("Processes", "compute"),
    "graphics": QT_TRANSLATE_NOOP("Processes", "graphics"),
    "both": QT_TRANSLATE_NOOP("Processes", "both"),
}
# Names of products are the same in every language.
_CONTAINERS: Final = {
    "docker": "Docker",
    "podman": "Podman",
    "kubernetes": "Kubernetes",
    "lxc": "LXC",
    "nspawn": "systemd-nspawn",
}
NOTHING: Final = numbers.DASH  # there is none, which is not the same as not known


def column(key: str) -> str:
    return QCoreApplication.translate("Processes", _COLUMNS[key])


def meaning(key: str) -> str:
    """What the figures of a column are, in a sentence."""
    return QCoreApplication.translate("Processes", _MEANINGS[key])


def kind(code: str) -> str:
    return QCoreApplication.translate("Processes", _KINDS[code]) if code in _KINDS else code


def name(process: ProcessSample) -> str:
    """Never empty: a process that may not be looked at has a word in place of its name."""
    if process.name:
        return process.name
    if process.foreign:
        return QCoreApplication.translate("Processes", "outside the container")
    return QCoreApplication.translate("Processes", "unknown")


def started(wall_s: float) -> str:
    """``14:32:08`` today, else ``2026-09-21``."""
    here, now = time.localtime(wall_s), time.localtime()
    today = (here.tm_year, here.tm_yday) == (now.tm_year, now.tm_yday)
    return numbers.wall_time(wall_s) if today else numbers.wall_date(wall_s).partition(" ")[0]


def slice_of(process: ProcessSample) -> str:
    return NOTHING if process.gpu_instance is None else f"GI {process.gpu_instance}"


def container(process: ProcessSample) -> str:
    if process.container is None:
        return NOTHING
    other = QCoreApplication.translate("Processes", "other")
    return other if process.container == "other" else _CONTAINERS.get(process.container, process.container)


def unknown(process: ProcessSample) -> str:
    """Why the system says nothing about a process, in a word or two."""
    if process.foreign:
        return QCoreApplication.translate("Processes", "outside")
    return QCoreApplication.translate("Processes", "not told")


def why_unknown(process: ProcessSample) -> str:
    if process.foreign:
        return QCoreApplication.translate(
            "Processes", "The process runs outside this container: the driver gives its number, and no more is seen."
        )
    return QCoreApplication.translate("Processes", "The system does not tell this about processes of other users.")


def absent() -> str:
    """Where there is no room for a reason."""
    return QCoreApplication.translate("Processes", "n/a")


def details(process: ProcessSample) -> str:
    """The tooltip of a row: command, kind, user, start, and what is special about it."""
    lines = [process.command or name(process), kind(process.kind)]
    if process.own:
        lines.append(QCoreApplication.translate("Processes", "This program"))
    if process.simulated:
        lines.append(QCoreApplication.translate("Processes", "On a simulated card"))
    if process.user is not None:
        lines.append(QCoreApplication.translate("Processes", "User: {0}").format(process.user))
    if process.started_wall_s is not None:
        moment = numbers.wall_date(process.started_wall_s)
        lines.append(QCoreApplication.translate("Processes", "Started: {0}").format(moment))
    if process.container is not None:
        lines.append(QCoreApplication.translate("Processes", "Container: {0}").format(container(process)))
    if process.foreign:
        lines.append(why_unknown(process))
    return "\n".join(lines)


# -- the panel --------------------------------------------------------------------------------------------------------


def accessible_name() -> str:
    return QCoreApplication.translate("Processes", "Processes on the card")


def nobody() -> str:
    return QCoreApplication.translate("Processes", "No process uses the card, or the driver lists none.")


def no_match() -> str:
    return QCoreApplication.translate("Processes", "No process has that in its name, number, user or command.")


def filter_hint() -> str:
    return QCoreApplication.translate("Processes", "Name, PID, user, command")


def filter_name() -> str:
    return QCoreApplication.translate("Processes", "Show only processes with these words")


def more() -> str:
    return QCoreApplication.translate("Processes", "Columns, copying, ending")


def columns() -> str:
    return QCoreApplication.translate("Processes", "Columns")


def usual_columns() -> str:
    return QCoreApplication.translate("Processes", "As at first")


def in_a_window() -> str:
    return QCoreApplication.translate("Processes", "In a window of its own")


def copy_row() -> str:
    return QCoreApplication.translate("Processes", "Copy row")


def copy_all() -> str:
    return QCoreApplication.translate("Processes", "Copy all rows")


def copy_command() -> str:
    return QCoreApplication.translate("Processes", "Copy command")


def window_title(card: str) -> str:
    title = QCoreApplication.translate("Processes", "Processes")
    return f"{title} · {card}" if card else title


def count(shown: int, whole: int, memory_bytes: int | None) -> str:
    """``3 processes · 4.56 GiB``; the sum is left out where one of them does not tell."""
    if shown != whole:
        words = QCoreApplication.translate("Processes", "{0} of {1} processes").format(shown, whole)
    elif whole == 1:
        words = QCoreApplication.translate("Processes", "1 process")
    else:
        words = QCoreApplication.translate("Processes", "{0} processes").format(whole)
    return words if memory_bytes is None else f"{words} · {numbers.size(memory_bytes)}"


# -- ending one -------------------------------------------------------------------------------------------------------


def end() -> str:
    return QCoreApplication.translate("Processes", "End process…")


def end_by_force() -> str:
    return QCoreApplication.translate("Processes", "End by force…")


def why_not_read_only() -> str:
    return QCoreApplication.translate("Processes", "Read-only mode: Floodmark ends no process.")


def why_not_own() -> str:
    return QCoreApplication.translate(
        "Processes", "This is Floodmark, or was started by it. Stop the run or quit instead."
    )


def why_not_simulated() -> str:
    return QCoreApplication.translate("Processes", "It is on a simulated card.")


def why_not_foreign() -> str:
    return QCoreApplication.translate(
        "Processes", "It runs outside this container, where its number belongs to another process or to none."
    )


def why_not_unknown() -> str:
    return QCoreApplication.translate(
        "Processes", "The system does not say since when it runs, so it cannot be told from another with its number."
    )


def why_not_chosen() -> str:
    return QCoreApplication.translate("Processes", "No process is chosen.")


def question(process: ProcessSample, *, force: bool) -> str:
    words = (
        QCoreApplication.translate("Processes", "End {0} by force?")
        if force
        else QCoreApplication.translate("Processes", "End {0}?")
    )
    return words.format(name(process))


def facts(process: ProcessSample, card: str) -> tuple[tuple[str, str], ...]:
    """What the dialog names, so that nobody ends the wrong one."""
    user = process.user if process.user is not None else unknown(process)
    pairs = [
        (column("pid"), str(process.pid)),
        (column("user"), user),
        (QCoreApplication.translate("Processes", "Card"), card),
    ]
    if process.command:
        pairs.append((QCoreApplication.translate("Processes", "Command"), process.command))
    return tuple(pairs)


def warning(*, force: bool) -> str:
    if force:
        return QCoreApplication.translate(
            "Processes",
            "It is ended in the middle of what it does. Work that is not saved is lost, and files it was writing may "
            "be left broken.",
        )
    return QCoreApplication.translate(
        "Processes",
        "It is asked to end. Work that it does not save by itself is lost, such as steps of a training "
        "since its last checkpoint.",
    )


def yes(*, force: bool) -> str:
    if force:
        return QCoreApplication.translate("Processes", "End by force")
    return QCoreApplication.translate("Processes", "End process")


def no() -> str:
    return QCoreApplication.translate("Processes", "Cancel")


def asked(process: ProcessSample) -> str:
    return QCoreApplication.translate("Processes", "{0} ({1}) was asked to end.").format(name(process), process.pid)


def ended(process: ProcessSample) -> str:
    return QCoreApplication.translate("Processes", "{0} ({1}) has ended.").format(name(process), process.pid)


def gone(process: ProcessSample) -> str:
    return QCoreApplication.translate("Processes", "{0} ({1}) had ended before.").format(name(process), process.pid)


def ignored(process: ProcessSample) -> str:
    return QCoreApplication.translate("Processes", "{0} ({1}) was asked to end and is still there.").format(
        name(process), process.pid
    )


def stays(process: ProcessSample) -> str:
    """Not even force has helped."""
    return QCoreApplication.translate(
        "Processes",
        "{0} ({1}) is still there: it waits inside the driver, and ends when that answers or the machine restarts.",
    ).format(name(process), process.pid)


def not_permitted(process: ProcessSample) -> str:
    if process.user is None:
        return QCoreApplication.translate(
            "Processes", "{0} ({1}) belongs to somebody else. Its owner or an administrator can end it."
        ).format(name(process), process.pid)
    return QCoreApplication.translate(
        "Processes", "{0} ({1}) belongs to {2}. Its owner or an administrator can end it."
    ).format(name(process), process.pid, process.user)
