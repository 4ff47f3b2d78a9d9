"""Answers for ops that need the values of tensors which have none: zero, or as many results as there can be.

Each answer is counted: how many there are says how far the trace can be trusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten

NO_GUESS: Final = object()
_MASKS: Final = (torch.bool, torch.uint8)

_Call = Callable[..., Any]


class Guesses:
    """Makes answers up. ``counts`` by the name of the op, without ``aten``."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._certain = False

    @contextmanager
    def certain(self) -> Iterator[None]:
        """Zero is the right answer here and no guess: the scaler asks whether a gradient was infinite."""
        before, self._certain = self._certain, True
        try:
            yield
        finally:
            self._certain = before

    def answer(self, func: Any, args: Sequence[Any], kwargs: Any, call: _Call) -> Any:
        """``NO_GUESS`` where the op needs no values. ``call`` runs an op that needs none."""
        make = _ANSWERS.get(func)
        if make is None or (func not in _TO_HOST and isinstance(args[0], torch.Tensor) and _has_values(args[0])):
            return NO_GUESS
        made = make(call, *args, **(kwargs or {}))
        if made is not NO_GUESS and not self._certain and func not in _EXACT:
            self.counts[func.name().partition("::")[2].partition(".")[0].lstrip("_")] += 1
        return made


def _has_values(tensor: torch.Tensor) -> bool:
    """A real one, as the step counts of optimizers are; or a fake one that knows its value."""
    if isinstance(tensor, FakeTensor):
        return tensor.constant is not None
    return tensor.device.type == "cpu"


def _scalar(call: _Call, tensor: torch.Tensor) -> Any:  # noqa: ARG001 - one signature for all
    return torch.zeros((), dtype=tensor.dtype, device="cpu").item() if tensor.dtype.is_complex else _zero(tensor.dtype)


def _zero(dtype: torch.dtype) -> bool | int | float:
    if dtype is torch.bool:
        return False
    return 0.0 if dtype.is_floating_point else 0


def _copied(call: _Call, tensor: torch.Tensor, **kwargs: Any) -> Any:  # noqa: ARG001
    """From the card to the host: zeros, for who looks at them afterwards. Real ones: a fake tensor's memory is
    whatever the heap had there, and ``numpy`` would read it."""
    device = kwargs.get("device")
    if device is None or device.type != "cpu" or _is_real(tensor):
        return NO_GUESS
    dtype = kwargs.get("dtype") or tensor.dtype
    shape = tensor.shape
    if kwargs.get("memory_format", torch.preserve_format) is torch.contiguous_format:
        return torch.zeros(shape, dtype=dtype, device="cpu")
    strides = torch.empty_like(tensor, device="meta").stride()  # as a copy has them: dense, in the same order
    return torch.empty_strided(shape, strides, dtype=dtype, device="cpu").zero_()


def _copied_into(call: _Call, target: torch.Tensor, source: torch.Tensor, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG001
    """From the card into a tensor that is on the host already."""
    return NO_GUESS if _is_real(source) or not _is_real(target) else target.zero_()


def _all_copied_into(call: _Call, targets: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG001
    if any(map(_is_real, sources)) or not all(map(_is_real, targets)):
        return NO_GUESS
    for target in targets:
        target.zero_()
    return None


def _is_real(tensor: torch.Tensor) -> bool:
    return not isinstance(tensor, FakeTensor) and tensor.device.type == "cpu"


def _not_equal(call: _Call, *args: Any, **kwargs: Any) -> bool:  # noqa: ARG001
    return False


def _indices(call: _Call, tensor: torch.Tensor, *sizes: int) -> Any:
    return call(aten.new_empty.default, (tensor, list(sizes)), {"dtype": torch.int64})


def _nonzero(call: _Call, tensor: torch.Tensor) -> Any:
    return _indices(call, tensor, tensor.numel(), tensor.dim())


def _masked_select(call: _Call, tensor: torch.Tensor, mask: torch.Tensor) -> Any:
    shape = torch.broadcast_shapes(tensor.shape, mask.shape)  # type: ignore[no-untyped-call]
    return call(aten.new_empty.default, (tensor, [shape.numel()]), {})


def _index(call: _Call, tensor: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> Any:
    """A mask over k dimensions becomes k index tensors, as CUDA does it, each as long as the mask has elements."""
    if not any(index is not None and index.dtype in _MASKS for index in indices):
        return NO_GUESS
    expanded: list[Any] = []
    for index in indices:
        if index is not None and index.dtype in _MASKS:
            expanded.extend(_indices(call, tensor, index.numel()) for _ in range(index.dim()))
        else:
            expanded.append(index)
    return call(aten.index.Tensor, (tensor, expanded), {})


def _unique(
    call: _Call,
    tensor: torch.Tensor,
    sorted: bool = True,  # noqa: A002, ARG001, FBT001, FBT002 - the op's own signature
    return_inverse: bool = False,  # noqa: FBT001, FBT002
    return_counts: bool = False,  # noqa: FBT001, FBT002
) -> Any:
    count = tensor.numel()
    values = call(aten.new_empty.default, (tensor, [count]), {})
    inverse = _indices(call, tensor, *(tensor.shape if return_inverse else (0,)))
    return values, inverse, _indices(call, tensor, count if return_counts else 0)


def _unique_consecutive(
    call: _Call,
    tensor: torch.Tensor,
    return_inverse: bool = False,  # noqa: FBT001, FBT002
    return_counts: bool = False,  # noqa: FBT001, FBT002
    dim: int | None = None,
) -> Any:
    if dim is not None:
        return _unique_dim(call, tensor, dim, return_inverse=return_inverse, return_counts=return_counts)
    return _unique(call, tensor, return_inverse=return_inverse, return_counts=return_counts)


def _unique_dim(
    call: _Call,
    tensor: torch.Tensor,
    dim: int,
    sorted: bool = True,  # noqa: A002, ARG001, FBT001, FBT002
    return_inverse: bool = False,  # noqa: FBT001, FBT002
    return_counts: bool = False,  # noqa: FBT001, FBT002
) -> Any:
    count = tensor.shape[dim]
    values = call(aten.new_empty.default, (tensor, list(tensor.shape)), {})
    inverse = _indices(call, tensor, count if return_inverse else 0)
    return values, inverse, _indices(call, tensor, count if return_counts else 0)


def _bincount(call: _Call, tensor: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> Any:
    size = max(minlength, tensor.numel())
    if weights is None:
        return _indices(call, tensor, size)
    return call(aten.new_empty.default, (weights, [size]), {"dtype": torch.float64})


def _repeat_interleave(call: _Call, repeats: torch.Tensor, *, output_size: int | None = None) -> Any:
    if output_size is not None:
        return NO_GUESS
    return _indices(call, repeats, repeats.numel())


# Ops that have no fake kernel in torch. Sizes as their CUDA kernels allocate them (LossCTC.cu, RNN.cu).


def _never(call: _Call, *args: Any, **kwargs: Any) -> bool:  # noqa: ARG001
    return False


def _ctc_loss(
    call: _Call,
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    zero_infinity: bool = False,  # noqa: FBT001, FBT002
) -> Any:
    """Targets in one row are taken to be of equal lengths."""
    del input_lengths, target_lengths, blank, zero_infinity
    steps, batch = log_probs.shape[:2]
    longest = targets.shape[1] if targets.dim() == 2 else -(-targets.numel() // max(batch, 1))
    loss = call(aten.new_empty.default, (log_probs, [batch]), {})
    return loss, call(aten.new_empty.default, (log_probs, [batch, steps, 2 * longest + 1]), {})


def _ctc_loss_backward(call: _Call, gradient: torch.Tensor, log_probs: torch.Tensor, *args: Any) -> Any:
    del gradient, args
    return call(aten.empty_like.default, (log_probs,), {})


def _lstm_cell(call: _Call, gates: torch.Tensor, hidden_gates: torch.Tensor, cell: torch.Tensor, *biases: Any) -> Any:
    del hidden_gates, biases
    return (
        call(aten.empty_like.default, (cell,), {}),
        call(aten.empty_like.default, (cell,), {}),
        call(aten.empty_like.default, (gates,), {}),
    )


def _lstm_cell_backward(
    call: _Call, to_hidden: Any, to_cell: Any, cell: torch.Tensor, new_cell: Any, gates: torch.Tensor, biased: Any
) -> Any:
    del to_hidden, to_cell, new_cell
    to_gates = call(aten.empty_like.default, (gates,), {})
    bias = call(aten.new_empty.default, (gates, [gates.shape[1] if biased else 0]), {})
    return to_gates, call(aten.empty_like.default, (cell,), {}), bias


def _gru_cell(call: _Call, gates: torch.Tensor, hidden_gates: Any, hidden: torch.Tensor, *biases: Any) -> Any:
    del hidden_gates, biases
    width = hidden.shape[1]
    kept = call(aten.new_empty.default, (gates, [hidden.shape[0], 5 * width]), {})
    return call(aten.empty_like.default, (hidden,), {}), kept


def _gru_cell_backward(call: _Call, to_hidden: torch.Tensor, kept: torch.Tensor, biased: Any) -> Any:
    batch, width = to_hidden.shape
    gates = [call(aten.new_empty.default, (kept, [batch, 3 * width]), {}) for _ in range(2)]
    biases = [call(aten.new_empty.default, (kept, [3 * width if biased else 0]), {}) for _ in range(2)]
    return (*gates, call(aten.empty_like.default, (to_hidden,), {}), *biases)


def _of(name: str, overload: str = "default") -> Any:
    """The op, or ``None`` where this torch does not have it."""
    return getattr(getattr(aten, name, None), overload, None)


_EXACT: Final[dict[Any, _Call]] = {
    op: make
    for op, make in (
        (_of("_use_cudnn_ctc_loss"), _never),
        (_of("_use_cudnn_ctc_loss", "Tensor"), _never),
        (_of("_use_miopen_ctc_loss"), _never),
        (_of("_use_miopen_ctc_loss", "Tensor"), _never),
        (_of("_ctc_loss"), _ctc_loss),
        (_of("_ctc_loss", "Tensor"), _ctc_loss),
        (_of("_ctc_loss_backward"), _ctc_loss_backward),
        (_of("_ctc_loss_backward", "Tensor"), _ctc_loss_backward),
        (_of("_thnn_fused_lstm_cell"), _lstm_cell),
        (_of("_thnn_fused_lstm_cell_backward_impl"), _lstm_cell_backward),
        (_of("_thnn_fused_gru_cell"), _gru_cell),
        (_of("_thnn_fused_gru_cell_backward"), _gru_cell_backward),
    )
    if op is not None
}

_TO_HOST: Final = frozenset({aten._to_copy.default, aten.copy_.default, aten._foreach_copy_.default})  # noqa: SLF001

_ANSWERS: Final[dict[Any, _Call]] = {
    **_EXACT,
    aten._local_scalar_dense.default: _scalar,  # noqa: SLF001
    aten._to_copy.default: _copied,  # noqa: SLF001
    aten.copy_.default: _copied_into,
    aten._foreach_copy_.default: _all_copied_into,
    aten.equal.default: _not_equal,
    aten.nonzero.default: _nonzero,
    aten.masked_select.default: _masked_select,
    aten.index.Tensor: _index,
    aten._unique2.default: _unique,  # noqa: SLF001
    aten.unique_consecutive.default: _unique_consecutive,
    aten.unique_dim.default: _unique_dim,
    aten.bincount.default: _bincount,
    aten.repeat_interleave.Tensor: _repeat_interleave,
}
