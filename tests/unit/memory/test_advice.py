"""Levers are measured by tracing the changed training."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from desktop_app.core.forecasts import Estimate
from desktop_app.core.units import GIB
from desktop_app.memory.advice import Variant, levers
from desktop_app.memory.estimate import estimate
from desktop_app.memory.overheads import CardSpec
from tests.unit.memory.trainings import Training, adamw, cnn, mlp, sgd

CARD = CardSpec("GeForce GTX 1660", int(5.9 * GIB), 6 * GIB, "Turing", (7, 5), 22)


@pytest.fixture(scope="module")
def base() -> Estimate:
    return estimate(Training(lambda: mlp(2048), adamw), CARD, batch_size=1024)


def test_what_saves_most_comes_first_and_what_saves_nothing_not_at_all(base: Estimate) -> None:
    found = levers(
        base,
        CARD,
        {
            "same": Variant({}, Training(lambda: mlp(2048), adamw), 1024),
            "batch": Variant({"batch_size": 512}, Training(lambda: mlp(2048), adamw, accumulation=2), 512),
            "sgd": Variant({"optimizer": "sgd"}, Training(lambda: mlp(2048), sgd), 1024),
            "larger": Variant({"hidden": 4096}, Training(lambda: mlp(4096), adamw), 1024),
        },
    )
    assert found[0].code == "sgd"
    assert {"same", "larger"}.isdisjoint(lever.code for lever in found)
    assert [lever.saved_bytes for lever in found] == sorted((lever.saved_bytes for lever in found), reverse=True)
    for lever in found:
        assert lever.saved_bytes > 0
        assert lever.device_peak_bytes == base.device_peak_bytes.p50 - lever.saved_bytes
    assert found[0].changes == {"optimizer": "sgd"}
    # Adam's two states and its temporary are gone; what is left of the peak is elsewhere.
    size = sum(parameter.numel() * 4 for parameter in mlp(2048).parameters())
    assert size < found[0].saved_bytes < 3 * size + size // 2


class Looks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(256, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(images.flatten(1))
        return out if out.sum() > 0 else -out


def test_a_variant_that_cannot_be_traced_is_left_out(base: Estimate) -> None:
    assert levers(base, CARD, {"looks": Variant({}, Training(Looks, sgd), 4)}) == ()


def test_no_advice_where_nothing_could_be_said() -> None:
    nothing = estimate(Training(Looks, sgd), CARD, batch_size=4)
    assert levers(nothing, CARD, {"cnn": Variant({}, Training(cnn, sgd), 4)}) == ()
