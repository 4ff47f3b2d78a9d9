"""Threads that call the driver, so that a call that blocks holds up neither the other cards nor the sampler."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

# A card that has answered in time this often may be read in one thread with the others again (10 s at 5 Hz).
_PROMPT_ANSWERS: Final = 50


@dataclass(slots=True, eq=False)
class Errand:
    """One piece of work in the driver. ``owner``: the card it is for, ``None`` for the whole backend."""

    owner: str | None
    work: Callable[[], object]
    result: object = None
    error: Exception | None = None
    began_s: float | None = None  # session time
    ended_s: float | None = None
    left_alone: bool = False  # nobody waits for it any more; its answer is fetched when it comes
    started_at_s: float = 0.0  # monotonic time of the machine, for patience


class Readers:
    """One thread for all cards, and one of its own for each card whose calls block.

    ``run`` waits for what it has sent out as long as each call is quick. A call that is not is left alone: its thread
    becomes that card's own, the cards behind it go on in a new one, and no further call is sent to that card before
    the blocked one has come back. Threads: at most one per card and one more. Methods: one thread at a time.
    """

    def __init__(self, *, now_s: Callable[[], float], patience_s: float) -> None:
        self._now_s = now_s
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._shared: _Reader | None = None
        self._own: dict[str | None, _Reader] = {}
        self._prompt: dict[str | None, int] = {}
        self._finished: deque[Errand] = deque()
        self._ended = False
        self.left_alone = 0  # calls that took longer than the patience

    def run(self, errands: Sequence[Errand]) -> list[Errand]:
        """Send them out and wait; everything that has come back by then, also of earlier times, oldest first.

        Errands of owners that are still busy are dropped. Returns at once when ``interrupt`` was called.
        """
        with self._changed:
            waiting = [errand for errand in errands if not self._is_busy(errand.owner)]
            asked = dict.fromkeys([self._reader_of(errand.owner).take(errand) for errand in waiting])
            for reader in asked:  # last: a thread that is woken while this one is busy waits twice
                reader.wake()
            while not self._ended and (under_way := [e for e in waiting if e.ended_s is None and not e.left_alone]):
                rest_s = self._rest_s(under_way)
                if rest_s > 0:
                    self._changed.wait(rest_s)
                else:
                    self._leave_alone()
            finished = list(self._finished)
            self._finished.clear()
            self._rejoin(finished)
            return finished

    def busy(self) -> list[Errand]:
        """What is in the driver now, beyond all patience."""
        with self._changed:
            return [reader.current for reader in self._own.values() if reader.current is not None]

    def oldest_began_s(self) -> float | None:
        """When the oldest call under way began. Any thread."""
        with self._changed:
            began = [r.current.began_s for r in self._all() if r.current is not None and r.current.began_s is not None]
        return min(began, default=None)

    def interrupt(self) -> None:
        """End the wait under way, and all later ones. Any thread."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def end(self, timeout_s: float) -> bool:
        """End the threads. False: a call is still in the driver; its thread ends when it comes back."""
        with self._changed:
            self._ended = True
            for reader in self._all():
                reader.end()
            blocked = any(errand.left_alone for errand in self._currents())
            if not blocked:
                self._changed.wait_for(lambda: not self._currents(), timeout_s)
            return not self._currents()

    def _currents(self) -> list[Errand]:
        return [reader.current for reader in self._all() if reader.current is not None]

    def _all(self) -> list[_Reader]:
        return [*([self._shared] if self._shared else ()), *self._own.values()]

    def _is_busy(self, owner: str | None) -> bool:
        reader = self._own.get(owner)
        return reader is not None and reader.is_busy

    def _reader_of(self, owner: str | None) -> _Reader:
        if owner in self._own:
            return self._own[owner]
        if self._shared is None:
            self._shared = _Reader(self._lock, self._changed, self._finished, now_s=self._now_s)
        return self._shared

    def _rest_s(self, under_way: Sequence[Errand]) -> float:
        """How long the call that was started first may still take."""
        started = [errand.started_at_s for errand in under_way if errand.started_at_s]
        return min(started, default=time.monotonic()) + self._patience_s - time.monotonic()

    def _leave_alone(self) -> None:
        """Give every card whose call takes too long the thread that it is in."""
        for reader in self._all():
            errand = reader.current
            if errand is None or errand.left_alone or time.monotonic() - errand.started_at_s < self._patience_s:
                continue
            errand.left_alone = True
            self.left_alone += 1
            self._prompt[errand.owner] = 0
            if reader is self._shared:
                self._shared = None
                self._own[errand.owner] = reader
                for behind in reader.give_up_queue():
                    self._reader_of(behind.owner).take(behind).wake()

    def _rejoin(self, finished: Sequence[Errand]) -> None:
        for errand in finished:
            reader = self._own.get(errand.owner)
            if reader is None or errand.left_alone:
                continue
            self._prompt[errand.owner] += 1
            if self._prompt[errand.owner] >= _PROMPT_ANSWERS and not reader.is_busy:
                reader.end()
                del self._own[errand.owner]


class _Reader:
    """A thread that runs errands in order. Everything but the work itself happens under the condition's lock."""

    def __init__(
        self, lock: threading.Lock, changed: threading.Condition, finished: deque[Errand], *, now_s: Callable[[], float]
    ) -> None:
        self._lock = lock
        self._changed = changed
        self._finished = finished
        self._now_s = now_s
        self._queue: deque[Errand] = deque()
        self._wake = threading.Condition(lock)
        self._ended = False
        self.current: Errand | None = None
        # daemon: a call that hangs in the driver must not keep the process alive
        threading.Thread(target=self._run, name="card reader", daemon=True).start()

    @property
    def is_busy(self) -> bool:
        return self.current is not None or bool(self._queue)

    def take(self, errand: Errand) -> _Reader:
        """Itself, to be woken."""
        self._queue.append(errand)
        return self

    def wake(self) -> None:
        self._wake.notify()

    def give_up_queue(self) -> list[Errand]:
        behind = list(self._queue)
        self._queue.clear()
        return behind

    def end(self) -> None:
        self._ended = True
        self._queue.clear()
        self._wake.notify()

    def _run(self) -> None:
        errand = self._next(None)
        while errand is not None:
            try:
                errand.result = errand.work()
            except Exception as error:  # raised again where the errand was sent out
                errand.error = error
            errand = self._next(errand)

    def _next(self, done: Errand | None) -> Errand | None:
        """Hand in what is done and wait for more. ``None``: the end."""
        with self._lock:
            now_s = self._now_s()
            self.current = None
            if done is not None:
                done.ended_s = now_s
                self._finished.append(done)
            if not self._queue:
                self._changed.notify_all()  # once for all that was sent out together
            while not self._queue and not self._ended:
                self._wake.wait()
                now_s = self._now_s()
            if self._ended:
                return None
            self.current = errand = self._queue.popleft()
            errand.started_at_s = time.monotonic()
            errand.began_s = now_s
            return errand
