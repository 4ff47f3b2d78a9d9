"""Meta kernels for ops that are one kernel on CUDA, and that meta tensors would otherwise take apart.

Without a kernel of its own a backend gets the composite of such an op, and autograd keeps the parts: SwiGLU would need
27 to 47 % more than it does. Registered once per process; nothing but meta tensors is touched.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor

_lock = threading.Lock()
_libraries: list[torch.library.Library] = []  # a library that is collected takes its kernels with it
_fast_paths: list[torch.library.Library] = []


def has_kernel(name: str, key: str) -> bool:
    """Whether the installed torch has this op of aten and a kernel for the dispatch key."""
    if not hasattr(torch.ops.aten, name):
        return False
    return torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key)  # noqa: SLF001


def register_meta_kernels() -> None:
    """What the installed torch lacks of them. Cheap when it was done before."""
    with _lock:
        if _libraries:
            return
        _libraries.append(_register(_KERNELS))


def register_fast_paths() -> None:
    """The same for ops that only inference takes; fake tensors need them too."""
    with _lock:
        if _fast_paths:
            return
        _fast_paths.append(_register(_FAST_PATHS))


def _register(kernels: dict[str, Callable[..., Any]]) -> torch.library.Library:
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for name, kernel in kernels.items():
        if hasattr(torch.ops.aten, name) and not has_kernel(name, "Meta"):
            # Library.impl refuses, as a composite is there; that it is taken apart is what has to be avoided.
            library.m.impl(name, "Meta", kernel, False)  # type: ignore[union-attr] # noqa: FBT003 - with_keyset
    return library


def _like_the_gradient(gradient: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(gradient)


def _rms_norm(hidden: Tensor, shape: Sequence[int], weight: Tensor | None, eps: float | None) -> tuple[Tensor, Tensor]:
    """The result, and one over the root in the dtype it is computed in."""
    del weight, eps
    kept = hidden.shape[: hidden.dim() - len(shape)]
    exact = torch.float64 if hidden.dtype == torch.float64 else torch.float32
    return torch.empty_like(hidden), hidden.new_empty((*kept, *(1 for _ in shape)), dtype=exact)


def _rms_norm_backward(
    gradient: Tensor, hidden: Tensor, shape: Sequence[int], root: Tensor, weight: Tensor | None, wanted: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    del gradient, shape, root
    to_weight = torch.empty_like(weight) if weight is not None and wanted[1] else None
    return torch.empty_like(hidden) if wanted[0] else None, to_weight


def _attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,  # noqa: FBT001, FBT002 - the op's own signature
    average_attn_weights: bool = True,  # noqa: FBT001, FBT002
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    """What comes out, and the weights of the heads where they are wanted."""
    del value, embed_dim, qkv_weight, qkv_bias, proj_bias, mask, mask_type
    batch, length, seen = query.shape[0], query.shape[1], key.shape[1]
    weights = (batch, length, seen) if average_attn_weights else (batch, num_head, length, seen)
    out = query.new_empty((batch, length, proj_weight.shape[0]))
    return out, query.new_empty(weights if need_weights else (0,))


_KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "silu_backward": _like_the_gradient,
    "mish_backward": _like_the_gradient,
    "_fused_rms_norm": _rms_norm,
    "_fused_rms_norm_backward": _rms_norm_backward,
}
# The fast paths of validation: newer releases have these kernels themselves (2.6 does not).
_FAST_PATHS: Final[dict[str, Callable[..., Any]]] = {
    "_native_multi_head_attention": _attended,
    "_transformer_encoder_layer_fwd": _like_the_gradient,
}
