"""Where a training computes: the CPU, a CUDA card, or a simulated card that the CPU computes. Imported late."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import torch
from torch import Tensor

from desktop_app.core.errors import NoSuchDeviceError
from desktop_app.core.steps import Category, MemoryStats, Phase
from desktop_app.training.host_memory import return_free_memory
from desktop_app.training.recipes.data import Batch

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from desktop_app.memory.simulated_device import SimulatedDevice

# How much slower a kernel reads RAM over the bus than its card's own memory: 192 GB/s of a GTX 1660 over the
# 12.8 GB/s that PCIe 3.0 x16 gives in practice.
_BUS_RATIO: Final = 15.0
_LONGEST_WAIT_S: Final = 3.0  # a stop must not wait longer


class TrainingDevice(Protocol):
    """What the loop asks of the place it computes in. Used by the trainer thread alone."""

    @property
    def torch_device(self) -> torch.device: ...

    @property
    def card_name(self) -> str | None:
        """``None`` on the CPU."""

    @property
    def capacity_bytes(self) -> int | None:
        """Memory of the card, for a post-mortem; ``None`` when there is no card or it is not known."""

    def place(self, batch: Batch) -> Batch:
        """The batch on the device. Called outside ``step_scope``."""

    def phase(self, phase: Phase) -> None:
        """The training enters a phase."""

    def step_scope(self) -> AbstractContextManager[object]:
        """Active around everything that the card would compute."""

    def autocast(self, dtype: torch.dtype | None) -> AbstractContextManager[object]:
        """Mixed precision around forward and loss; nothing for ``None``."""

    def track_model(self, model: nn.Module) -> None:
        """The model is on the device now; called once, outside ``step_scope``."""

    def track_optimizer(self, optimizer: Optimizer) -> None:
        """The optimizer exists, with its state after a resume; called once, outside ``step_scope``."""

    def stats(self) -> MemoryStats | None:
        """The caching allocator now; ``None`` where there is none."""

    def reset_peaks(self) -> None: ...

    def release(self) -> None:
        """Give back what is cached, after an out-of-memory error."""

    def empty_cache(self) -> None:
        """``torch.cuda.empty_cache``."""

    def hold_outside(self, size_bytes: int) -> None:
        """A demonstration loads so much outside the allocator; only a simulated card does it."""

    def close(self) -> None: ...


class CpuDevice:
    """The CPU as it is: no card, no memory statistics."""

    torch_device = torch.device("cpu")
    card_name: str | None = None
    capacity_bytes: int | None = None

    def place(self, batch: Batch) -> Batch:
        return batch

    def phase(self, phase: Phase) -> None: ...

    def step_scope(self) -> AbstractContextManager[object]:
        return nullcontext()

    def autocast(self, dtype: torch.dtype | None) -> AbstractContextManager[object]:
        return nullcontext() if dtype is None else torch.autocast("cpu", dtype=dtype)

    def track_model(self, model: nn.Module) -> None: ...
    def track_optimizer(self, optimizer: Optimizer) -> None: ...

    def stats(self) -> MemoryStats | None:
        return None

    def reset_peaks(self) -> None: ...
    def release(self) -> None: ...
    def empty_cache(self) -> None: ...
    def hold_outside(self, size_bytes: int) -> None: ...

    def close(self) -> None:
        return_free_memory()


class CudaDevice:
    """A CUDA card through torch. Makes the card current for this thread; a context is created with the first use.

    ``outside_bytes``: what this process holds outside the allocator, where NVML has told it.
    """

    def __init__(self, index: int, *, outside_bytes: int = 0) -> None:
        if not torch.cuda.is_available():
            raise NoSuchDeviceError(
                "device.no_cuda",
                f"device cuda:{index}: torch {torch.__version__} sees no CUDA card; choose cpu or simulated, or "
                "install a CUDA build of torch that suits the driver",
                params={"index": index},
            )
        if index >= torch.cuda.device_count():
            raise NoSuchDeviceError(
                "device.no_such_index",
                f"device cuda:{index}: torch sees cards 0 to {torch.cuda.device_count() - 1}; choose one of them",
                params={"index": index, "count": torch.cuda.device_count()},
            )
        self.torch_device = torch.device("cuda", index)
        torch.cuda.set_device(self.torch_device)
        self.card_name: str | None = torch.cuda.get_device_name(index)
        self.capacity_bytes: int | None = torch.cuda.get_device_properties(index).total_memory
        self.outside_bytes = outside_bytes
        self._optimizer: Optimizer | None = None
        self._parameter_bytes = 0
        self._gradient_bytes = 0
        self._states_counted = 0
        self._counted_bytes = 0

    def place(self, batch: Batch) -> Batch:
        return Batch(
            batch.inputs.to(self.torch_device, non_blocking=True),
            batch.targets.to(self.torch_device, non_blocking=True),
        )

    def phase(self, phase: Phase) -> None: ...

    def step_scope(self) -> AbstractContextManager[object]:
        return nullcontext()

    def autocast(self, dtype: torch.dtype | None) -> AbstractContextManager[object]:
        return nullcontext() if dtype is None else torch.autocast("cuda", dtype=dtype)

    def track_model(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        self._parameter_bytes = sum(_bytes(tensor) for tensor in (*parameters, *model.buffers()))
        self._gradient_bytes = sum(_bytes(tensor) for tensor in parameters if tensor.requires_grad)

    def track_optimizer(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    def stats(self) -> MemoryStats:
        """From ``memory_stats_as_nested_dict``, which never waits for the card. ``returnable_bytes`` is what is
        neither live nor in a split segment: exact for the native allocator, an upper bound with expandable segments.
        """
        raw = cast("Mapping[str, Any]", torch.cuda.memory_stats_as_nested_dict(self.torch_device))
        live, reserved = raw["allocated_bytes"]["all"], raw["reserved_bytes"]["all"]
        active = raw["active_bytes"]["all"]["current"]
        idle_split = raw["inactive_split_bytes"]["all"]["current"]
        return MemoryStats(
            live_bytes=live["current"],
            live_peak_bytes=live["peak"],
            reserved_bytes=reserved["current"],
            reserved_peak_bytes=reserved["peak"],
            idle_split_bytes=idle_split,
            returnable_bytes=max(0, reserved["current"] - active - idle_split),
            alloc_retries=raw["num_alloc_retries"],
            outside_bytes=self.outside_bytes,
            peak_categories=self._peak_categories(live["peak"]),
        )

    def reset_peaks(self) -> None:
        torch.cuda.reset_peak_memory_stats(self.torch_device)

    def release(self) -> None:
        _clear_cublas_workspaces()
        torch.cuda.empty_cache()

    def empty_cache(self) -> None:
        torch.cuda.empty_cache()

    def hold_outside(self, size_bytes: int) -> None: ...

    def close(self) -> None:
        self._optimizer = None
        torch.cuda.empty_cache()

    def _peak_categories(self, peak_bytes: int) -> Mapping[Category, int]:
        """Who owns the peak, by what is known to be held; the rest are activations and temporaries."""
        owners: dict[Category, int] = {}
        left = peak_bytes
        for category, size in (
            (Category.PARAMETERS, self._parameter_bytes),
            (Category.OPTIMIZER_STATE, self._state_bytes()),
            (Category.GRADIENTS, self._gradient_bytes),
        ):
            owners[category] = min(size, left)
            left -= owners[category]
        owners[Category.ACTIVATIONS] = left
        return owners

    def _state_bytes(self) -> int:
        """Optimizer state on the card; counted again only when there is more of it."""
        if self._optimizer is not None and len(self._optimizer.state) != self._states_counted:
            self._states_counted = len(self._optimizer.state)
            self._counted_bytes = sum(
                _bytes(value)
                for kept in self._optimizer.state.values()
                for value in kept.values()
                if isinstance(value, Tensor) and value.device == self.torch_device
            )
        return self._counted_bytes


class SimulatedCudaDevice:
    """A real training on the CPU whose storages live in the allocator replica of a simulated card."""

    torch_device = torch.device("cpu")

    def __init__(self, card: SimulatedDevice) -> None:
        self._card = card
        self._began_s: float | None = None  # of the step, to know how much longer it takes where memory has spilled

    @property
    def card_name(self) -> str | None:
        return self._card.card.name

    @property
    def capacity_bytes(self) -> int | None:
        return self._card.card.capacity_bytes

    def place(self, batch: Batch) -> Batch:
        return Batch(self._card.place(batch.inputs), self._card.place(batch.targets))

    def phase(self, phase: Phase) -> None:
        self._card.phase(phase)
        if phase is Phase.FORWARD and self._began_s is None:
            self._began_s = time.monotonic()
        elif phase in (Phase.ZERO, Phase.VALIDATION):
            self._wait_for_ram(phase)

    def _wait_for_ram(self, phase: Phase) -> None:
        """A step that has memory in RAM takes longer: what lies there is read and written over the bus."""
        began_s, self._began_s = self._began_s, None
        if phase is Phase.ZERO and began_s is not None and self._card.spilled_share > 0:
            longer = self._card.spilled_share * (_BUS_RATIO - 1)
            time.sleep(min((time.monotonic() - began_s) * longer, _LONGEST_WAIT_S))

    def step_scope(self) -> AbstractContextManager[object]:
        return self._card.scope()

    def autocast(self, dtype: torch.dtype | None) -> AbstractContextManager[object]:
        return self._card.autocast(dtype)

    def track_model(self, model: nn.Module) -> None:
        self._card.track_model(model)

    def track_optimizer(self, optimizer: Optimizer) -> None:
        self._card.track_optimizer(optimizer)

    def stats(self) -> MemoryStats | None:
        return self._card.stats()

    def reset_peaks(self) -> None:
        self._card.reset_peaks()

    def release(self) -> None:
        self._card.release()

    def empty_cache(self) -> None:
        self._card.empty_cache()

    def hold_outside(self, size_bytes: int) -> None:
        self._card.hold_outside(size_bytes)

    def close(self) -> None:
        self._card.close()
        return_free_memory()


def open_device(name: str) -> CpuDevice | CudaDevice:
    """The device that a config names: ``cpu``, ``cuda``, ``cuda:N``, or ``auto`` (the first card, else the CPU).

    Raises ``NoSuchDeviceError``; ``ValueError`` for ``simulated``, which needs a card: see ``SimulatedCudaDevice``.
    """
    if name == "simulated":
        raise ValueError("a simulated device needs its card")
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return CpuDevice()
    _, _, index = name.partition(":")
    return CudaDevice(int(index or 0))


def _clear_cublas_workspaces() -> None:
    """They stay where they were first needed, in the midst of a full card, and keep whole segments from going back.

    torch 2.13 has a private call only (pytorch/pytorch#184084); without any, they stay.
    """
    public = getattr(torch.cuda, "clear_cublas_workspaces", None)
    clear = public or getattr(torch._C, "_cuda_clearCublasWorkspaces", None)  # noqa: SLF001
    if clear is not None:
        clear()


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
