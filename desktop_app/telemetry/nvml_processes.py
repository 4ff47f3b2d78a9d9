"""Who is on an NVIDIA card: its process lists, merged and described."""

from __future__ import annotations

from typing import Any, Final

from desktop_app.core.telemetry import Card, ProcessSample, Reason
from desktop_app.telemetry.nvml import Answer, NvmlDoor
from desktop_app.telemetry.nvml_facts import Traits
from desktop_app.telemetry.plausibility import is_sentinel
from desktop_app.telemetry.processes import ProcessDirectory

_KINDS: Final = (("compute", "Compute"), ("graphics", "Graphics"))


class CardProcesses:
    """Reads the process lists of one card through the door. Runs in: sampler thread."""

    def __init__(self, door: NvmlDoor, *, directory: ProcessDirectory) -> None:
        self._door = door
        self._directory = directory

    def read(self, handle: Any, card: Card, traits: Traits) -> tuple[ProcessSample, ...]:
        """Compute and graphics processes, one entry a pid. Empty when the list cannot be read."""
        found: dict[int, tuple[str, int | None]] = {}
        version = "_v2" if traits.old_process_call else ""
        for kind, call in _KINDS:
            answer: Answer = self._door.query(f"nvmlDeviceGet{call}RunningProcesses{version}", handle, owner=card.uuid)
            for entry in answer.value or () if answer.reason is None else ():
                _merge(found, kind, int(entry.pid), entry.usedGpuMemory)
        return tuple(self._process(pid, kind, memory, card, traits) for pid, (kind, memory) in sorted(found.items()))

    def _process(self, pid: int, kind: str, memory: int | None, card: Card, traits: Traits) -> ProcessSample:
        facts = self._directory.describe(pid)
        reason = None
        if memory is None:
            reason = Reason.WDDM if traits.wddm else Reason.MIG if traits.mig else Reason.NOT_SUPPORTED
        elif is_sentinel(memory) or memory > (card.total_bytes or memory):
            memory, reason = None, Reason.IMPLAUSIBLE
        return ProcessSample(
            pid=pid,
            uuid=card.uuid,
            name=facts.name,
            user=facts.user,
            command=facts.command,
            kind=kind,
            memory_bytes=memory,
            memory_reason=reason,
            started_wall_s=facts.started_wall_s,
            own=facts.own,
        )


def _merge(found: dict[int, tuple[str, int | None]], kind: str, pid: int, memory: int | None) -> None:
    """A process in both lists is one process; pid 0 and a pid of all ones are none."""
    if pid == 0 or is_sentinel(pid):
        return
    if pid not in found:
        found[pid] = (kind, memory)
        return
    known = found[pid][1]
    found[pid] = ("both", memory if known is None else known if memory is None else max(known, memory))
