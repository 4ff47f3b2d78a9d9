"""Convolutions as cuDNN sees them, and the temporaries of normalizations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from desktop_app.core.steps import Phase
from desktop_app.memory.convolutions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, ConvolutionCall, workspace_bytes
from desktop_app.memory.reduction import staging_bytes
from tests.unit.memory.kernel_calls import A100, H100, inside, meta, record

HOPPER = {"sm_count": 132, "threads_per_sm": 2048}


def calls(layer: nn.Module, images: torch.Tensor) -> list[ConvolutionCall]:
    """All calls of forward and backward, in order."""
    layer = layer.to("meta")
    kept: list[torch.Tensor] = []
    found: list[ConvolutionCall] = []
    for work, phase in (
        (lambda: kept.append(layer(images)), Phase.FORWARD),
        (lambda: kept[0].sum().backward(), Phase.BACKWARD),  # type: ignore[no-untyped-call]
    ):
        events, recorder = record(work, phase=phase)
        for event in events:
            assert (event.convolution >= 0) == (event.op == "cudnn.workspace")
            if event.convolution >= 0:
                call = recorder.convolutions[event.convolution]
                assert event.size_bytes == workspace_bytes(call, card=H100)
                found.append(call)
    return found


def test_a_convolution_calls_cudnn_forward_for_its_input_and_for_its_weight() -> None:
    images = meta(512, 4, 32, 32).requires_grad_()
    found = calls(nn.Conv2d(4, 8, 3, stride=2, padding=1, dilation=1, groups=2), images)
    assert [call.direction for call in found] == [FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT]
    assert found[0] == ConvolutionCall(
        FORWARD, "float32", 512, 4, 8, (32, 32), (16, 16), (3, 3), (2, 2), (1, 1), 2, channels_last=False
    )
    assert all(call._replace(direction=FORWARD) == found[0] for call in found)


@pytest.mark.parametrize(
    ("layer", "images", "sizes"),
    [
        (nn.Conv1d(3, 8, 5), (4, 3, 100), ((100,), (96,), (5,))),
        (nn.Conv3d(3, 8, 3, padding=1), (4, 3, 8, 9, 10), ((8, 9, 10), (8, 9, 10), (3, 3, 3))),
        (nn.ConvTranspose2d(3, 8, 2, stride=2), (4, 3, 8, 8), ((8, 8), (16, 16), (2, 2))),
    ],
)
def test_other_dimensions_and_transposed_ones(layer: nn.Module, images: tuple[int, ...], sizes: object) -> None:
    found = calls(layer, meta(*images).requires_grad_())
    assert [call.direction for call in found] == [FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT]
    for call in found:
        assert (call.in_size, call.out_size, call.kernel) == sizes
        assert (call.batch, call.in_channels, call.out_channels) == (4, 3, 8)
        assert call.transposed == isinstance(layer, nn.ConvTranspose2d)
        assert len(call.stride) == len(call.dilation) == len(call.kernel)


def test_the_first_layer_needs_no_gradient_of_its_images() -> None:
    assert [call.direction for call in calls(nn.Conv2d(3, 8, 3), meta(4, 3, 8, 8))] == [FORWARD, WEIGHT_GRADIENT]


def test_precision_and_layout_are_told() -> None:
    layer = nn.Conv2d(16, 16, 3).bfloat16().to(memory_format=torch.channels_last)
    (call, *_) = calls(layer, meta(4, 16, 8, 8, dtype=torch.bfloat16))
    assert (call.dtype, call.channels_last) == ("bfloat16", True)
    (call, *_) = calls(nn.Conv2d(16, 16, 3), meta(4, 16, 8, 8).to(memory_format=torch.channels_last))
    assert call.channels_last


def test_images_in_another_layout_than_the_weights_are_copied() -> None:
    """cudnn_conv_suggest_memory_format: channels last as soon as one of the two is."""
    layer = nn.Conv2d(16, 16, 3).to(memory_format=torch.channels_last).to("meta")
    images = meta(4, 16, 8, 8)
    assert ("clone", 4 * 16 * 8 * 8 * 4) in inside(lambda: layer(images))
    pointwise = nn.Conv2d(16, 16, 1).to("meta")
    assert all(op != "clone" for op, _ in inside(lambda: pointwise(images)))


def test_the_gradient_of_a_bias_is_a_sum_over_everything_but_the_channels() -> None:
    layer = nn.Conv2d(4, 8, 3, padding=1).to("meta")
    out = layer(meta(512, 4, 32, 32))
    gradient = meta(*out.shape)
    expected = staging_bytes((512, 8, 32, 32), (8192, 1024, 32, 1), (0, 2, 3), **HOPPER)
    taken = dict(inside(lambda: out.backward(gradient), phase=Phase.BACKWARD))
    assert (taken["reduce.staging"], taken["reduce.semaphores"]) == expected
    assert expected[0] > 0


def test_a_depthwise_convolution_is_told_apart() -> None:
    assert all(call.depthwise for call in calls(nn.Conv2d(16, 16, 3, groups=16), meta(4, 16, 8, 8).requires_grad_()))


# Normalizations


def gradients(layer: nn.Module, inputs: torch.Tensor) -> list[tuple[str, int]]:
    layer = layer.to("meta")
    out = layer(inputs.requires_grad_())
    gradient = torch.empty_like(out)
    return inside(lambda: out.backward(gradient), phase=Phase.BACKWARD, card=A100)  # type: ignore[no-untyped-call]


def test_layer_norm_of_a_tall_input_sums_its_weight_gradients_in_two_passes() -> None:
    """layer_norm_kernel.cu, from torch 2.8 on: above 65,536 rows of fewer than 32 x SMs / 2 columns."""
    taken = gradients(nn.LayerNorm(768), meta(343, 197, 768))
    blocks = min(32768 // 24, -(-343 * 197 // 32))
    assert taken.count(("partial", blocks * 768 * 4)) == 2
    assert gradients(nn.LayerNorm(768), meta(64, 197, 768)) == []


def test_group_norm_keeps_sums_per_channel_of_every_sample() -> None:
    taken = gradients(nn.GroupNorm(8, 64), meta(16, 64, 8, 8))
    assert taken == [("empty", 16 * 64 * 4)] * 3 + [("empty", 16 * 8 * 4)] * 2


@pytest.mark.parametrize("layer", [lambda: nn.LayerNorm(64), lambda: nn.RMSNorm(64)])
def test_short_inputs_need_nothing(layer: Callable[[], nn.Module]) -> None:
    assert all(op != "partial" for op, _ in gradients(layer(), meta(4, 100, 64)))
