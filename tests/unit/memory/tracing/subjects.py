"""What the tests of subjects share: a stage without a card, models, and sums over a trace."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from desktop_app.core.steps import Category
from desktop_app.core.units import GIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.trace import TraceSubject, trace
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.tracing.stage import Stage, open_stage
from desktop_app.memory.tracing.subject import build_subject
from desktop_app.memory.training_spec import TrainingSpec

A100 = CardSpec("A100", 79 * GIB, 80 * GIB, "Ampere", (8, 0), 108)
WIDTH, CLASSES, DEPTH = 96, 10, 4


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden: Tensor = self.down(functional.gelu(self.up(inputs)))
        return inputs + hidden


class Stack(nn.Module):
    """Reads back what it computes when it is built, as 13 of 103 models of timm do."""

    def __init__(self, width: int = WIDTH, depth: int = DEPTH) -> None:
        super().__init__()
        rates = [rate.item() for rate in torch.linspace(0, 0.1, depth)]
        self.blocks = nn.ModuleList(Block(width) for _ in rates)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        for block in self.blocks:
            inputs = block(inputs)
        logits: Tensor = self.head(inputs)
        return logits


def micro_step(model: nn.Module, batch: Any) -> Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


def batch(batch_size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    return torch.empty(batch_size, WIDTH, device=device), torch.zeros(batch_size, dtype=torch.int64, device=device)


def stack_subject(optimizer: str = "Adam") -> TraceSubject:
    """For ``entry:``."""
    model = Stack()
    made = getattr(torch.optim, optimizer)(model.parameters())
    return TraceSubject(model=model, optimizer=made, batch=batch, micro_step=micro_step)


STACK = f"entry:{__name__}:stack_subject"


def meta_stage() -> Stage:
    return open_stage(A100, rung="meta")


def subject_of(model: str = STACK, **fields: Any) -> TraceSubject:
    return build_subject(TrainingSpec(model=model, **fields), meta_stage())


def trace_of(model: str = STACK, **fields: Any) -> Trace:
    spec, stage = TrainingSpec(model=model, **{"batch_size": 8, **fields}), meta_stage()
    return trace(build_subject(spec, stage), stage=stage, card=A100, batch_size=spec.batch_size)


def most_bytes(trace: Trace, category: Category | None = None) -> int:
    """The most that is alive at once, of one owner or of all."""
    sizes: dict[int, int] = {}
    live = most = 0
    for event in trace.events:
        if event.key > 0 and category in (None, event.category):
            sizes[event.key] = event.size_bytes
            live += event.size_bytes
            most = max(most, live)
        elif event.key < 0:
            live -= sizes.pop(-event.key, 0)
    return most


def kept_bytes(trace: Trace, category: Category) -> int:
    """What one owner still has at the end."""
    sizes = {event.key: event.size_bytes for event in trace.events if event.key > 0 and event.category is category}
    return sum(sizes.values()) - sum(sizes.get(-event.key, 0) for event in trace.events if event.key < 0)
