"""A backend that is chosen where it is used."""

from __future__ import annotations

import threading

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.load import CardLoad
from desktop_app.core.telemetry import DETAIL_FIELDS, FAST_FIELDS, SLOW_FIELDS
from desktop_app.telemetry.backend import Backend
from desktop_app.telemetry.deferred import DeferredBackend
from desktop_app.telemetry.selection import open_backend


def simulated() -> Backend:
    return open_backend("GeForce GTX 1660", load=CardLoad(), clock=SessionClock())


def test_nothing_is_chosen_before_the_first_opening_and_only_once() -> None:
    chosen: list[int] = []

    def choose() -> Backend:
        chosen.append(threading.get_ident())
        return simulated()

    backend = DeferredBackend(choose)
    backend.close()
    assert (backend.name, chosen) == ("deferred", [])
    cards = []
    opener = threading.Thread(target=lambda: cards.append(backend.open()))
    opener.start()
    opener.join(10.0)
    assert chosen == [opener.ident]
    backend.close()
    assert backend.open() == cards[0]
    assert len(chosen) == 1
    assert backend.name == "simulated"


def test_a_choice_that_fails_is_made_again() -> None:
    attempts = []

    def choose() -> Backend:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("the library could not be mapped")
        return simulated()

    backend = DeferredBackend(choose)
    with pytest.raises(OSError, match="mapped"):
        backend.open()
    assert len(backend.open()) == 1


def test_it_reads_what_its_choice_reads() -> None:
    backend = DeferredBackend(simulated)
    (card,) = backend.open()
    assert set(backend.read_fast(card)) == set(FAST_FIELDS)
    assert set(backend.read_slow(card)) == set(SLOW_FIELDS) | set(DETAIL_FIELDS)
    assert backend.processes(card) == ()


def test_reading_before_opening_is_a_mistake_of_the_caller() -> None:
    (card,) = simulated().open()
    with pytest.raises(ValueError, match="not opened"):
        DeferredBackend(simulated).read_fast(card)
