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
        library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
        for name, kernel in _KERNELS.items():
            if hasattr(torch.ops.aten, name) and not has_kernel(name, "Meta"):
                # Library.impl refuses, as a composite is there; that it is taken apart is what has to be avoided.
                library.m.impl(name, "Meta", kernel, False)  # type: ignore[union-attr] # noqa: FBT003 - with_keyset
        _libraries.append(library)


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


_KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "silu_backward": _like_the_gradient,
    "mish_backward": _like_the_gradient,
    "_fused_rms_norm": _rms_norm,
    "_fused_rms_norm_backward": _rms_norm_backward,
}
