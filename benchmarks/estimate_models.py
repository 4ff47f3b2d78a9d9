"""Models for the benchmarks of the estimate, as a user's own file: ``python:benchmarks/estimate_models.py:vgg``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

_WIDTHS = {
    "vgg11": "64 M 128 M 256 256 M 512 512 M 512 512 M",
    "vgg13": "64 64 M 128 128 M 256 256 M 512 512 M 512 512 M",
    "vgg19": "64 64 M 128 128 M 256 256 256 256 M 512 512 512 512 M 512 512 512 512 M",
}
_IMAGE, _CLASSES = 224, 1000


def vgg(name: str) -> dict[str, Any]:
    """VGG as in "Very Deep Convolutional Networks", with linear layers for a head, and what it is trained on."""
    layers: list[nn.Module] = []
    width = 3
    for word in _WIDTHS[name].split():
        if word == "M":
            layers.append(nn.MaxPool2d(2, 2))
        else:
            layers += [nn.Conv2d(width, int(word), 3, padding=1), nn.ReLU(inplace=True)]
            width = int(word)
    head = [nn.Flatten(), nn.Linear(width * 49, 4096), nn.ReLU(inplace=True), nn.Dropout()]
    head += [nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, _CLASSES)]
    return {"model": nn.Sequential(*layers, *head), "batch": _images, "step": _step}


def _images(batch_size: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    images = torch.empty(batch_size, 3, _IMAGE, _IMAGE, device=device)
    return images, torch.empty(batch_size, dtype=torch.int64, device=device)


def _step(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


class _OldSoftmax(torch.autograd.Function):
    """Softmax as torch before 1.11 kept it for backward: with its input, of which only the dtype was needed."""

    @staticmethod
    def forward(context: Any, scores: torch.Tensor, dim: int) -> torch.Tensor:  # type: ignore[override]
        shares = torch.softmax(scores, dim)
        context.dim = dim
        context.save_for_backward(scores, shares)
        return shares

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        scores, shares = context.saved_tensors
        return torch._softmax_backward_data(gradient, shares, context.dim, scores.dtype), None  # noqa: SLF001


@contextmanager
def _softmax_of_its_time() -> Iterator[None]:
    today = nn.functional.softmax
    nn.functional.softmax = lambda scores, dim=-1, **_: _OldSoftmax.apply(scores, dim)
    try:
        yield
    finally:
        nn.functional.softmax = today


def old_bert(tokens: int) -> dict[str, Any]:
    """BERT-large for the classification of sequences, with the softmax of 2021."""
    import transformers

    shape = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    config = transformers.BertConfig(**shape)
    config._attn_implementation = "eager"  # noqa: SLF001 - transformers has no other way

    def batch(batch_size: int, device: torch.device) -> dict[str, torch.Tensor]:
        ids = torch.zeros(batch_size, tokens, dtype=torch.int64, device=device)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.new_zeros(batch_size)}

    def step(model: nn.Module, given: dict[str, torch.Tensor]) -> torch.Tensor:
        with _softmax_of_its_time():
            loss: torch.Tensor = model(**given).loss
        return loss

    return {"model": transformers.BertForSequenceClassification(config), "batch": batch, "step": step}
