"""Low-rank adapters on frozen linear layers, with the allocations of PEFT's.

Source: peft, ``tuners/lora/layer.py``, ``Linear.forward``: ``result + lora_B(lora_A(dropout(x))) * scaling``, no
dropout by default; adapters of 16-bit layers are fp32 (``autocast_adapter_dtype``), and the sum is cast back.
"""

from __future__ import annotations

from typing import Any, Final, cast

import torch
from torch import nn

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.subject_parts import is_within

_HALF: Final = (torch.float16, torch.bfloat16)
_SCALE: Final = 2.0  # lora_alpha / r as most configurations have it: its value allocates nothing, being not 1 does


class LowRankLinear(nn.Module):
    """A frozen linear layer and its adapter. ``weight`` and ``bias`` are the layer's, for who looks at them."""

    def __init__(self, base: nn.Module, *, features: tuple[int, int], rank: int) -> None:
        super().__init__()
        weight = cast(torch.Tensor, base.weight)
        dtype = torch.float32 if weight.dtype in _HALF else weight.dtype
        self.base = base
        self.down = nn.Linear(features[0], rank, bias=False, device=weight.device, dtype=dtype)
        self.up = nn.Linear(rank, features[1], bias=False, device=weight.device, dtype=dtype)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("base"), name)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """As the layer, plus the adapter's part."""
        result = self.base(inputs)
        adapted = self.up(self.down(inputs.to(self.down.weight.dtype)))
        return cast(torch.Tensor, (result + adapted * _SCALE).to(result.dtype))


def add_adapters(model: nn.Module, *, rank: int, head: tuple[str, ...]) -> int:
    """Freeze the model but its head and put an adapter on every linear layer outside the head; how many.

    ``transformers``' ``Conv1D`` (GPT-2) counts as linear. Layers whose weights others read are left out, as PEFT
    leaves ``MultiheadAttention`` out. Raises ``TracerError`` (``bad_spec``) where there is no such layer.
    """
    if rank < 1:
        raise TracerError("bad_spec", f"The rank of adapters must be at least 1, got {rank}.")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_within(name, head) and _is_task_head(model, parameter))
    found = [
        (parent, child_name, child, features)
        for path, parent in list(model.named_modules())
        if not isinstance(parent, nn.MultiheadAttention)
        for child_name, child in parent.named_children()
        if (features := _features(child)) is not None
        and not is_within(f"{path}.{child_name}" if path else child_name, head)
    ]
    if not found:
        raise TracerError("bad_spec", "LoRA needs linear layers, and this model has none outside its head.")
    for parent, name, child, features in found:
        setattr(parent, name, LowRankLinear(child, features=features, rank=rank))
    return len(found)


def _is_task_head(model: nn.Module, parameter: nn.Parameter) -> bool:
    """A language model's head is no task's: PEFT freezes it. A classifier is trained (``modules_to_save``)."""
    return getattr(model, "get_output_embeddings", lambda: None)() is None and parameter.is_floating_point()


def _features(layer: nn.Module) -> tuple[int, int] | None:
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    if type(layer).__name__ == "Conv1D" and hasattr(layer, "nf"):  # weight is (in, out)
        shape = cast(torch.Tensor, layer.weight).shape
        return shape[0], shape[1]
    return None
