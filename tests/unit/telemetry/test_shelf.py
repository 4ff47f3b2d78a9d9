"""Simulated cards beside the machine's own."""

from __future__ import annotations

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import NoSuchDeviceError
from desktop_app.core.load import CardLoad
from desktop_app.core.units import GIB, MIB
from desktop_app.telemetry.selection import open_backend
from desktop_app.telemetry.shelf import CardShelf


@pytest.fixture
def shelf() -> CardShelf:
    clock = SessionClock()
    return CardShelf(open_backend("GeForce GTX 1660", load=CardLoad(), clock=clock), clock=clock)


def test_an_added_card_is_read_beside_the_first(shelf: CardShelf) -> None:
    added = shelf.add("RTX 4090")
    assert [card.name for card in shelf.open()] == ["GeForce GTX 1660", "GeForce RTX 4090"]
    assert added.total_bytes == 24 * GIB or added.total_bytes == 24564 * MIB
    load = shelf.load_of(added.uuid)
    assert load is not None
    load.set_memory(reserved_bytes=3 * GIB, outside_bytes=GIB)
    assert shelf.read_fast(added)["memory_used_bytes"].value == 4 * GIB
    assert shelf.read_fast(shelf.open()[0])["memory_used_bytes"].value == 0


def test_adding_twice_is_one_card(shelf: CardShelf) -> None:
    first, again = shelf.add("A100 SXM4 40 GB"), shelf.add("a100-sxm4-40-gb")
    assert first == again
    assert len(shelf.open()) == 2


def test_describing_a_card_does_not_put_it_there(shelf: CardShelf) -> None:
    assert shelf.describe("T4").simulated
    assert len(shelf.open()) == 1


def test_an_unknown_name_is_refused(shelf: CardShelf) -> None:
    with pytest.raises(NoSuchDeviceError, match="Voodoo"):
        shelf.add("Voodoo 2")
    assert len(shelf.open()) == 1
