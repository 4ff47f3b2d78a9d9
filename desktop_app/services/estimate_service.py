"""The window's estimates: each run traced in a warm child, the newest wanted and the older given up. Torch-free.

docs/decisions/012 has what was measured.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from desktop_app.core.forecasts import Estimate
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracer_process import TracerProcess
from desktop_app.services.estimate_cards import card_spec, exact_context_bytes
from desktop_app.services.estimator import EstimateRequest, Tell
from desktop_app.services.trace_cache import TraceCache

if TYPE_CHECKING:
    from desktop_app.memory.card_spec import CardSpec
    from desktop_app.memory.trace_data import Trace
    from desktop_app.memory.training_spec import TrainingSpec

_log = logging.getLogger(__name__)

# A trace that has run for so long is killed for a newer request; shorter ones are waited for. A new child costs as
# much (torch's import), so neither choice costs more than twice the better one.
_PATIENCE_S: Final = 2.5
# There is no other process to trace in: this one does it, as long as torch can be imported here.
_NO_CHILD: Final = frozenset({"no_interpreter"})


class Tracer(Protocol):
    """A ``TracerProcess``, or a double of one."""

    def start(self) -> None: ...
    def trace(self, spec: TrainingSpec, card: CardSpec) -> Trace: ...
    def cancel(self, *, patience_s: float = 0.0) -> None: ...
    def close(self) -> None: ...


def _own_tracer() -> Tracer:
    """Our own interpreter, with the cards out of its sight: a context there would take memory from a training."""
    return TracerProcess(hide_cards=True)


class EstimateService:
    """Implements ``estimator.Compute`` and ``estimator.TraceControl``. Called in the estimator thread, one at a time;
    the rest may be called from any."""

    def __init__(self, make_tracer: Callable[[], Tracer] = _own_tracer) -> None:
        self._make_tracer: Final = make_tracer
        self._lock: Final = threading.Lock()
        self._cache: Final = TraceCache()
        self._tracer: Tracer | None = None
        self._wanted: EstimateRequest | None = None  # None: whatever comes
        self._tracing: EstimateRequest | None = None
        self._closed = False

    def __call__(self, request: EstimateRequest, tell: Tell) -> Estimate:
        """``FloodmarkError`` for data that cannot be read, ``TracerError`` for what cannot be traced."""
        from desktop_app.training.estimation import estimate_run
        from desktop_app.training.recipes.recipe import RECIPES

        card, config = card_spec(request.card), request.config
        is_simulated = request.card.simulated
        return estimate_run(
            config,
            card,
            info=RECIPES[config.recipe].describe(config),
            trace=lambda spec, on: self._trace(spec, on, request),
            others_bytes=request.others_bytes,
            context_bytes=exact_context_bytes(card) if is_simulated else None,
            workspaces_known=is_simulated,
            with_levers=request.with_levers,
            progress=tell,
        )

    def start(self) -> None:
        """Have the child import torch, so that the first estimate does not wait for it. Returns at once."""
        tracer = self._open_tracer()
        if tracer is not None:
            tracer.start()

    def supersede(self, newest: EstimateRequest) -> None:
        """Give up what is being traced for any other request."""
        with self._lock:
            self._wanted = newest
            if self._tracer is not None and self._tracing not in (None, self._wanted):
                self._tracer.cancel(patience_s=_PATIENCE_S)

    def close(self) -> None:
        """End the child, in the middle of a trace too. Nothing is estimated afterwards."""
        with self._lock:
            self._closed = True
            tracer, self._tracer = self._tracer, None
        if tracer is not None:
            tracer.close()

    def _trace(self, spec: TrainingSpec, card: CardSpec, request: EstimateRequest) -> Trace:
        known = self._cache.get(spec, card)
        if known is not None:
            return known
        tracer = self._begin(request)
        try:
            trace = tracer.trace(spec, card)
        except TracerError as error:
            if error.kind not in _NO_CHILD:
                raise
            _log.warning("Tracing in this process: %s", error.message)
            trace = _trace_here(spec, card)
        finally:
            with self._lock:
                self._tracing = None
        self._cache.put(spec, card, trace)
        return trace

    def _begin(self, request: EstimateRequest) -> Tracer:
        """Note whose trace it is. Raises ``TracerError`` (``cancelled``) when nobody wants it any more."""
        tracer = self._open_tracer()
        with self._lock:
            if tracer is None or self._wanted not in (None, request):
                raise TracerError("cancelled", "The estimate was given up for a newer one.")
            self._tracing = request
            return tracer

    def _open_tracer(self) -> Tracer | None:
        with self._lock:
            if self._tracer is None and not self._closed:
                self._tracer = self._make_tracer()
            return self._tracer


def _trace_here(spec: TrainingSpec, card: CardSpec) -> Trace:
    from desktop_app.memory.tracing.child import trace_spec

    return trace_spec(spec, card)
