"""Estimates on request, the newest wins, never in the way of the window."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from desktop_app.core.errors import FloodmarkError
from desktop_app.core.forecasts import Estimate
from desktop_app.core.store import Cell
from desktop_app.core.telemetry import Card
from desktop_app.services.facade import EstimateState, EstimateStatus
from desktop_app.training.config import RunConfig

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EstimateRequest:
    """What to estimate on what. ``others_bytes``: what other processes hold on the card."""

    config: RunConfig
    card: Card
    others_bytes: int
    with_levers: bool = True


# Tells the answer as it grows, and gives the whole one: first without the largest batch (``PENDING`` among its
# warnings), then with it, then after each lever. What telling raises ends it.
Tell = Callable[[Estimate], None]
Compute = Callable[[EstimateRequest, Tell], Estimate]


class TraceControl(Protocol):
    """Who traces for ``Compute``, in a process of its own. Any thread may call."""

    def start(self) -> None:
        """Make ready for the first request; returns at once."""

    def supersede(self, newest: EstimateRequest) -> None:
        """Nobody wants an answer to any other request any more."""

    def close(self) -> None:
        """End what is under way, and the process."""


class SupersededError(Exception):
    """Raised in ``Compute`` by telling what nobody wants any more."""


PENDING: Final = "pending"  # memory.estimate.PENDING, which needs no import here
_UNEXPECTED: Final = "estimate.failed"
# WORKAROUND(CPython bpo-42969, < 3.14): a daemon thread that comes out of torch's C++ while the interpreter ends takes
# the process down with SIGABRT. A trace takes seconds; the process waits so long for the one under way.
_AT_EXIT_S: Final = 8.0


class Estimator:
    """Answers the newest request and forgets older ones. Runs in: estimator thread, started by the first request."""

    def __init__(self, compute: Compute, *, control: TraceControl | None = None) -> None:
        self._compute = compute
        self._control = control
        self._condition = threading.Condition()
        self._waiting: EstimateRequest | None = None
        self._newest: EstimateRequest | None = None
        self._ending = False
        self._thread: threading.Thread | None = None
        self.status: Cell[EstimateStatus] = Cell(EstimateStatus(EstimateState.NONE))

    def request(self, request: EstimateRequest) -> None:
        """Returns at once; the answer appears in ``status``."""
        with self._condition:
            if self._ending:
                return
            self._waiting = self._newest = request
            known = self.status.get()
            self.status.set(EstimateStatus(EstimateState.WORKING, known.estimate, request.config))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="estimator", daemon=True)
                self._thread.start()
                atexit.register(self.stop, _AT_EXIT_S)
            if self._control is not None:
                self._control.supersede(request)
            self._condition.notify_all()

    def warm_up(self) -> None:
        """Have the tracing process started before anybody waits for it. Returns at once."""
        if self._control is not None:
            self._control.start()

    def refuse(self, config: RunConfig, error: FloodmarkError) -> None:
        """There is nothing to estimate ``config`` on: the reason is the answer."""
        with self._condition:
            self._waiting = self._newest = None
            self.status.set(EstimateStatus(EstimateState.FAILED, None, config, error.code, error.message))
            self._condition.notify_all()

    def knows(self, config: RunConfig, card: Card) -> bool:
        """This run on this card was asked for last, and has an answer or will have one."""
        with self._condition:
            newest, state = self._newest, self.status.get().state
            asked = newest is not None and newest.config == config and newest.card == card
            return asked and state is not EstimateState.FAILED

    def wait_for(
        self, config: RunConfig, *, timeout_s: float, unless: Callable[[], bool] = lambda: False
    ) -> EstimateStatus:
        """The answer for ``config``, or the status at once when it was not asked for or a newer request has come.

        Blocks up to ``timeout_s``, or until ``unless()`` after a ``wake``. For the trainer's thread, never for the
        window's.
        """

        def is_over() -> bool:
            status = self.status.get()
            waited_for = status.state is EstimateState.WORKING and status.config == config
            return not waited_for or self._ending or unless()

        with self._condition:
            self._condition.wait_for(is_over, timeout_s)
            return self.status.get()

    def wake(self) -> None:
        """Have those who wait look at their ``unless`` again."""
        with self._condition:
            self._condition.notify_all()

    def stop(self, timeout_s: float = 2.0) -> bool:
        """Answer nobody any more. ``False``: a trace is under way still; what it finds is dropped."""
        with self._condition:
            self._ending = True
            self._condition.notify_all()
        if self._control is not None:
            self._control.close()
        if self._thread is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                return False
            atexit.unregister(self.stop)
        return True

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting is not None or self._ending)
                if self._ending:
                    return
                request, self._waiting = self._waiting, None
            assert request is not None
            self._answer(request)

    def _answer(self, request: EstimateRequest) -> None:
        """The verdict first, then the largest batch; what would help after it, unless a newer request has come."""
        try:
            answer = self._compute(request, lambda estimate: self._tell_part(estimate, request))
        except SupersededError:
            return
        except FloodmarkError as error:
            self._fail(request, error.code, error.message)
        except Exception as error:  # the thread must outlive a model that cannot be traced
            _log.warning("The estimate failed", exc_info=error)
            line = " ".join(str(error).split()) or type(error).__name__
            self._fail(request, _UNEXPECTED, line)
        else:
            self._tell(EstimateStatus(EstimateState.READY, answer, request.config), request)

    def _tell_part(self, estimate: Estimate, request: EstimateRequest) -> None:
        if PENDING in estimate.warnings:
            status = EstimateStatus(EstimateState.WORKING, estimate, request.config, levers_pending=request.with_levers)
        else:
            status = EstimateStatus(EstimateState.READY, estimate, request.config, levers_pending=request.with_levers)
        if not self._tell(status, request):
            raise SupersededError

    def _fail(self, request: EstimateRequest, code: str, line: str) -> None:
        """An answer that is there already stays, without what would have been found after it."""
        with self._condition:
            known = self.status.get()
            answered = known.state is EstimateState.READY and known.config == request.config
        status = EstimateStatus(EstimateState.FAILED, None, request.config, code, line)
        self._tell(replace(known, levers_pending=False) if answered else status, request)

    def _tell(self, status: EstimateStatus, request: EstimateRequest) -> bool:
        """False when nobody wants it any more."""
        with self._condition:
            if self._newest is not request or self._ending:
                return False
            self.status.set(status)
            self._condition.notify_all()
            return True
