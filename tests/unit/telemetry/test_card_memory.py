"""The file that knows cards from session to session: whole, of one driver, and nothing rather than something wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.telemetry import Card, EnergySource, MigInstance, Reason
from desktop_app.telemetry.card_memory import CardMemory
from desktop_app.telemetry.kernel_driver import bound_driver, nvidia_version

PLACES = ("0000:01:00.0", "0000:02:00.0")
CARDS = tuple(
    Card(
        uuid=f"GPU-{number}",
        name="RTX 4060 Laptop",
        nvml_index=number,
        bus_id=f"0000{place}",
        simulated=False,
        total_bytes=8 * 2**30,
        driver_reserved_bytes=200 * 2**20,
        compute_capability=(8, 9),
        power_limit_w=115.0,
        energy_source=EnergySource.COUNTER,
        reasons={"numa_node": Reason.NOT_SUPPORTED},
    )
    for number, place in enumerate(PLACES)
)


def memory(path: Path, *, driver: str | None = "550.54.14", part: str | None = "10de 28a0 - -") -> CardMemory:
    return CardMemory(path, identity=lambda _: part, driver=lambda: driver)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where both cards are remembered."""
    path = tmp_path / "deep" / "cards.json"
    memory(path).keep(CARDS)
    return path


def test_what_is_kept_comes_back_as_it_was(path: Path) -> None:
    assert memory(path).recall(PLACES) == CARDS
    assert memory(path).recall(PLACES[:1]) == ()
    assert memory(path, part=None).recall(PLACES) == ()
    assert memory(path, driver="580.65.06").recall(PLACES) == ()
    assert memory(path, driver=None).recall(PLACES) == ()


def test_other_cards_take_the_place_of_those_before(path: Path) -> None:
    memory(path, driver="580.65.06").keep(CARDS[:1])
    assert memory(path, driver="580.65.06").recall(PLACES[:1]) == CARDS[:1]
    assert [entry.name for entry in path.parent.iterdir()] == ["cards.json"], "nothing is left beside it"


def test_a_card_in_slices_is_not_kept_nor_what_it_was_before(path: Path) -> None:
    memory(path).keep([replace(CARDS[0], instances=(MigInstance("MIG-1", "1g", 1, 0),)), CARDS[1]])
    assert not path.exists()


def test_without_a_driver_nothing_is_kept(tmp_path: Path) -> None:
    memory(tmp_path / "cards.json", driver=None).keep(CARDS)
    assert not (tmp_path / "cards.json").exists()


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    memory(tmp_path / "file" / "cards.json").keep(CARDS)


def test_a_disk_that_is_full_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, write = path.read_bytes(), Path.write_text

    def half(self: Path, text: str, **how: Any) -> int:
        write(self, text[: len(text) // 2], **how)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    memory(path).keep(CARDS[:1])
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["cards.json"]


@pytest.mark.parametrize("damage", [b"\xff\xfe{", b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"format": 2}', b"\x00"])
def test_a_file_that_is_none_is_nothing_known_and_is_written_anew(path: Path, damage: bytes) -> None:
    path.write_bytes(damage)
    assert memory(path).recall(PLACES) == ()
    memory(path).keep(CARDS)
    assert memory(path).recall(PLACES) == CARDS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("uuid", 7),
        ("uuid", ""),
        ("uuid", "GPU-1"),  # that of the other
        ("name", None),
        ("nvml_index", "0"),
        ("nvml_index", True),
        ("bus_id", ["0000:01:00.0"]),
        ("bus_id", "0000:02:00.0"),  # that of the other
        ("simulated", 0),
        ("simulated", True),
        ("total_bytes", "8 GiB"),
        ("total_bytes", 8.5e9),
        ("driver_reserved_bytes", 9 * 2**30),
        ("driver_reserved_bytes", -1),
        ("power_limit_w", "115"),
        ("power_limit_w", float("nan")),
        ("compute_capability", [8]),
        ("compute_capability", ["8", 9]),
        ("compute_capability", 8),
        ("energy_source", "sun"),
        ("reasons", []),
        ("reasons", {"numa_node": "so"}),
        ("architecture", {}),
    ],
)
def test_a_fact_of_another_type_is_no_fact(path: Path, name: str, value: object) -> None:
    found = json.loads(path.read_text())
    found["cards"][0]["card"][name] = value
    path.write_text(json.dumps(found))
    assert memory(path).recall(PLACES) == ()


def test_a_whole_number_is_a_number(path: Path) -> None:
    found = json.loads(path.read_text())
    found["cards"][0]["card"]["power_limit_w"] = 115
    path.write_text(json.dumps(found))
    assert memory(path).recall(PLACES) == CARDS


# As the driver's releases write it: /proc/driver/nvidia/version of the closed and of the open module.
CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\nGCC version:  12.3.0\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)  Sun Jul 27\n"
)


@pytest.mark.parametrize(
    ("module", "said", "version"),
    [
        ("570.86.10\n", "", "570.86.10"),
        (None, CLOSED, "550.54.14"),
        (None, OPEN, "580.65.06"),
        ("390.157\n", None, "390.157"),
        ("", "no driver", None),
        (None, None, None),
    ],
)
def test_the_version_of_the_driver(tmp_path: Path, module: str | None, said: str | None, version: str | None) -> None:
    files = tmp_path / "module", tmp_path / "said"
    for file, text in zip(files, (module, said), strict=True):
        if text is not None:
            file.write_text(text)
    assert nvidia_version(files) == version


def test_who_drives_a_card(tmp_path: Path) -> None:
    assert bound_driver(tmp_path) is None
    (tmp_path / "driver").symlink_to("../../../../bus/pci/drivers/vfio-pci")
    assert bound_driver(tmp_path) == "vfio-pci"
