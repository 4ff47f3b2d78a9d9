"""The process that traces, from outside: its pipes, its last words, its memory, its end. Torch-free."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from desktop_app.memory.tracing import wire

# Before the child has claimed the pipe anything may come through it, without an end of line too.
_LINE_LIMIT: Final = 1 << 16
_LAST_LINES: Final = 20
_LAST_LINE_LIMIT: Final = 200  # characters: it goes into one line of ours
_END_LIMIT_S: Final = 5.0
_LAST_WORDS_S: Final = 0.5  # a process that it started may hold the pipe open
_WAKE: Final[Mapping[str, Any]] = {"wake": True}


class TracerChild:
    """One process and the two threads that listen to it.

    ``messages`` gives what it says, in order, and ``None`` once it has ended and been reaped.
    """

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str]) -> None:
        """Starts it. Raises ``OSError`` when the system will not."""
        self.messages: Final[queue.SimpleQueue[Mapping[str, Any] | None]] = queue.SimpleQueue()
        self.started_s: Final = time.monotonic()
        self._first_line = ""
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        # A session of its own: Ctrl+C in the terminal is for us, and with it all that the model starts ends too.
        self._process = subprocess.Popen(  # noqa: S603
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._jobs: Final = self._process.stdin
        self._threads: Final = (
            threading.Thread(target=self._listen, args=(self._process.stdout,), name="tracer answers", daemon=True),
            threading.Thread(target=self._overhear, args=(self._process.stderr,), name="tracer errors", daemon=True),
        )
        for thread in reversed(self._threads):  # the first waits for the last words of the second
            thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """``None`` while it lives; minus the signal that ended it."""
        return self._process.returncode

    @property
    def last_words(self) -> str:
        """The last line that it or the model wrote on standard error."""
        return next((line for line in reversed(self._last_lines) if line), "")

    @property
    def first_and_last_words(self) -> str:
        """The first line, what is wrong by a launcher's habit, and the last, by Python's. As long as one of them."""
        first, last = self._first_line, self.last_words
        if first == last or not first:
            return last
        last = last[-(_LAST_LINE_LIMIT // 2) :]
        return f"{first[: _LAST_LINE_LIMIT - len(last) - 3]} … {last}"

    def send(self, message: Mapping[str, Any]) -> None:
        """Its end, should it come meanwhile, is told by ``messages``."""
        with suppress(OSError, ValueError):
            self._jobs.write(wire.pack(message))
            self._jobs.flush()

    def wake(self) -> None:
        """Have who waits for ``messages`` look up."""
        self.messages.put(_WAKE)

    def resident_bytes(self) -> int | None:
        """Memory that it holds now; ``None`` where the system does not say (anything but Linux)."""
        try:
            fields = Path(f"/proc/{self.pid}/statm").read_text().split()
            return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError, AttributeError):
            return None

    def kill(self) -> None:
        """End it and all that it started, at once, and wait until it is reaped. Idempotent."""
        if self._process.returncode is None:
            with suppress(OSError):
                if os.name == "posix":
                    os.killpg(self.pid, signal.SIGKILL)
                else:
                    self._process.kill()
        for thread in self._threads:
            thread.join(_END_LIMIT_S)

    def _listen(self, pipe: IO[bytes]) -> None:
        """Runs in: tracer answers thread. Reaps the process when its pipe has closed."""
        claimed = False
        with pipe:
            while line := pipe.readline(-1 if claimed else _LINE_LIMIT):
                message = wire.unpack(line)
                if message is not None:
                    claimed = True
                    self.messages.put(message)
        self._process.wait()
        self._threads[1].join(_LAST_WORDS_S)  # what it said last may still be on its way
        with suppress(OSError):
            self._jobs.close()
        self.messages.put(None)

    def _overhear(self, pipe: IO[bytes]) -> None:
        """Runs in: tracer errors thread. Drains what the model prints, so that it never waits for us."""
        with pipe:
            while line := pipe.readline(_LINE_LIMIT):
                text = line[-4 * _LAST_LINE_LIMIT :].decode(errors="replace").strip()[-_LAST_LINE_LIMIT:]
                shown = "".join(letter if letter.isprintable() else "?" for letter in text)
                self._first_line = self._first_line or shown
                self._last_lines.append(shown)
