"""The windowed program: application, session, window, and the command that brought them up."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from desktop_app.core.errors import ExitCode, FloodmarkError
from desktop_app.core.steps import RunState
from desktop_app.launch import Job, Launch
from desktop_app.services import report as reports
from desktop_app.services.locations import data_folder
from desktop_app.services.scenarios import check_memory
from desktop_app.services.session import Session
from desktop_app.ui.application import make_application
from desktop_app.ui.i18n import SYSTEM
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.qt_settings import Settings
from desktop_app.ui.theme import ThemeMode

_log = logging.getLogger(__name__)

# Often enough that a command starts at once and the clock of --for is right to a tenth of a second.
_POLL_MS: Final = 50
# How long the training's Python may keep the window waiting: with CPython's 5 ms a frame that needs the interpreter
# ten times waits 50 ms (docs/decisions/008).
_SWITCH_S: Final = 0.001
# A driver that has not answered by then is said to be missing.
_CARDS_PATIENCE_S: Final = 30.0
# After the end of a run the last forecast, event and frame are drawn before a picture is taken.
_SETTLE_MS: Final = 600


class Director(QObject):
    """Carries a command through the window: starts its run, watches its time, takes its picture, ends it.

    Runs in: GUI thread. Polls the session's cells; nothing in here blocks.
    """

    def __init__(
        self,
        window: MainWindow,
        session: Session,
        job: Job | None,
        launch: Launch,
        *,
        asked_to_quit: threading.Event,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._session = session
        self._job = job
        self._launch = launch
        self._began_s: float | None = None
        self._ending = False
        self._opened_s: float | None = None
        self._under_way_s: float | None = None
        self._pictured = False
        self.error: FloodmarkError | None = None
        self._asked_to_quit = asked_to_quit
        self._poll = QTimer(self, interval=_POLL_MS)
        self._poll.timeout.connect(self._on_poll)
        self._poll.start()

    def begin(self) -> None:
        """Called when the window has been painted: sampling starts, a cut-off run is looked for."""
        self._opened_s = self._session.clock.now_s()
        self._session.open()
        threading.Thread(target=self._session.warm_up, name="warm-up", daemon=True).start()
        if self._job is None:
            threading.Thread(target=self._session.find_resume_offer, name="offer", daemon=True).start()

    def _on_poll(self) -> None:
        if self._asked_to_quit.is_set():
            self._window.closing.begin_without_question()
        if self._job is not None and self._began_s is None and self._opened_s is not None:
            self._start_when_ready(self._job)
        if self._launch.seconds is not None and self._began_s is not None and not self._ending:
            self._watch_time(self._launch.seconds)

    def _watch_time(self, seconds: float) -> None:
        """``--for`` counts from the first step; a run that ended before it from there."""
        now_s = self._session.clock.now_s()
        if self._under_way_s is None and self._session.run.get().state not in (RunState.IDLE, RunState.PREPARING):
            self._under_way_s = now_s
        if self.error is not None or (self._under_way_s is not None and now_s - self._under_way_s >= seconds):
            self._end()

    def _start_when_ready(self, job: Job) -> None:
        now_s = self._session.clock.now_s()
        waiting = not self._session.is_watching() and job.config.device != "cpu"
        if waiting and now_s - (self._opened_s or 0.0) < _CARDS_PATIENCE_S:
            return
        self._began_s = now_s
        card = self._session.selected_card()
        try:
            if job.scenario is not None and card is not None and card.simulated and card.capacity_bytes is not None:
                available_bytes = self._session.host_available_bytes()
                check_memory(job.scenario, capacity_bytes=card.capacity_bytes, available_bytes=available_bytes)
        except FloodmarkError as error:
            self.error = error
            self._session.add_notice(error.code, error.message, level="error")
            return
        self._session.start_scenario(job.config, scenario=job.scenario, resume_from=job.resume_from)

    def _end(self) -> None:
        """The time is over: stop what runs, and when it has stopped take the picture and leave."""
        self._ending = True
        if self._launch.screenshot_path is not None and self._session.run.get().state.active:
            self._take_picture(self._launch.screenshot_path)
        self._session.stop()
        self._when(lambda: not self._session.run.get().state.active, self._leave)

    def _leave(self) -> None:
        QTimer.singleShot(_SETTLE_MS, self, self._window.closing.begin_without_question)

    def on_closing_finished(self) -> None:
        self._poll.stop()
        QApplication.instance().quit()  # type: ignore[union-attr]

    def on_about_to_close(self) -> None:
        """A picture of how it ended, when none was taken while it ran."""
        path = self._launch.screenshot_path
        if path is not None and not self._pictured:
            self._take_picture(path)

    def _take_picture(self, path: Path) -> None:
        self._pictured = True
        if not self._window.grab_to(path):
            self.error = FloodmarkError("screenshot.unwritable", f"Cannot write the screenshot {path}.")

    def _when(self, ready: Callable[[], bool], act: Callable[[], None]) -> None:
        """Call ``act`` as soon as ``ready()``, without blocking."""
        if ready():
            act()
        else:
            QTimer.singleShot(_POLL_MS, self, lambda: self._when(ready, act))


def open_main_window(make_session: Callable[[float], Session], job: Job | None, launch: Launch) -> int:
    """Show the window and run the application to its end; the exit code of the command."""
    asked_to_quit = _listen_to_signals()
    sys.setswitchinterval(_SWITCH_S)
    app = make_application(sys.argv[:1])
    settings = Settings(data_folder() / "window.ini")
    session = make_session(settings.sampling_hz)
    if job is not None:
        session.run_config.set(job.config)
    window = MainWindow(
        session,
        settings=settings,
        theme=ThemeMode(launch.theme) if launch.theme else settings.theme,
        language=launch.language or settings.language or SYSTEM,
    )
    if launch.window_size is not None:
        window.resize(*launch.window_size)
    director = Director(window, session, job, launch, asked_to_quit=asked_to_quit)
    window.closing.finished.connect(director.on_about_to_close)
    window.closing_finished.connect(director.on_closing_finished)
    _catch_slot_errors(session)
    window.show()
    window.charts.placed.connect(director.begin)
    app.exec()
    return _after(session, job, launch, director.error)


def _after(session: Session, job: Job | None, launch: Launch, error: FloodmarkError | None) -> int:
    """Close what runs, write the report, and turn how it ended into an exit code."""
    for result in session.close():
        _log.info("Closed %s: %s in %.2f s", result.name, result.outcome.value, result.seconds)
    status = session.run.get()
    if launch.report_path is not None:
        scenario = None if job is None or job.scenario is None else job.scenario.name
        reports.write_report(reports.make_report(session, scenario=scenario), launch.report_path)
    if error is not None:
        raise error
    for line in session.unsaved():
        print(f"floodmark: at the end this was lost: {line}", file=sys.stderr)
    if job is None:
        return ExitCode.DONE
    if status.state is RunState.FAILED:
        raise FloodmarkError(
            status.error_code or "run.failed",
            status.error_message or "The run failed.",
            exit_code=reports.exit_code(status),
        )
    code = reports.exit_code(status)
    return int(ExitCode.RUN_FAILED if session.unsaved() and code is ExitCode.DONE else code)


def _catch_slot_errors(session: Session) -> None:
    """An exception in a slot reaches Python's hook: it is logged and shown, and the window lives on."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _log.error("Error in the window", exc_info=(kind, error, trace))
        session.add_notice("window.error", f"{kind.__name__}: {error}", level="error")

    sys.excepthook = hook


def _listen_to_signals() -> threading.Event:
    """Ctrl+C and a request to terminate end the program in stages: they are noted here and obeyed by the director,
    because a handler may come in the middle of anything, also of making the window."""
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    return asked
