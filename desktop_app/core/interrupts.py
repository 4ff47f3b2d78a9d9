"""Ctrl+C while extension modules are being imported."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Ctrl+C inside ends the program at once, as the shell knows it (130), and not with a stack.

    An exception in the midst of an import leaves modules half made; Qt's aborts then. Changes nothing where Ctrl+C is
    ignored or somebody else's already, and outside the main thread.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
