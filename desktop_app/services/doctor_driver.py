"""The driver: is it there, may it be used, and if not, what to do in this place: bare, container, WSL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from desktop_app.core.telemetry import Reason
from desktop_app.services.doctor_findings import NOTE, OK, PROBLEM, Finding
from desktop_app.services.doctor_sight import Sight
from desktop_app.telemetry.backend import Advice
from desktop_app.telemetry.nvml_backend import NvmlProbe
from desktop_app.telemetry.other_vendors import MachineCard
from desktop_app.telemetry.selection import DEFAULT_CARD

# What to do where nothing about the place says more.
ADVICE: Final = {
    Advice.INSTALL_DRIVER: "Install NVIDIA's driver. Until then cards are simulated.",
    Advice.LOAD_DRIVER: "The driver's library is there but the driver is not loaded: run 'sudo modprobe nvidia' or "
    "restart the machine. With Secure Boot the module must be signed.",
    Advice.RESTART_AFTER_UPDATE: "The driver was updated while it ran: restart the machine, or end what uses the card "
    "and run 'sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia'.",
    Advice.ALLOW_ACCESS: "Your user may not open /dev/nvidia*: join the group that may (often 'video' or 'render').",
    Advice.CHECK_CARD: "Look for 'NVRM' and 'Xid' in 'sudo dmesg', check the card's power and seat, and restart the "
    "machine.",
    Advice.TRY_AGAIN: "Try again; if it stays, restart the machine.",
}
_IN_CONTAINER: Final = {
    Advice.INSTALL_DRIVER: "Start the container with the card: 'docker run --gpus all …' (podman: --device "
    "nvidia.com/gpu=all; Kubernetes: limits: nvidia.com/gpu), with nvidia-container-toolkit on the host. The driver "
    "itself belongs on the host.",
    Advice.LOAD_DRIVER: "The host's driver is not loaded, or the container was not given the card: check "
    "'nvidia-smi' on the host, and start the container with --gpus all.",
    Advice.RESTART_AFTER_UPDATE: "The host's driver was updated under the container: restart the host, then the "
    "container.",
    Advice.ALLOW_ACCESS: "The container may not open /dev/nvidia*: start it with --gpus all, and look at the user and "
    "the device rules it runs with.",
    Advice.TRY_AGAIN: "The container has lost its devices (as after 'systemctl daemon-reload' on the host): restart "
    "the container.",
}
_IN_WSL: Final = {
    Advice.INSTALL_DRIVER: "Install or update NVIDIA's driver in Windows, and none inside WSL; then run 'wsl --update' "
    "and 'wsl --shutdown'.",
    Advice.LOAD_DRIVER: "Run 'wsl --shutdown' and start again; if it stays, update NVIDIA's driver in Windows.",
    Advice.RESTART_AFTER_UPDATE: "NVIDIA's driver in Windows was updated: run 'wsl --shutdown' and start again. Remove "
    "a Linux driver if one was installed inside WSL.",
    Advice.TRY_AGAIN: "Run 'wsl --shutdown' and start again.",
}
_NOT_NVIDIA: Final = {
    "nouveau": "The free driver nouveau drives it: install NVIDIA's driver, which puts nouveau aside, and restart.",
    "nova": "The free driver nova drives it: install NVIDIA's driver, which puts nova aside, and restart.",
    "vfio-pci": "It is given to a virtual machine (vfio-pci): it is not to be had here.",
}


def driver_findings(sight: Sight) -> Iterator[Finding]:
    """The driver as a whole, its device files, and cards that it does not list."""
    probe = sight.probe
    if probe is None:
        yield from _asleep(sight)
        return
    if probe.reason is None:
        cuda = f", CUDA {probe.cuda_driver_version}" if probe.cuda_driver_version else ""
        yield Finding("driver.ok", "driver", OK, f"NVIDIA {probe.driver_version}{cuda}")
        yield from _nodes(sight)
        yield from _unlisted(sight, probe)
        return
    yield Finding(f"driver.{probe.reason.value}", "driver", PROBLEM, _what(sight, probe), _what_to_do(sight, probe))
    yield from _nodes(sight)
    yield from _undriven(sight)
    yield Finding("card.none", "card", PROBLEM, f"No NVIDIA card can be read; {DEFAULT_CARD} is simulated instead.")


def _asleep(sight: Sight) -> Iterator[Finding]:
    for card in sight.machine:
        if card.vendor == "NVIDIA" and card.asleep:
            yield Finding(
                "card.asleep",
                "card",
                NOTE,
                f"{_named(card)} sleeps to save power and was not asked",
                "Asking wakes it for some seconds: 'floodmark doctor --wake'. It wakes by itself when a program uses "
                "it, and the window lets it sleep again after 30 s without work.",
                card.bus_id,
            )
    version = f" {sight.kernel_driver_version}" if sight.kernel_driver_version else ""
    yield Finding("driver.not_asked", "driver", NOTE, f"NVIDIA{version}, not asked: a card sleeps")


def _what(sight: Sight, probe: NvmlProbe) -> str:
    text = f"{probe.detail} ({probe.reason.value if probe.reason else ''})"
    if probe.reason is Reason.DRIVER_MISMATCH and sight.kernel_driver_version:
        text += f"; loaded is {sight.kernel_driver_version}"
    if sight.container is not None:
        text += f"; in a container ({sight.container})"
    elif sight.wsl:
        text += "; in WSL"
    return text


def _what_to_do(sight: Sight, probe: NvmlProbe) -> str:
    code = probe.advice_code
    if code is None:
        return ""
    if sight.container is not None and code in _IN_CONTAINER:
        return _IN_CONTAINER[code]
    if sight.wsl and code in _IN_WSL:
        return _IN_WSL[code]
    if code is Advice.INSTALL_DRIVER and sight.platform == "linux" and not _nvidia(sight):
        return "There is no NVIDIA card on the PCI bus. Cards are simulated."
    return ADVICE[code]


def _nodes(sight: Sight) -> Iterator[Finding]:
    """Device files that CUDA opens besides what the library needs."""
    for node in sight.nodes:
        if node.usable:
            continue
        group = node.group if node.group not in (None, "root") else None
        join = (
            f"Join its group: 'sudo usermod -aG {group} $USER', then log in again."
            if group
            else (
                "Its group is root's: give it another by the driver's option NVreg_DeviceFileGID, or allow all users "
                "(NVreg_DeviceFileMode=0666)."
            )
        )
        yield Finding("driver.node", "access", PROBLEM, f"{node.path} may not be opened by you", join)
    names = {node.path.rpartition("/")[2] for node in sight.nodes}
    if "nvidiactl" in names and "nvidia-uvm" not in names:
        yield Finding(
            "driver.no_uvm",
            "access",
            PROBLEM,
            "/dev/nvidia-uvm is not there: CUDA cannot start",
            "Run 'sudo nvidia-modprobe -u -c=0'; in a container, start it with --gpus all.",
        )


def _unlisted(sight: Sight, probe: NvmlProbe) -> Iterator[Finding]:
    """On the bus, and not in the driver's list."""
    listed = {(card.bus_id or "").lower()[-12:] for card in probe.cards}
    for card in _nvidia(sight):
        if (card.bus_id or "").lower()[-12:] in listed:
            continue
        if sight.container is not None:
            text, advice, level = "was not given to this container", "", NOTE
        else:
            text = "is on the bus, but the driver does not list it"
            level = PROBLEM
            advice = _NOT_NVIDIA.get(card.kernel_driver or "", ADVICE[Advice.CHECK_CARD])
        yield Finding("card.unlisted", "card", level, f"{_named(card)} {text}", advice, card.bus_id)


def _undriven(sight: Sight) -> Iterator[Finding]:
    """Cards that are there, when the driver is not."""
    for card in _nvidia(sight):
        advice = _NOT_NVIDIA.get(card.kernel_driver or "", "")
        text = f"{_named(card)} is there" + (f", driven by {card.kernel_driver}" if card.kernel_driver else "")
        yield Finding("card.undriven", "card", NOTE, text, advice, card.bus_id)


def _nvidia(sight: Sight) -> list[MachineCard]:
    return [card for card in sight.machine if card.vendor == "NVIDIA"]


def _named(card: MachineCard) -> str:
    place = f" at {card.bus_id}" if card.bus_id else ""
    return f"{card.name or f'a card of {card.vendor}'}{place}"
