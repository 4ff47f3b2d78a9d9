"""What it costs to book a training's storages on a simulated card.

    python benchmarks/tracker_cost.py [--steps N] [--batch-size N] [--threads N]

Runs the default small CNN (28 × 28 images) bare, under an empty dispatch mode, and on a simulated card, alternating
in one process, and prints the median milliseconds per step (wall and processor time; the latter bears a busy machine
with one thread), the ratio to the bare loop, and microseconds per op. Then the time of an estimate, first and again.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from desktop_app.core.steps import Phase
from desktop_app.core.units import GIB
from desktop_app.memory.estimate import estimate
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.memory.trace import TraceSubject, trace_training
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.training_spec import TrainingSpec
from desktop_app.training.recipes.models import small_cnn

SIDE, CLASSES = 28, 2
CARD = CardSpec("GeForce GTX 1660", int(5.9 * GIB), 6 * GIB, "Turing", (7, 5), 22)
BLOCK = 5  # steps between changes of mode
WARM_UP = 4


class EmptyMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """What PyTorch itself takes for calling Python at every op."""

    ops = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ops += 1
        return func(*args, **kwargs) if kwargs else func(*args)


class Loop:
    """One model, its optimizer, and a step inside any scope."""

    def __init__(self, batch_size: int, scope: AbstractContextManager[object], device: SimulatedDevice | None) -> None:
        torch.manual_seed(0)
        self._model = build_model()
        self._optimizer = build_optimizer(self._model)
        self._images = torch.randint(0, 256, (batch_size, 1, SIDE, SIDE), dtype=torch.uint8)
        self._targets = torch.randint(0, CLASSES, (batch_size,))
        self._scope = scope
        self._device = device
        if device is not None:
            device.track_model(self._model)
            device.track_optimizer(self._optimizer)

    def step(self) -> tuple[float, float]:
        """Seconds of one optimizer step: wall and processor."""
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        images, targets = self._place(self._images.clone()), self._place(self._targets.clone())
        self._enter(Phase.FORWARD)
        with self._scope:
            loss = functional.cross_entropy(self._model(images), targets)
            self._enter(Phase.BACKWARD)
            loss.backward()  # type: ignore[no-untyped-call]
            self._enter(Phase.OPTIMIZER)
            self._optimizer.step()
            self._enter(Phase.ZERO)
            self._optimizer.zero_grad(set_to_none=True)
        if self._device is not None:
            self._device.stats()
            self._device.reset_peaks()
        return time.perf_counter() - start_s, time.process_time() - start_cpu_s

    def _place(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if self._device is None else self._device.place(tensor)

    def _enter(self, phase: Phase) -> None:
        if self._device is not None:
            self._device.phase(phase)


class Target:
    """The same training for the trace."""

    def build(self) -> TraceSubject:
        model = build_model()
        return TraceSubject(
            model,
            build_optimizer(model),
            batch=lambda size, device: (
                torch.empty(size, 1, SIDE, SIDE, dtype=torch.uint8, device=device),
                torch.empty(size, dtype=torch.int64, device=device),
            ),
            micro_step=lambda m, batch: functional.cross_entropy(m(batch[0]), batch[1]),
        )


def build_model() -> nn.Module:
    return small_cnn(channels=1, image_size=SIDE, classes=CLASSES, width=32, hidden=128)


def build_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=True)


def alternate(loops: dict[str, Callable[[], tuple[float, float]]], steps: int) -> dict[str, tuple[float, float]]:
    """Median seconds per step of each, a block of one after a block of the other."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in loops}
    for run in loops.values():
        for _ in range(WARM_UP):
            run()
    for _ in range(max(1, steps // BLOCK)):
        for name, run in loops.items():
            times[name] += [run() for _ in range(BLOCK)]
    return {
        name: (statistics.median(wall for wall, _ in values), statistics.median(cpu for _, cpu in values))
        for name, values in times.items()
    }


def _trace(spec: TrainingSpec, card: CardSpec) -> Trace:
    return trace_training(Target(), batch_size=spec.batch_size, card=card)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    device = SimulatedDevice(CARD)
    empty = EmptyMode()  # type: ignore[no-untyped-call]
    loops = {
        "bare": Loop(options.batch_size, nullcontext(), None).step,
        "empty mode": Loop(options.batch_size, empty, None).step,
        "simulated card": Loop(options.batch_size, device.scope(), device).step,
    }
    medians = alternate(loops, options.steps)
    ops = empty.ops / (WARM_UP + max(1, options.steps // BLOCK) * BLOCK)
    print(f"torch {torch.__version__}, {options.threads} threads, batch {options.batch_size}, {ops:.0f} ops per step")
    bare_wall_s, bare_cpu_s = medians["bare"]
    for name, (wall_s, cpu_s) in medians.items():
        per_op_us = (cpu_s - bare_cpu_s) / ops * 1e6
        print(
            f"{name:>15}: wall {wall_s * 1e3:7.2f} ms {wall_s / bare_wall_s:5.2f} x   "
            f"processor {cpu_s * 1e3:7.2f} ms {cpu_s / bare_cpu_s:5.2f} x {per_op_us:6.1f} us per op"
        )

    for name in ("first", "again"):
        start_s = time.perf_counter()
        spec = TrainingSpec(model="entry:here:small_cnn", batch_size=options.batch_size)
        found = estimate(
            spec, CARD, trace=lambda spec, card: trace_training(Target(), batch_size=spec.batch_size, card=card)
        )
        print(f"estimate, {name}: {time.perf_counter() - start_s:.2f} s  (largest batch {found.largest_batch})")


if __name__ == "__main__":
    main()
