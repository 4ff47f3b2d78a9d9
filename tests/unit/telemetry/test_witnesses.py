"""Independent programs on the same fake driver: where they read a value, ours is equal.

``packaging/witnesses.sh`` puts them into an environment of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
WITNESSES = ROOT / "build" / "witnesses" / "bin"
SCRIPT = """
- value count 3
0 value util 13
1 value util 0
1 value temperature 0
1 error nvmlDeviceGetFanSpeed 3
1 error nvmlDeviceGetFanSpeed_v2 3
2 error nvmlDeviceGetUtilizationRates 3
2 value used 11811160064
2 value decoder 44
2 value sm_clock 2100
2 value graphics_clock 2115
2 value ecc 3
"""


@pytest.fixture(scope="module")
def ask(driver_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    script = tmp_path_factory.mktemp("witness") / "script"
    script.write_text(SCRIPT)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver_folder), "FAKE_NVML_SCRIPT": str(script)}

    def one(program: str) -> list[dict[str, Any]]:
        python = sys.executable if program == "floodmark" else WITNESSES / "python"
        result = subprocess.run(
            [python, "-m", "tests.fake_nvml.ask_witness", program],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        cards: list[dict[str, Any]] = json.loads(result.stdout)
        return cards

    return one


# What a witness reads otherwise, and why we do not follow it.
EXCEPTIONS = {
    ("nvitop", 1, "temperature_c"),  # 0 °C is how a board without the sensor answers
    ("gpustat", 1, "temperature_c"),
}


@pytest.mark.parametrize("program", ["nvitop", "gpustat"])
def test_where_a_witness_reads_a_value_ours_is_equal(ask: Any, program: str) -> None:
    if not (WITNESSES / program).exists():
        pytest.skip(f"{program} is not there (packaging/witnesses.sh)")
    ours, theirs = ask("floodmark"), ask(program)
    assert [card["uuid"] for card in ours] == [card["uuid"] for card in theirs]
    compared = 0
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        for name, value in other.items():
            if (program, number, name) in EXCEPTIONS:
                assert (mine[name], value) == (None, 0)
            elif value is None:
                assert mine[name] is None, (number, name)
            else:
                expected = value if isinstance(value, str) else pytest.approx(value)
                assert mine[name] == expected, (number, name)
                compared += 1
    assert compared > 20
