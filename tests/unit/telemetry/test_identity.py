"""CUDA's numbering of cards, from the environment alone."""

from __future__ import annotations

import pytest

from desktop_app.telemetry.identity import CardIdentity, torch_index, visible_order

# Names A to C in the order of the bus: the driver lists B first.
A = CardIdentity("GPU-aaaa1111", "00000000:01:00.0", "RTX 3060")
B = CardIdentity("GPU-bbbb2222", "00000000:41:00.0", "RTX 3060")
C = CardIdentity("GPU-aabb3333", "00000000:C1:00.0", "RTX 3060")
CARDS = [B, A, C]


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, (A, B, C)),
        ("", ()),
        ("0,1,2", (A, B, C)),
        ("2,0", (C, A)),
        (" 1 , 2 ", (B, C)),
        ("1gpu,+2", (B, C)),  # digits as strtoul reads them
        ("1,-1,0", (B,)),  # ends at the first invalid entry
        ("1,7,0", (B,)),
        ("-1", ()),
        ("0,0", ()),  # a repeated entry hides everything
        ("GPU-bbbb2222", (B,)),
        ("GPU-bb,GPU-aaaa", (B, A)),  # short prefixes
        ("GPU-aa", ()),  # fits two cards
        ("GPU-cccc,0", ()),
        ("0,GPU-aaaa1111", ()),  # the same card twice
        ("none", ()),
    ],
)
def test_visible_devices(visible: str | None, expected: tuple[CardIdentity, ...]) -> None:
    order = visible_order(CARDS, visible_devices=visible, device_order="PCI_BUS_ID")
    assert order == tuple(card.uuid for card in expected)


def test_mig_ids_stand_for_themselves() -> None:
    order = visible_order(CARDS, visible_devices="MIG-1234,GPU-bbbb", device_order=None)
    assert order == ("MIG-1234", B.uuid)


def test_equal_cards_are_in_bus_order_without_a_setting() -> None:
    assert visible_order(CARDS, visible_devices=None, device_order=None) == (A.uuid, B.uuid, C.uuid)


def test_fastest_first_is_not_known_for_different_cards() -> None:
    cards = [A, CardIdentity("GPU-dddd", "00000000:02:00.0", "RTX 4090")]
    assert visible_order(cards, visible_devices=None, device_order="FASTEST_FIRST") == (None, None)
    assert visible_order(cards, visible_devices="1", device_order=None) == (None,)
    # a UUID is known whatever the order
    assert visible_order(cards, visible_devices="1,GPU-aaaa", device_order=None) == (None, A.uuid)
    assert visible_order(cards, visible_devices=None, device_order="PCI_BUS_ID") == (A.uuid, "GPU-dddd")


def test_torch_index() -> None:
    order = visible_order(CARDS, visible_devices="2,0", device_order="PCI_BUS_ID")
    assert [torch_index(card.uuid, order) for card in (A, B, C)] == [1, None, 0]
