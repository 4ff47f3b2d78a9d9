"""The MIG instances of one card: which there are, and what each reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from desktop_app.core.telemetry import INSTANCE_FIELDS, Card, InstanceSample, MigInstance, Reading, Reason
from desktop_app.telemetry.backend import missing
from desktop_app.telemetry.fact_sheet import is_word
from desktop_app.telemetry.nvml import Answer, NvmlDoor, memory_answer
from desktop_app.telemetry.nvml_gpm import GPM_FIELDS, GpmReader
from desktop_app.telemetry.plausibility import COUNT, INSTANCE, MEMORY_TOTAL, PERCENT, SM_COUNT, judge_used_memory

_MOST_INSTANCES: Final = 8  # seven on every card so far
_PROFILE: Final = " MIG "  # "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
_LOOK_EVERY: Final = 10  # readings: instances are made and removed by an administrator, not in passing
_UNKNOWN_ID: Final = -1


@dataclass(frozen=True, slots=True)
class _Slice:
    """An instance and how it is asked."""

    facts: MigInstance
    handle: Any


def describe_instances(door: NvmlDoor, handle: Any, card_uuid: str) -> tuple[MigInstance, ...]:
    """The instances of a card in MIG mode."""
    return tuple(found.facts for found in _find(door, handle, card_uuid))


class NvmlInstances:
    """Reads the instances of one card. Runs in: one thread at a time."""

    def __init__(self, door: NvmlDoor, handle: Any, card: Card, *, gpm: bool) -> None:
        self._door = door
        self._handle = handle
        self._card = card
        self._slices = _find(door, handle, card.uuid)
        self._unread = missing(GPM_FIELDS, Reason.NOT_SUPPORTED if not gpm else Reason.UNKNOWN_ERROR)
        self._gpm = {
            number: GpmReader(door, handle, owner=f"{card.uuid}/{number}", gpu_instance=number)
            for number in {found.facts.gpu_instance for found in self._slices if gpm} - {_UNKNOWN_ID}
        }
        self._readings = 0
        self.changed = False  # others than those of ``card``: it must be described anew

    def read(self) -> tuple[InstanceSample, ...]:
        """All of ``INSTANCE_FIELDS`` of each instance, in the driver's order."""
        self._readings += 1
        if self._readings % _LOOK_EVERY == 0:
            self._look()
        activities = {number: gpm.read() for number, gpm in self._gpm.items()}
        return tuple(
            InstanceSample(
                found.facts.uuid, self._read_one(found) | activities.get(found.facts.gpu_instance, self._unread)
            )
            for found in self._slices
        )

    def close(self) -> None:
        """Give back what the driver holds."""
        for gpm in self._gpm.values():
            gpm.close()

    def _look(self) -> None:
        """Whether the instances are still the same ones. A look that fails says nothing."""
        uuids = _uuids(self._door, self._handle, self._card.uuid)
        self.changed = uuids is not None and uuids != [instance.uuid for instance in self._card.instances]

    def _read_one(self, found: _Slice) -> dict[str, Reading]:
        readings = missing(INSTANCE_FIELDS, Reason.MIG)
        readings["memory_used_bytes"] = self._used_memory(found)
        load = self._door.query("nvmlDeviceGetUtilizationRates", found.handle, owner=found.facts.uuid)
        if load.reason is not Reason.NOT_SUPPORTED:  # no driver so far reports it
            readings["utilization_percent"] = load.part("gpu").judged(PERCENT)
            readings["memory_utilization_percent"] = load.part("memory").judged(PERCENT)
        return readings

    def _used_memory(self, found: _Slice) -> Reading:
        answer = _memory(self._door, found.handle, found.facts.uuid)
        if answer.reason is not None:
            return Reading(None, answer.reason)
        return judge_used_memory(int(answer.value.total), int(answer.value.used), most_bytes=self._card.total_bytes)


def _find(door: NvmlDoor, handle: Any, card_uuid: str) -> list[_Slice]:
    count = door.query("nvmlDeviceGetMaxMigDeviceCount", handle, owner=card_uuid).judged(COUNT)
    found = []
    for index in range(min(int(count.value or 0), _MOST_INSTANCES)):
        slot = door.query("nvmlDeviceGetMigDeviceHandleByIndex", handle, index, owner=card_uuid)
        if slot.reason is None:  # else: nothing is in that slot
            found.append(_Slice(_describe(door, slot.value, f"{card_uuid}/{index}", card_uuid), slot.value))
    return found


def _uuids(door: NvmlDoor, handle: Any, card_uuid: str) -> list[str] | None:
    """Of the instances there are now; ``None`` when the driver does not say."""
    count = door.query("nvmlDeviceGetMaxMigDeviceCount", handle, owner=card_uuid).judged(COUNT)
    if count.value is None:
        return None
    uuids = []
    for index in range(min(int(count.value), _MOST_INSTANCES)):
        slot = door.query("nvmlDeviceGetMigDeviceHandleByIndex", handle, index, owner=card_uuid)
        if slot.reason is Reason.NOT_SUPPORTED:
            continue
        uuid = slot if slot.reason is not None else door.query("nvmlDeviceGetUUID", slot.value)
        if uuid.reason is not None:
            return None
        uuids.append(str(uuid.value))
    return uuids


def _describe(door: NvmlDoor, handle: Any, owner: str, card_uuid: str) -> MigInstance:
    """``owner``: the slot, for the memory of verdicts."""
    reasons: dict[str, Reason] = {}

    def number(name: str, reading: Reading) -> int | None:
        if reading.value is None:
            reasons[name] = reading.reason or Reason.UNKNOWN_ERROR
            return None
        return int(reading.value)

    def known_id(name: str, call: str) -> int:
        found = number(name, door.query(call, handle, owner=owner).judged(INSTANCE))
        return _UNKNOWN_ID if found is None else found

    gpu_instance = known_id("gpu_instance", "nvmlDeviceGetGpuInstanceId")
    compute_instance = known_id("compute_instance", "nvmlDeviceGetComputeInstanceId")
    uuid = door.query("nvmlDeviceGetUUID", handle, owner=owner)
    memory = _memory(door, handle, owner).part("total").judged(MEMORY_TOTAL)
    name = door.query("nvmlDeviceGetName", handle, owner=owner)
    profile = str(name.value).partition(_PROFILE)[2] if name.reason is None and str(name.value).isprintable() else ""
    if not profile:
        reasons["name"] = name.reason or Reason.NOT_SUPPORTED
    attributes = door.query("nvmlDeviceGetAttributes", handle, owner=owner)
    return MigInstance(
        uuid=str(uuid.value)
        if uuid.reason is None and is_word(str(uuid.value))
        else f"MIG-{card_uuid}/{gpu_instance}/{compute_instance}",
        name=profile,
        gpu_instance=gpu_instance,
        compute_instance=compute_instance,
        total_bytes=number("total_bytes", memory),
        sm_count=number("sm_count", attributes.part("multiprocessorCount").judged(SM_COUNT)),
        reasons=reasons,
    )


def _memory(door: NvmlDoor, handle: Any, owner: str) -> Answer:
    answer = memory_answer(door, handle, owner, v2=True)
    return memory_answer(door, handle, owner, v2=False) if answer.reason is Reason.NOT_SUPPORTED else answer
