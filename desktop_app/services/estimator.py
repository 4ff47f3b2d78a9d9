"""Estimates on request, the newest wins, never in the way of the window."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from desktop_app.core.errors import FloodmarkError
from desktop_app.core.forecasts import Estimate
from desktop_app.core.store import Cell
from desktop_app.core.telemetry import Card
from desktop_app.services.facade import EstimateState, EstimateStatus
from desktop_app.training.config import RunConfig

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EstimateRequest:
    config: RunConfig
    card: Card
    others_bytes: int
    with_levers: bool = True


# Called first without and then with levers; imports torch, so it is handed in and loaded late.
Compute = Callable[[EstimateRequest], Estimate]

_UNEXPECTED: Final = "estimate.failed"


class Estimator:
    """Answers the newest request and forgets older ones. Runs in: estimator thread, started by the first request."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._condition = threading.Condition()
        self._waiting: EstimateRequest | None = None
        self._ending = False
        self._thread: threading.Thread | None = None
        self.status: Cell[EstimateStatus] = Cell(EstimateStatus(EstimateState.NONE))

    def request(self, request: EstimateRequest) -> None:
        """Returns at once; the answer appears in ``status``."""
        with self._condition:
            if self._ending:
                return
            self._waiting = request
            known = self.status.get()
            self.status.set(EstimateStatus(EstimateState.WORKING, known.estimate, request.config))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="estimator", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def wait_for(self, config: RunConfig, *, timeout_s: float) -> EstimateStatus:
        """The answer for ``config``; blocks up to ``timeout_s``. For the trainer's thread, never for the window's."""
        with self._condition:
            self._condition.wait_for(lambda: self._has_answer(config), timeout_s)
            return self.status.get()

    def stop(self, timeout_s: float = 2.0) -> bool:
        """A trace under way is given up with the process: the thread is a daemon."""
        with self._condition:
            self._ending = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def _has_answer(self, config: RunConfig) -> bool:
        status = self.status.get()
        return self._ending or (status.config == config and status.state is not EstimateState.WORKING)

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
        """The verdict first, at once; what would help after it, unless a newer request has come."""
        for with_levers in (False, True) if request.with_levers else (False,):
            status = self._try(EstimateRequest(request.config, request.card, request.others_bytes, with_levers))
            with self._condition:
                if self._waiting is not None or self._ending:
                    return
                self.status.set(status)
                self._condition.notify_all()
            if status.state is EstimateState.FAILED:
                return

    def _try(self, request: EstimateRequest) -> EstimateStatus:
        try:
            return EstimateStatus(EstimateState.READY, self._compute(request), request.config)
        except FloodmarkError as error:
            return EstimateStatus(EstimateState.FAILED, None, request.config, error.code, error.message)
        except Exception as error:  # the thread must outlive a model that cannot be traced
            _log.exception("The estimate failed")
            return EstimateStatus(EstimateState.FAILED, None, request.config, _UNEXPECTED, str(error) or repr(error))
