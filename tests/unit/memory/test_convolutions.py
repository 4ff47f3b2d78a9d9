"""The rule for cuDNN's workspace: what it is made of, and two peaks that were measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.convolutions import (
    FORWARD,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    ConvolutionCall,
    family,
    workspace_bytes,
)

A100 = CardSpec("A100", 40 * GIB, 40 * GIB, "Ampere", (8, 0), 108)
V100 = CardSpec("V100", 16 * GIB, 16 * GIB, "Volta", (7, 0), 80)


def call(
    in_channels: int = 64,
    out_channels: int = 128,
    *,
    direction: str = WEIGHT_GRADIENT,
    dtype: str = "float32",
    batch: int = 128,
    size: int = 112,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    channels_last: bool = False,
) -> ConvolutionCall:
    out = size // stride
    return ConvolutionCall(
        direction,
        dtype,
        batch,
        in_channels,
        out_channels,
        (size, size),
        (out, out),
        (kernel, kernel),
        (stride, stride),
        (1, 1),
        groups,
        channels_last,
    )


# The stem's last convolution of ResNet-50-S and -D at batch 128, images of 224: what their peaks on an A100 lie above
# a replay without workspaces (3,595 and 2,042 MiB of 21,699 and 16,789) is the workspace of its weight gradient.
@pytest.mark.parametrize(("channels", "mib"), [((64, 128), 3595), ((32, 64), 2042)])
def test_the_stem_of_a_deep_resnet_takes_its_columns(channels: tuple[int, int], mib: int) -> None:
    assert workspace_bytes(call(*channels), card=A100) / MIB == pytest.approx(mib, rel=0.3)


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (call(96, 16, kernel=1), "1x1 up to 32"),
        (call(16, 96, kernel=1), "1x1 up to 32, to more"),
        (call(256, 64, kernel=1), "1x1 up to 64"),
        (call(kernel=1), "1x1 up to 64, to more"),
        (call(512, 128, kernel=1), "1x1 up to 128"),
        (call(128, 512, kernel=1), "1x1 up to 128, to more"),
        (call(256, 256, kernel=1), "1x1"),
        (call(256, 1024, kernel=1), "1x1, to more"),
        (call(kernel=1, stride=2), "1x1 strided"),
        (call(3, 64), "3x3 of an image"),
        (call(32, 32), "3x3 up to 32"),
        (call(32, 64), "3x3 up to 32, to more"),
        (call(64, 64), "3x3 up to 64"),
        (call(size=56), "3x3 up to 64, to more"),
        (call(), "3x3 up to 64, to more, far"),
        (call(128, 128), "3x3 up to 128"),
        (call(128, 256), "3x3 up to 128, to more"),
        (call(256, 256), "3x3"),
        (call(256, 512), "3x3, to more"),
        (call(3, 32, stride=2), "3x3 strided, of an image"),
        (call(stride=2), "3x3 strided, up to 64"),
        (call(256, 256, stride=2), "3x3 strided"),
        (call(3, 64, kernel=7, stride=2), "large strided"),
        (call(kernel=5), "large"),
        (call(512, 4096, kernel=7, size=7)._replace(out_size=(1, 1)), "large to one pixel"),
        (call(groups=32), "grouped"),
        (call(64, 64, groups=64), None),
        (call(size=1, kernel=1), None),
    ],
)
def test_families(made: ConvolutionCall, name: str | None) -> None:
    assert family(made) == name
    assert (workspace_bytes(made, card=A100) == 0) == (name is None)


def test_tensor_cores_copy_what_is_not_laid_out_for_them() -> None:
    gradient = call(128, 128, direction=INPUT_GRADIENT)
    elements = 2 * 128 * 128 * 112 * 112 + 128 * 128 * 9  # input, output, weights
    assert workspace_bytes(gradient, card=A100) == 4 * elements
    assert workspace_bytes(gradient, card=V100) == 0  # none for fp32
    half = gradient._replace(dtype="float16")
    assert workspace_bytes(half, card=V100) == 2 * elements
    assert workspace_bytes(half._replace(channels_last=True), card=V100) == 0


# From residuals on an A100, docs/decisions/033 and 036: inverted residuals (24 to 144 channels) take little; of a wide
# 1x1 convolution the side with more channels is copied before the forward, as cuDNN itself says where it is asked.
@pytest.mark.parametrize(
    ("channels", "direction", "shares"),
    [
        ((24, 144), FORWARD, (0.25, 0.25)),
        ((24, 144), INPUT_GRADIENT, (0.5, 0.5)),
        ((64, 256), INPUT_GRADIENT, (0.0, 0.0)),
        ((64, 256), WEIGHT_GRADIENT, (0.75, 0.75)),
        ((256, 64), INPUT_GRADIENT, (1.0, 0.0)),
        ((128, 512), FORWARD, (1.5, 1.5)),
        ((512, 128), FORWARD, (1.0, 2.0)),
        ((256, 1024), FORWARD, (0.0, 1.0)),
        ((1024, 256), FORWARD, (1.0, 0.0)),
        ((256, 1024), WEIGHT_GRADIENT, (1.0, 1.0)),
    ],
)
def test_a_pointwise_convolution_takes_copies_by_its_narrow_side(
    channels: tuple[int, int], direction: str, shares: tuple[float, float]
) -> None:
    sides = [16 * channel * 28 * 28 + channels[0] * channels[1] / 2 for channel in channels]
    made = call(*channels, direction=direction, kernel=1, batch=16, size=28)
    expected = 4 * sum(share * side for share, side in zip(shares, sides, strict=True))
    assert workspace_bytes(made, card=A100) == expected
    assert workspace_bytes(made._replace(channels_last=True), card=A100) == 0


@given(
    st.sampled_from((FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)),
    st.sampled_from((1, 3, 7)),
    st.sampled_from((1, 2)),
    st.integers(1, 64),
)
def test_a_workspace_is_affine_in_the_batch(direction: str, kernel: int, stride: int, batch: int) -> None:
    first, second, third = (
        workspace_bytes(call(direction=direction, kernel=kernel, stride=stride, batch=size, size=28), card=A100)
        for size in (batch, 2 * batch, 3 * batch)
    )
    assert third - second == pytest.approx(second - first, abs=2)
    assert first >= 0
