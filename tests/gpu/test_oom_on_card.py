"""The script for a real card: run as a whole where there is one, and its logic on a simulated card everywhere."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from desktop_app.core.units import MIB
from desktop_app.training.config import RunConfig

from . import oom_on_card


@pytest.mark.gpu
def test_on_the_card(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA card")
    script = Path(oom_on_card.__file__)
    done = subprocess.run([sys.executable, str(script), "--out", str(tmp_path)], timeout=600, check=False)
    assert done.returncode == 0


def test_a_rescue_is_judged(tmp_path: Path) -> None:
    result = oom_on_card.check_rescue(oom_on_card.SimulatedCard(64 * MIB), batch=32, steps=2, out=tmp_path)
    assert result.good, result
    with (tmp_path / f"rescue-{64 / 1024:g}.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["step"] for row in rows] == ["1", "2"]


@pytest.mark.parametrize("name", ["first update", "leak"])
def test_a_forecast_is_judged(name: str, tmp_path: Path) -> None:
    case = next(case for case in oom_on_card.CASES if case.name == name)
    result = oom_on_card.check_forecast(case, oom_on_card.SimulatedCard(96 * MIB), out=tmp_path)
    assert result.good, result


def test_a_run_that_does_not_run_out_is_a_miss() -> None:
    from dataclasses import replace

    case = next(case for case in oom_on_card.CASES if case.name == "first update")
    roomy = replace(case, config=lambda _: RunConfig(epochs=1, batch_size=256, width=4, validation_fraction=0.8))
    assert not oom_on_card.check_forecast(roomy, oom_on_card.SimulatedCard(96 * MIB)).good
