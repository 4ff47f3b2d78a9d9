"""Who is on an NVIDIA card, in which MIG slice, with what memory and share of its SMs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from desktop_app.core.telemetry import Card, ProcessSample, Reading, Reason
from desktop_app.telemetry.nvml import NvmlDoor
from desktop_app.telemetry.nvml_facts import Traits
from desktop_app.telemetry.nvml_process_use import ProcessUse, UseSample
from desktop_app.telemetry.plausibility import INSTANCE, MEMORY_TOTAL, is_pid, is_sentinel
from desktop_app.telemetry.processes import ProcessDirectory

# Clients of the multi-process service are on a list of their own; on the other one is their server.
_LISTS: Final = (("compute", "Compute"), ("graphics", "Graphics"), ("compute", "MPSCompute"))
_MOST_INSTANCES: Final = 16  # 7 on every card so far


@dataclass(frozen=True, slots=True)
class _Listed:
    """One pid as the driver lists it."""

    kind: str
    memory_bytes: int | None
    gpu_instance: int | None


class CardProcesses:
    """Reads the process lists of one card through the door. Runs in: sampler thread."""

    def __init__(self, door: NvmlDoor, *, directory: ProcessDirectory) -> None:
        self._door = door
        self._directory = directory
        self._use = ProcessUse(door)

    def reopened(self) -> None:
        """The driver came back: what it has kept begins anew."""
        self._use = ProcessUse(self._door)

    def read(self, handle: Any, card: Card, traits: Traits, *, utilization: Reading) -> tuple[ProcessSample, ...]:
        """All processes, one entry a pid. Empty when the lists cannot be read. ``utilization``: the card's, now."""
        found: dict[int, _Listed] = {}
        self._list(found, handle, card.uuid, traits, instance=None)
        if traits.mig:  # a slice's processes may be on its own lists only
            for instance, number in self._instances(handle, card.uuid):
                self._list(found, instance, f"{card.uuid}/{number}", traits, instance=number)
        use = self._use.read(handle, card.uuid, traits, pids=found.keys(), utilization=utilization)
        return tuple(
            self._process(pid, listed, use[pid], card=card, traits=traits) for pid, listed in sorted(found.items())
        )

    def _list(
        self, found: dict[int, _Listed], handle: Any, owner: str, traits: Traits, *, instance: int | None
    ) -> None:
        version = "_v2" if traits.old_process_call else ""
        for kind, call in _LISTS:
            answer = self._door.query(f"nvmlDeviceGet{call}RunningProcesses{version}", handle, owner=owner)
            for entry in answer.value or () if answer.reason is None else ():
                known = entry.gpuInstanceId if traits.mig and entry.gpuInstanceId <= INSTANCE.high else instance
                _merge(found, entry.pid, _Listed(kind, entry.usedGpuMemory, known))

    def _instances(self, handle: Any, uuid: str) -> Iterator[tuple[Any, int | None]]:
        """Handles of the MIG slices, with their numbers as the driver has them in processes."""
        most = self._door.query("nvmlDeviceGetMaxMigDeviceCount", handle, owner=uuid)
        for index in range(min(int(most.value or 0), _MOST_INSTANCES) if most.reason is None else 0):
            instance = self._door.query("nvmlDeviceGetMigDeviceHandleByIndex", handle, index, owner=uuid)
            if instance.reason is not None:
                continue
            number = self._door.query("nvmlDeviceGetGpuInstanceId", instance.value, owner=f"{uuid}/{index}")
            known = number.judged(INSTANCE).value
            yield instance.value, None if known is None else int(known)

    def _process(self, pid: int, listed: _Listed, use: UseSample, *, card: Card, traits: Traits) -> ProcessSample:
        memory, reason = listed.memory_bytes, None
        if memory is None:
            reason = Reason.WDDM if traits.wddm else Reason.MIG if traits.mig else Reason.NOT_SUPPORTED
        elif is_sentinel(memory) or memory > (card.total_bytes or MEMORY_TOTAL.high):
            memory, reason = None, Reason.IMPLAUSIBLE
        return replace(
            self._directory.sample(pid, uuid=card.uuid, kind=listed.kind),
            memory_bytes=memory,
            memory_reason=reason,
            sm_percent=use.sm_percent,
            sm_reason=use.reason,
            memory_bus_percent=use.memory_percent,
            gpu_instance=listed.gpu_instance,
        )


def _merge(found: dict[int, _Listed], pid: int, new: _Listed) -> None:
    """A process on several lists is one process; pid 0 and a pid that no process can have are none."""
    if not is_pid(pid):
        return
    known = found.get(pid)
    if known is None:
        found[pid] = new
        return
    sizes = [size for size in (known.memory_bytes, new.memory_bytes) if size is not None]
    found[pid] = _Listed(
        kind=known.kind if known.kind == new.kind else "both",
        memory_bytes=max(sizes, default=None),
        gpu_instance=known.gpu_instance if known.gpu_instance is not None else new.gpu_instance,
    )
