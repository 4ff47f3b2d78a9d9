"""Two steps of small trainings as plain lists of events, on any rung."""

from __future__ import annotations

import torch
from torch import nn

from desktop_app.memory.trace import TraceSubject, trace
from desktop_app.memory.tracing.stage import open_stage
from tests.unit.memory.kernel_calls import A100
from tests.unit.memory.trainings import Residual, TokenModel, Training, adamw, cnn, sgd_momentum


class Recurrent(nn.Module):
    """Rows of an image are the steps of two bidirectional layers."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(16, 24, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)
        self.head = nn.Linear(48, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.cells(images[:, 0])[0].mean(1))
        return out


TRAININGS = {
    "recurrent": Training(Recurrent, adamw),
    "recurrent, bf16": Training(Recurrent, adamw, precision="bf16"),
    "transformer": Training(TokenModel, adamw, grad_clip=1.0),
    "transformer, bf16, accumulated": Training(TokenModel, adamw, precision="bf16", accumulation=2),
    "convolutions": Training(cnn, adamw),
    "residual, bf16": Training(Residual, sgd_momentum, precision="bf16"),
}


def events(rung: str, *, name: str, batch_size: int) -> list[list[object]]:
    """What is allocated and freed in two steps: direction, bytes, phase, step, module, convolution.

    Frees between two allocations are sorted: the copies of weights die together, in the order of a hash table.
    """
    training = TRAININGS[name]
    stage = open_stage(A100, rung=rung)
    with stage.building():
        subject = training.build()
    stage.adopt(subject.model)
    with stage.running():
        optimizer = training.optimizer(subject.model)
    moved = TraceSubject(
        model=subject.model,
        optimizer=optimizer,
        batch=subject.batch,
        micro_step=subject.micro_step,
        accumulation=subject.accumulation,
        precision=subject.precision,
        grad_clip=subject.grad_clip,
    )
    made = trace(moved, stage=stage, card=A100, batch_size=batch_size).events
    rows: list[list[object]] = []
    freed: list[list[object]] = []
    for event in made:
        row: list[object] = [event.key > 0, event.size_bytes, event.phase.value, event.step]
        row += [event.module, event.convolution]
        if event.key < 0:
            freed.append(row)
            continue
        rows += sorted(freed, key=repr)
        freed.clear()
        rows.append(row)
    return rows + sorted(freed, key=repr)
