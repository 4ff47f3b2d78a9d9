"""The sampler thread: reads the cards on a steady grid and hands what it saw to a sink."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, ParamSpec, Protocol, TypeVar

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import Card, GpuSample, ProcessSample, Reading, Reason, SelfCost
from desktop_app.telemetry.backend import Backend, BackendUnavailable, outage_reason
from desktop_app.telemetry.host import Host, HostReader
from desktop_app.telemetry.schedule import BackOff, TickSchedule

_log = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")

FASTEST_INTERVAL_S: Final = 0.02
SLOWEST_INTERVAL_S: Final = 60.0
# A read that takes this long is a stall: values before and after it are not joined. NVML calls block for 2 to 24 s.
_STALL_S: Final = 1.0
_PAUSE_AFTER_FAULT_S: Final = 1.0
_TICKS_KEPT: Final = 256  # for the 95th percentile: 51 s at 5 Hz
_RATE_TICKS: Final = 25
_SAME_TICK_SHARE: Final = 0.25  # a slow tick falls on the fast tick next to it, whatever rounding says


class SampleSink(Protocol):
    """Where samples go. Called in: sampler thread. ``uuid`` None means all cards. Times are session seconds."""

    def on_cards(self, cards: tuple[Card, ...]) -> None: ...

    def on_gpu(self, sample: GpuSample) -> None: ...

    def on_host(self, t_s: float, readings: Mapping[str, Reading]) -> None: ...

    def on_processes(self, t_s: float, uuid: str, processes: tuple[ProcessSample, ...]) -> None: ...

    def on_outage(self, t_s: float, uuid: str | None, reason: Reason) -> None: ...

    def on_back(self, t_s: float, uuid: str | None) -> None: ...


class Sampler:
    """Owns a backend and its thread. Public methods: any thread; everything else: sampler thread.

    Fast fields every ``interval_s``; slow fields, processes and the host every ``slow_every_s``, on a fast tick. A card
    that is lost is told once as an outage, its samples stop, and the backend is opened again with growing waits; other
    cards and the host go on. A read that blocks for more than a second is told afterwards as an outage
    (``timed_out``) over its time, so that the curve shows a gap; ``stalled_s`` tells while it lasts.

    ``wait`` (seconds) is for tests; it replaces the wait for the next tick.
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
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._sink = sink
        self._host: Host = host or HostReader()
        self._interval_s = _clamped(interval_s)
        self._slow_every_s = slow_every_s
        self._wait = wait or self._wait_awake
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
        self._returning: set[str] = set()  # found again, not read yet
        self._back_off = BackOff()
        self._slow = TickSchedule(start_s=0.0, interval_s=slow_every_s)
        # shared under the lock
        self._lock = threading.Lock()
        self._samples = 0
        self._late = 0
        self._missed = 0
        self._tick_ms: deque[float] = deque(maxlen=_TICKS_KEPT)
        self._tick_starts_s: deque[float] = deque(maxlen=_RATE_TICKS)
        self._reading_since_s: float | None = None
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
        self._stopping.set()
        self._awake.set()
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        if self._thread.is_alive():
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
        """How long the read under way has been blocked, or 0 while all is well. For a "stale" badge."""
        with self._lock:
            since_s = self._reading_since_s
        blocked_s = 0.0 if since_s is None else self._clock.now_s() - since_s
        return blocked_s if blocked_s > _STALL_S else 0.0

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
        try:
            self._open_when_due(now_s)
            if self._is_open:
                self._read_cards(late=late, slow=slow)
        except BackendUnavailable as error:
            self._lose_all(error.reason)
        if slow and not self._stopping.is_set():
            self._read_host()
        with self._lock:
            self._tick_starts_s.append(now_s)
            self._tick_ms.append(1000.0 * (self._clock.now_s() - now_s))

    def _open_when_due(self, now_s: float) -> None:
        if self._failed:
            self._failed = False
            self._lose_all(Reason.UNKNOWN_ERROR)
        if self._is_open and self._look_again.is_set():
            self._look_again.clear()
            self._opened(self._timed(self._backend.open))
        first = not self._is_open and self._back_off.until_s is None
        if not first and not self._back_off.is_over(now_s):
            return
        if not first:
            self._back_off.again(now_s)
            self._backend.close()
            self._is_open = False
        cards = self._timed(self._backend.open)
        if not self._stopping.is_set():
            self._opened(cards)

    def _opened(self, cards: tuple[Card, ...]) -> None:
        self._is_open = True
        present = {card.uuid: card for card in cards}
        self._cards.update(present)  # a lost card stays on the list
        self._sink.on_cards(tuple(self._cards.values()))
        self._returning = self._out.keys() & present.keys()
        self._out = {uuid: reason for uuid, reason in self._out.items() if uuid not in present}
        for uuid in self._cards.keys() - present.keys() - self._out.keys():
            self._lose(uuid, Reason.GPU_LOST)

    def _read_cards(self, *, late: bool, slow: bool) -> None:
        for uuid, card in self._cards.items():
            if uuid in self._out:
                continue
            readings = dict(self._timed(self._backend.read_fast, card))
            reason = outage_reason(readings)
            if reason is not None:
                self._lose(uuid, reason)
                continue
            if slow:
                readings.update(self._timed(self._backend.read_slow, card))
            if self._stopping.is_set():
                return
            self._deliver(uuid, readings, late=late)
            if slow:
                self._read_processes(card)
        if self._is_open and not self._out:
            self._back_off.reset()

    def _deliver(self, uuid: str, readings: Mapping[str, Reading], *, late: bool) -> None:
        t_s = self._clock.now_s()
        if self._all_out:
            self._tell_all_back(t_s)
        if uuid in self._returning:
            self._returning.discard(uuid)
            self._sink.on_back(t_s, uuid)
        self._sink.on_gpu(GpuSample(t_s=t_s, uuid=uuid, readings=readings, late=late))
        with self._lock:
            self._samples += 1

    def _tell_all_back(self, t_s: float) -> None:
        """Back only once a card could be read; cards still out are told by name."""
        self._all_out = False
        self._sink.on_back(t_s, None)
        for uuid, reason in self._out.items():
            self._sink.on_outage(t_s, uuid, reason)

    def _read_processes(self, card: Card) -> None:
        processes = self._timed(self._backend.processes, card)
        if not self._stopping.is_set():
            self._sink.on_processes(self._clock.now_s(), card.uuid, processes)

    def _read_host(self) -> None:
        t_s = self._clock.now_s()
        readings = self._host.read(t_s)
        self._sink.on_host(t_s, readings)
        with self._lock:
            self._last_host = readings

    def _timed(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call into the backend, which may block; a stall is told afterwards."""
        began_s = self._clock.now_s()
        with self._lock:
            self._reading_since_s = began_s
        try:
            return call(*args, **kwargs)
        finally:
            ended_s = self._clock.now_s()
            with self._lock:
                self._reading_since_s = None
            if ended_s - began_s > _STALL_S and not self._all_out and not self._stopping.is_set():
                self._tell_stall(began_s, ended_s)

    def _tell_stall(self, began_s: float, ended_s: float) -> None:
        _log.info("the driver did not answer for %.1f s", ended_s - began_s)
        for uuid in self._cards.keys() - self._out.keys():
            self._sink.on_outage(began_s, uuid, Reason.TIMED_OUT)
            self._sink.on_back(ended_s, uuid)

    def _lose(self, uuid: str, reason: Reason) -> None:
        """One card is out. Told unless it was found again but not readable, or all are out already."""
        now_s = self._clock.now_s()
        self._out[uuid] = reason
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
            self._returning.clear()
            self._sink.on_outage(now_s, None, reason)

    def _close(self) -> None:
        try:
            self._backend.close()
        except Exception:
            _log.exception("the backend did not close")

    def _wait_awake(self, seconds: float) -> None:
        self._awake.wait(seconds)
        self._awake.clear()


def _clamped(interval_s: float) -> float:
    return min(SLOWEST_INTERVAL_S, max(FASTEST_INTERVAL_S, interval_s))
