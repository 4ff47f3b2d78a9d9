"""Trainings and questions for the tests of the stages, run on either rung. Everything given and taken is plain."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from desktop_app.core.steps import Phase
from desktop_app.core.units import GIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.trace import TraceSubject, trace
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.tracing.stage import open_stage

BLOCK = 512  # the allocator's unit


def card(capability: tuple[int, int] = (8, 0)) -> CardSpec:
    return CardSpec("card", 40 * GIB, 40 * GIB, compute_capability=tuple(capability), sm_count=108)  # type: ignore[arg-type]


def peak(trace: Trace) -> dict[str, int]:
    """The largest number of live bytes, by phase and of all."""
    live, sizes, peaks = 0, {}, Counter[str]()
    for event in trace.events:
        if event.key > 0:
            sizes[event.key] = -(-event.size_bytes // BLOCK) * BLOCK
            live += sizes[event.key]
        else:
            live -= sizes.pop(-event.key)
        for name in (event.phase.name, "ALL"):
            peaks[name] = max(peaks[name], live)
    return dict(peaks)


def summary(trace: Trace) -> dict[str, Any]:
    """What the tests look at: op, bytes, phase, category, step of all that is allocated."""
    allocated = [
        [event.op, event.size_bytes, event.phase.name, event.category.name, event.step]
        for event in trace.events
        if event.key > 0
    ]
    freed = {-event.key for event in trace.events if event.key < 0}
    kept = [event.category.name for event in trace.events if event.key > 0 and event.key not in freed]
    return {
        "allocated": allocated,
        "kept": sorted(set(kept)),
        "peaks": peak(trace),
        "guesses": dict(trace.guesses),
        "kernels": list(trace.kernels_assumed),
        "rung": trace.rung,
        "demand": trace.optimizer_demand_bytes(),
    }


# Models


class Convolutions(nn.Module):
    """Six convolutions of equal width: their outputs are what is kept."""

    def __init__(self, *, region: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(1, 8, 1), *(nn.Conv2d(8, 8, 1) for _ in range(6))])
        self.region = region

    def forward(self, images: Tensor) -> Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16) if self.region else nullcontext():
            for layer in self.layers:
                images = layer(images)
        return images.mean((2, 3))


class Attends(nn.Module):
    """One attention layer between two projections; the head of the embedding is tied to it."""

    def __init__(self, *, width: int = 256, heads: int = 8, masked: bool = False, recompute: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(128, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.heads, self.masked, self.recompute = heads, masked, recompute

    def attend(self, hidden: Tensor) -> Tensor:
        batch, tokens, width = hidden.shape
        query, key, value = self.qkv(hidden).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mask = torch.ones(tokens, tokens, dtype=torch.bool, device=hidden.device).tril() if self.masked else None
        out = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=not self.masked)
        return out.transpose(1, 2).reshape(batch, tokens, width)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.embed(ids)
        mixed = checkpoint(self.attend, hidden, use_reentrant=False) if self.recompute else self.attend(hidden)
        return functional.linear(mixed, self.embed.weight).mean(1)


class Perceptron(nn.Module):
    def __init__(self, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(256, 256), nn.ReLU(), nn.Dropout(dropout), nn.Linear(256, 8)
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(1)

    def forward(self, images: Tensor) -> Tensor:
        return self.norm(images).flatten(1)


class Looks(nn.Module):
    """Needs values in its forward pass."""

    def __init__(self, *, look: str) -> None:
        super().__init__()
        self.head = nn.Linear(256, 8)
        self.look = look

    def forward(self, images: Tensor) -> Tensor:
        return LOOKS[self.look](self.head(images.flatten(1)))


def host_copies(rung: str) -> dict[str, Any]:
    """What code sees that copies from the card to the host, by the way it is done, and what was counted meanwhile."""
    from desktop_app.memory.trace import trace_ops

    stage = open_stage(card(), rung=rung)
    seen: dict[str, Any] = {}

    def dirt() -> Tensor:
        return torch.full((1000,), 7.0, device="cpu")

    def run(enter: Callable[[Phase], None]) -> None:
        values = torch.randn(1000, requires_grad=True)
        for name, look in COPIES.items():
            before = stage.guesses.total()
            for _ in range(20):  # memory that was just freed is given out again, with what was in it
                [dirt() for _ in range(4)].clear()
                copy = look(values)
                seen[name] = [float(abs(copy).max()), str(copy.dtype)]
                if seen[name][0] != 0:
                    break
            seen[name].append(stage.guesses.total() - before)

    trace_ops(run, card=card(), stage=stage)
    return seen


def into(target: Tensor, source: Tensor) -> Any:
    target.copy_(source)
    return target.numpy()


def all_into(target: Tensor, source: Tensor) -> Any:
    torch._foreach_copy_([target], [source])
    return target.numpy()


COPIES: dict[str, Callable[[Tensor], Any]] = {
    "cpu": lambda values: values.detach().cpu().numpy(),
    "to": lambda values: values.detach().to("cpu", torch.float64).numpy(),
    "forced": lambda values: values.numpy(force=True),
    "into": lambda values: into(torch.full((1000,), 7.0, device="cpu"), values.detach()),
    "all into": lambda values: all_into(torch.full((1000,), 7.0, device="cpu"), values.detach()),
    "like": lambda values: torch.zeros_like(values.detach(), device="cpu").numpy(),
}


def loss_on_host(rung: str) -> dict[str, Any]:
    """A loss that is computed on the host from what the card gave: its gradient goes back to the card."""
    from desktop_app.memory.trace import trace_ops

    stage = open_stage(card(), rung=rung)
    found: list[Any] = []

    def run(enter: Callable[[Phase], None]) -> None:
        weight = torch.randn(100, requires_grad=True)
        loss = (weight * 2).cpu().sum()
        enter(Phase.BACKWARD)
        loss.backward()  # type: ignore[no-untyped-call]
        assert weight.grad is not None
        found.extend([weight.grad.device.type == stage.device.type, loss.item()])

    made = summary(trace_ops(run, card=card(), stage=stage))
    return {**made, "found": found, "guesses": dict(stage.guesses)}


LOOKS: dict[str, Callable[[Tensor], Tensor]] = {
    "item": lambda out: out * out.mean().item(),
    "bool": lambda out: out if out.sum() > 0 else -out,
    "tolist": lambda out: out * sum(out.sum(1).detach().tolist()),
    "nonzero": lambda out: out + out.nonzero().sum(),
    "mask": lambda out: out.flatten()[out.flatten() > 0][:8].expand(4, 8),
    "masked_select": lambda out: out.masked_select(out > 0)[:8].expand(4, 8),
    "unique": lambda out: out * len(torch.unique(out.detach())),
    "where": lambda out: out * len(torch.where(out > 0)[0]),
}

MODELS: dict[str, Callable[..., nn.Module]] = {
    "convolutions": Convolutions,
    "attends": Attends,
    "perceptron": Perceptron,
    "normed": Normed,
    "looks": Looks,
}
OPTIMIZERS: dict[str, Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "adamw": torch.optim.AdamW,
    "adamw_loop": lambda parameters: torch.optim.AdamW(parameters, foreach=False),
    "adamw_fused": lambda parameters: torch.optim.AdamW(parameters, fused=True),
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
    "adamax": torch.optim.Adamax,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "adadelta": torch.optim.Adadelta,
    "rprop": torch.optim.Rprop,
    "asgd": torch.optim.ASGD,
}


def images(batch_size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    pixels = torch.empty(batch_size, 1, 16, 16, device=device)
    return pixels, torch.empty(batch_size, dtype=torch.int64, device=device)


def tokens(batch_size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    ids = torch.empty(batch_size, 128, dtype=torch.int64, device=device)
    return ids, torch.empty(batch_size, dtype=torch.int64, device=device)


def classify(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


# What is run on a rung


def training(
    rung: str,
    *,
    model: str,
    arguments: dict[str, Any] | None = None,
    optimizer: str = "sgd",
    batch_size: int = 4,
    capability: tuple[int, int] = (8, 0),
    attention: str = "auto",
    **settings: Any,
) -> dict[str, Any]:
    """Trace one of the trainings above."""
    spec = card(capability)
    stage = open_stage(spec, rung=rung, attention=attention)
    with stage.building():
        module = MODELS[model](**(arguments or {}))
    stage.adopt(module)
    with stage.running():
        chosen = OPTIMIZERS[optimizer](module.parameters())
    subject = TraceSubject(
        model=module,
        optimizer=chosen,
        batch=tokens if model == "attends" else images,
        micro_step=classify,
        **settings,
    )
    return summary(trace(subject, stage=stage, card=spec, batch_size=batch_size))


def questions(rung: str) -> dict[str, Any]:
    """What code that chooses by the card hears, inside and afterwards."""
    spec = card((9, 0))
    stage = open_stage(spec, rung=rung)
    before = torch.cuda.is_available()
    with stage.running():
        properties = torch.cuda.get_device_properties(0)
        heard = [
            torch.cuda.is_available(),
            torch.cuda.device_count(),
            torch.cuda.current_device(),
            list(torch.cuda.get_device_capability()),
            properties.total_memory,
            properties.multi_processor_count,
            torch.cuda.is_bf16_supported(),
            torch.amp.GradScaler("cuda").is_enabled(),
            torch.backends.cudnn.is_available(),
        ]
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            stream.synchronize()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        torch.cuda.synchronize()
        torch.cuda.manual_seed_all(0)
        torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    return {"heard": heard, "after": torch.cuda.is_available() == before}


def adopted(rung: str) -> dict[str, Any]:
    """A model with ties, a buffer, marks and a memory format of its own, adopted and moved again."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Embedding(8, 4), nn.Linear(4, 8, bias=False)
            self.head.weight = self.embed.weight
            self.conv = nn.Conv2d(4, 8, 3)
            self.register_buffer("table", torch.zeros(3))
            self.embed.weight.tag = "mine"  # type: ignore[attr-defined]
            self.conv.bias.requires_grad_(requires_grad=False)

    stage = open_stage(card(), rung=rung)
    with stage.building():
        model = Tied().to(memory_format=torch.channels_last)
    stage.adopt(model)
    adopted_device = str(model.embed.weight.device)
    with stage.running():
        model.to(stage.device)
        model.half()
    return {
        "devices": sorted({adopted_device, *(str(item.device) for item in (*model.parameters(), *model.buffers()))}),
        "tied": model.head.weight is model.embed.weight,
        "tag": getattr(model.embed.weight, "tag", None),
        "strides": list(model.conv.weight.stride()),
        "dtypes": sorted({str(item.dtype) for item in (*model.parameters(), *model.buffers())}),
        "frozen": [name for name, item in model.named_parameters() if not item.requires_grad],
        "parameters": len(list(model.parameters())),
    }


def kernel_taken(
    rung: str,
    *,
    capability: tuple[int, int],
    dtype: str = "bfloat16",
    head: int = 64,
    mask: bool = False,
    key_heads: int = 8,
    only: str | None = None,
    attention: str = "auto",
) -> list[str]:
    """The kernels that attention takes on a card, by the ops that run."""
    from desktop_app.memory.trace import trace_ops

    spec = card(capability)
    stage = open_stage(spec, rung=rung, attention=attention)

    def run(enter: Callable[[Phase], None]) -> None:
        kind = getattr(torch, dtype)
        query = torch.empty(2, 8, 64, head, dtype=kind, requires_grad=True)
        key = torch.empty(2, key_heads, 64, head, dtype=kind, requires_grad=True)
        bias = torch.zeros(64, 64, dtype=torch.bool) if mask else None
        backends = [getattr(SDPBackend, only)] if only else list(SDPBackend.__members__.values())[1:5]
        with sdpa_kernel(backends):
            out = functional.scaled_dot_product_attention(query, key, key, attn_mask=bias, enable_gqa=key_heads != 8)
        enter(Phase.BACKWARD)
        out.backward(torch.empty_like(out))  # type: ignore[no-untyped-call]

    ops = {event.op for event in trace_ops(run, card=spec, stage=stage).events if event.key > 0}
    names = {
        "_scaled_dot_product_flash_attention": "flash",
        "_scaled_dot_product_efficient_attention": "efficient",
        "_scaled_dot_product_cudnn_attention": "cudnn",
        "_safe_softmax": "math",
    }
    assert {names[op] for op in ops if op in names} == set(stage.kernels["attention"].split(", "))
    return sorted(names[op] for op in ops if op in names)


def composite_choices(rung: str) -> dict[str, str]:
    """What ops made of others are made of, and what torch takes for the accelerator."""
    stage = open_stage(None, rung=rung)
    with stage.running():
        pixels = torch.empty(2, 4, 3, 3, device=stage.device, requires_grad=True)
        norm = nn.BatchNorm2d(4, device=stage.device)
        return {
            "norm": type(norm(pixels).grad_fn).__name__,
            "dropout": type(functional.dropout(pixels).grad_fn).__name__,
            "accelerator": torch.accelerator.current_accelerator().type,  # type: ignore[union-attr]
        }


def recurrent(layer: nn.Module) -> Tensor:
    return layer(torch.randn(4, 10, 32))[0].sum()


def aligned() -> Tensor:
    scores = torch.randn(50, 4, 20, requires_grad=True).log_softmax(2)
    lengths, targets = torch.full((4,), 50), torch.randint(1, 20, (4, 30))
    return functional.ctc_loss(scores, targets, lengths, torch.full((4,), 30))


def averaged() -> Tensor:
    model = nn.Linear(32, 8)
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    return average(torch.randn(4, 32)).sum() + model(torch.randn(4, 32)).sum()


def compiled(model: nn.Module) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing inductor warns of TorchScript
        return torch.compile(model)


PIECES: dict[str, Callable[[], Tensor]] = {
    "lstm": lambda: recurrent(nn.LSTM(32, 64, batch_first=True)),
    "gru": lambda: recurrent(nn.GRU(32, 64, 2, bidirectional=True)),
    "cells": lambda: (nn.GRUCell(32, 64)(torch.randn(4, 32)) + nn.LSTMCell(32, 64)(torch.randn(4, 32))[0]).sum(),
    "ctc": aligned,
    "average": averaged,
    "compiled": lambda: compiled(nn.Linear(32, 8))(torch.randn(4, 32)).sum(),
}


def piece(rung: str, *, name: str) -> dict[str, Any]:
    """Forward and backward of what torch's own fake tensors stumble over."""
    from desktop_app.memory.trace import trace_ops

    def run(enter: Callable[[Phase], None]) -> None:
        loss = PIECES[name]()
        enter(Phase.BACKWARD)
        loss.backward()  # type: ignore[no-untyped-call]

    return summary(trace_ops(run, card=card(), stage=open_stage(card(), rung=rung)))


class Assorted(nn.Module):
    """Activations and norms that are one kernel on CUDA and several elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.group = nn.GroupNorm(4, 16)
        self.project = nn.Linear(16, 64)
        self.rms, self.layer = nn.RMSNorm(64), nn.LayerNorm(64)
        self.attend = nn.MultiheadAttention(64, 4, batch_first=True)
        self.gate, self.head = nn.Linear(64, 128), nn.Linear(64, 8)

    def forward(self, images: Tensor) -> Tensor:
        maps = functional.mish(self.norm(self.stem(images)))
        maps = functional.max_pool2d(functional.hardswish(self.group(maps)), 2)
        hidden = self.project(maps.flatten(2).transpose(1, 2))
        hidden = self.rms(functional.silu(hidden))
        hidden = self.layer(hidden + self.attend(hidden, hidden, hidden, need_weights=False)[0])
        left, right = self.gate(functional.dropout(hidden, 0.1, self.training)).chunk(2, -1)
        return self.head((functional.gelu(left) * functional.softplus(right)).mean(1))


MODELS["assorted"] = Assorted
