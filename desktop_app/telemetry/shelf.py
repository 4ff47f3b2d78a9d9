"""Cards beside the machine's own: any of the catalogue, simulated, put there while the sampler runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from desktop_app.core.clock import SessionClock
from desktop_app.core.load import CardLoad
from desktop_app.core.telemetry import Card, CardError, GpuSample, InstanceSample, ProcessSample, Reading
from desktop_app.telemetry.backend import Backend, back_fill, card_errors, has_changed, instances, wake
from desktop_app.telemetry.catalogue import find_simulable_card
from desktop_app.telemetry.simulated import SimulatedBackend


class CardShelf:
    """A backend, and simulated cards beside it. Each simulated card has a load of its own, written by its training.

    ``add`` may be called from any thread; the rest belongs to the sampler thread.
    """

    def __init__(self, base: Backend, *, clock: SessionClock, on_added: Callable[[], None] = lambda: None) -> None:
        self._base = base
        self._clock = clock
        self._on_added = on_added
        self._lock = threading.Lock()
        self._simulated: dict[str, SimulatedBackend] = {}
        self._loads: dict[str, CardLoad] = {}

    @property
    def name(self) -> str:
        return self._base.name

    def add(self, card_name: str) -> Card:
        """The simulated card of that name, put on the shelf when it is not there. Returns at once.

        Raises ``NoSuchDeviceError`` for a name that is not, or not surely, in the catalogue.
        """
        card, load, backend = self._make(card_name)
        with self._lock:
            if card.uuid in self._simulated:
                return card
            self._simulated = {**self._simulated, card.uuid: backend}
            self._loads[card.uuid] = load
        self._on_added()
        return card

    def describe(self, card_name: str) -> Card:
        """The card as ``add`` would give it, without putting it there: for an estimate."""
        return self._make(card_name)[0]

    def load_of(self, uuid: str) -> CardLoad | None:
        """Where a training on that simulated card books its work; ``None`` for the base backend's cards."""
        with self._lock:
            return self._loads.get(uuid)

    def open(self) -> tuple[Card, ...]:
        """The base backend's cards, then the simulated ones in the order in which they came."""
        own = self._base.open()
        known = {card.uuid for card in own}
        added = [card for backend in self._simulated.values() for card in backend.open()]
        return (*own, *(card for card in added if card.uuid not in known))

    def has_changed(self) -> bool:
        return has_changed(self._base)

    def wake(self) -> None:
        wake(self._base)

    def card_errors(self) -> tuple[CardError, ...]:
        return card_errors(self._base)

    def instances(self, card: Card) -> tuple[InstanceSample, ...]:
        return instances(self._backend_of(card), card)

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        return self._backend_of(card).read_fast(card)

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        return self._backend_of(card).read_slow(card)

    def back_fill(self, card: Card, *, since_s: float, readings: Mapping[str, Reading]) -> tuple[GpuSample, ...]:
        return back_fill(self._backend_of(card), card, since_s=since_s, readings=readings)

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        return self._backend_of(card).processes(card)

    def close(self) -> None:
        self._base.close()

    def _backend_of(self, card: Card) -> Backend:
        return self._simulated.get(card.uuid, self._base)

    def _make(self, card_name: str) -> tuple[Card, CardLoad, SimulatedBackend]:
        load = CardLoad(t_s=self._clock.now_s())
        backend = SimulatedBackend(find_simulable_card(card_name), load=load, clock=self._clock)
        return backend.open()[0], load, backend
