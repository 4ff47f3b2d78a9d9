"""The built-in image models. Imported late: needs torch."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from desktop_app.core.errors import ConfigError
from desktop_app.training.config import RunConfig
from desktop_app.training.recipes.data import DataInfo


class FromBytes(nn.Module):
    """Images of bytes (n, c, h, w) to floats in [-1, 1]."""

    def forward(self, images: Tensor) -> Tensor:
        return images.to(torch.float32).sub_(127.5).div_(127.5)


def small_cnn(*, channels: int, image_size: int, classes: int, width: int, hidden: int) -> nn.Module:
    """Three blocks of convolution, batch norm, ReLU and pooling, then two linear layers."""
    layers: list[nn.Module] = [FromBytes()]
    inputs = channels
    for outputs in (width, 2 * width, 4 * width):
        layers += [
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        ]
        inputs = outputs
    side = image_size // 8
    layers += [
        nn.Flatten(),
        nn.Linear(inputs * side * side, hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, classes),
    ]
    return nn.Sequential(*layers)


def wide_mlp(*, channels: int, image_size: int, classes: int, hidden: int, depth: int) -> nn.Module:
    """Linear layers only: parameters, gradients and optimizer state outweigh everything else."""
    layers: list[nn.Module] = [FromBytes(), nn.Flatten()]
    inputs = channels * image_size * image_size
    for _ in range(depth):
        layers += [nn.Linear(inputs, hidden), nn.ReLU(inplace=True)]
        inputs = hidden
    layers.append(nn.Linear(inputs, classes))
    return nn.Sequential(*layers)


def image_model(config: RunConfig, info: DataInfo) -> nn.Module:
    """The model that the config names. ``ConfigError`` for a name without a builder."""
    shape = {"channels": info.channels, "image_size": info.image_size, "classes": len(info.classes)}
    if config.model == "small-cnn":
        return small_cnn(**shape, width=config.width, hidden=config.hidden)
    if config.model == "wide-mlp":
        return wide_mlp(**shape, hidden=config.hidden, depth=config.depth)
    raise ConfigError("config.choice", f"no model {config.model!r}", params={"field": "model", "value": config.model})


def build_optimizer(config: RunConfig, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer that the config names. ``foreach`` is passed on, because torch's default depends on the device
    and with it the temporaries of a step."""
    parameters = list(model.parameters())
    if config.optimizer == "sgd":
        return torch.optim.SGD(
            parameters,
            lr=config.learning_rate,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
            foreach=config.foreach,
        )
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    optimizer = kind(
        parameters, lr=config.learning_rate, weight_decay=config.weight_decay, foreach=config.foreach, fused=False
    )
    return cast("torch.optim.Optimizer", optimizer)
