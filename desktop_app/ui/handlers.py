"""What each command does. The keys are those of the command table; a test compares the two."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtGui import QGuiApplication

from desktop_app.services.facade import Workspace
from desktop_app.ui import i18n
from desktop_app.ui.actions import Handlers
from desktop_app.ui.chart_choices import LOADS, SHADES
from desktop_app.ui.charts.load import Load
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.charts.time_axis import ALL
from desktop_app.ui.headline import open_alert
from desktop_app.ui.parts import GpuPart, Part
from desktop_app.ui.side_panel import Tab
from desktop_app.ui.texts.advice import ALLOCATOR_SETTING
from desktop_app.ui.theme import ThemeMode

if TYPE_CHECKING:
    from desktop_app.ui.main_window import MainWindow

_SPANS_S: Final = {
    "view.span_1_min": 60.0,
    "view.span_5_min": 300.0,
    "view.span_15_min": 900.0,
    "view.span_1_h": 3600.0,
    "view.span_all": ALL,
}


class RunHandlers:
    """Commands about the run."""

    def __init__(self, workspace: Workspace, window: MainWindow) -> None:
        self._workspace = workspace
        self._window = window

    def table(self) -> Handlers:
        workspace = self._workspace
        return {
            "run.start": self.start,
            "run.pause": workspace.pause,
            "run.resume": workspace.resume,
            "run.stop": lambda: workspace.stop(save=True),
            "run.stop_without_saving": lambda: workspace.stop(save=False),
            "run.save": workspace.save_checkpoint,
            "run.save_and_pause": self.save_and_pause,
            "run.use_largest_batch": self.use_largest_batch,
            "run.shrink_batch": self.shrink_batch,
            "run.record_step": lambda: self._window.centre.record_step(),
            "run.why": self.why,
            "run.ignore": self.ignore,
            "run.copy_allocator_setting": lambda: QGuiApplication.clipboard().setText(ALLOCATOR_SETTING),
            "run.post_mortem": lambda: self._window.open_tab(Tab.POST_MORTEM),
            "run.take_up": workspace.accept_resume_offer,
            "run.leave": workspace.dismiss_resume_offer,
        }

    def start(self) -> None:
        config = self._window.side_panel.run.form.config()
        if config is not None:
            self._workspace.start(config)

    def save_and_pause(self) -> None:
        self._workspace.save_checkpoint()
        self._workspace.pause()

    def use_largest_batch(self) -> None:
        self._window.open_tab(Tab.RUN)
        self._window.side_panel.run.use_largest_batch()

    def shrink_batch(self) -> None:
        """Of the run that lives; else of the one that the form would start."""
        if self._workspace.run.get().state.active:
            self._workspace.shrink_batch()
        else:
            self._window.open_tab(Tab.RUN)
            self._window.side_panel.run.halve_batch()

    def why(self) -> None:
        """The alert of the banner, with all its figures."""
        self._window.open_tab(Tab.ALERTS)
        alert = open_alert(self._workspace)
        if alert is not None:
            self._window.side_panel.alerts.unfold(alert.alert_id)

    def ignore(self) -> None:
        alert = open_alert(self._workspace)
        if alert is not None:
            self._workspace.ignore_alert(alert.alert_id)


def _choose_load(window: MainWindow, load: Load) -> None:
    window.choices.set_load(load)  # looked up when it is chosen: it is made after the actions


def _toggle_shade(window: MainWindow, cause: Throttle) -> None:
    window.choices.toggle_shade(cause)


def window_handlers(window: MainWindow, workspace: Workspace) -> Handlers:
    """The handler of every command."""
    table = dict(RunHandlers(workspace, window).table())
    table |= {
        "file.open_run": lambda: window.files.open_run(),
        "file.save_run": lambda: window.files.save_run(),
        "file.open_snapshot": lambda: window.files.open_snapshot(window.centre.open_snapshot),
        "file.save_picture": lambda: window.files.save_picture(),
        "file.open_sessions": lambda: window.files.open_sessions(),
        "file.explain": lambda: window.dialogs.explain(),
        "file.demos": window.dialogs.show_demos,
        "file.settings": window.dialogs.show_settings,
        "file.quit": window.close,
        "view.palette": window.dialogs.open_palette,
        "view.menu": lambda: window.header.open_menu(),
        "view.run": lambda: window.open_tab(Tab.RUN),
        "view.gpu": lambda: window.open_tab(Tab.GPU),
        "view.alerts": lambda: window.open_tab(Tab.ALERTS),
        "view.processes": lambda: window.open_tab(Tab.PROCESSES),
        "view.neighbour": window.show_neighbour,
        "view.process_window": window.dialogs.show_processes,
        "view.copy_processes": lambda: window.side_panel.processes.copy_all(),
        "view.end_process": lambda: window.side_panel.processes.end_chosen(),
        "view.side_panel": window.toggle_side_panel,
        "view.curves": window.centre.show_curves,
        "view.memory": lambda: window.centre.show_memory(Part.STEP),
        "view.modules": lambda: window.centre.show_memory(Part.MODULES),
        "view.blocks": lambda: window.centre.show_memory(Part.BLOCKS),
        "view.gpu_page": lambda: window.centre.show_gpu(GpuPart.FIELDS),
        "view.gpu_cards": lambda: window.centre.show_gpu(GpuPart.CARDS),
        "view.gpu_compare": lambda: window.centre.show_gpu(GpuPart.COMPARE),
        "view.next_card": window.next_card,
        "view.live": lambda: window.charts.go_live(),
        "view.presentation": window.toggle_presentation,
        "help.about": window.dialogs.show_about,
    }
    table |= {name: partial(_choose_load, window, load) for load, name in LOADS.items()}
    table |= {name: partial(_toggle_shade, window, cause) for cause, name in SHADES.items()}
    table |= {name: partial(window.charts.set_span_s, span_s) for name, span_s in _SPANS_S.items()}
    table |= {f"view.theme_{mode.value}": partial(window.set_theme_mode, mode) for mode in ThemeMode}
    table |= {f"view.language_{code}": partial(window.set_language, code) for code in i18n.LANGUAGES}
    return table
