"""Cards of every maker, from what the system lists: no driver, no library, nothing woken."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop_app.telemetry.catalogue import load_catalogue
from desktop_app.telemetry.other_vendors import VENDORS, list_machine_cards, mac_cards, pci_cards, windows_card

PCI_IDS = """\
# a list of PCI ids
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]
\t\t1da2 e471  NITRO+ RX 7900 XTX Vapor-X
\t740f  Aldebaran/MI200 [Instinct MI210]
10de  NVIDIA Corporation
\t2204  GA102 [GeForce RTX 3090]
1ed5  Moore Threads Technology Co.,Ltd
\t0400  MTT S5000
8086  Intel Corporation
\t56a0  DG2 [Arc A770]
\t56a00  no id of four digits
"""


class Bus:
    """A folder as the kernel's list of PCI devices."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "devices"
        self.folder.mkdir()
        self.names = folder / "pci.ids"
        self.names.write_text(PCI_IDS)

    def add(
        self, bus_id: str, vendor: int, device: int, kind: int, *, driver: str | None = None, power: str = ""
    ) -> None:
        place = self.folder / bus_id
        (place / "power").mkdir(parents=True)
        for name, value in (("vendor", f"0x{vendor:04x}"), ("device", f"0x{device:04x}"), ("class", f"0x{kind:06x}")):
            (place / name).write_text(f"{value}\n")
        if power:
            (place / "power" / "runtime_status").write_text(f"{power}\n")
        if driver is not None:
            (place / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")


@pytest.fixture
def bus(tmp_path: Path) -> Bus:
    return Bus(tmp_path)


def test_cards_with_their_names_drivers_and_sleep(bus: Bus) -> None:
    bus.add("0000:00:02.0", 0x8086, 0x56A0, 0x030000, driver="i915")
    bus.add("0000:01:00.0", 0x10DE, 0x2204, 0x030000, driver="nvidia", power="suspended")
    bus.add("0000:03:00.0", 0x1002, 0x744C, 0x038000, driver="amdgpu", power="active")
    bus.add("0000:04:00.0", 0x1ED5, 0x0400, 0x120000)
    bus.add("0000:05:00.0", 0x1002, 0x740F, 0x038000)
    cards = pci_cards(bus.folder, names=(bus.names,))
    assert [(card.vendor, card.name, card.bus_id, card.kernel_driver, card.asleep) for card in cards] == [
        ("Intel", "DG2 [Arc A770]", "0000:00:02.0", "i915", False),
        ("NVIDIA", "GA102 [GeForce RTX 3090]", "0000:01:00.0", "nvidia", True),
        ("AMD", "Navi 31 [Radeon RX 7900 XT/7900 XTX]", "0000:03:00.0", "amdgpu", False),
        ("Moore Threads", "MTT S5000", "0000:04:00.0", None, False),
        ("AMD", "Aldebaran/MI200 [Instinct MI210]", "0000:05:00.0", None, False),
    ]
    known = [card.known.name if card.known else None for card in cards]
    assert known == ["Arc A770", "GeForce RTX 3090", None, "MTT S5000", "Radeon Instinct MI210"], (
        "one id of two cards is none"
    )


def test_what_is_no_card_is_left_out(bus: Bus) -> None:
    bus.add("0000:00:00.0", 0x8086, 0x1234, 0x060000)  # a bridge
    bus.add("0000:00:03.0", 0x10DE, 0x1AEF, 0x040300)  # the sound of a card
    bus.add("0000:02:00.0", 0x1A03, 0x2000, 0x030000)  # a server's screen, of a maker of no cards
    bus.add("0000:02:01.0", 0x19E5, 0x1711, 0x030000)  # the same of Huawei
    (bus.folder / "0000:09:00.0").mkdir()  # files that cannot be read
    (bus.folder / "0000:0a:00.0").mkdir()
    (bus.folder / "0000:0a:00.0" / "vendor").write_text("nonsense")
    assert pci_cards(bus.folder, names=(bus.names,)) == ()


@pytest.mark.parametrize(("vendor", "maker"), sorted(VENDORS.items()))
def test_every_maker_is_known_by_its_id_without_any_list_of_names(bus: Bus, vendor: int, maker: str) -> None:
    bus.add("0000:01:00.0", vendor, 0xABCD, 0x120000)
    (card,) = pci_cards(bus.folder, names=(bus.folder / "none",))
    assert (card.vendor, card.name, card.device_id, card.known) == (maker, None, 0xABCD, None)
    assert maker in {part.vendor for part in load_catalogue()}, "as the catalogue writes it"


def test_without_a_bus_there_are_none(tmp_path: Path) -> None:
    assert pci_cards(tmp_path / "none") == ()


def test_a_device_that_is_not_in_the_list_of_names_has_none(bus: Bus) -> None:
    bus.add("0000:01:00.0", 0x10DE, 0xFFFF, 0x030000)
    (card,) = pci_cards(bus.folder, names=(bus.folder / "none", bus.names))
    assert (card.name, card.known) == (None, None)


@pytest.mark.parametrize(
    ("chip", "known"), [("Apple M2 Max", True), ("Apple M99", False), ("Intel(R) Core(TM) i7", None), (None, None)]
)
def test_a_mac(chip: str | None, known: bool | None) -> None:
    cards = mac_cards(chip)
    assert bool(cards) is (known is not None)
    for card in cards:
        assert (card.vendor, card.name, card.known is not None) == ("Apple", chip, known)


def test_windows() -> None:
    card = windows_card("AMD Radeon RX 7900 XTX", r"PCI\VEN_1002&DEV_744C&REV_C8")
    assert card is not None
    assert (card.vendor, card.device_id, card.known is not None) == ("AMD", 0x744C, True)
    assert windows_card("Microsoft Basic Display Adapter", r"ROOT\BasicDisplay") is None
    assert windows_card("Virtual Display", r"PCI\VEN_1AF4&DEV_1050") is None


def test_this_machine_can_be_listed() -> None:
    assert isinstance(list_machine_cards(), tuple)
