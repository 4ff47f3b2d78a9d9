"""``UntypedStorage.resize_``, which no dispatch mode sees: sharded models free and fill their parameters with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import torch

_Watcher = Callable[[torch.UntypedStorage], None]

_lock: Final = threading.Lock()
_watchers: Final[list[_Watcher]] = []
_stock: Final = torch.UntypedStorage.resize_


def watch_resizing(watcher: _Watcher) -> None:
    """Call it after every resize, on the thread that resizes, until ``unwatch_resizing``. For the whole process."""
    with _lock:
        if not _watchers:
            torch.UntypedStorage.resize_ = _resize  # type: ignore[method-assign, assignment]
        _watchers.append(watcher)


def unwatch_resizing(watcher: _Watcher) -> None:
    """Nothing is left of it when the last one has gone."""
    with _lock:
        _watchers.remove(watcher)
        if not _watchers:
            torch.UntypedStorage.resize_ = _stock  # type: ignore[method-assign]


def _resize(storage: torch.UntypedStorage, size: int) -> Any:
    out = _stock(storage, size)
    for watcher in tuple(_watchers):
        watcher(storage)
    return out
