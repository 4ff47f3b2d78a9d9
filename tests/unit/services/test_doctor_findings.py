"""Every finding of the doctor: when it comes, its exact words, and what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.telemetry import Card, MigInstance, Reason
from desktop_app.services import doctor_sight
from desktop_app.services.doctor_cards import card_findings, other_findings
from desktop_app.services.doctor_driver import ADVICE, driver_findings
from desktop_app.services.doctor_findings import Finding, Level
from desktop_app.services.doctor_sight import (
    AmdProbe,
    DeviceNode,
    Sight,
    is_wsl,
    kernel_driver_version,
    list_nodes,
    look_around,
)
from desktop_app.telemetry.backend import Advice
from desktop_app.telemetry.catalogue import find_card
from desktop_app.telemetry.nvml_backend import NvmlProbe
from desktop_app.telemetry.other_vendors import MachineCard

from .doctor_views import ill, well
from .doubles import make_card

ON_BUS = MachineCard("NVIDIA", "GA102 [GeForce RTX 3090]", "0000:01:00.0", 0x2204, "nvidia")


def card(uuid: str = "GPU-a", **facts: Any) -> Card:
    known: dict[str, Any] = {"name": "RTX 3090", "bus_id": "00000000:01:00.0", "torch_index": 0}
    return make_card(uuid, simulated=False, **{**known, **facts})


def all_findings(sight: Sight) -> list[Finding]:
    return [*driver_findings(sight), *card_findings(sight), *other_findings(sight)]


def by_code(sight: Sight) -> dict[str, Finding]:
    return {finding.code: finding for finding in all_findings(sight)}


def test_a_healthy_card_has_nothing_to_say_but_that_it_is_there() -> None:
    healthy = card(
        persistence_mode="on",
        ecc_mode="on",
        mig_mode="off",
        compute_mode="default",
        display_active="off",
        pcie_width_max=16,
    )
    sight = Sight(
        well(healthy, ecc_uncorrected=0, remapping_pending=0, remapping_failed=0, pcie_width=16),
        (ON_BUS,),
        nodes=tuple(DeviceNode(f"/dev/{name}", usable=True) for name in ("nvidia0", "nvidiactl", "nvidia-uvm")),
        platform="linux",
    )
    assert [(finding.code, finding.level) for finding in all_findings(sight)] == [
        ("driver.ok", Level.OK),
        ("card.ok", Level.OK),
    ]


# The driver

IN_DOCKER = {"container": "docker"}
IN_WSL = {"wsl": True}


@pytest.mark.parametrize(
    ("probe", "place", "code", "text", "advice"),
    [
        (
            ill(Reason.NO_DRIVER, Advice.INSTALL_DRIVER, "no library"),
            {"platform": "linux"},
            "driver.no_driver",
            "no library (no_driver)",
            "There is no NVIDIA card on the PCI bus. Cards are simulated.",
        ),
        (
            ill(Reason.NO_DRIVER, Advice.INSTALL_DRIVER, "no library"),
            {"platform": "linux", "machine": (ON_BUS,)},
            "driver.no_driver",
            "no library (no_driver)",
            "Install NVIDIA's driver. Until then cards are simulated.",
        ),
        (
            ill(Reason.NO_DRIVER, Advice.INSTALL_DRIVER, "no library"),
            {"platform": "win32"},
            "driver.no_driver",
            "no library (no_driver)",
            "Install NVIDIA's driver. Until then cards are simulated.",
        ),
        (
            ill(Reason.NO_DRIVER, Advice.INSTALL_DRIVER, "no library"),
            IN_DOCKER,
            "driver.no_driver",
            "no library (no_driver); in a container (docker)",
            "Start the container with the card: 'docker run --gpus all …' (podman: --device nvidia.com/gpu=all; "
            "Kubernetes: limits: nvidia.com/gpu), with nvidia-container-toolkit on the host. The driver itself belongs "
            "on the host.",
        ),
        (
            ill(Reason.NO_DRIVER, Advice.INSTALL_DRIVER, "no library"),
            IN_WSL,
            "driver.no_driver",
            "no library (no_driver); in WSL",
            "Install or update NVIDIA's driver in Windows, and none inside WSL; then run 'wsl --update' and 'wsl "
            "--shutdown'.",
        ),
        (
            ill(Reason.NO_DRIVER, Advice.LOAD_DRIVER, "not loaded"),
            {},
            "driver.no_driver",
            "not loaded (no_driver)",
            "The driver's library is there but the driver is not loaded: run 'sudo modprobe nvidia' or restart the "
            "machine. With Secure Boot the module must be signed.",
        ),
        (
            ill(Reason.DRIVER_MISMATCH, Advice.RESTART_AFTER_UPDATE, "versions differ"),
            {"kernel_driver_version": "570.86.10"},
            "driver.driver_mismatch",
            "versions differ (driver_mismatch); loaded is 570.86.10",
            "The driver was updated while it ran: restart the machine, or end what uses the card and run 'sudo rmmod "
            "nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia'.",
        ),
        (
            ill(Reason.DRIVER_MISMATCH, Advice.RESTART_AFTER_UPDATE, "versions differ"),
            IN_DOCKER,
            "driver.driver_mismatch",
            "versions differ (driver_mismatch); in a container (docker)",
            "The host's driver was updated under the container: restart the host, then the container.",
        ),
        (
            ill(Reason.UNKNOWN_ERROR, Advice.TRY_AGAIN, "code 999"),
            IN_DOCKER,
            "driver.unknown_error",
            "code 999 (unknown_error); in a container (docker)",
            "The container has lost its devices (as after 'systemctl daemon-reload' on the host): restart the "
            "container.",
        ),
        (
            ill(Reason.NO_PERMISSION, Advice.ALLOW_ACCESS, "code 4"),
            {},
            "driver.no_permission",
            "code 4 (no_permission)",
            "Your user may not open /dev/nvidia*: join the group that may (often 'video' or 'render').",
        ),
        (
            ill(Reason.GPU_LOST, Advice.CHECK_CARD, "sees no card"),
            {},
            "driver.gpu_lost",
            "sees no card (gpu_lost)",
            "Look for 'NVRM' and 'Xid' in 'sudo dmesg', check the card's power and seat, and restart the machine.",
        ),
    ],
)
def test_a_driver_that_cannot_be_used(
    probe: NvmlProbe, place: dict[str, Any], code: str, text: str, advice: str
) -> None:
    finding = next(iter(driver_findings(Sight(probe, **place))))
    assert (finding.code, finding.level, finding.text, finding.advice) == (code, Level.PROBLEM, text, advice)


def test_every_advice_of_the_driver_has_words() -> None:
    assert set(ADVICE) == set(Advice)


@pytest.mark.parametrize(
    ("driven_by", "text", "advice"),
    [
        (
            "nouveau",
            "GA102 [GeForce RTX 3090] at 0000:01:00.0 is there, driven by nouveau",
            "The free driver nouveau drives it: install NVIDIA's driver, which puts nouveau aside, and restart.",
        ),
        (
            "vfio-pci",
            "GA102 [GeForce RTX 3090] at 0000:01:00.0 is there, driven by vfio-pci",
            "It is given to a virtual machine (vfio-pci): it is not to be had here.",
        ),
        (None, "GA102 [GeForce RTX 3090] at 0000:01:00.0 is there", ""),
    ],
)
def test_a_card_without_nvidias_driver_is_named(driven_by: str | None, text: str, advice: str) -> None:
    there = MachineCard("NVIDIA", ON_BUS.name, ON_BUS.bus_id, ON_BUS.device_id, driven_by)
    found = by_code(Sight(ill(Reason.NO_DRIVER, Advice.INSTALL_DRIVER), (there,)))
    assert (found["card.undriven"].text, found["card.undriven"].advice) == (text, advice)


def test_a_card_on_the_bus_that_the_driver_does_not_list() -> None:
    second = MachineCard("NVIDIA", "AD102 [GeForce RTX 4090]", "0000:41:00.0", 0x2684, "nvidia")
    finding = by_code(Sight(well(card()), (ON_BUS, second)))["card.unlisted"]
    assert finding == Finding(
        "card.unlisted",
        "card",
        Level.PROBLEM,
        "AD102 [GeForce RTX 4090] at 0000:41:00.0 is on the bus, but the driver does not list it",
        "Look for 'NVRM' and 'Xid' in 'sudo dmesg', check the card's power and seat, and restart the machine.",
        "0000:41:00.0",
    )
    finding = by_code(Sight(well(card()), (ON_BUS, second), container="docker"))["card.unlisted"]
    assert (finding.level, finding.text, finding.advice) == (
        Level.NOTE,
        "AD102 [GeForce RTX 4090] at 0000:41:00.0 was not given to this container",
        "",
    )


@pytest.mark.parametrize(
    ("group", "advice"),
    [
        ("render", "Join its group: 'sudo usermod -aG render $USER', then log in again."),
        (
            "root",
            "Its group is root's: give it another by the driver's option NVreg_DeviceFileGID, or allow all users "
            "(NVreg_DeviceFileMode=0666).",
        ),
    ],
)
def test_a_device_file_that_may_not_be_opened(group: str, advice: str) -> None:
    nodes = (DeviceNode("/dev/nvidia0", False, group), DeviceNode("/dev/nvidia-uvm", True))
    finding = by_code(Sight(well(card()), nodes=nodes))["driver.node"]
    assert (finding.level, finding.text, finding.advice) == (
        Level.PROBLEM,
        "/dev/nvidia0 may not be opened by you",
        advice,
    )


def test_without_the_device_of_unified_memory_cuda_cannot_start() -> None:
    nodes = (DeviceNode("/dev/nvidia0", True), DeviceNode("/dev/nvidiactl", True))
    finding = by_code(Sight(well(card()), nodes=nodes))["driver.no_uvm"]
    assert (finding.text, finding.advice) == (
        "/dev/nvidia-uvm is not there: CUDA cannot start",
        "Run 'sudo nvidia-modprobe -u -c=0'; in a container, start it with --gpus all.",
    )


def test_a_card_that_sleeps_is_left_asleep_and_said() -> None:
    asleep = MachineCard(
        "NVIDIA", "AD107M [GeForce RTX 4060 Max-Q / Mobile]", "0000:01:00.0", 0x28A0, "nvidia", asleep=True
    )
    first, second = driver_findings(Sight(None, (asleep,), kernel_driver_version="570.86.10"))
    assert (first.code, first.level, first.text) == (
        "card.asleep",
        Level.NOTE,
        "AD107M [GeForce RTX 4060 Max-Q / Mobile] at 0000:01:00.0 sleeps to save power and was not asked",
    )
    assert "floodmark doctor --wake" in first.advice
    assert second.text == "NVIDIA 570.86.10, not asked: a card sleeps"


# The cards

INSTANCE = MigInstance("MIG-1", "1g.10gb", 7, 0)


@pytest.mark.parametrize(
    ("facts", "code", "text", "advice"),
    [
        (
            {"persistence_mode": "off"},
            "card.persistence_off",
            "RTX 3090: persistence mode is off, so the driver starts anew for each program",
            "On a machine that only computes run 'sudo systemctl enable --now nvidia-persistenced' or 'sudo nvidia-smi "
            "-i 0 -pm 1'; on a laptop leave it off, it lets the card sleep.",
        ),
        (
            {"mig_mode": "on", "instances": (INSTANCE, INSTANCE)},
            "card.mig",
            "RTX 3090: split by MIG into 2 instances; the whole card has no utilisation then",
            "Choose one by CUDA_VISIBLE_DEVICES=MIG-1, or undo it: 'sudo nvidia-smi -i 0 -mig 0'.",
        ),
        (
            {"mig_mode": "on"},
            "card.mig",
            "RTX 3090: split by MIG into 0 instances; the whole card has no utilisation then",
            "Make one, e.g. 'sudo nvidia-smi mig -i 0 -cgi 0 -C', or undo it: 'sudo nvidia-smi -i 0 -mig 0'.",
        ),
        (
            {"compute_mode": "prohibited"},
            "card.prohibited",
            "RTX 3090: CUDA programs are refused (compute mode prohibited)",
            "Allow them: 'sudo nvidia-smi -i 0 -c 0'.",
        ),
        (
            {"compute_mode": "exclusive_process"},
            "card.exclusive",
            "RTX 3090: one program at a time may use it (compute mode exclusive)",
            "To share it: 'sudo nvidia-smi -i 0 -c 0'.",
        ),
        (
            {"display_active": "on"},
            "card.display",
            "RTX 3090: a screen hangs on it, so the desktop takes some of its memory",
            "For the last few hundred MiB put the screen on another graphics unit.",
        ),
        (
            {"spills": True},
            "card.spills",
            "RTX 3090: when it is full its driver moves memory to RAM instead of failing: slow steps, no error",
            "To have an error instead, set 'CUDA - Sysmem Fallback Policy' to 'Prefer No Sysmem Fallback' in NVIDIA's "
            "control panel.",
        ),
        (
            {"shared_memory": True},
            "card.shared_memory",
            "RTX 3090: it has no memory of its own and shares the computer's",
            "",
        ),
        (
            {"ecc_mode": "off"},
            "card.ecc_off",
            "RTX 3090: ECC is off",
            "It protects long runs: 'sudo nvidia-smi -i 0 -e 1', restart.",
        ),
        (
            {"reasons": {"xid_events": Reason.NOT_SUPPORTED}},
            "card.xid_unheard",
            "RTX 3090: its errors (Xid) are not heard (not_supported)",
            "They are in 'sudo dmesg'.",
        ),
    ],
)
def test_how_a_card_is_set_up(facts: dict[str, Any], code: str, text: str, advice: str) -> None:
    finding = by_code(Sight(well(card(**facts)), platform="linux"))[code]
    assert (finding.text, finding.advice, finding.card) == (text, advice, "GPU-a")
    assert finding.level is (Level.PROBLEM if code == "card.prohibited" else Level.NOTE)


@pytest.mark.parametrize(
    ("facts", "platform"),
    [({"persistence_mode": "off"}, "win32"), ({"persistence_mode": "off", "display_active": "on"}, "linux")],
)
def test_persistence_mode_is_nothing_for_a_desktop_or_windows(facts: dict[str, Any], platform: str) -> None:
    assert "card.persistence_off" not in by_code(Sight(well(card(**facts)), platform=platform))


RESET = "End what uses it and run 'sudo nvidia-smi -i 0 --gpu-reset', or restart the machine."


@pytest.mark.parametrize(
    ("readings", "code", "text", "advice"),
    [
        (
            {"ecc_uncorrected": 1},
            "card.ecc_errors",
            "RTX 3090: 1 uncorrected memory error since the driver was loaded",
            f"What ran may be wrong. {RESET} If it comes back, have the card replaced.",
        ),
        (
            {"ecc_uncorrected": 12},
            "card.ecc_errors",
            "RTX 3090: 12 uncorrected memory errors since the driver was loaded",
            f"What ran may be wrong. {RESET} If it comes back, have the card replaced.",
        ),
        (
            {"remapping_pending": 1},
            "card.remap_pending",
            "RTX 3090: rows of its memory wait to be replaced by spare ones",
            RESET,
        ),
        (
            {"remapping_failed": 1, "remapping_pending": 1},
            "card.remap_failed",
            "RTX 3090: a row of its memory failed and no spare was left",
            "Have the card replaced.",
        ),
        (
            {"pcie_width": 4},
            "card.pcie_width",
            "RTX 3090: runs on 4 of its 16 PCIe lanes",
            "If loading data is slow: another slot, seat the card anew, or look at how the BIOS shares the lanes.",
        ),
    ],
)
def test_what_is_wrong_with_a_card(readings: dict[str, float], code: str, text: str, advice: str) -> None:
    found = by_code(Sight(well(card(pcie_width_max=16), **readings)))
    assert (found[code].text, found[code].advice) == (text, advice)
    assert found[code].level is (Level.NOTE if code == "card.pcie_width" else Level.PROBLEM)
    assert found.keys() == {"driver.ok", "card.ok", code}


def test_what_is_not_known_is_grouped_by_its_reason() -> None:
    reasons = {"ecc_mode": Reason.NOT_SUPPORTED, "vbios_version": Reason.NO_PERMISSION, "bus": Reason.NOT_SUPPORTED}
    assert by_code(Sight(well(card(reasons=reasons))))["card.ok"].text == (
        "RTX 3090, 5.88 GiB; not known: vbios_version (no_permission), bus, ecc_mode (not_supported)"
    )


# CUDA's list

TWO = (card("GPU-aa11"), card("GPU-ab22", bus_id="00000000:41:00.0", torch_index=1))


@pytest.mark.parametrize(
    ("visible", "trouble"),
    [
        ("", "empty, so CUDA sees no card"),
        ("GPU-a", "'GPU-a' fits 2 cards; nothing is visible"),
        ("0,GPU-zz", "no card has the UUID 'GPU-zz'; only 1 before it count"),
        ("0,2", "there is no card number 2, the last is 1; only 1 before it count"),
        ("-1", "'-1' is neither a number nor a UUID; nothing is visible"),
        ("all", "'all' is neither a number nor a UUID; nothing is visible"),
        ("0,0", "'0' and '0' are the same card, so CUDA sees none"),
        ("0,GPU-aa", "'GPU-aa' and '0' are the same card, so CUDA sees none"),
        ("MIG-9", "there is no MIG instance 'MIG-9'; nothing is visible"),
    ],
)
def test_a_list_of_visible_devices_that_does_not_do_what_it_says(visible: str, trouble: str) -> None:
    cards = (card("GPU-aa11", instances=(INSTANCE,)), TWO[1])
    finding = by_code(Sight(well(*cards), environment={"CUDA_VISIBLE_DEVICES": visible}))["cuda.visible"]
    assert (finding.level, finding.text) == (Level.PROBLEM, f"CUDA_VISIBLE_DEVICES={visible}: {trouble}")
    assert "unset CUDA_VISIBLE_DEVICES" in finding.advice


@pytest.mark.parametrize("visible", ["0", "1,0", " 0 , 1 ", "GPU-aa,GPU-ab", "MIG-1", "0,GPU-ab22"])
def test_a_good_list_of_visible_devices_is_no_problem(visible: str) -> None:
    cards = (card("GPU-aa11", instances=(INSTANCE,)), TWO[1])
    assert "cuda.visible" not in by_code(Sight(well(*cards), environment={"CUDA_VISIBLE_DEVICES": visible}))


def test_hidden_cards_are_watched_all_the_same() -> None:
    cards = (TWO[0], card("GPU-ab22", bus_id="00000000:41:00.0", torch_index=None))
    finding = by_code(Sight(well(*cards), environment={"CUDA_VISIBLE_DEVICES": "0"}))["cuda.hidden"]
    assert finding.text == "CUDA_VISIBLE_DEVICES=0 hides 1 of 2 cards from training"


def test_cards_of_several_models_are_counted_in_two_ways() -> None:
    cards = (TWO[0], card("GPU-ab22", bus_id="00000000:41:00.0", name="RTX 4090"))
    finding = by_code(Sight(well(*cards)))["cuda.order"]
    assert finding.advice == "Set CUDA_DEVICE_ORDER=PCI_BUS_ID, and both count alike."
    assert "cuda.order" not in by_code(Sight(well(*cards), environment={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}))
    assert "cuda.order" not in by_code(Sight(well(*TWO)))


# Other makers

ARC = MachineCard("Intel", "DG2 [Arc A770]", "0000:03:00.0", 0x56A0, "i915", known=find_card("Arc A770"))
MTT = MachineCard("Moore Threads", "MTT S5000", "0000:04:00.0", 0x0400, None, known=find_card("MTT S5000"))
RADEON = MachineCard("AMD", None, "0000:05:00.0", 0x744C, "amdgpu", asleep=True)


def test_cards_of_other_makers_are_named_with_what_is_known_of_them() -> None:
    arc, mtt, radeon = other_findings(Sight(well(card()), (ARC, MTT, RADEON)))
    assert arc.text == (
        "DG2 [Arc A770] (Intel, device 56a0) at 0000:03:00.0; catalogue: memory 16 GB GDDR6, bandwidth "
        f"{find_card('Arc A770').memory_bandwidth_gb_s:g} GB/s, power 225 W: not read by Floodmark"
    )
    assert mtt.text == (
        "MTT S5000 (Moore Threads, device 0400) at 0000:04:00.0; catalogue: memory 64 GB, bandwidth no verifiable "
        "figure, power no verifiable figure: not read by Floodmark"
    )
    assert radeon.text == "unknown model (AMD, device 744c) at 0000:05:00.0, asleep; not in the catalogue: not read"
    assert radeon.advice.startswith("pip install 'floodmark[amd]'")
    assert {finding.level for finding in (arc, mtt, radeon)} == {Level.NOTE}


@pytest.mark.parametrize(
    ("amd", "level", "text", "advice"),
    [
        (AmdProbe(None, "", 2), Level.OK, "2 cards read through amdsmi (not tried on a real card)", ""),
        (
            AmdProbe(Reason.NO_DRIVER, "no library"),
            Level.PROBLEM,
            "AMD: no library (no_driver)",
            "Install ROCm's amd-smi-lib and load the driver: 'sudo modprobe amdgpu'.",
        ),
        (
            AmdProbe(Reason.NO_PERMISSION, "code 10"),
            Level.PROBLEM,
            "AMD: code 10 (no_permission)",
            "Join the groups 'render' and 'video': 'sudo usermod -aG render,video $USER'.",
        ),
        (
            AmdProbe(Reason.TIMED_OUT, "it does not answer"),
            Level.PROBLEM,
            "AMD: it does not answer (timed_out)",
            "Try again; if it stays, restart the machine.",
        ),
    ],
)
def test_amd_where_its_package_is(amd: AmdProbe, level: Level, text: str, advice: str) -> None:
    (finding,) = other_findings(Sight(well(card()), (RADEON,), amd=amd))
    assert (finding.level, finding.text, finding.advice) == (level, text, advice)
    if amd.reason is not None:
        (finding,) = other_findings(Sight(well(card()), amd=amd))
        assert (finding.level, finding.advice) == (Level.NOTE, ""), "no card of AMD is there"


# Looking


def test_a_driver_whose_card_sleeps_is_asked_only_when_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    asleep = MachineCard("NVIDIA", None, "0000:01:00.0", 1, "nvidia", asleep=True)
    asked: list[str] = []
    monkeypatch.setattr(doctor_sight, "list_machine_cards", lambda: (asleep,))
    monkeypatch.setattr(doctor_sight, "probe_nvml", lambda: asked.append("nvml") or well(card()))
    monkeypatch.setattr(doctor_sight, "has_amdsmi", lambda: False)
    assert look_around(wake=False).probe is None
    assert asked == []
    assert look_around(wake=True).probe == well(card())


def test_a_driver_that_blocks_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    let_go = threading.Event()
    monkeypatch.setattr(doctor_sight, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(doctor_sight, "probe_nvml", lambda: let_go.wait(30))
    monkeypatch.setattr(doctor_sight, "list_machine_cards", tuple)
    probe = look_around(wake=False).probe
    let_go.set()
    assert probe is not None
    assert (probe.reason, probe.advice_code) == (Reason.TIMED_OUT, Advice.CHECK_CARD)


@pytest.mark.parametrize("error", [RuntimeError("surprise"), OSError("disk")])
def test_whatever_goes_wrong_it_says_something(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(doctor_sight, "probe_nvml", fail)
    probe = look_around(wake=False).probe
    assert probe is not None
    assert probe.reason is Reason.TIMED_OUT


def test_the_kernels_part_of_the_driver_says_its_version(tmp_path: Path) -> None:
    file = tmp_path / "version"
    for text, version in (
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC", "535.183.01"),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build  (dvs-builder)",
            "570.86.10",
        ),
        ("something else", None),
    ):
        file.write_text(text)
        assert kernel_driver_version(file) == version
    assert kernel_driver_version(tmp_path / "none") is None


def test_wsl_is_known_by_its_kernel(tmp_path: Path) -> None:
    file = tmp_path / "version"
    file.write_text("Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1)")
    assert is_wsl(file)
    file.write_text("Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)")
    assert not is_wsl(file)
    assert not is_wsl(tmp_path / "none")


def test_device_files_are_those_of_nvidia(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").write_text("a plain file is no device")
    assert list_nodes(tmp_path) == ()
    assert list_nodes(tmp_path / "none") == ()
    (tmp_path / "nvidiactl").symlink_to(os.devnull)
    (node,) = list_nodes(tmp_path)
    assert (node.path, node.usable) == (str(tmp_path / "nvidiactl"), True)
