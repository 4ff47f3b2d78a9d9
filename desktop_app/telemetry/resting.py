"""A backend that lets a laptop's GPU sleep: closed while nothing runs, opened again when something has woken it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from desktop_app.core.telemetry import (
    DETAIL_FIELDS,
    FAST_FIELDS,
    SLOW_FIELDS,
    Card,
    CardError,
    GpuSample,
    InstanceSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry.backend import Backend, back_fill, card_errors, has_changed, instances, missing
from desktop_app.telemetry.runtime_power import NVIDIA, RuntimePower

_log = logging.getLogger(__name__)

# Nothing on the card for so long: it may sleep.
_IDLE_S: Final = 30.0
# A card sleeps some 6 s after the last one has let go of it; one that is awake after this is held by somebody else.
_FALLS_ASLEEP_S: Final = 15.0
_LONGEST_PAUSE_S: Final = 600.0  # between two tries on a card that somebody holds


class RestingBackend:
    """Another backend, let go of while its one card sleeps or could. Runs in: one thread at a time.

    An open driver library keeps a card awake, whether or not it is asked anything. So when the kernel lets the card
    sleep and nothing has run on it for 30 s, the library is closed; every field is missing then (``asleep``), no call
    reaches the driver, and the kernel's files are looked at instead. As soon as the card is awake again, because
    somebody uses it, it is opened and read. ``wake`` opens it at once.

    With several cards it does nothing of this: closing the library would take the others' readings.
    """

    def __init__(self, base: Backend, *, now_s: Callable[[], float], power: RuntimePower | None = None) -> None:
        self._base = base
        self._now_s = now_s
        self._power = power or RuntimePower()
        self._card: Card | None = None  # the only one, where it may sleep
        self._cards: tuple[Card, ...] = ()
        self._idle_since_s: float | None = None
        self._closed_s: float | None = None  # resting since
        self._slept = False  # it has fallen asleep since it was let go
        self._pause_s = _IDLE_S  # of idleness before the next try
        self._busy = True  # since the newest process list there was load, or somebody said that there will be
        self._wanted = False

    @property
    def name(self) -> str:
        return self._base.name

    @property
    def is_resting(self) -> bool:
        return self._closed_s is not None

    def open(self) -> tuple[Card, ...]:
        """The cards; while resting, those that were there. The first opening wakes a card: nobody knows it before."""
        if self.is_resting:
            return self._cards
        for bus_id in self._power.sleeping(NVIDIA) if not self._cards else ():
            _log.info("the card at %s sleeps; it is woken once, to be known", bus_id)
        self._cards = self._base.open()
        only = self._cards[0] if len(self._cards) == 1 else None
        self._card = only if only is not None and self._power.may_sleep(only.bus_id) else None
        self._idle_since_s, self._busy = None, True
        return self._cards

    def has_changed(self) -> bool:
        return has_changed(self._base)

    def wake(self) -> None:
        """Something uses the card or is about to: it is read from the next look on. Any thread."""
        self._wanted = self._busy = True

    def card_errors(self) -> tuple[CardError, ...]:
        return () if self.is_resting else card_errors(self._base)

    def instances(self, card: Card) -> tuple[InstanceSample, ...]:
        return () if self.is_resting else instances(self._base, card)

    def back_fill(self, card: Card, *, since_s: float, readings: Mapping[str, Reading]) -> tuple[GpuSample, ...]:
        return () if self.is_resting else back_fill(self._base, card, since_s=since_s, readings=readings)

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        """All of ``FAST_FIELDS``; the moment at which a rest begins or ends."""
        if self.is_resting and self._sleeps_on():
            return missing(FAST_FIELDS, Reason.ASLEEP)
        if self._may_rest():
            self._rest()
            return missing(FAST_FIELDS, Reason.ASLEEP)
        readings = self._base.read_fast(card)
        load = readings["utilization_percent"].value
        if load:
            self._busy = True
        return readings

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        if self.is_resting:
            return missing(SLOW_FIELDS + DETAIL_FIELDS, Reason.ASLEEP)
        return self._base.read_slow(card)

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        """Who is on the card. With nobody computing and no load for 30 s it may rest; a desktop that merely has it
        open sleeps with it."""
        if self.is_resting:
            return ()
        found = self._base.processes(card)
        computing = any(process.kind != "graphics" for process in found)
        if computing or self._busy:
            self._idle_since_s = None
        if not computing and self._idle_since_s is None:
            self._idle_since_s = self._now_s()
        self._busy = self._wanted = False
        return found

    def close(self) -> None:
        self._closed_s = None
        self._base.close()

    def _may_rest(self) -> bool:
        if self._card is None or self._idle_since_s is None or self._busy:
            return False
        return self._now_s() - self._idle_since_s >= self._pause_s and self._power.may_sleep(self._card.bus_id)

    def _rest(self) -> None:
        assert self._card is not None
        _log.info("nothing runs on %s: it is let go, so that it can sleep", self._card.name)
        self._base.close()
        self._closed_s, self._slept, self._wanted = self._now_s(), False, False

    def _sleeps_on(self) -> bool:
        """Whether it is to be left alone still. ``False``: it is awake, and was opened again."""
        assert self._card is not None
        assert self._closed_s is not None
        if not self._wanted:
            if self._power.is_asleep(self._card.bus_id):
                self._slept, self._pause_s = True, _IDLE_S
                return True
            if not self._slept and self._now_s() - self._closed_s < _FALLS_ASLEEP_S:
                return True
        if not (self._slept or self._wanted):  # somebody else has it open, or nobody said that it could sleep
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        _log.info("%s is awake and read again", self._card.name)
        self._closed_s = None
        self.open()
        return False
