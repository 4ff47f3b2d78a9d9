"""One call of a convolution as cuDNN sees it, and the workspace it asks for. Standard library only.

cuDNN does not say which algorithm it will take: the rule below is a median, fitted through the allocator replica to
measured peaks (docs/decisions/015-workspaces-and-contexts.md). ``overheads.workspace_scenarios`` is its distribution.
"""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from desktop_app.memory.card_spec import CardSpec

FORWARD: Final = "forward"
INPUT_GRADIENT: Final = "input_gradient"
WEIGHT_GRADIENT: Final = "weight_gradient"


class _Shares(NamedTuple):
    """A workspace in parts of what the call handles.

    ``moved``: of input, output and weights together, for kernels that work on copies in another layout (tensor cores
    read channels last) or transformed (Winograd). ``columns``: of the matrix that an explicit GEMM multiplies by,
    batch x in_channels x kernel x output positions.
    """

    moved: float
    columns: float = 0.0


# Each in the order of _DIRECTIONS. A depthwise call and one on single pixels are kernels without workspace. 1x1 by the
# fewer of its channels, 3x3 by those of the input: cuDNN takes other kernels for narrow ones (docs/decisions/033).
_SHARES: Final[dict[str, tuple[_Shares, _Shares, _Shares]]] = {
    "1x1 up to 32": (_Shares(0.25), _Shares(0.5), _Shares(0.75)),
    "1x1 up to 64": (_Shares(0.0), _Shares(0.0), _Shares(0.75)),
    "1x1 up to 128": (_Shares(1.5), _Shares(1.0), _Shares(0.75)),
    "1x1 wide": (_Shares(0.0), _Shares(1.0), _Shares(1.0)),
    "1x1 strided": (_Shares(1.0), _Shares(3.0), _Shares(1.0)),
    "3x3 to more channels, of an image": (_Shares(2.0), _Shares(1.0), _Shares(0.25, 0.75)),
    "3x3 to more channels, up to 64": (_Shares(1.5), _Shares(1.0), _Shares(0.25, 0.75)),
    "3x3 to more channels": (_Shares(2.0), _Shares(1.0, 0.25), _Shares(0.25, 0.75)),
    "3x3 up to 64": (_Shares(0.5), _Shares(1.0), _Shares(1.0)),
    "3x3": (_Shares(0.5), _Shares(1.0), _Shares(1.0)),
    "3x3 strided, of an image": (_Shares(1.5, 0.5), _Shares(0.75), _Shares(1.5)),
    "3x3 strided, up to 64": (_Shares(0.0, 0.5), _Shares(1.5), _Shares(1.0)),
    "3x3 strided": (_Shares(1.0), _Shares(0.75), _Shares(1.0)),
    "large": (_Shares(2.0, 0.25), _Shares(1.0), _Shares(1.0)),
    "large strided": (_Shares(0.25, 0.25), _Shares(1.0), _Shares(1.0, 0.5)),
    "grouped": (_Shares(0.25), _Shares(1.0), _Shares(1.0)),
}
_DIRECTIONS: Final = (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)
_SMALL_KERNEL: Final = 3
_NARROW: Final = ((32, " up to 32"), (64, " up to 64"), (128, " up to 128"))
_IMAGE: Final = 4
_FEW: Final = 64
_HALF_BYTES: Final = 2
_TENSOR_CORES: Final = (7, 0)
_TF32: Final = (8, 0)


class ConvolutionCall(NamedTuple):
    """Shapes of one call. ``batch`` is the only figure that follows the batch size."""

    direction: str  # FORWARD, INPUT_GRADIENT or WEIGHT_GRADIENT
    dtype: str  # "float32", "float16", "bfloat16"
    batch: int
    in_channels: int
    out_channels: int
    in_size: tuple[int, ...]  # spatial, without padding
    out_size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    channels_last: bool
    transposed: bool = False

    @property
    def element_bytes(self) -> int:
        return {"float64": 8, "float32": 4}.get(self.dtype, 2)

    @property
    def depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.in_channels


def family(call: ConvolutionCall) -> str | None:
    """The row of the table; ``None`` for what takes no workspace."""
    if call.depthwise or (max(call.in_size) == 1 and max(call.kernel) == 1):
        return None
    if call.groups > 1:
        return "grouped"
    strided = max(call.stride) > 1
    if max(call.kernel) == 1:
        return "1x1 strided" if strided else f"1x1{_narrow(call)}"
    if max(call.kernel) > _SMALL_KERNEL:
        return "large strided" if strided else "large"
    if strided:
        return f"3x3 strided{_input_width(call)}"
    if call.out_channels > call.in_channels:
        return f"3x3 to more channels{_input_width(call)}"
    return "3x3 up to 64" if call.in_channels <= _FEW else "3x3"


def _narrow(call: ConvolutionCall) -> str:
    fewer = min(call.in_channels, call.out_channels)
    return next((name for most, name in _NARROW if fewer <= most), " wide")


def _input_width(call: ConvolutionCall) -> str:
    if call.in_channels <= _IMAGE:
        return ", of an image"
    return ", up to 64" if call.in_channels <= _FEW else ""


def workspace_bytes(call: ConvolutionCall, *, card: CardSpec | None = None) -> int:
    """The workspace that cuDNN is assumed to ask for: the median of what is not known. 0: none."""
    row = family(call)
    if row is None:
        return 0
    moved_share, columns_share = _SHARES[row][_DIRECTIONS.index(call.direction)]
    if not _copies_layout(call, card):
        moved_share = 0.0
    inputs = call.batch * call.in_channels * prod(call.in_size)
    positions = call.batch * prod(call.out_size)
    taps = call.in_channels * prod(call.kernel)
    weights = call.out_channels * taps // call.groups
    moved = inputs + positions * call.out_channels + weights
    return int((moved_share * moved + columns_share * positions * taps) * call.element_bytes)


def _copies_layout(call: ConvolutionCall, card: CardSpec | None) -> bool:
    """Tensor cores read channels last: what is laid out otherwise is copied. fp32 is theirs, as TF32, from 8.0 on."""
    first = _TENSOR_CORES if call.element_bytes == _HALF_BYTES else _TF32
    capability = card.compute_capability if card is not None else None
    return not call.channels_last and (capability is None or capability >= first)
