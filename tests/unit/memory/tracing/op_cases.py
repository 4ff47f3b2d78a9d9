"""Single operators with a published peak: ``max_memory_allocated`` after three iterations of forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from desktop_app.core.steps import Phase
from desktop_app.core.units import GIB, MIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.trace import trace_ops
from desktop_app.memory.tracing.stage import open_stage
from tests.unit.memory.tracing.staged import peak

A100 = CardSpec("A100", 80 * GIB, 80 * GIB, "Ampere", (8, 0), 108)
RTX_4090 = CardSpec("RTX 4090", 24 * GIB, 24 * GIB, "Ada Lovelace", (8, 9), 128)
BF16 = torch.bfloat16

Enter = Callable[[Phase], None]


def three_times(iteration: Callable[[], None]) -> None:
    for _ in range(3):
        iteration()


def cross_entropy(enter: Enter, *, vocabulary: int) -> None:
    logits = torch.empty(8 * 2048, vocabulary, requires_grad=True)
    targets = torch.empty(8 * 2048, dtype=torch.int64)

    def iteration() -> None:
        enter(Phase.FORWARD)
        loss = functional.cross_entropy(logits, targets)
        enter(Phase.BACKWARD)
        loss.backward()  # type: ignore[no-untyped-call]

    three_times(iteration)


def gated_mlp(enter: Enter, *, shape: tuple[int, int, int, int], act: Callable[[Tensor], Tensor]) -> None:
    batch, tokens, hidden, intermediate = shape
    gate, up, down = (
        torch.empty(*size, dtype=BF16, requires_grad=True)
        for size in ((intermediate, hidden), (intermediate, hidden), (hidden, intermediate))
    )
    inputs = torch.empty(batch, tokens, hidden, dtype=BF16, requires_grad=True)

    def iteration() -> None:
        enter(Phase.FORWARD)
        inner = act(functional.linear(inputs, gate)) * functional.linear(inputs, up)
        out = functional.linear(inner, down)
        del inner
        enter(Phase.BACKWARD)
        out.backward(torch.randn_like(out), retain_graph=True)  # type: ignore[no-untyped-call]

    three_times(iteration)


def layer_norm(enter: Enter) -> None:
    norms = [nn.LayerNorm(1024) for _ in range(2)]
    inputs, gradient = torch.randn(4096, 1024, requires_grad=True), torch.randn(4096, 1024)

    def iteration() -> None:
        enter(Phase.FORWARD)
        out = norms[0](inputs)
        enter(Phase.BACKWARD)
        out.backward(gradient, retain_graph=True)

    three_times(iteration)


class RootMeanSquareNorm(nn.Module):
    """As in Llama: its weight is made in full precision and so is what it is multiplied with at last."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, hidden: Tensor) -> Tensor:
        dtype = hidden.dtype
        hidden = hidden.to(torch.float32)
        variance = hidden.pow(2).mean(-1, keepdim=True)
        hidden = hidden * torch.rsqrt(variance + 1e-6)
        return self.weight * hidden.to(dtype)


def rms_norm(enter: Enter) -> None:
    norms = [RootMeanSquareNorm(32768) for _ in range(2)]
    inputs = torch.randn(2048, 32768, dtype=BF16)
    gradient = torch.randn_like(inputs)
    inputs.requires_grad_()

    def iteration() -> None:
        enter(Phase.FORWARD)
        out = norms[0](inputs)
        enter(Phase.BACKWARD)
        out.backward(gradient, retain_graph=True)

    three_times(iteration)


def linear_cross_entropy(enter: Enter) -> None:
    heads = [nn.Linear(4096, 128256, bias=False, dtype=BF16) for _ in range(2)]
    inputs = torch.randn(4096, 4096, dtype=BF16).requires_grad_()
    targets = torch.empty(4096, dtype=torch.int64)

    def iteration() -> None:
        enter(Phase.FORWARD)
        loss = functional.cross_entropy(heads[0](inputs), targets)
        enter(Phase.BACKWARD)
        loss.backward()  # type: ignore[no-untyped-call]

    three_times(iteration)


def kl_div(enter: Enter) -> None:
    inputs = torch.randn(8 * 2048, 131072, requires_grad=True)
    targets = torch.randn(8 * 2048, 131072).softmax(-1)
    logits = inputs.log_softmax(-1)

    def iteration() -> None:
        enter(Phase.FORWARD)
        loss = functional.kl_div(logits, targets, reduction="batchmean")
        enter(Phase.BACKWARD)
        loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]

    three_times(iteration)


def gelu(values: Tensor) -> Tensor:
    return functional.gelu(values, approximate="tanh")


# name: (what is run, its arguments, the card, MiB published)
CASES: dict[str, tuple[Callable[..., None], dict[str, Any], CardSpec, float]] = {
    "cross-entropy, 4,096 classes": (cross_entropy, {"vocabulary": 4096}, A100, 1280.126),
    "cross-entropy, 131,072 classes": (cross_entropy, {"vocabulary": 131072}, A100, 40960.125),
    "SwiGLU, 1,024 tokens": (gated_mlp, {"shape": (4, 1024, 4096, 11008), "act": functional.silu}, A100, 1294.25),
    "SwiGLU, 4,096 tokens": (gated_mlp, {"shape": (4, 4096, 4096, 11008), "act": functional.silu}, A100, 3452.25),
    "GeGLU, 1,024 tokens": (gated_mlp, {"shape": (8, 1024, 4096, 11008), "act": gelu}, A100, 1992.25),
    "small SwiGLU": (gated_mlp, {"shape": (2, 4096, 2048, 4096), "act": functional.silu}, RTX_4090, 688.25),
    "layer norm": (layer_norm, {}, A100, 80.0625),
    "RMS norm": (rms_norm, {}, A100, 2560.383),
    "head and cross-entropy": (linear_cross_entropy, {}, A100, 6092.28),
    "KL divergence": (kl_div, {}, A100, 57344.0),
}


def op_peak(rung: str, *, name: str) -> float:
    """The peak of one of them in MiB, as traced."""
    run, arguments, card, _ = CASES[name]
    trace = trace_ops(lambda enter: run(enter, **arguments), card=card, stage=open_stage(card, rung=rung))
    return peak(trace)["ALL"] / MIB
