"""For every test: no display needed, nothing of the user's machine touched, no thread left behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.turns import turn

# Before any Qt is loaded. Tests of real windows set QT_QPA_PLATFORM themselves.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# Qt's file dialogs and settings must not look for a desktop on the machine of whoever runs the tests.
os.environ.setdefault("QT_QPA_PLATFORMTHEME", "")
# How long threads of a test may take to end after it: joins in the program take up to 2 s.
THREAD_GRACE_S = 3.0
# Pools that libraries keep for the life of the process.
POOL_NAMES = ("ThreadPoolExecutor", "pymp-", "asyncio_", "QThread", "Dummy-")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests marked ``alone`` run while no other worker runs one; waiting is no part of a test's time limit."""
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.fixture(autouse=True)
def private_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data folder and Qt's settings lie in a folder of this test run."""
    folder: Path = tmp_path_factory.getbasetemp() / "home"
    monkeypatch.setenv("FLOODMARK_DATA", str(folder / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Fail when a test leaves a thread running."""
    before = set(threading.enumerate())
    yield
    deadline_s = time.monotonic() + THREAD_GRACE_S
    left = _new_threads(before)
    while left and time.monotonic() < deadline_s:
        left[0].join(0.05)
        left = _new_threads(before)
    assert not left, f"threads left running: {[thread.name for thread in left]}"


def _new_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread not in before and thread.is_alive() and not thread.name.startswith(POOL_NAMES)
    ]
