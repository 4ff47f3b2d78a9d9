"""Models for the benchmarks of the estimate, as a user's own file: ``python:benchmarks/estimate_models.py:vgg``."""

from __future__ import annotations

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
