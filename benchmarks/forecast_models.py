"""Models of the forecast's corpus that no library has: ``python:benchmarks/forecast_models.py:lstm``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn

_VOCABULARY, _CHARACTERS = 20_000, 256


class _Lstm(nn.Module):
    def __init__(self, *, vocabulary: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.recurrent = nn.LSTM(width, width, num_layers=layers, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.recurrent(self.embedding(tokens))
        scores: torch.Tensor = self.head(states)
        return scores


def lstm(sequence_length: int) -> dict[str, Any]:
    """Two layers of 650, as the "medium" language model of Zaremba et al. (2014)."""
    return _language(_Lstm(vocabulary=_VOCABULARY, width=650, layers=2), sequence_length, _VOCABULARY)


def character_lstm(sequence_length: int) -> dict[str, Any]:
    """Three layers of 512 over bytes."""
    return _language(_Lstm(vocabulary=_CHARACTERS, width=512, layers=3), sequence_length, _CHARACTERS)


def _language(model: nn.Module, tokens: int, vocabulary: int) -> dict[str, Any]:
    def batch(batch_size: int, device: torch.device) -> torch.Tensor:
        return torch.zeros(batch_size, tokens, dtype=torch.int64, device=device)

    def step(network: nn.Module, given: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(network(given).view(-1, vocabulary), given.view(-1))

    return {"model": model, "batch": batch, "step": step}


def _block(inside: int, outside: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in (inside, outside):
        layers += [nn.Conv2d(width, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class _Unet(nn.Module):
    """Ronneberger et al. (2015), padded, with batch norm."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        widths = [width << level for level in range(depth)]
        self.down = nn.ModuleList(_block(a, b) for a, b in pairwise([3, *widths]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in pairwise(widths))
        self.join = nn.ModuleList(_block(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        kept = []
        for level, block in enumerate(self.down):
            images = block(images if level == 0 else nn.functional.max_pool2d(images, 2))
            kept.append(images)
        for level in range(len(self.up) - 1, -1, -1):
            images = self.join[level](torch.cat([kept[level], self.up[level](images)], dim=1))
        masks: torch.Tensor = self.head(images)
        return masks


def unet(image_size: int) -> dict[str, Any]:
    """Four levels from 32 channels up: masks of one class."""
    return _images(_Unet(32, 4), image_size, masks=True)


def small_cnn(image_size: int) -> dict[str, Any]:
    """Six convolutions and ten classes, the size of a first tutorial."""
    layers: list[nn.Module] = []
    width = 3
    for wider in (32, 32, 64, 64, 128, 128):
        layers += [nn.Conv2d(width, wider, 3, padding=1), nn.ReLU()]
        if wider == width:
            layers.append(nn.MaxPool2d(2))
        width = wider
    return _images(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)), image_size)


def _images(model: nn.Module, size: int, *, masks: bool = False) -> dict[str, Any]:
    def batch(batch_size: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        images = torch.empty(batch_size, 3, size, size, device=device)
        if masks:
            return images, torch.empty(batch_size, 1, size, size, device=device)
        return images, torch.empty(batch_size, dtype=torch.int64, device=device)

    def step(network: nn.Module, given: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        score = nn.functional.binary_cross_entropy_with_logits if masks else nn.functional.cross_entropy
        return score(network(given[0]), given[1])

    return {"model": model, "batch": batch, "step": step}
