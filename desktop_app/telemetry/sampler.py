"""The sampler thread: reads the cards on a steady grid and hands what it saw to a sink."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, cast

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import (
    Card,
    GpuSample,
    InstanceSample,
    ProcessSample,
    Reading,
    Reason,
    SelfCost,
)
from desktop_app.telemetry.backend import (
    Backend,
    BackendUnavailable,
    back_fill,
    card_errors,
    has_changed,
    instances,
    outage_reason,
)
from desktop_app.telemetry.host import Host, HostReader
from desktop_app.telemetry.readers import Errand, Readers
from desktop_app.telemetry.sample_sink import SampleSink
from desktop_app.telemetry.schedule import BackOff, TickSchedule, suspended_s

_log = logging.getLogger(__name__)

FASTEST_INTERVAL_S: Final = 0.02
SLOWEST_INTERVAL_S: Final = 60.0
# A read that takes this long is a stall: values before and after it are not joined. NVML calls block for 2 to 24 s.
_STALL_S: Final = 1.0
# Readings of a card that are further apart than this, and than so many intervals, have a gap between them that the
# driver's own record may fill: it samples every sixth of a second.
_GAP_S: Final = 0.5
_GAP_INTERVALS: Final = 2.5
_SLEPT_S: Final = 1.0  # nothing ran for this long: no scheduler of a desktop makes a thread wait a second
# A call is waited for this long before the other cards are read without it: half a tick at 5 Hz. Calls that measure
# (PCIe throughput) take 40 ms.
_PATIENCE_S: Final = 0.1
_PLUG_CHECK_S: Final = 5.0  # a folder is listed; a card that is plugged in takes seconds to start
_DRAIN_S: Final = 0.5  # at the end: for a call that is not known to block
_PAUSE_AFTER_FAULT_S: Final = 1.0
_TICKS_KEPT: Final = 256  # for the 95th percentile: 51 s at 5 Hz
_RATE_TICKS: Final = 25
_SAME_TICK_SHARE: Final = 0.25  # a slow tick falls on the fast tick next to it, whatever rounding says


class _CardReading(NamedTuple):  # one for each card and tick: a frozen dataclass takes four times as long
    """What one visit to a card brought. ``reason``: the card is out. ``processes``, ``instances`` on slow ticks."""

    t_s: float  # when the values came back
    readings: Mapping[str, Reading]
    reason: Reason | None
    processes: tuple[ProcessSample, ...] | None = None
    instances: tuple[InstanceSample, ...] = ()
    filled: tuple[GpuSample, ...] = ()  # of the time since the visit before, when that is long ago


class Sampler:
    """Owns a backend and its threads. Public methods: any thread; everything else: sampler thread, and calls into the
    backend: reader threads, never two for one card.

    Fast fields every ``interval_s``; slow fields, processes and the host every ``slow_every_s``, on a fast tick. A card
    that is lost is told once as an outage, its samples stop, and the backend is opened again with growing waits; other
    cards and the host go on. A card whose call takes longer than ``patience_s`` is left alone with it, in a thread of
    its own: the others are not delayed, and no second call follows the first. After a second it is told as an outage
    (``timed_out``) from the call's beginning; when the call comes back, its values count. While any call is blocked
    the backend is not closed, so cards that are lost meanwhile come back later. A time in which nothing ran (the
    computer slept) is an outage of all cards (``suspended``).

    ``wait`` (seconds) and ``asleep`` (seconds so far) are for tests; they replace the wait for the next tick and the
    clock of suspensions.
    """

    def __init__(
        self,
        backend: Backend,
        clock: SessionClock,
        *,
        sink: SampleSink,
        interval_s: float = 0.2,
        slow_every_s: float = 1.0,
        host: Host | None = None,
        wait: Callable[[float], None] | None = None,
        asleep: Callable[[], float] = suspended_s,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._sink = sink
        self._host: Host = host or HostReader()
        self._interval_s = _clamped(interval_s)
        self._slow_every_s = slow_every_s
        self._wait = wait or self._wait_awake
        self._asleep = asleep
        self._readers = Readers(now_s=clock.now_s, patience_s=patience_s)
        self._pid = os.getpid()
        self._stopping = threading.Event()
        self._awake = threading.Event()
        self._look_again = threading.Event()
        self._thread: threading.Thread | None = None
        # sampler thread only
        self._cards: dict[str, Card] = {}
        self._is_open = False
        self._all_out = False  # told as an outage of all cards
        self._failed = False  # the last tick ended in an unexpected error
        self._out: dict[str, Reason] = {}  # lost, waiting for the next opening
        self._seen_s: dict[str, float] = {}  # when each card was read last, since it was last out
        self._met: set[str] = set()  # cards that have had a value; others may be known from another time only
        self._returning: set[str] = set()  # found again, not read yet
        self._opening = False  # an opening is under way
        self._blocked: dict[Errand, list[str]] = {}  # calls that are told as outages, and of which cards
        self._asleep_before_s = asleep()
        self._last_tick_s = 0.0
        self._plug_due_s = _PLUG_CHECK_S
        self._left_behind = False  # a call was in the driver at the end
        self._back_off = BackOff()
        self._slow = TickSchedule(start_s=0.0, interval_s=slow_every_s)
        self._delivered = 0  # samples
        # shared under the lock
        self._lock = threading.Lock()
        self._samples = 0
        self._late = 0
        self._missed = 0
        self._tick_ms: deque[float] = deque(maxlen=_TICKS_KEPT)
        self._tick_starts_s: deque[float] = deque(maxlen=_RATE_TICKS)
        self._last_host: Mapping[str, Reading] = {}

    def start(self) -> None:
        """Start the thread. Once."""
        if self._thread is not None:
            raise ValueError("the sampler was started already")
        # daemon: a call that hangs in the driver must not keep the process alive
        self._thread = threading.Thread(target=self.run, name="sampler", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> bool:
        """Ask the thread to end and wait. False: it is blocked in the driver and was left behind; it calls nothing
        more when it wakes up, and the driver library is not shut down under it."""
        if os.getpid() != self._pid:  # a forked child has none of the threads
            return True
        self._stopping.set()
        self._awake.set()
        self._readers.interrupt()
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        if self._thread.is_alive() or self._left_behind:
            _log.warning("the sampler is blocked in the driver for %.1f s: left behind", self.stalled_s)
            return False
        return True

    def set_interval(self, interval_s: float) -> None:
        """Sample this often from the next tick on (0.02 to 60 s)."""
        with self._lock:
            self._interval_s = _clamped(interval_s)
        self._awake.set()

    def look_again(self) -> None:
        """Ask the backend for its cards on the next tick: there may be one more."""
        self._look_again.set()
        self._awake.set()

    @property
    def stalled_s(self) -> float:
        """How long the oldest read under way has been blocked, or 0 while all is well. For a "stale" badge."""
        since_s = self._readers.oldest_began_s()
        blocked_s = 0.0 if since_s is None else self._clock.now_s() - since_s
        return blocked_s if blocked_s > _STALL_S else 0.0

    @property
    def left_alone(self) -> int:
        """Calls that were not waited for, so far: they took longer than the patience, or never came back."""
        return self._readers.left_alone

    @property
    def missed(self) -> int:
        """Ticks that were skipped because the one before them took too long."""
        with self._lock:
            return self._missed

    def cost(self) -> SelfCost:
        """What watching costs. ``late`` counts late and missed ticks; ``sampling_hz`` is the rate that was reached."""
        with self._lock:
            host, starts, durations = self._last_host, list(self._tick_starts_s), sorted(self._tick_ms)
            samples, late, nominal_hz = self._samples, self._late + self._missed, 1.0 / self._interval_s
        cpu, rss = host.get("own_cpu_percent"), host.get("own_rss_bytes")
        spread_s = starts[-1] - starts[0] if len(starts) > 1 else 0.0
        return SelfCost(
            cpu_percent=cpu.value if cpu else None,
            rss_bytes=int(rss.value) if rss and rss.value is not None else None,
            sampling_hz=(len(starts) - 1) / spread_s if spread_s > 0 else nominal_hz,
            samples=samples,
            late=late,
            tick_p95_ms=durations[int(0.95 * (len(durations) - 1))] if durations else None,
        )

    def run(self) -> None:
        """The thread's main: until ``stop``."""
        while not self._stopping.is_set():
            try:
                self._sample_on_grid()
            except Exception:
                _log.exception("sampling failed; it starts again in a moment")
                self._is_open, self._failed = False, True
                self._back_off.start(self._clock.now_s())
                self._wait(_PAUSE_AFTER_FAULT_S)
        self._close()

    def _sample_on_grid(self) -> None:
        schedule = TickSchedule(start_s=self._clock.now_s(), interval_s=self._interval_s)
        self._slow = TickSchedule(start_s=schedule.due_s, interval_s=self._slow_every_s)
        while not self._stopping.is_set():
            if schedule.interval_s != self._interval_s:
                schedule = TickSchedule(start_s=self._clock.now_s(), interval_s=self._interval_s)
            now_s = self._clock.now_s()
            if now_s < schedule.due_s:
                self._wait(schedule.due_s - now_s)
                continue
            self._note_sleep(now_s, due_s=schedule.due_s)
            late = schedule.is_late(now_s)
            self._tick(now_s, late=late)
            missed = schedule.advance(self._clock.now_s())
            with self._lock:
                self._late += late
                self._missed += missed

    def _tick(self, now_s: float, *, late: bool) -> None:
        slow = now_s >= self._slow.due_s - _SAME_TICK_SHARE * self._interval_s
        if slow:
            self._slow.advance(now_s)
        self._collect(self._readers.run(self._opening_when_due(now_s)), late=late)
        if self._is_open and not self._opening:
            self._collect(self._readers.run(self._visits(slow=slow)), late=late)
            self._rest()
        self._tell_blocked()
        self._tell_errors()
        if slow and not self._stopping.is_set():
            self._read_host()
        with self._lock:
            self._samples = self._delivered
            self._tick_starts_s.append(now_s)
            self._tick_ms.append(1000.0 * (self._clock.now_s() - now_s))

    def _opening_when_due(self, now_s: float) -> list[Errand]:
        if self._failed:
            self._failed = False
            self._lose_all(Reason.UNKNOWN_ERROR)
        if self._opening:
            return []
        if self._is_open and self._look_again.is_set():
            self._look_again.clear()
            self._opening = True
            return [Errand(None, self._backend.open)]
        first = not self._is_open and self._back_off.until_s is None
        plugged = self._is_open and self._is_plugged(now_s)
        if not (first or plugged or self._back_off.is_over(now_s)):
            return []
        if self._readers.busy():  # the library is never shut down under a call
            return []
        self._opening = True
        if first:
            return [Errand(None, self._backend.open)]
        if not plugged:
            self._back_off.again(now_s)
        self._is_open = False
        return [Errand(None, self._open_again)]

    def _is_plugged(self, now_s: float) -> bool:
        """Whether a card has come or gone, asked every few seconds."""
        if now_s < self._plug_due_s:
            return False
        self._plug_due_s = now_s + _PLUG_CHECK_S
        return has_changed(self._backend)

    def _open_again(self) -> tuple[Card, ...]:
        """Runs in: reader thread."""
        self._backend.close()
        return self._backend.open()

    def _visits(self, *, slow: bool) -> list[Errand]:
        return [
            Errand(uuid, partial(self._visit, card, slow=slow, seen_s=self._seen_s.get(uuid)))
            for uuid, card in self._cards.items()
            if uuid not in self._out
        ]

    def _visit(self, card: Card, *, slow: bool, seen_s: float | None) -> _CardReading:
        """Runs in: reader thread."""
        readings = self._backend.read_fast(card)
        reason = outage_reason(readings)
        filled = () if reason is not None or seen_s is None else self._fill(card, readings, seen_s)
        if not slow or reason is not None or self._stopping.is_set():
            return _CardReading(self._clock.now_s(), readings, reason, filled=filled)
        readings = {**readings, **self._backend.read_slow(card)}
        t_s = self._clock.now_s()
        return _CardReading(
            t_s,
            readings,
            reason,
            processes=self._backend.processes(card),
            instances=instances(self._backend, card),
            filled=filled,
        )

    def _fill(self, card: Card, readings: Mapping[str, Reading], seen_s: float) -> tuple[GpuSample, ...]:
        """Runs in: reader thread. Of the time since the card was read last, if that is a gap."""
        gap_s = self._clock.now_s() - seen_s
        if gap_s <= max(_GAP_S, _GAP_INTERVALS * self._interval_s) or self._stopping.is_set():
            return ()
        return back_fill(self._backend, card, since_s=seen_s, readings=readings)

    def _collect(self, finished: Sequence[Errand], *, late: bool) -> None:
        """Everything that has come back. What went wrong counts after what went well."""
        errors = []
        for errand in finished:
            if self._stopping.is_set():
                return
            self._tell_stall(errand)
            if errand.owner is None:
                self._opening = False
            if errand.error is not None:
                errors.append(errand.error)
            elif isinstance(errand.result, _CardReading):
                self._take(str(errand.owner), errand.result, late=late or errand.left_alone)
            else:
                self._opened(cast("tuple[Card, ...]", errand.result))
        for error in errors:
            if not isinstance(error, BackendUnavailable):
                raise error
        for error in errors[:1]:
            self._lose_all(cast("BackendUnavailable", error).reason)

    def _rest(self) -> None:
        """All is well: the next trouble begins with short waits again."""
        if self._is_open and not self._out:
            self._back_off.reset()

    def _take(self, uuid: str, reading: _CardReading, *, late: bool) -> None:
        if not self._is_open or uuid in self._out:  # an answer from before the driver was closed
            return
        if reading.reason is not None:
            self._lose(uuid, reading.reason)
            return
        self._deliver(uuid, reading, late=late)
        if reading.processes is not None:
            self._sink.on_processes(self._clock.now_s(), uuid, reading.processes)
        if reading.instances:
            self._sink.on_instances(reading.t_s, uuid, reading.instances)

    def _opened(self, cards: tuple[Card, ...]) -> None:
        self._is_open = True
        present = {card.uuid: card for card in cards}
        self._cards.update(present)  # a lost card stays on the list
        for uuid in self._cards.keys() - present.keys() - self._out.keys() - self._met:
            del self._cards[uuid]  # it was never there
        self._sink.on_cards(tuple(self._cards.values()))
        self._returning = self._out.keys() & present.keys()
        self._out = {uuid: reason for uuid, reason in self._out.items() if uuid not in present}
        for uuid in self._cards.keys() - present.keys() - self._out.keys():
            self._lose(uuid, Reason.GPU_LOST)

    def _deliver(self, uuid: str, reading: _CardReading, *, late: bool) -> None:
        t_s = reading.t_s
        if self._all_out:
            self._tell_all_back(t_s)
        if uuid in self._returning:
            self._returning.discard(uuid)
            self._sink.on_back(t_s, uuid)
        for sample in reading.filled:
            self._sink.on_filled(sample)
        self._sink.on_gpu(GpuSample(t_s, uuid, reading.readings, late))
        if uuid not in self._met and any(each.value is not None for each in reading.readings.values()):
            self._met.add(uuid)
        self._seen_s[uuid] = t_s
        self._delivered += 1

    def _tell_all_back(self, t_s: float) -> None:
        """Back only once a card could be read; cards still out are told by name."""
        self._all_out = False
        self._sink.on_back(t_s, None)
        for uuid, reason in self._out.items():
            self._sink.on_outage(t_s, uuid, reason)

    def _read_host(self) -> None:
        t_s = self._clock.now_s()
        readings = self._host.read(t_s)
        self._sink.on_host(t_s, readings)
        with self._lock:
            self._last_host = readings

    def _tell_stall(self, errand: Errand) -> None:
        """A call took long: an outage over its time, of its card or of all that waited with it."""
        began_s, ended_s = errand.began_s or 0.0, errand.ended_s or 0.0
        if ended_s - began_s <= _STALL_S and not self._blocked:  # nearly always
            return
        back_s = errand.result.t_s if isinstance(errand.result, _CardReading) else ended_s  # not after the values
        told = self._blocked.pop(errand, None)
        if told is None and (ended_s - began_s <= _STALL_S or self._all_out):
            return
        _log.info("the driver did not answer for %.1f s", ended_s - began_s)
        for uuid in self._waiting_for(errand) if told is None else told:
            if told is None:
                self._sink.on_outage(began_s, uuid, Reason.TIMED_OUT)
            if uuid not in self._out:
                self._sink.on_back(back_s, uuid)

    def _tell_blocked(self) -> None:
        """Calls that are blocked now are outages from their beginning."""
        now_s = self._clock.now_s()
        if self._all_out or self._stopping.is_set():
            return
        for errand in self._readers.busy():
            began_s = errand.began_s or now_s
            if now_s - began_s > _STALL_S and errand not in self._blocked:
                self._blocked[errand] = self._waiting_for(errand)
                for uuid in self._blocked[errand]:
                    self._sink.on_outage(began_s, uuid, Reason.TIMED_OUT)

    def _tell_errors(self) -> None:
        """What the driver has pushed meanwhile, also of cards that are out."""
        for error in card_errors(self._backend):
            if not self._stopping.is_set():
                self._sink.on_card_error(error)

    def _waiting_for(self, errand: Errand) -> list[str]:
        """The cards that are not read while this call lasts, and that nobody has missed yet."""
        if errand.left_alone and errand.owner is not None:
            return [errand.owner] if errand.owner not in self._out else []
        blocked = {uuid for uuids in self._blocked.values() for uuid in uuids}
        return [uuid for uuid in self._cards if uuid not in self._out and uuid not in blocked]

    def _note_sleep(self, now_s: float, *, due_s: float) -> None:
        """Nothing ran for a time: the computer slept, or this process was stopped. A gap, and told."""
        asleep_s, before_s = self._asleep(), self._asleep_before_s
        slept = asleep_s - before_s > _SLEPT_S or now_s - due_s > _SLEPT_S
        began_s, self._last_tick_s, self._asleep_before_s = self._last_tick_s, now_s, asleep_s
        if not slept or self._all_out or not self._is_open:
            return
        _log.info("nothing ran for %.1f s", max(now_s - due_s, asleep_s - before_s))
        blocked = {uuid for uuids in self._blocked.values() for uuid in uuids}
        for uuid in self._cards.keys() - self._out.keys() - blocked:
            self._sink.on_outage(began_s, uuid, Reason.SUSPENDED)
            self._sink.on_back(now_s, uuid)

    def _lose(self, uuid: str, reason: Reason) -> None:
        """One card is out. Told unless it was found again but not readable, or all are out already."""
        now_s = self._clock.now_s()
        self._out[uuid] = reason
        self._seen_s.pop(uuid, None)
        self._back_off.start(now_s)
        if uuid in self._returning:
            self._returning.discard(uuid)
        elif not self._all_out and not self._stopping.is_set():
            self._sink.on_outage(now_s, uuid, reason)

    def _lose_all(self, reason: Reason) -> None:
        """Nothing can be read. Told once, and not when each card was told already."""
        now_s = self._clock.now_s()
        self._is_open = False
        self._back_off.start(now_s)
        told = self._all_out or (bool(self._cards) and self._out.keys() >= self._cards.keys())
        if not told and not self._stopping.is_set():
            self._all_out = True
            self._out.clear()
            self._seen_s.clear()
            self._returning.clear()
            self._blocked.clear()
            self._sink.on_outage(now_s, None, reason)

    def _close(self) -> None:
        self._left_behind = not self._readers.end(_DRAIN_S)
        if self._left_behind:
            return
        try:
            self._backend.close()
        except Exception:
            _log.exception("the backend did not close")

    def _wait_awake(self, seconds: float) -> None:
        self._awake.wait(seconds)
        self._awake.clear()


def _clamped(interval_s: float) -> float:
    return min(SLOWEST_INTERVAL_S, max(FASTEST_INTERVAL_S, interval_s))
