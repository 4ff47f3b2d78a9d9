"""The one table of commands: menus, shortcuts, palette, tooltips and tests all read it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.steps import RunState
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.icons import IconName


class Menu(StrEnum):
    """The menus, in order."""

    FILE = "file"
    RUN = "run"
    VIEW = "view"
    HELP = "help"


class When(StrEnum):
    """When a command can be chosen."""

    ALWAYS = "always"
    READY = "ready"  # no run is active and the form is valid
    RUNNING = "running"
    PAUSED = "paused"
    STOPPABLE = "stoppable"  # active and not stopping yet
    STARTED = "started"  # running or paused
    ALERTING = "alerting"  # an open alert that is not ignored
    ALERTED = "alerted"  # there has been an alert in this run
    RECORDABLE = "recordable"  # the run can write down a step, and is not doing so
    OTHER_BATCH = "other_batch"  # the estimate names a largest batch that is not the form's
    OUT_OF_MEMORY = "out_of_memory"  # the run ended so, or was rescued from it
    SHRINKABLE = "shrinkable"  # the micro-batch of the run, or of the form, has more than one sample
    ACCOMPANIED = "accompanied"  # another process is on the card
    SM_ACTIVITY = "sm_activity"  # the card reports the activity of its multiprocessors
    POWER_SHARE = "power_share"  # the card reports its power, and has a limit
    ENDABLE = "endable"  # a process is chosen in the table, and can be ended
    OFFERED = "offered"  # an interrupted run can be resumed
    MANY_CARDS = "many_cards"  # and no run is bound to one of them


@dataclass(frozen=True, slots=True)
class Command:
    """One command. ``id`` is also the name of its handler. ``group`` is its choice among exclusive ones."""

    id: str
    text: str
    menu: Menu
    shortcut: str = ""
    icon: IconName | None = None
    when: When = When.ALWAYS
    section: int = 0  # a separator lies between sections of a menu
    group: str = ""
    checkable: bool = False

    @property
    def title(self) -> str:
        """The text in the window's language."""
        return QCoreApplication.translate("Commands", self.text)


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides which commands can be chosen."""

    run: RunState = RunState.IDLE
    form_valid: bool = True
    alerting: bool = False
    alerted: bool = False
    other_batch: bool = False
    shrinkable: bool = False
    rescued: bool = False
    accompanied: bool = False
    endable: bool = False
    sm_activity: bool = False
    power_share: bool = False
    recordable: bool = False
    offered: bool = False
    cards: int = 0


def can_choose(when: When, situation: Situation) -> bool:
    """Whether a command of ``when`` makes sense now."""
    run = situation.run
    answers = {
        When.ALWAYS: True,
        When.READY: not run.active and situation.form_valid,
        When.RUNNING: run is RunState.RUNNING,
        When.PAUSED: run in (RunState.PAUSED, RunState.PAUSING),
        When.STOPPABLE: run.active and run is not RunState.STOPPING,
        When.STARTED: run in (RunState.RUNNING, RunState.PAUSED),
        When.ALERTING: situation.alerting,
        When.ALERTED: situation.alerted,
        When.RECORDABLE: situation.recordable,
        When.OTHER_BATCH: situation.other_batch and not run.active,
        When.OUT_OF_MEMORY: run is RunState.OUT_OF_MEMORY or situation.rescued,
        When.SHRINKABLE: situation.shrinkable,
        When.ACCOMPANIED: situation.accompanied,
        When.ENDABLE: situation.endable,
        When.SM_ACTIVITY: situation.sm_activity,
        When.POWER_SHARE: situation.power_share,
        When.OFFERED: situation.offered and not run.active,
        When.MANY_CARDS: situation.cards > 1 and not run.active,
    }
    return answers[when]


COMMANDS: Final = (
    Command("file.open_run", QT_TRANSLATE_NOOP("Commands", "Open run file…"), Menu.FILE, "Ctrl+O", IconName.FOLDER),
    Command("file.save_run", QT_TRANSLATE_NOOP("Commands", "Save run file…"), Menu.FILE, "Ctrl+Shift+S"),
    Command(
        "file.open_snapshot",
        QT_TRANSLATE_NOOP("Commands", "Open memory snapshot…"),
        Menu.FILE,
        "Ctrl+Shift+O",
        section=1,
    ),
    Command(
        "file.explain",
        QT_TRANSLATE_NOOP("Commands", "Explain an error…"),
        Menu.FILE,
        "Ctrl+Shift+E",
        IconName.HELP,
        section=1,
    ),
    Command(
        "file.demos",
        QT_TRANSLATE_NOOP("Commands", "Demonstrations…"),
        Menu.FILE,
        "Ctrl+Shift+D",
        IconName.PRESENT,
        section=1,
    ),
    Command("file.save_picture", QT_TRANSLATE_NOOP("Commands", "Save picture of the window…"), Menu.FILE, section=1),
    Command("file.open_sessions", QT_TRANSLATE_NOOP("Commands", "Open folder of sessions"), Menu.FILE, section=1),
    Command(
        "file.settings", QT_TRANSLATE_NOOP("Commands", "Settings…"), Menu.FILE, "Ctrl+,", IconName.SETTINGS, section=2
    ),
    Command("file.quit", QT_TRANSLATE_NOOP("Commands", "Quit"), Menu.FILE, "Ctrl+Q", section=3),
    Command("run.start", QT_TRANSLATE_NOOP("Commands", "Start"), Menu.RUN, "F5", IconName.PLAY, When.READY),
    Command("run.pause", QT_TRANSLATE_NOOP("Commands", "Pause"), Menu.RUN, "F6", IconName.PAUSE, When.RUNNING),
    Command("run.resume", QT_TRANSLATE_NOOP("Commands", "Resume"), Menu.RUN, "F7", IconName.PLAY, When.PAUSED),
    Command("run.stop", QT_TRANSLATE_NOOP("Commands", "Stop"), Menu.RUN, "F8", IconName.STOP, When.STOPPABLE),
    Command(
        "run.stop_without_saving",
        QT_TRANSLATE_NOOP("Commands", "Stop without saving"),
        Menu.RUN,
        when=When.STOPPABLE,
    ),
    Command(
        "run.save", QT_TRANSLATE_NOOP("Commands", "Save"), Menu.RUN, "Ctrl+S", IconName.SAVE, When.STARTED, section=1
    ),
    Command(
        "run.save_and_pause",
        QT_TRANSLATE_NOOP("Commands", "Save and pause"),
        Menu.RUN,
        "Ctrl+P",
        when=When.RUNNING,
        section=1,
    ),
    Command(
        "run.use_largest_batch",
        QT_TRANSLATE_NOOP("Commands", "Use the largest batch that fits"),
        Menu.RUN,
        "Ctrl+L",
        when=When.OTHER_BATCH,
        section=2,
    ),
    Command(
        "run.shrink_batch",
        QT_TRANSLATE_NOOP("Commands", "Shrink the micro-batch"),
        Menu.RUN,
        "Ctrl+Shift+L",
        when=When.SHRINKABLE,
        section=2,
    ),
    Command(
        "run.record_step",
        QT_TRANSLATE_NOOP("Commands", "Draw the next step of the run"),
        Menu.RUN,
        "Ctrl+R",
        when=When.RECORDABLE,
        section=2,
    ),
    Command(
        "run.why",
        QT_TRANSLATE_NOOP("Commands", "Why this warning"),
        Menu.RUN,
        "Ctrl+Shift+Y",
        when=When.ALERTED,
        section=3,
    ),
    Command(
        "run.ignore", QT_TRANSLATE_NOOP("Commands", "Ignore this warning"), Menu.RUN, when=When.ALERTING, section=3
    ),
    Command(
        "run.copy_allocator_setting",
        QT_TRANSLATE_NOOP("Commands", "Copy the setting"),
        Menu.RUN,
        when=When.ALERTED,
        section=3,
    ),
    Command(
        "run.post_mortem",
        QT_TRANSLATE_NOOP("Commands", "Show what happened"),
        Menu.RUN,
        "Ctrl+5",
        when=When.OUT_OF_MEMORY,
        section=3,
    ),
    Command(
        "run.take_up",
        QT_TRANSLATE_NOOP("Commands", "Resume the interrupted run"),
        Menu.RUN,
        when=When.OFFERED,
        section=4,
    ),
    Command(
        "run.leave",
        QT_TRANSLATE_NOOP("Commands", "Leave the interrupted run"),
        Menu.RUN,
        when=When.OFFERED,
        section=4,
    ),
    Command(
        "view.palette", QT_TRANSLATE_NOOP("Commands", "Search commands"), Menu.VIEW, "Ctrl+Shift+P", IconName.SEARCH
    ),
    Command("view.menu", QT_TRANSLATE_NOOP("Commands", "Menu"), Menu.VIEW, "F10", IconName.LIST),
    Command("view.run", QT_TRANSLATE_NOOP("Commands", "Run"), Menu.VIEW, "Ctrl+1", section=1),
    Command("view.gpu", QT_TRANSLATE_NOOP("Commands", "GPU"), Menu.VIEW, "Ctrl+2", section=1),
    Command("view.alerts", QT_TRANSLATE_NOOP("Commands", "Alerts"), Menu.VIEW, "Ctrl+3", section=1),
    Command("view.processes", QT_TRANSLATE_NOOP("Commands", "Processes"), Menu.VIEW, "Ctrl+4", section=1),
    Command(
        "view.neighbour",
        QT_TRANSLATE_NOOP("Commands", "Show the process"),
        Menu.VIEW,
        when=When.ACCOMPANIED,
        section=1,
    ),
    Command(
        "view.process_window",
        QT_TRANSLATE_NOOP("Commands", "Processes in a window of their own"),
        Menu.VIEW,
        section=1,
    ),
    Command("view.copy_processes", QT_TRANSLATE_NOOP("Commands", "Copy the table of processes"), Menu.VIEW, section=1),
    Command(
        "view.end_process",
        QT_TRANSLATE_NOOP("Commands", "End the chosen process…"),
        Menu.VIEW,
        when=When.ENDABLE,
        section=1,
    ),
    Command(
        "view.side_panel", QT_TRANSLATE_NOOP("Commands", "Side panel"), Menu.VIEW, "Ctrl+B", section=1, checkable=True
    ),
    Command(
        "view.curves",
        QT_TRANSLATE_NOOP("Commands", "Curves over time"),
        Menu.VIEW,
        "Ctrl+T",
        IconName.CHART,
        section=2,
        group="centre",
        checkable=True,
    ),
    Command(
        "view.memory",
        QT_TRANSLATE_NOOP("Commands", "Memory of one step"),
        Menu.VIEW,
        "Ctrl+M",
        section=2,
        group="centre",
        checkable=True,
    ),
    Command(
        "view.gpu_page",
        QT_TRANSLATE_NOOP("Commands", "All fields of the card"),
        Menu.VIEW,
        "Ctrl+Shift+G",
        section=2,
        group="centre",
        checkable=True,
    ),
    Command("view.gpu_cards", QT_TRANSLATE_NOOP("Commands", "All cards side by side"), Menu.VIEW, section=2),
    Command("view.gpu_compare", QT_TRANSLATE_NOOP("Commands", "Which card lags"), Menu.VIEW, section=2),
    Command("view.modules", QT_TRANSLATE_NOOP("Commands", "Search modules"), Menu.VIEW, "Ctrl+F", section=2),
    Command("view.blocks", QT_TRANSLATE_NOOP("Commands", "Largest blocks"), Menu.VIEW, section=2),
    Command(
        "view.next_card",
        QT_TRANSLATE_NOOP("Commands", "Next card"),
        Menu.VIEW,
        "Ctrl+G",
        IconName.CARD,
        When.MANY_CARDS,
        section=3,
    ),
    Command("view.live", QT_TRANSLATE_NOOP("Commands", "Go to now"), Menu.VIEW, "Ctrl+End", IconName.LIVE, section=4),
    Command("view.span_1_min", QT_TRANSLATE_NOOP("Commands", "Show the last minute"), Menu.VIEW, section=4),
    Command("view.span_5_min", QT_TRANSLATE_NOOP("Commands", "Show the last 5 minutes"), Menu.VIEW, section=4),
    Command("view.span_15_min", QT_TRANSLATE_NOOP("Commands", "Show the last 15 minutes"), Menu.VIEW, section=4),
    Command("view.span_1_h", QT_TRANSLATE_NOOP("Commands", "Show the last hour"), Menu.VIEW, section=4),
    Command("view.span_all", QT_TRANSLATE_NOOP("Commands", "Show everything"), Menu.VIEW, section=4),
    Command(
        "view.load_utilization",
        QT_TRANSLATE_NOOP("Commands", "Load as utilisation"),
        Menu.VIEW,
        section=41,
        group="load",
        checkable=True,
    ),
    Command(
        "view.load_sm_activity",
        QT_TRANSLATE_NOOP("Commands", "Load as activity of SMs and tensor cores"),
        Menu.VIEW,
        when=When.SM_ACTIVITY,
        section=41,
        group="load",
        checkable=True,
    ),
    Command(
        "view.load_power_share",
        QT_TRANSLATE_NOOP("Commands", "Load as power, share of its limit"),
        Menu.VIEW,
        when=When.POWER_SHARE,
        section=41,
        group="load",
        checkable=True,
    ),
    Command(
        "view.shade_heat",
        QT_TRANSLATE_NOOP("Commands", "Shade what was slowed by heat"),
        Menu.VIEW,
        section=42,
        checkable=True,
    ),
    Command(
        "view.shade_power",
        QT_TRANSLATE_NOOP("Commands", "Shade what was slowed by the power limit"),
        Menu.VIEW,
        section=42,
        checkable=True,
    ),
    Command(
        "view.presentation",
        QT_TRANSLATE_NOOP("Commands", "Presentation"),
        Menu.VIEW,
        "F11",
        IconName.PRESENT,
        section=5,
        checkable=True,
    ),
    Command(
        "view.theme_dark",
        QT_TRANSLATE_NOOP("Commands", "Dark theme"),
        Menu.VIEW,
        section=6,
        icon=IconName.MOON,
        group="theme",
        checkable=True,
    ),
    Command(
        "view.theme_light",
        QT_TRANSLATE_NOOP("Commands", "Light theme"),
        Menu.VIEW,
        section=6,
        icon=IconName.SUN,
        group="theme",
        checkable=True,
    ),
    Command(
        "view.theme_system",
        QT_TRANSLATE_NOOP("Commands", "Theme of the system"),
        Menu.VIEW,
        section=6,
        group="theme",
        checkable=True,
    ),
    # Languages by their own names: whoever needs them cannot read the other.
    Command("view.language_en", "English", Menu.VIEW, section=7, group="language", checkable=True),
    Command("view.language_zh_CN", "简体中文", Menu.VIEW, section=7, group="language", checkable=True),
    Command("help.about", QT_TRANSLATE_NOOP("Commands", "About Floodmark"), Menu.HELP, icon=IconName.HELP),
)
BY_ID: Final = {command.id: command for command in COMMANDS}
_MENU_TITLES: Final = {
    Menu.FILE: QT_TRANSLATE_NOOP("Commands", "File"),
    Menu.RUN: QT_TRANSLATE_NOOP("Commands", "Run"),
    Menu.VIEW: QT_TRANSLATE_NOOP("Commands", "View"),
    Menu.HELP: QT_TRANSLATE_NOOP("Commands", "Help"),
}


def menu_title(menu: Menu) -> str:
    return QCoreApplication.translate("Commands", _MENU_TITLES[menu])
