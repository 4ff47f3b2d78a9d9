"""Between micro-steps: obey the token, hold a paused run, keep a pace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from desktop_app.core.clock import SessionClock
from desktop_app.core.steps import RunState
from desktop_app.training.control import ControlToken, RunCancelled, Shrink


class BusyLoad(Protocol):
    """Told when the device computes; ``core.load.CardLoad`` is one."""

    def begin_busy(self, t_s: float) -> None: ...
    def end_busy(self, t_s: float) -> None: ...


class NoLoad:
    """Nobody wants to know."""

    def begin_busy(self, t_s: float) -> None: ...
    def end_busy(self, t_s: float) -> None: ...


class Gate:
    """Lets the run through to its next micro-step. ``held_s``: seconds spent in pauses. Runs in: trainer thread."""

    def __init__(
        self,
        token: ControlToken,
        *,
        clock: SessionClock,
        load: BusyLoad,
        show: Callable[[RunState], None],
        save: Callable[[], None],
        shrink: Callable[[Shrink], None],
        max_steps_per_s: float | None,
    ) -> None:
        self._token = token
        self._clock = clock
        self._load = load
        self._show = show
        self._save = save
        self._shrink = shrink
        self._interval_s = None if max_steps_per_s is None else 1 / max_steps_per_s
        self._due_s = 0.0
        self.held_s = 0.0

    def check(self) -> None:
        """Before each micro-step. ``RunCancelled`` for a stop; returns when the run may go on."""
        if self._token.attention:
            self._obey()

    def await_turn(self) -> None:
        """Before each optimizer step: wait for its turn. A request wakes at once."""
        if self._interval_s is None:
            return
        while (wait_s := self._due_s - self._clock.now_s()) > 0:
            if not self._token.wait(wait_s):
                self._obey()
        # A late step does not make the next ones hurry.
        self._due_s = max(self._due_s, self._clock.now_s() - self._interval_s / 2) + self._interval_s

    def _obey(self) -> None:
        token = self._token
        while token.attention:
            if token.stop_requested:
                self._show(RunState.STOPPING)
                raise RunCancelled
            if token.take_save_request():
                self._save()
            elif (part := token.take_shrink_request()) is not None:
                self._shrink(part)
            elif token.pause_requested:
                self._hold()

    def _hold(self) -> None:
        began_s = self._clock.now_s()
        self._load.end_busy(began_s)
        self._show(RunState.PAUSED)
        self._token.wait_while_paused()
        self.held_s += self._clock.now_s() - began_s
        if not self._token.pause_requested and not self._token.stop_requested:
            self._show(RunState.RUNNING)
