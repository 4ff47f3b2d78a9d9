"""Which kernel ``scaled_dot_product_attention`` takes on a CUDA card, and how it is then called.

The rules are those of PyTorch's ``sdp_utils.cpp`` and ``attention.cpp`` (read at 2.6 and 2.13) for dense tensors on
NVIDIA cards. A machine without a card would take the math kernel, whose scores alone are a gigabyte in a GPT-2 step.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import torch
from torch import Tensor

FLASH: Final = "flash"
EFFICIENT: Final = "efficient"
CUDNN: Final = "cudnn"
MATH: Final = "math"
AUTO: Final = "auto"

_HALF: Final = (torch.float16, torch.bfloat16)
_NEWEST: Final = (12, 1)  # sm121, the last that 2.13's kernels admit to
_RECENT: Final = (8, 0)  # assumed where the card does not say
_FLASH_HEAD: Final = 256
_FLASH_ALIGNMENT: Final = 8
_BIAS_ALIGNMENT: Final = 8  # attention.cpp: mem_eff_alignment
# at::SDPBackend
_BACKENDS: Final = {0: MATH, 1: FLASH, 2: EFFICIENT, 3: CUDNN}
_DEFAULT_ORDER: Final = (FLASH, EFFICIENT, MATH, CUDNN)
# Releases from this one are built with a cuDNN above 9.15.0, which is what makes them prefer it (2.9.1 does not).
_CUDNN_FIRST_FROM: Final = (2, 10)
_CUDNN_FIRST_ON: Final = frozenset({(9, 0), (10, 0)})
_CUDNN_HEAD: Final = 128
_CUDNN_HOPPER_HEAD: Final = 256

_ENABLED: Final[dict[str, Callable[[], bool]]] = {  # what sdpa_kernel() and torch.backends.cuda switch
    FLASH: torch.backends.cuda.flash_sdp_enabled,
    EFFICIENT: torch.backends.cuda.mem_efficient_sdp_enabled,
    CUDNN: torch.backends.cuda.cudnn_sdp_enabled,
    MATH: torch.backends.cuda.math_sdp_enabled,
}


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """What the choice depends on."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None = None
    dropout: float = 0.0
    causal: bool = False
    grouped: bool = False  # enable_gqa

    @property
    def trains(self) -> bool:
        return torch.is_grad_enabled() and any(item.requires_grad for item in (self.query, self.key, self.value))


@dataclass(slots=True)
class AttentionChooser:
    """The choice of one card. ``wanted`` other than "auto" comes first wherever it can run; ``taken`` says what did."""

    capability: tuple[int, int] | None = None
    wanted: str = AUTO
    taken: dict[str, int] = field(default_factory=dict)

    def choose(self, call: AttentionCall) -> str:
        """The kernel that CUDA would take. Math where nothing else can run, even if it was switched off."""
        return next((name for name in self._order() if self._can_run(name, call)), MATH)

    def kernels(self) -> str:
        """The kernels taken so far, most calls first; "" for none."""
        return ", ".join(sorted(self.taken, key=lambda name: -self.taken[name]))

    def attend(self, call: AttentionCall, *, scale: float | None = None) -> Tensor:
        """Choose and call."""
        name = self.choose(call)
        self.taken[name] = self.taken.get(name, 0) + 1
        return _KERNELS[name](call, scale)

    def _order(self) -> tuple[str, ...]:
        order = _priority()
        if order == _DEFAULT_ORDER and self.capability in _CUDNN_FIRST_ON and _prefers_cudnn():
            order = (CUDNN, FLASH, EFFICIENT, MATH)
        return order if self.wanted == AUTO else (self.wanted, *(name for name in order if name != self.wanted))

    def _can_run(self, name: str, call: AttentionCall) -> bool:
        capability = self.capability or _RECENT
        if not _ENABLED[name]():
            return False
        if name == MATH:
            return True
        if capability > _NEWEST or call.query.dim() != 4 or not _shapes_match(call):
            return False
        if name == FLASH:
            return _flash_can_run(call, capability)
        if name == CUDNN:
            return _cudnn_can_run(call, capability)
        return _efficient_can_run(call, capability)


def _priority() -> tuple[str, ...]:
    """The order that is set in torch, also by ``sdpa_kernel(..., set_priority=True)``."""
    read = getattr(torch._C, "_get_sdp_priority_order", None)  # noqa: SLF001 - not in 2.6
    if read is None:
        return _DEFAULT_ORDER
    return tuple(_BACKENDS[backend] for backend in read() if backend in _BACKENDS)


def _prefers_cudnn() -> bool:
    if os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED", "0") == "1":
        return False
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    return (major, minor) >= _CUDNN_FIRST_FROM or os.environ.get("TORCH_CUDNN_SDPA_PREFERRED") == "1"


def _shapes_match(call: AttentionCall) -> bool:
    """check_tensor_shapes, check_nonzero_sequence_lengths_dense, check_batch_size_and_num_heads_dense."""
    query, key, value = call.query, call.key, call.value
    if key.dim() != 4 or value.dim() != 4 or not query.shape[0] == key.shape[0] == value.shape[0]:
        return False
    return bool(query.shape[2] and key.shape[2])


def _same_heads(call: AttentionCall) -> bool:
    return call.query.shape[1] == call.key.shape[1] == call.value.shape[1]


def _heads_fit(call: AttentionCall) -> bool:
    """Whether a kernel that knows grouped queries takes these heads."""
    return _same_heads(call) or call.grouped


def _last_strides_are_one(tensors: Sequence[Tensor]) -> bool:
    return all(tensor.stride(-1) == 1 or tensor.shape[-1] == 1 for tensor in tensors)


def _flash_can_run(call: AttentionCall, capability: tuple[int, int]) -> bool:
    query, key, value = call.query, call.key, call.value
    head = query.shape[-1]
    if call.mask is not None or query.dtype not in _HALF or capability < _RECENT:
        return False
    if not head == key.shape[-1] == value.shape[-1] or head > _FLASH_HEAD:
        return False
    if call.causal and query.shape[2] != key.shape[2]:
        return False
    small = (8, 6) <= capability <= (8, 9) or capability[0] == 12  # little shared memory: no backward for these
    if small and call.trains and (192 < head <= 224 or (head > 224 and call.dropout > 0)):
        return False
    return _heads_fit(call) and _last_strides_are_one((query, key, value))


def _efficient_can_run(call: AttentionCall, capability: tuple[int, int]) -> bool:
    query, key, value = call.query, call.key, call.value
    if capability < (5, 0) or query.dtype not in (*_HALF, torch.float32):
        return False
    if query.dtype == torch.bfloat16 and capability < _RECENT:
        return False
    head, alignment = query.shape[-1], _alignment(query.dtype, capability)
    if head != key.shape[-1] or head % alignment or value.shape[-1] % alignment or not head or not value.shape[-1]:
        return False
    return _same_heads(call) and all(tensor.stride(-1) == 1 for tensor in (query, key, value))


def _alignment(dtype: torch.dtype, capability: tuple[int, int]) -> int:
    """minimum_gemm_alignment: 16 bytes where tensor cores are used."""
    half = dtype in _HALF
    tensor_cores = capability >= (8, 0) or (half and capability >= (7, 0))
    return (8 if half else 4) if tensor_cores else 1


def _cudnn_can_run(call: AttentionCall, capability: tuple[int, int]) -> bool:
    query, key, value = call.query, call.key, call.value
    if query.dtype not in _HALF or capability < _RECENT or torch.are_deterministic_algorithms_enabled():
        return False
    limit = _CUDNN_HOPPER_HEAD if capability == (9, 0) else _CUDNN_HEAD
    heads = (query.shape[-1], value.shape[-1])
    if max(heads) > limit or any(head % _FLASH_ALIGNMENT for head in heads) or key.shape[2] == 1:
        return False
    if query.shape[2] == 1 and call.dropout:
        return False
    return _heads_fit(call) and _last_strides_are_one((query, key, value))


# How sdpa calls each kernel


def _flash(call: AttentionCall, scale: float | None) -> Tensor:
    """Pads the heads to a multiple of 8 as sdpa does; the pads are kept for backward."""
    tensors = (call.query, call.key, call.value)
    head = call.query.shape[-1]
    pad = -head % _FLASH_ALIGNMENT
    if pad:
        scale = scale if scale is not None else head**-0.5
        tensors = cast(Any, tuple(torch.nn.functional.pad(tensor, (0, pad)) for tensor in tensors))
    flash = torch.ops.aten._scaled_dot_product_flash_attention.default  # noqa: SLF001
    out = flash(*tensors, call.dropout, call.causal, False, scale=scale)[0]  # noqa: FBT003 - the op's own signature
    return cast(Tensor, out[..., :head] if pad else out)


def _efficient(call: AttentionCall, scale: float | None) -> Tensor:
    bias = _bias(call)
    if bias is not None:
        aligned = bias.stride(-1) == 1 and not any(stride % _BIAS_ALIGNMENT for stride in bias.stride()[:-1])
        if not aligned:
            columns = bias.shape[-1]
            padded = torch.nn.functional.pad(bias, (0, _BIAS_ALIGNMENT - columns % _BIAS_ALIGNMENT))
            bias = padded[..., :columns]
        bias = bias.expand(*call.query.shape[:3], call.key.shape[2])
    efficient = torch.ops.aten._scaled_dot_product_efficient_attention.default  # noqa: SLF001
    out = efficient(call.query, call.key, call.value, bias, call.trains, call.dropout, call.causal, scale=scale)
    return cast(Tensor, out[0])


def _cudnn(call: AttentionCall, scale: float | None) -> Tensor:
    bias = _bias(call)
    if bias is not None:
        bias = bias.expand(*call.query.shape[:3], call.key.shape[2])
    cudnn = torch.ops.aten._scaled_dot_product_cudnn_attention.default  # noqa: SLF001
    out = cudnn(
        call.query,
        call.key,
        call.value,
        bias,
        call.trains,
        call.dropout,
        call.causal,
        False,  # noqa: FBT003 - the op has no names for these
        scale=scale,
    )
    return cast(Tensor, out[0])


def _math(call: AttentionCall, scale: float | None) -> Tensor:
    """_scaled_dot_product_attention_math, which adds the mask out of place to tensors that are not what they seem."""
    query, key, value, bias = call.query, call.key, call.value, _bias(call)
    dtype = query.dtype
    if dtype in _HALF and not torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed():  # type: ignore[no-untyped-call]
        query, key, value = query.float(), key.float(), value.float()
    root = math.sqrt(abs(scale) if scale is not None else query.shape[-1] ** -0.5)
    query = query * root
    if call.causal:
        lower = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        bias = _additive(lower, query.dtype)
        del lower
    if call.grouped and key.shape[-3] != query.shape[-3]:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scores = torch.matmul(query, key.transpose(-2, -1) * root)
    if bias is not None:
        scores = scores.add_(bias)
    scores = torch.ops.aten._safe_softmax.default(scores, -1)  # noqa: SLF001
    if call.dropout:
        scores = torch.dropout(scores, call.dropout, train=True)
    return torch.matmul(scores, value).to(dtype)


def _bias(call: AttentionCall) -> Tensor | None:
    """convert_boolean_attn_mask: a boolean mask becomes one of the query's dtype, before it is expanded."""
    if call.mask is None or call.mask.dtype != torch.bool:
        return call.mask
    return _additive(call.mask, call.query.dtype)


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.where(mask, 0.0, torch.full((), float("-inf"), dtype=dtype, device=mask.device))


_KERNELS: Final[dict[str, Callable[[AttentionCall, float | None], Tensor]]] = {
    FLASH: _flash,
    EFFICIENT: _efficient,
    CUDNN: _cudnn,
    MATH: _math,
}
