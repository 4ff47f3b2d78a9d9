"""The log: all of it in the data folder, on the terminal only what a user must know."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import logging, sys
from desktop_app.services.log_files import set_up_logging
from desktop_app.services.notice_board import NoticeBoard
set_up_logging(debug=sys.argv[1] == "debug")
set_up_logging(debug=sys.argv[1] == "debug")
log = logging.getLogger("desktop_app.training.loop")
log.debug("a detail")
log.info("a change")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("a mistake")
logging.getLogger("PIL.Image").info("noise")
NoticeBoard().put("recorder.trouble", "the disk is full", level="error")
NoticeBoard().put("telemetry.simulated", "no card", level="info")
if len(sys.argv) > 2:
    handler = logging.getLogger().handlers[-1]
    handler.stream.close()
    handler.stream = open("/dev/full", "w")
    log.info("x" * 100)
    handler.stream = None
"""


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments],
        env={**os.environ, "FLOODMARK_DATA": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_the_terminal_has_lines_and_the_file_has_all(tmp_path: Path) -> None:
    assert run(tmp_path / "data", "quiet") == "floodmark: the disk is full\nfloodmark: no card\n"
    lines = (tmp_path / "data" / "floodmark.log").read_text(encoding="utf-8")
    assert "a detail" not in lines
    assert "noise" not in lines
    assert lines.count("INFO MainThread desktop_app.training.loop: a change") == 1
    assert "ZeroDivisionError: division by zero" in lines


def test_debug_shows_everything_once(tmp_path: Path) -> None:
    shown = run(tmp_path, "debug")
    for text in ("a detail", "a change", "a mistake", "ZeroDivisionError", "the disk is full"):
        assert shown.count(text) == 1, text
    assert "noise" not in shown


def test_a_folder_that_cannot_be_written_costs_the_log_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file", "quiet") == "floodmark: the disk is full\nfloodmark: no card\n"
    assert run(Path("/proc/self"), "quiet") == "floodmark: the disk is full\nfloodmark: no card\n"


def test_a_disk_that_fills_up_under_the_log_does_not_cover_the_terminal(tmp_path: Path) -> None:
    assert run(tmp_path, "quiet", "full") == "floodmark: the disk is full\nfloodmark: no card\n"
