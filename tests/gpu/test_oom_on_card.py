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
@pytest.mark.timeout(660)  # the script ends itself after eight minutes and the check that is under way
def test_on_the_card(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA card")
    command = [sys.executable, *oom_on_card.SCRIPT, "--out", str(tmp_path)]
    done = subprocess.run(command, timeout=600, check=False, cwd=oom_on_card.ROOT, text=True, stdout=subprocess.PIPE)
    print(done.stdout)
    assert done.returncode == 0, done.stdout
    assert sorted(tmp_path.glob("*.csv"))
    assert sorted(tmp_path.glob("*.pickle"))


@pytest.mark.timeout(400)  # 10 s of work; several test runs may share two cores
def test_a_rescue_is_judged(tmp_path: Path) -> None:
    result = oom_on_card.check_rescue(oom_on_card.SimulatedCard(64 * MIB), batch=32, steps=2, out=tmp_path)
    assert result.good, result
    with (tmp_path / f"rescue-{64 / 1024:g}.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["step"] for row in rows] == ["1", "2"]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_kill_in_the_midst_of_a_rescue_is_judged() -> None:
    result = oom_on_card.check_kill(oom_on_card.SimulatedCard(96 * MIB))
    assert result.good, result


def test_the_largest_batch_is_as_large_as_the_mistake_makes_it() -> None:
    from desktop_app.training.recipes.faults_torch import _LARGEST_RATIO

    assert oom_on_card.LAST_RATIO == _LARGEST_RATIO**2


def test_a_recording_keeps_no_stacks() -> None:
    frames = [{"filename": "/home/somebody/train.py", "line": 3, "name": "main"}]
    trace = {"action": "alloc", "addr": 512, "size": 1024, "stream": 0, "frames": frames}
    block = {"address": 512, "size": 1024, "state": "active_allocated", "frames": frames, "history": [{"addr": 1}]}
    content = {"segments": [{"address": 512, "blocks": [block]}], "device_traces": [[trace]]}
    kept = oom_on_card.without_stacks(content)
    assert "somebody" not in repr(kept)
    assert kept["device_traces"] == [[{"action": "alloc", "addr": 512, "size": 1024, "stream": 0}]]
    assert kept["segments"][0]["blocks"] == [{"address": 512, "size": 1024, "state": "active_allocated"}]


def test_a_check_that_breaks_is_a_miss() -> None:
    def broken() -> oom_on_card.Result:
        raise RuntimeError("CUDA error: misaligned address")

    result = oom_on_card.guarded(broken, gib=8.0)
    assert (result.good, result.detail) == (False, "RuntimeError: CUDA error: misaligned address")


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
