"""A backend that lets GPUs sleep: closed while nothing runs, opened again when something has woken one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

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
from desktop_app.telemetry.card_memory import CardMemory
from desktop_app.telemetry.kernel_driver import NVIDIA_DRIVER
from desktop_app.telemetry.nvml_facts import with_torch_indexes
from desktop_app.telemetry.runtime_power import NVIDIA, RuntimePower

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

# Nothing on the card for so long: it may sleep.
_IDLE_S: Final = 30.0
# A card sleeps some 6 s after the last one has let go of it; one that is awake after this is held by somebody else.
_FALLS_ASLEEP_S: Final = 15.0
_LONGEST_PAUSE_S: Final = 600.0  # between two tries on a card that somebody holds


class RestingBackend:
    """Another backend, let go of while its cards sleep or could. Runs in: one thread at a time for each card.

    An open driver library keeps its cards awake, whether or not it is asked anything. So when the kernel lets all of
    them sleep and nothing has run on any for 30 s, the library is closed; every field is missing then (``asleep``), no
    call reaches the driver, and the kernel's files are looked at instead. As soon as one is awake again, because
    somebody uses it, the library is opened and all are read. ``wake`` opens it at once. While one card may not sleep or
    has work the library stays open: closing it would take that card's readings.

    ``memory``: where the cards are kept from session to session, so that those that sleep at the start are not woken
    to be known.
    """

    def __init__(
        self,
        base: Backend,
        *,
        now_s: Callable[[], float],
        power: RuntimePower | None = None,
        memory: CardMemory | None = None,
    ) -> None:
        self._base = base
        self._now_s = now_s
        self._power = power or RuntimePower()
        self._memory = memory
        self._cards: tuple[Card, ...] = ()
        self._handed_out: tuple[Card, ...] = ()  # by the last opening: those that are asked for
        self._left_asleep: tuple[str, ...] = ()  # bus ids of all there were, where none was woken to be known
        self._never_there: frozenset[str] = frozenset()  # handed out from memory, and the driver has others
        self._may_all_sleep = False
        self._was_open = False  # the driver has told them
        self._idle_since_s: dict[str, float] = {}  # of the cards on which nothing runs
        self._busy: set[str] = set()  # with load since their newest process list
        self._closed_s: float | None = None  # resting since
        self._slept: set[str] = set()  # those that have fallen asleep since they were let go
        self._pause_s = _IDLE_S  # of idleness before the next try
        self._wanted = False  # somebody is about to use a card
        self._lock = threading.RLock()  # of the state below and of opening and closing
        self._under_way = 0  # calls in the driver: it is never closed under one

    @property
    def name(self) -> str:
        return self._base.name

    @property
    def is_resting(self) -> bool:
        return self._closed_s is not None

    def open(self) -> tuple[Card, ...]:
        """The cards; while resting, those that were there. Cards that all sleep and are known from before are left
        asleep; else the first opening wakes them, because nobody knows them."""
        with self._lock:
            if not self.is_resting and not self._are_left_asleep():
                self._open()
            self._handed_out, self._never_there = self._cards, frozenset()
            return self._cards

    def has_changed(self) -> bool:
        """Also whether the driver has said something else of them than was known from before, until they are opened
        anew; and before it is asked first, whether the kernel's driver has others."""
        if self._cards != self._handed_out:
            return True
        if self._was_open:
            return has_changed(self._base)
        return self.is_resting and self._driven() != self._left_asleep

    def wake(self) -> None:
        """Something uses a card or is about to: all are read from the next look on. Any thread."""
        self._wanted = True

    def card_errors(self) -> tuple[CardError, ...]:
        return self._unless_resting(lambda: card_errors(self._base), ())

    def instances(self, card: Card) -> tuple[InstanceSample, ...]:
        return self._unless_resting(lambda: instances(self._base, card), ())

    def back_fill(self, card: Card, *, since_s: float, readings: Mapping[str, Reading]) -> tuple[GpuSample, ...]:
        return self._unless_resting(lambda: back_fill(self._base, card, since_s=since_s, readings=readings), ())

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        """All of ``FAST_FIELDS``; the moment at which a rest begins or ends."""
        with self._lock:
            if self._are_let_go():
                return missing(FAST_FIELDS, Reason.ASLEEP)
        if card.uuid in self._never_there:
            return missing(FAST_FIELDS, Reason.NOT_READ_YET)
        readings = self._unless_resting(lambda: self._base.read_fast(card), None)
        if readings is None:  # let go meanwhile, for another card
            return missing(FAST_FIELDS, Reason.ASLEEP)
        if readings["utilization_percent"].value:
            self._busy.add(card.uuid)
        return readings

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        if card.uuid in self._never_there:
            return missing(SLOW_FIELDS + DETAIL_FIELDS, Reason.NOT_READ_YET)
        return self._unless_resting(
            lambda: self._base.read_slow(card), missing(SLOW_FIELDS + DETAIL_FIELDS, Reason.ASLEEP)
        )

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        """Who is on the card. With nobody computing and no load for 30 s it may rest; a desktop that merely has it
        open sleeps with it."""
        found = self._unless_resting(lambda: self._base.processes(card), None)
        if found is None:
            return ()
        with self._lock:
            if any(process.kind != "graphics" for process in found):
                self._idle_since_s.pop(card.uuid, None)
            elif card.uuid in self._busy or self._wanted:
                self._idle_since_s[card.uuid] = self._now_s()
            else:
                self._idle_since_s.setdefault(card.uuid, self._now_s())
            self._busy.discard(card.uuid)
            if card.uuid == self._cards[-1].uuid:  # all have heard it
                self._wanted = False
        return found

    def close(self) -> None:
        with self._lock:
            self._closed_s = None
            self._base.close()

    def _driven(self) -> tuple[str, ...]:
        """Bus ids of those that NVIDIA's driver has."""
        return self._power.driven_by(NVIDIA_DRIVER, vendor=NVIDIA)

    def _are_left_asleep(self) -> bool:
        """Whether the first opening needs no driver, because all sleep and are known."""
        driven = () if self._cards else self._driven()
        sleeping = tuple(bus_id for bus_id in driven if self._power.is_asleep(bus_id))
        known: tuple[Card, ...] = ()
        if self._memory is not None and sleeping and sleeping == driven and not self._wanted:
            known = self._memory.recall(driven)
        if known:
            _log.info("%s asleep: left so", ", ".join(card.name for card in known))
            self._cards, self._may_all_sleep, self._left_asleep = with_torch_indexes(known), True, driven
            self._closed_s, self._slept = self._now_s(), {card.uuid for card in known}
            return True
        for bus_id in sleeping:
            _log.info("the card at %s sleeps; it is woken once, to be known", bus_id)
        return False

    def _open(self) -> None:
        cards = self._base.open()
        if not self._was_open:
            self._never_there = frozenset(card.uuid for card in self._cards) - {card.uuid for card in cards}
        self._cards, self._was_open = cards, True
        self._may_all_sleep = all(self._power.may_sleep(card.bus_id) for card in self._cards)
        self._idle_since_s.clear()
        if self._memory is not None and self._may_all_sleep:
            self._memory.keep(self._cards)

    def _unless_resting(self, ask: Callable[[], _T], resting: _T) -> _T:
        """A call into the driver, under which it is not closed."""
        with self._lock:
            if self.is_resting:
                return resting
            self._under_way += 1
        try:
            return ask()
        finally:
            with self._lock:
                self._under_way -= 1

    def _are_let_go(self) -> bool:
        """Whether nobody is to be asked at this look: they are let go, now or before."""
        return self._sleeps_on() if self.is_resting else self._rests()

    def _rests(self) -> bool:
        """Whether the cards were just let go."""
        if not self._may_all_sleep or self._wanted or self._busy or self._under_way:
            return False
        idle_since_s = [self._idle_since_s.get(card.uuid) for card in self._cards]
        now_s = self._now_s()
        if any(since_s is None or now_s - since_s < self._pause_s for since_s in idle_since_s):
            return False
        if not all(self._power.may_sleep(card.bus_id) for card in self._cards):
            return False
        _log.info("nothing runs on %s: let go, to sleep", ", ".join(card.name for card in self._cards))
        self._base.close()
        self._closed_s, self._slept = now_s, set()
        return True

    def _sleeps_on(self) -> bool:
        """Whether they are to be left alone still. ``False``: one is awake, and the driver was opened again."""
        assert self._closed_s is not None
        if not self._wanted:
            asleep = {card.uuid for card in self._cards if self._power.is_asleep(card.bus_id)}
            woken = self._slept - asleep
            self._slept |= asleep
            if len(asleep) == len(self._cards):
                self._pause_s = _IDLE_S
                return True
            if not woken and self._now_s() - self._closed_s < _FALLS_ASLEEP_S:
                return True
            if not woken:  # somebody else has one open, or nobody said that it could sleep
                self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        _log.info("%s: awake and read again", ", ".join(card.name for card in self._cards))
        self._closed_s = None
        self._open()
        return False
