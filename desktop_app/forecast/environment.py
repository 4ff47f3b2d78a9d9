"""What surrounds the run: the card's brim, who else is on it, how long the run will be."""

from __future__ import annotations

from dataclasses import dataclass

from desktop_app.core.steps import BatchShape, MemoryStats


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything about the run that its steps do not say. All sizes in bytes; ``None`` is unknown.

    ``outside_bytes`` is this process outside the allocator; a sample that knows it better wins.
    """

    capacity_bytes: int
    others_bytes: int = 0
    outside_bytes: int = 0
    total_steps: int | None = None
    steps_per_epoch: int | None = None
    longest_batch: BatchShape | None = None  # of the steps to come, where the loader can tell
    longest_batch_step: int | None = None  # when it comes; None: some time

    def outside(self, memory: MemoryStats | None) -> int:
        """Context, handles and kernels of this process: the sample's figure where it has one."""
        if memory is not None and memory.outside_bytes > 0:
            return memory.outside_bytes
        return self.outside_bytes

    def allocator_room(self, memory: MemoryStats | None) -> int:
        """The most that the caching allocator could reserve now: capacity minus everything that is not its own."""
        return self.capacity_bytes - self.others_bytes - self.outside(memory)

    def device_bytes(self, memory: MemoryStats | None) -> int:
        """Use of the whole card as far as it is known from here."""
        reserved = memory.reserved_bytes if memory is not None else 0
        return self.others_bytes + self.outside(memory) + reserved

    def steps_left(self, step: int) -> int | None:
        """Steps of the run after ``step``; ``None`` when the run's length is unknown."""
        return None if self.total_steps is None else max(0, self.total_steps - step)

    def steps_to_epoch_end(self, step: int) -> int | None:
        """Steps of the current epoch after ``step`` (0 at its last step); ``None`` when unknown."""
        if not self.steps_per_epoch:
            return None
        return -step % self.steps_per_epoch

    def same_epoch(self, first_step: int, last_step: int) -> bool:
        """No end of an epoch lies between the two steps, as far as is known; steps count from 1."""
        if not self.steps_per_epoch:
            return False
        return (first_step - 1) // self.steps_per_epoch == (last_step - 1) // self.steps_per_epoch
