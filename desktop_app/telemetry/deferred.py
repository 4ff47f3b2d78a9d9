"""A backend that is chosen where it is used: loading the driver library can block for seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from desktop_app.core.telemetry import Card, CardError, GpuSample, InstanceSample, ProcessSample, Reading
from desktop_app.telemetry.backend import Backend, back_fill, card_errors, has_changed, instances, wake


class DeferredBackend:
    """Chooses its backend on the first ``open`` and stays with it. Runs in: sampler thread.

    ``choose`` returns an open backend. When it raises, the next ``open`` asks it again.
    """

    def __init__(self, choose: Callable[[], Backend]) -> None:
        self._choose = choose
        self._chosen: Backend | None = None

    @property
    def name(self) -> str:
        """Of the backend that was chosen; ``deferred`` until then."""
        return "deferred" if self._chosen is None else self._chosen.name

    def open(self) -> tuple[Card, ...]:
        """Choose, once; the cards of the choice."""
        if self._chosen is None:
            self._chosen = self._choose()
        return self._chosen.open()

    def has_changed(self) -> bool:
        return self._chosen is not None and has_changed(self._chosen)

    def wake(self) -> None:
        if self._chosen is not None:
            wake(self._chosen)

    def card_errors(self) -> tuple[CardError, ...]:
        return () if self._chosen is None else card_errors(self._chosen)

    def instances(self, card: Card) -> tuple[InstanceSample, ...]:
        return instances(self._known(), card)

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        return self._known().read_fast(card)

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        return self._known().read_slow(card)

    def back_fill(self, card: Card, *, since_s: float, readings: Mapping[str, Reading]) -> tuple[GpuSample, ...]:
        return back_fill(self._known(), card, since_s=since_s, readings=readings)

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        return self._known().processes(card)

    def close(self) -> None:
        """Close the choice; before there is one, nothing."""
        if self._chosen is not None:
            self._chosen.close()

    def _known(self) -> Backend:
        if self._chosen is None:
            raise ValueError("the backend was not opened")
        return self._chosen
