"""CUDA's mixed precision and attention choices for tensors that are not on CUDA.

``torch.autocast("cuda")`` switches itself off without a GPU, ``autocast("cpu")`` has other cast lists, and meta tensors
know no autocast at all. Here CUDA's lists (ATen/autocast_mode.h) are written out once more for a dispatch key that no
backend of today uses. The kernels are above autograd and below every Python and C++ caller, as the real ones are, and
asleep outside ``cuda_lowering``. Left to PyTorch: ``norm`` with its appended dtype.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from desktop_app.memory.tracing.attention import AttentionCall, AttentionChooser

_KEY_NAME: Final = "AutocastIPU"  # Graphcore's, gone from PyTorch but for the name of its key

# Names as in ATen/autocast_mode.h (torch 2.13), "op" or "op.overload". A test compares them with the installed header.
LOWER_PRECISION: Final = (  # noqa: SIM905 - lists of one name per line would fill two pages
    "_convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input "
    "conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm "
    "bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell "
    "rnn_relu_cell _scaled_dot_product_flash_attention scaled_dot_product_attention"
).split()
FULL_PRECISION: Final = (  # noqa: SIM905
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar "
    "pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim "
    "nuclear_norm nuclear_norm.dim cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d "
    "hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss "
    "soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm "
    "logsumexp upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d "
    "upsample_nearest3d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa "
    "upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa"
).split()
FULL_PRECISION_RESULT: Final = (  # noqa: SIM905
    "prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm "
    "linalg_matrix_norm.str_ord sum sum.dim_IntList"
).split()
WIDEST: Final = [
    "addcdiv",
    "addcmul",
    "atan2",
    "bilinear",
    "cross",
    "dot",
    "vdot",
    "grid_sampler",
    "index_put",
    "tensordot",
    "scatter_add",
]

_Kernel = Callable[..., Any]
_Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_Policy = Callable[[tuple[Any, ...], dict[str, Any], torch.dtype], _Arguments]


class _State(threading.local):
    """What the kernels of this thread do. ``depth`` counts nested regions; the casts of weights live as long."""

    depth = 0
    dtype: torch.dtype | None = None
    follows = False  # torch's own regions decide
    chooser: AttentionChooser | None = None

    def __init__(self) -> None:
        self.casts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def wanted(self) -> torch.dtype | None:
        """The dtype to cast to now; ``None`` for none."""
        if not self.follows:
            return self.dtype
        return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None


_state = _State()
_lock = threading.Lock()
_libraries: list[torch.library.Library] = []  # a library that is collected takes its kernels with it


@contextmanager
def cuda_lowering(dtype: torch.dtype | None = None, *, capability: tuple[int, int] | None = None) -> Iterator[None]:
    """Inside, ops of this thread cast as ``torch.autocast("cuda", dtype)`` would; ``None`` casts nothing.

    Attention on meta tensors takes the kernel that a card of this compute capability (``None``: a recent one) would
    take. Close it before ``backward()``, as with ``torch.autocast``. Nesting replaces the dtype and keeps the casts.
    """
    with _region(dtype, follows=False, chooser=AttentionChooser(capability)):
        yield


@contextmanager
def follow_autocast(chooser: AttentionChooser) -> Iterator[None]:
    """Inside, ops of this thread cast where ``torch.autocast("cuda")`` is on, whoever has opened it.

    ``torch.autocast`` must not switch itself off, and must call ``clear_casts`` where it drops its own cache.
    """
    with _region(None, follows=True, chooser=chooser):
        yield


def clear_casts() -> None:
    """Forget the casts of weights: the outermost autocast region has closed."""
    _state.casts.clear()


@contextmanager
def _region(dtype: torch.dtype | None, *, follows: bool, chooser: AttentionChooser) -> Iterator[None]:
    _install()
    key = getattr(torch._C.DispatchKey, _KEY_NAME)  # noqa: SLF001 - no public way to switch a key on
    outer = (_state.dtype, _state.follows, _state.chooser)
    _state.dtype, _state.follows, _state.chooser = dtype, follows, chooser
    _state.depth += 1
    was_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(key)  # noqa: SLF001
    torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)  # noqa: FBT003, SLF001
    try:
        with torch._C._IncludeDispatchKeyGuard(key):  # noqa: SLF001
            yield
    finally:
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, was_excluded)  # noqa: SLF001
        _state.dtype, _state.follows, _state.chooser = outer
        _state.depth -= 1
        if not _state.depth:
            _state.casts.clear()


def _install() -> None:
    """Register the kernels, once per process."""
    with _lock:
        if _libraries:
            return
        fallback = torch.library.Library("_", "IMPL")  # type: ignore[no-untyped-call]
        fallback.fallback(torch.library.fallthrough_kernel, _KEY_NAME)  # type: ignore[no-untyped-call]
        library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
        for names, policy in (
            (LOWER_PRECISION, _to_lower),
            (FULL_PRECISION, _to_full),
            (FULL_PRECISION_RESULT, _ask_for_full),
            (WIDEST, _to_widest),
        ):
            for name in names:
                op = _overload(name)
                if op is not None:
                    library.impl(name, _kernel(op, policy), _KEY_NAME)  # type: ignore[no-untyped-call]
        _libraries.extend((fallback, library))


def _overload(name: str) -> _Kernel | None:
    """The op of this name, or ``None`` where the installed torch does not have it or does not cast its arguments:
    ``rms_norm`` is cast since 2.12."""
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base, None)
    if packet is None or not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "AutocastCUDA"):  # noqa: SLF001
        return None
    return getattr(packet, overload or "default", None)


def _kernel(op: _Kernel, policy: _Policy) -> _Kernel:
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY_NAME))  # noqa: SLF001
    attention = op is torch.ops.aten.scaled_dot_product_attention.default

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(keys):  # noqa: SLF001
            dtype = _state.wanted()
            if dtype is not None:
                args, kwargs = policy(args, kwargs, dtype)
            return _attention(op, *args, **kwargs) if attention else op(*args, **kwargs)

    return kernel


def _to_lower(args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> _Arguments:
    return _cast_all(args, kwargs, dtype)


def _to_full(args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> _Arguments:  # noqa: ARG001
    return _cast_all(args, kwargs, torch.float32)


def _to_widest(args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> _Arguments:
    floats = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.is_floating_point()]
    wide = any(tensor.dtype == torch.float32 for tensor in floats)
    return _cast_all(args, kwargs, torch.float32 if wide else dtype)


def _ask_for_full(args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> _Arguments:  # noqa: ARG001
    """Ask for a fp32 result where the caller has not asked for another dtype."""
    given = kwargs.get("dtype") is not None or any(isinstance(arg, torch.dtype) for arg in args)
    if given or not args[0].is_floating_point():
        return args, kwargs
    while args and args[-1] is None:
        args = args[:-1]
    return args, {**kwargs, "dtype": torch.float32}


def _cast_all(args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> _Arguments:
    """From the last to the first, as compilers evaluate the arguments of ``cached_cast``: copies come in that order."""
    kept = {name: _cast(arg, dtype) for name, arg in reversed(kwargs.items())}
    return tuple([_cast(arg, dtype) for arg in reversed(args)][::-1]), kept


def _cast(value: Any, dtype: torch.dtype) -> Any:
    """``cached_cast``: the copy of a fp32 weight is made once per region."""
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(item, dtype) for item in value])
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.dtype in (dtype, torch.float64):
        return value
    if not (value.dtype == torch.float32 and value.requires_grad and value.is_leaf and not value._is_view()):  # noqa: SLF001
        return value.to(dtype)
    known = _state.casts.get(id(value))
    if known is None or known[1].dtype != dtype:
        known = _state.casts[id(value)] = (value, value.to(dtype))
    return known[1]


def _attention(
    stock: _Kernel,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # noqa: FBT001, FBT002 - the op's own signature
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """``scaled_dot_product_attention`` with CUDA's choice of kernel; meta tensors would take the math path."""
    if query.device.type != "meta" or _state.chooser is None:
        return stock(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    call = AttentionCall(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    return _state.chooser.attend(call, scale=scale)
