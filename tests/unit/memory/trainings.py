"""Small trainings that run for real on a CPU and can be traced: the same loop twice, written independently."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn import functional

from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import GIB
from desktop_app.memory.cuda_autocast import cuda_lowering
from desktop_app.memory.lowering import Lowering
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.storage_tracker import StorageTracker
from desktop_app.memory.trace import TraceSubject
from desktop_app.memory.trace_recorder import TraceRecorder

HUGE = CardSpec("huge", 1024 * GIB, 1024 * GIB, "Turing", (7, 5), 22)
SIDE = 16
CLASSES = 3


class Residual(nn.Module):
    """Values that are used twice, so that gradients are summed."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.inner = nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.skip = nn.Conv2d(8, 8, 1)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.stem(images)
        y = self.norm(self.inner(functional.relu(x)))
        z: torch.Tensor = self.head(functional.relu(x + y + self.skip(x)).mean((2, 3)))
        return z


def cnn() -> nn.Module:
    layers: list[nn.Module] = []
    channels = 1
    for width in (8, 16):
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
        channels = width
    head = nn.Linear(channels * (SIDE // 4) ** 2, 32)
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3), head, nn.ReLU(), nn.Linear(32, CLASSES))


def mlp(hidden: int = 256) -> nn.Module:
    first, second = nn.Linear(SIDE * SIDE, hidden), nn.Linear(hidden, hidden)
    return nn.Sequential(nn.Flatten(), first, nn.ReLU(), nn.Dropout(0.5), second, nn.ReLU(), nn.Linear(hidden, CLASSES))


class TokenModel(nn.Module):
    """A small language model: embedding, two blocks with attention, tied head. Token ids come from pixel rows."""

    def __init__(self, tokens: int = 96, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        ids = (images.flatten(1) * 0).long()
        hidden = self.embedding(ids)
        for block in self.blocks:
            hidden = block(hidden)
        logits: torch.Tensor = self.head(self.norm(hidden).mean(1))
        return logits


class Block(nn.Module):
    """Pre-norm attention and MLP; queries, keys and values by three layers, so that three gradients are summed."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.projections = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        normed = self.norms[0](hidden)
        shape = (*hidden.shape[:2], self.heads, -1)
        query, key, value = (layer(normed).view(shape).transpose(1, 2) for layer in self.projections[:3])
        out = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.projections[3](out.transpose(1, 2).flatten(2))
        result: torch.Tensor = hidden + self.narrow(functional.gelu(self.wide(self.norms[1](hidden))))
        return result


def adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), foreach=True)


def adam_loop(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), foreach=False)


def sgd_momentum(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, foreach=True)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)


class Driver(Protocol):
    """What a real run tells about itself; ``SimulatedDevice`` is one."""

    def place(self, tensor: torch.Tensor) -> torch.Tensor: ...
    def phase(self, phase: Phase) -> None: ...
    def scope(self) -> AbstractContextManager[object]: ...
    def autocast(self, dtype: torch.dtype | None) -> AbstractContextManager[object]: ...
    def track_model(self, model: nn.Module) -> None: ...
    def track_optimizer(self, optimizer: torch.optim.Optimizer) -> None: ...


class Recording:
    """Writes down the events of a real run, for comparing them one by one with a trace."""

    def __init__(self, card: CardSpec = HUGE) -> None:
        self.recorder = TraceRecorder()
        self.tracker = StorageTracker(self.recorder, lowering=Lowering(card))

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        self.tracker.place(tensor, category=Category.INPUTS, op="to")
        return tensor

    def phase(self, phase: Phase) -> None:
        if self.tracker.phase is Phase.OPTIMIZER:
            self.tracker.sort_state()
        self.tracker.phase = self.recorder.phase = phase

    def scope(self) -> AbstractContextManager[object]:
        return self.tracker

    def autocast(self, dtype: torch.dtype | None) -> AbstractContextManager[object]:
        return nullcontext() if dtype is None else cuda_lowering(dtype)

    def track_model(self, model: nn.Module) -> None:
        self.tracker.track_model(model)

    def track_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        self.tracker.track_optimizer(optimizer)


@dataclass
class Training:
    """A ``TraceTarget`` and a real training in one."""

    model: Callable[[], nn.Module] = cnn
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = adamw
    accumulation: int = 1
    grad_clip: float | None = None
    precision: str = "fp32"

    def build(self) -> TraceSubject:
        model = self.model()
        return TraceSubject(
            model=model,
            optimizer=self.optimizer(model),
            batch=example_batch,
            micro_step=micro_step,
            accumulation=self.accumulation,
            precision=self.precision,
            grad_clip=self.grad_clip,
        )

    def run(self, driver: Driver, *, batch_size: int, steps: int = 2, validate: bool = True) -> list[float]:
        """Losses of a real run, with the lifetimes of an ordinary loop."""
        torch.manual_seed(0)
        driver.phase(Phase.BUILD)
        model = self.model()
        driver.track_model(model)
        optimizer = self.optimizer(model)
        driver.track_optimizer(optimizer)
        dtype = torch.bfloat16 if self.precision == "bf16" else None
        losses: list[float] = []
        batch: Any = None
        loss: torch.Tensor | None = None
        for _ in range(steps):
            for _ in range(self.accumulation):
                driver.phase(Phase.FORWARD)
                batch = None
                batch = tuple(driver.place(tensor) for tensor in random_batch(batch_size))
                with driver.scope():
                    with driver.autocast(dtype):
                        loss = micro_step(model, batch)
                    driver.phase(Phase.BACKWARD)
                    (loss / self.accumulation if self.accumulation > 1 else loss).backward()  # type: ignore[no-untyped-call]
                losses.append(loss.item())
            driver.phase(Phase.OPTIMIZER)
            with driver.scope():
                if self.grad_clip is not None:
                    nn.utils.clip_grad_norm_(model.parameters(), self.grad_clip)
                optimizer.step()
                driver.phase(Phase.ZERO)
                optimizer.zero_grad(set_to_none=True)
        if validate:
            batch = loss = None
            driver.phase(Phase.VALIDATION)
            model.eval()
            batch = tuple(driver.place(tensor) for tensor in random_batch(batch_size))
            with driver.scope(), torch.no_grad(), driver.autocast(dtype):
                loss = micro_step(model, batch)
            losses.append(loss.item())
        return losses


def micro_step(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


def example_batch(batch_size: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    images = torch.empty(batch_size, 1, SIDE, SIDE, device=device)
    return images, torch.empty(batch_size, dtype=torch.int64, device=device)


def random_batch(batch_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(batch_size, 1, SIDE, SIDE), torch.randint(0, CLASSES, (batch_size,))
