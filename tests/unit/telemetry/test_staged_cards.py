"""What demonstrations have around them: cards with a cap or under Windows, a neighbour, a small computer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from desktop_app.core.errors import NoSuchDeviceError
from desktop_app.core.load import CardLoad, Neighbour
from desktop_app.core.telemetry import Reading
from desktop_app.core.units import GIB, MIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.telemetry.catalogue import find_simulable_card
from desktop_app.telemetry.limited_host import HostLimit, LimitedHost


@pytest.mark.parametrize(
    ("text", "name", "total_mib", "spills"),
    [
        ("gtx 1660 capped at 1.5 GiB", "GeForce GTX 1660 capped at 1.5 GiB", 1536, False),
        ("RTX 4090 Capped at 8 gib under windows", "GeForce RTX 4090 capped at 8 GiB under Windows", 8192, True),
        ("GTX 1660 under Windows", "GeForce GTX 1660 under Windows", 6144, True),
        ("GTX 1660 capped at 6 GiB", "GeForce GTX 1660", 6144, False),
    ],
)
def test_a_card_can_be_smaller_and_under_windows(text: str, name: str, total_mib: int, spills: bool) -> None:
    card = find_simulable_card(text)
    assert (card.name, card.total_bytes, card.spills) == (name, total_mib * MIB, spills)
    assert find_simulable_card(card.name) == card


def test_a_cap_leaves_room_for_a_context() -> None:
    with pytest.raises(NoSuchDeviceError, match=r"capped at 0.25 GiB.*0.5 GiB or more"):
        find_simulable_card("GTX 1660 capped at 0.25 GiB")


def test_a_cap_above_the_card_is_one_line_and_4() -> None:
    with pytest.raises(NoSuchDeviceError, match=r"capped at 99 GiB: it has 4 GiB. Give less") as error:
        find_simulable_card("GTX 1050 Ti capped at 99 GiB")
    assert error.value.exit_code == 4
    assert "\n" not in str(error.value)


def test_a_neighbour_grows_while_the_training_computes_and_leaves_with_it() -> None:
    load, told = CardLoad(), list[int]()
    load.watch_others(told.append)
    load.invite(Neighbour("other", first_bytes=100, bytes_per_s=10, delay_s=2.0))
    load.move_neighbour(50.0, capacity_bytes=1000)
    assert load.others_bytes == 0  # nothing is computed yet
    load.begin_busy(60.0)
    load.set_memory(reserved_bytes=700, outside_bytes=50)
    for now_s in (61.0, 62.0, 64.0, 90.0):
        load.move_neighbour(now_s, capacity_bytes=1000)
    assert told == [100, 120, 250]  # the rest of the card
    load.set_memory(reserved_bytes=900, outside_bytes=50)
    load.move_neighbour(91.0, capacity_bytes=1000)
    assert load.others_bytes == 250  # what it has it keeps
    load.invite(None)
    assert (load.others_bytes, load.neighbour_name) == (0, None)


CARD = CardSpec("small", 512 * MIB, 512 * MIB, sm_count=6)


def test_memory_outside_the_allocator_grows_until_the_driver_refuses() -> None:
    load = CardLoad()
    with SimulatedDevice(CARD, load=load) as device:
        before = device.outside_bytes
        device.hold_outside(100 * MIB)
        assert device.stats().outside_bytes == load.outside_bytes == before + 100 * MIB
        with pytest.raises(RuntimeError, match="CUDA error: out of memory"):
            device.hold_outside(CARD.capacity_bytes)
        load.set_others(10 * MIB)  # heard at once: the context, what is loaded, and they leave less
        room = CARD.capacity_bytes - device.outside_bytes - 10 * MIB
        with pytest.raises(RuntimeError):
            device.hold_outside(room + 1)
        device.hold_outside(room)


def test_a_driver_that_spills_refuses_nothing_and_says_how_much() -> None:
    with SimulatedDevice(CARD, spills=True) as device:
        assert device.spilled_share == 0
        device.hold_outside(CARD.capacity_bytes)
        assert device.spilled_share == pytest.approx(
            (device.outside_bytes - CARD.capacity_bytes) / device.outside_bytes
        )


class _Machine:
    own = 1.0 * GIB

    def read(self, t_s: float) -> Mapping[str, Reading]:
        del t_s
        return {
            "own_rss_bytes": Reading(self.own),
            "children_rss_bytes": Reading(3.0 * GIB),
            "memory_total_bytes": Reading(64.0 * GIB),
            "memory_used_bytes": Reading(20.0 * GIB),
            "memory_available_bytes": Reading(44.0 * GIB),
        }


def test_a_small_computer_holds_this_program_and_some_room() -> None:
    limit, machine = HostLimit(), _Machine()
    host = LimitedHost(limit, machine)
    assert host.read(0.0)["memory_total_bytes"].value == 64 * GIB
    limit.set(512 * MIB)
    seen = []
    for t_s, own in ((1.0, 1.0), (3.0, 1.25), (9.0, 1.5), (10.0, 9.0)):
        machine.own = own * GIB
        readings = host.read(t_s)
        seen.append((readings["memory_total_bytes"].value, readings["memory_available_bytes"].value))
    assert seen == [(1.5 * GIB, 0.5 * GIB), (1.75 * GIB, 0.5 * GIB), (1.75 * GIB, 0.25 * GIB), (1.75 * GIB, 0.0)]
    limit.set(None)
    assert host.read(11.0)["memory_available_bytes"].value == 44 * GIB
