"""The cards: what each says of itself, what is wrong with it, which of them CUDA sees, and those that are not read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from desktop_app.core.telemetry import Card, Reading, Reason
from desktop_app.core.units import format_bytes
from desktop_app.services.doctor_findings import NOTE, OK, PROBLEM, Finding
from desktop_app.services.doctor_sight import Sight
from desktop_app.telemetry.catalogue import CatalogueCard
from desktop_app.telemetry.identity import CardIdentity, visible_problem
from desktop_app.telemetry.other_vendors import MachineCard

Readings = Mapping[str, Reading]

# Where the package for a maker's cards is named, what to do.
_INSTALL_AMD: Final = (
    "pip install 'floodmark[amd]', or the amdsmi that comes with ROCm (/opt/rocm/share/amd_smi): its version must fit "
    "the driver's."
)
NO_FIGURE: Final = "no verifiable figure"


def card_findings(sight: Sight) -> Iterator[Finding]:
    """One line for each card that the driver lists, and one for each thing about it."""
    probe = sight.probe
    if probe is None or probe.reason is not None:
        return
    for card in probe.cards:
        yield _card(card)
        yield from _settings(card, sight.platform)
        yield from _health(card, probe.readings.get(card.uuid, {}))
    yield from _mapping(sight, probe.cards)


def other_findings(sight: Sight) -> Iterator[Finding]:
    """Cards of other makers: AMD's are read where the package is, all others are named as not read."""
    amd = [card for card in sight.machine if card.vendor == "AMD"]
    if sight.amd is not None:
        yield _amd(sight, on_bus=bool(amd))
    for card in sight.machine:
        if card.vendor == "AMD" and sight.amd is None:
            yield Finding("other.amd", "other", NOTE, f"{describe(card)}: not read", _INSTALL_AMD, card.bus_id)
        elif card.vendor not in ("NVIDIA", "AMD"):
            yield Finding("other.not_read", "other", NOTE, f"{describe(card)}: not read by Floodmark", "", card.bus_id)


def describe(card: MachineCard) -> str:
    """A card of the machine and what is known of it; what is blank in the catalogue stays so."""
    name = card.name or "unknown model"
    ids = f" ({card.vendor}" + (f", device {card.device_id:04x})" if card.device_id is not None else ")")
    place = f" at {card.bus_id}" if card.bus_id else ""
    asleep = ", asleep" if card.asleep else ""
    return f"{name}{ids}{place}{asleep}; {_known(card.known)}"


def _known(part: CatalogueCard | None) -> str:
    if part is None:
        return "not in the catalogue"
    memory = NO_FIGURE if part.memory_gb is None else f"{part.memory_gb:g} GB {part.memory_type or ''}".strip()
    if part.shared_memory and part.memory_gb is None:
        memory = "memory shared with the computer"
    bandwidth = NO_FIGURE if part.memory_bandwidth_gb_s is None else f"{part.memory_bandwidth_gb_s:g} GB/s"
    power = NO_FIGURE if part.tdp_w is None else f"{part.tdp_w:g} W"
    return f"catalogue: memory {memory}, bandwidth {bandwidth}, power {power}"


def _amd(sight: Sight, *, on_bus: bool) -> Finding:
    amd = sight.amd
    assert amd is not None
    if amd.reason is None:
        text = f"{amd.cards} card{'s' if amd.cards != 1 else ''} read through amdsmi (not tried on a real card)"
        return Finding("other.amd", "other", OK, text)
    level = PROBLEM if on_bus else NOTE
    advice = {
        Reason.NO_DRIVER: "Install ROCm's amd-smi-lib and load the driver: 'sudo modprobe amdgpu'.",
        Reason.DRIVER_MISMATCH: _INSTALL_AMD,
        Reason.NO_PERMISSION: "Join the groups 'render' and 'video': 'sudo usermod -aG render,video $USER'.",
    }.get(amd.reason, "Try again; if it stays, restart the machine.")
    return Finding("other.amd", "other", level, f"AMD: {amd.detail} ({amd.reason.value})", advice if on_bus else "")


def _card(card: Card) -> Finding:
    capacity = card.capacity_bytes
    text = f"{card.name}, {'memory unknown' if capacity is None else format_bytes(capacity)}"
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, reason in sorted(card.reasons.items()):
        by_reason[reason.value].append(name)
    if by_reason:
        text += "; not known: " + ", ".join(f"{', '.join(names)} ({why})" for why, names in sorted(by_reason.items()))
    return Finding("card.ok", "card", OK, text, card=card.uuid)


def _settings(card: Card, platform: str) -> Iterator[Finding]:
    """How the card is set up."""

    def note(code: str, text: str, advice: str) -> Finding:
        return Finding(code, "card", NOTE, f"{card.name}: {text}", advice, card.uuid)

    index = card.nvml_index
    if card.persistence_mode == "off" and platform == "linux" and card.display_active != "on":
        yield note(
            "card.persistence_off",
            "persistence mode is off, so the driver starts anew for each program",
            "On a machine that only computes run 'sudo systemctl enable --now nvidia-persistenced' or 'sudo nvidia-smi "
            f"-i {index} -pm 1'; on a laptop leave it off, it lets the card sleep.",
        )
    if card.mig_mode == "on":
        count = len(card.instances)
        yield note(
            "card.mig",
            f"split by MIG into {count} instance{'' if count == 1 else 's'}; the whole card has no utilisation then",
            (
                f"Choose one by CUDA_VISIBLE_DEVICES={card.instances[0].uuid}, or undo it: "
                if card.instances
                else f"Make one, e.g. 'sudo nvidia-smi mig -i {index} -cgi 0 -C', or undo it: "
            )
            + f"'sudo nvidia-smi -i {index} -mig 0'.",
        )
    if card.compute_mode == "prohibited":
        text = f"{card.name}: CUDA programs are refused (compute mode prohibited)"
        advice = f"Allow them: 'sudo nvidia-smi -i {index} -c 0'."
        yield Finding("card.prohibited", "card", PROBLEM, text, advice, card.uuid)
    elif card.compute_mode == "exclusive_process":
        yield note(
            "card.exclusive",
            "one program at a time may use it (compute mode exclusive)",
            f"To share it: 'sudo nvidia-smi -i {index} -c 0'.",
        )
    if card.display_active == "on":
        yield note(
            "card.display",
            "a screen hangs on it, so the desktop takes some of its memory",
            "For the last few hundred MiB put the screen on another graphics unit.",
        )
    if card.spills:
        yield note(
            "card.spills",
            "when it is full its driver moves memory to RAM instead of failing: slow steps, no error",
            "To have an error instead, set 'CUDA - Sysmem Fallback Policy' to 'Prefer No Sysmem Fallback' in NVIDIA's "
            "control panel.",
        )
    if card.shared_memory:
        yield note("card.shared_memory", "it has no memory of its own and shares the computer's", "")
    if card.ecc_mode == "off":
        yield note("card.ecc_off", "ECC is off", f"It protects long runs: 'sudo nvidia-smi -i {index} -e 1', restart.")
    xid = card.reasons.get("xid_events")
    if xid is not None:
        yield note("card.xid_unheard", f"its errors (Xid) are not heard ({xid.value})", "They are in 'sudo dmesg'.")


def _health(card: Card, readings: Readings) -> Iterator[Finding]:
    """What is wrong with it now."""

    def problem(code: str, text: str, advice: str) -> Finding:
        return Finding(code, "card", PROBLEM, f"{card.name}: {text}", advice, card.uuid)

    reset = f"End what uses it and run 'sudo nvidia-smi -i {card.nvml_index} --gpu-reset', or restart the machine."
    errors = _value(readings, "ecc_uncorrected")
    if errors:
        yield problem(
            "card.ecc_errors",
            f"{errors:.0f} uncorrected memory error{'' if errors == 1 else 's'} since the driver was loaded",
            f"What ran may be wrong. {reset} If it comes back, have the card replaced.",
        )
    if _value(readings, "remapping_failed"):
        yield problem(
            "card.remap_failed", "a row of its memory failed and no spare was left", "Have the card replaced."
        )
    elif _value(readings, "remapping_pending"):
        yield problem("card.remap_pending", "rows of its memory wait to be replaced by spare ones", reset)
    width = _value(readings, "pcie_width")
    if width and card.pcie_width_max and width < card.pcie_width_max:
        yield Finding(
            "card.pcie_width",
            "card",
            NOTE,
            f"{card.name}: runs on {width:.0f} of its {card.pcie_width_max} PCIe lanes",
            "If loading data is slow: another slot, seat the card anew, or look at how the BIOS shares the lanes.",
            card.uuid,
        )


def _mapping(sight: Sight, cards: tuple[Card, ...]) -> Iterator[Finding]:
    """What CUDA_VISIBLE_DEVICES does to the cards."""
    visible = sight.environment.get("CUDA_VISIBLE_DEVICES")
    order = sight.environment.get("CUDA_DEVICE_ORDER")
    identities = [CardIdentity(card.uuid, card.bus_id, card.name) for card in cards]
    if visible is not None:
        instances = [instance.uuid for card in cards for instance in card.instances]
        trouble = visible_problem(identities, visible_devices=visible, device_order=order, instances=instances)
        if trouble is not None:
            yield Finding("cuda.visible", "cuda", PROBLEM, f"CUDA_VISIBLE_DEVICES={visible}: {trouble}", _VISIBLE)
            return
        hidden = sum(card.torch_index is None for card in cards)
        if hidden:
            text = f"CUDA_VISIBLE_DEVICES={visible} hides {hidden} of {len(cards)} cards from training"
            yield Finding("cuda.hidden", "cuda", NOTE, text, "They are watched all the same.")
    if len({card.name for card in cards}) > 1 and order != "PCI_BUS_ID":
        yield Finding(
            "cuda.order",
            "cuda",
            NOTE,
            "Cards of several models: CUDA counts the fastest first, the driver by bus id, so their numbers differ",
            "Set CUDA_DEVICE_ORDER=PCI_BUS_ID, and both count alike.",
        )


_VISIBLE: Final = (
    "Give numbers (0,1) or UUIDs as 'nvidia-smi -L' prints them, each once; or unset it: 'unset CUDA_VISIBLE_DEVICES'."
)


def _value(readings: Readings, field: str) -> float | None:
    reading = readings.get(field)
    return None if reading is None else reading.value
