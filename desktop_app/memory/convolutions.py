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

    ``inputs`` and ``outputs``: of the tensors on the two sides, each with half of the weights, for kernels that work on
    copies in another layout (tensor cores read channels last) or transformed (Winograd). ``columns``: of the matrix
    that an explicit GEMM multiplies by, batch x in_channels x kernel x output positions.
    """

    inputs: float
    outputs: float
    columns: float = 0.0


def _both(share: float, columns: float = 0.0) -> _Shares:
    return _Shares(share, share, columns)


# Each in the order of _DIRECTIONS. A depthwise call and one on single pixels are kernels without workspace. 1x1 by the
# fewer of its channels, 3x3 by those of the input: cuDNN takes other kernels for narrow ones, and copies the wider side
# of a 1x1 only (docs/decisions/033 and 036).
_SHARES: Final[dict[str, tuple[_Shares, _Shares, _Shares]]] = {
    "1x1 up to 32": (_both(0.25), _both(0.5), _both(0.75)),
    "1x1 up to 32, to more": (_both(0.25), _both(0.5), _both(0.75)),
    "1x1 up to 64": (_both(0.0), _Shares(1.0, 0.0), _both(0.75)),
    "1x1 up to 64, to more": (_Shares(0.0, 0.5), _both(0.0), _both(0.75)),
    "1x1 up to 128": (_Shares(1.0, 2.0), _both(1.0), _both(0.75)),
    "1x1 up to 128, to more": (_both(1.5), _both(1.0), _both(0.75)),
    "1x1": (_Shares(1.0, 0.0), _both(1.0), _both(1.0)),
    "1x1, to more": (_Shares(0.0, 1.0), _both(1.0), _both(1.0)),
    "1x1 strided": (_both(1.0), _Shares(2.0, 0.0), _both(1.0)),
    "3x3 of an image": (_Shares(2.0, 1.0), _both(1.0), _both(0.25, 0.75)),
    "3x3 up to 32": (_both(0.5), _both(1.0), _both(1.0)),
    "3x3 up to 32, to more": (_both(1.5), _both(1.0), _both(0.25, 0.75)),
    "3x3 up to 64": (_both(0.5), _Shares(1.0, 2.0), _Shares(1.0, 2.0)),
    "3x3 up to 64, to more": (_both(0.75), _both(1.0), _both(1.0)),
    "3x3 up to 64, to more, far": (_both(0.75), _both(1.0), _both(0.0, 1.0)),
    "3x3 up to 128": (_both(0.5), _both(1.0), _both(1.0)),
    "3x3 up to 128, to more": (_both(2.0), _both(1.0, 0.25), _both(0.25, 0.75)),
    "3x3": (_both(0.5), _both(1.0), _both(1.0)),
    "3x3, to more": (_both(2.0), _both(1.0, 0.25), _both(2.0)),
    "3x3 strided, of an image": (_both(1.5, 0.5), _both(0.75), _both(0.25, 0.75)),
    "3x3 strided, up to 64": (_both(0.0, 0.5), _both(1.5), _both(1.0)),
    "3x3 strided": (_both(1.0, 0.25), _both(0.75), _both(1.0)),
    "large": (_both(2.0, 0.25), _both(1.0), _both(1.0)),
    "large strided": (_both(0.25, 0.25), _both(1.0), _both(1.0, 0.5)),
    "large to one pixel": (_both(1.0), _both(1.0), _both(1.0)),
    "grouped": (_both(0.25), _both(1.0), _both(1.0)),
}
_DIRECTIONS: Final = (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)
_SMALL_KERNEL: Final = 3
_WIDTHS: Final = ((32, " up to 32"), (64, " up to 64"), (128, " up to 128"))
_IMAGE: Final = 4
_FEW: Final = 64
_FAR: Final = 100  # positions along the longer side
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
        fewer = min(call.in_channels, call.out_channels)
        return "1x1 strided" if strided else f"1x1{_width(call, fewer)}"
    if max(call.kernel) > _SMALL_KERNEL:
        to_one = max(call.out_size) == 1 and call.in_channels > _IMAGE
        return "large to one pixel" if to_one else "large strided" if strided else "large"
    if call.in_channels <= _IMAGE:
        return "3x3 strided, of an image" if strided else "3x3 of an image"
    if strided:
        return "3x3 strided, up to 64" if call.in_channels <= _FEW else "3x3 strided"
    row = f"3x3{_width(call, call.in_channels)}"
    far = f"{row}, far"
    return far if far in _SHARES and max(call.out_size) >= _FAR else row


def _width(call: ConvolutionCall, channels: int) -> str:
    """What a row's name says of the channels: the first width that holds them, and whether there are more after."""
    within = next((name for most, name in _WIDTHS if channels <= most), "")
    return f"{within}, to more" if call.out_channels > call.in_channels else within


def workspace_bytes(call: ConvolutionCall, *, card: CardSpec | None = None) -> int:
    """The workspace that cuDNN is assumed to ask for: the median of what is not known. 0: none."""
    row = family(call)
    if row is None:
        return 0
    shares = _SHARES[row][_DIRECTIONS.index(call.direction)]
    copies = 1 if _copies_layout(call, card) else 0
    half_weights = call.out_channels * call.in_channels * prod(call.kernel) // call.groups / 2
    inputs = call.batch * call.in_channels * prod(call.in_size) + half_weights
    positions = call.batch * prod(call.out_size)
    outputs = positions * call.out_channels + half_weights
    columns = positions * call.in_channels * prod(call.kernel)
    elements = copies * (shares.inputs * inputs + shares.outputs * outputs) + shares.columns * columns
    return int(elements * call.element_bytes)


def _copies_layout(call: ConvolutionCall, card: CardSpec | None) -> bool:
    """Tensor cores read channels last: what is laid out otherwise is copied. fp32 is theirs, as TF32, from 8.0 on."""
    first = _TENSOR_CORES if call.element_bytes == _HALF_BYTES else _TF32
    capability = card.compute_capability if card is not None else None
    return not call.channels_last and (capability is None or capability >= first)
