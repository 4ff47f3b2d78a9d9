"""A training over several cards, as one of them sees it: ZeRO-1, ZeRO-2, and full sharding by FSDP2."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import nn
from torch.optim import Optimizer

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.models_construction import trainable
from desktop_app.memory.tracing.stage import META, Stage
from desktop_app.memory.tracing.transforms_checkpointing import repeated_blocks
from desktop_app.memory.training_spec import TrainingSpec

_DERIVE: Final = "_propagate_tensor_meta_non_cached"
_DTYPES: Final = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(slots=True, kw_only=True)
class Sharding:
    """What is left of a training on one card. ``parameters``: those whose optimizer state is here."""

    parameters: list[torch.Tensor]
    precision: str
    notes: list[str] = field(default_factory=list)
    _zero: Callable[..., None] | None = None

    def complete(self, optimizer: Optimizer) -> Optimizer:
        """The optimizer of the shard clears the gradients of the whole model, as each rank does."""
        if self._zero is not None:
            optimizer.zero_grad = self._zero  # type: ignore[method-assign]
        return optimizer


def shard(model: nn.Module, spec: TrainingSpec, stage: Stage) -> Sharding:
    """Share a model that is on its stage out among ``spec.world_size`` cards.

    ``zero1``: the optimizer's state, by whole tensors as ``ZeroRedundancyOptimizer`` shares them out; this card is the
    one with the most. ``zero2``: as soon as a gradient is summed over the cards, only its owner keeps it. ``zero3``:
    ``fully_shard`` of every block and the rest. Gradients are views of their buckets, as
    ``gradient_as_bucket_view=True`` has it. Raises ``TracerError`` (``bad_spec``) where zero3 cannot be traced.
    """
    parameters: list[torch.Tensor] = list(trainable(model))
    if spec.sharding == "none" or spec.world_size == 1:
        return Sharding(parameters=parameters, precision=spec.precision)
    if spec.sharding == "zero3":
        return _fully_shard(model, spec, stage)
    mine = _largest_share(parameters, spec.world_size)
    if spec.sharding == "zero2":
        kept = {id(parameter) for parameter in mine}
        for parameter in parameters:
            if id(parameter) not in kept:
                parameter.register_post_accumulate_grad_hook(_drop_gradient)  # type: ignore[no-untyped-call]
    return Sharding(parameters=mine, precision=spec.precision, _zero=model.zero_grad)


def _largest_share(parameters: list[torch.Tensor], cards: int) -> list[torch.Tensor]:
    """Largest first, each to the card with the least so far (``ZeroRedundancyOptimizer._partition_parameters``)."""
    shares: list[list[torch.Tensor]] = [[] for _ in range(cards)]
    sizes = [0] * cards
    for parameter in sorted(parameters, key=torch.Tensor.numel, reverse=True):
        card = sizes.index(min(sizes))
        shares[card].append(parameter)
        sizes[card] += parameter.numel()
    chosen = {id(parameter) for parameter in shares[sizes.index(max(sizes))]}
    return [parameter for parameter in parameters if id(parameter) in chosen]


def _drop_gradient(parameter: torch.Tensor) -> None:
    parameter.grad = None


def _fully_shard(model: nn.Module, spec: TrainingSpec, stage: Stage) -> Sharding:
    """FSDP2 over a process group that sends nothing. The mesh is made outside the fake mode: it computes with ranks."""
    if stage.rung == META:
        raise TracerError(
            "bad_spec",
            "Full sharding (zero3) cannot be said without fake CUDA tensors: FSDP moves parameters to a card.",
        )
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    except ImportError as error:
        raise TracerError("bad_spec", f"Full sharding (zero3) needs another torch than {torch.__version__}.") from error
    _derive_shapes_unseen()
    _open_group(spec.world_size)
    mesh = init_device_mesh(stage.device.type, (spec.world_size,))
    dtype = _DTYPES.get(spec.precision)
    options: dict[str, Any] = {"mesh": mesh}
    notes = []
    if dtype is not None:
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
        notes.append(f"{spec.precision} by FSDP's mixed precision instead of autocast, gradients reduced in fp32")
    with stage.running(precision=spec.precision):
        for block in repeated_blocks(model):
            fully_shard(block, **options)
        fully_shard(model, **options)
    precision = "fp32" if dtype is not None else spec.precision
    return Sharding(parameters=list(trainable(model)), precision=precision, notes=notes)


def _derive_shapes_unseen() -> None:
    """Keep from the trace what DTensor runs on whole fake tensors to learn a shape: no card sees it. Once per process.

    Source: torch/distributed/tensor/_sharding_prop.py, ``_propagate_tensor_meta_non_cached`` ("not part of the real
    (local) computation").
    """
    from torch.distributed.tensor._sharding_prop import ShardingPropagator
    from torch.utils._python_dispatch import _disable_current_modes

    derive = getattr(ShardingPropagator, _DERIVE, None)
    if derive is None or hasattr(derive, "__wrapped__"):
        return

    @functools.wraps(derive)
    def unseen(*args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            return derive(*args, **kwargs)

    setattr(ShardingPropagator, _DERIVE, unseen)


def _open_group(cards: int) -> None:
    """A group of the wanted size, in place of one that a trace before has left."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("fake", rank=0, world_size=cards, store=FakeStore())
