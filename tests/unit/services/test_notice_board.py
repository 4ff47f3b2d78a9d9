"""Notices: one for each condition, from any thread."""

from __future__ import annotations

import logging
import threading

import pytest

from desktop_app.services.facade import Notice
from desktop_app.services.notice_board import NoticeBoard

from .doubles import PATIENCE_S


def test_a_condition_has_one_notice_with_its_newest_text(caplog: pytest.LogCaptureFixture) -> None:
    board = NoticeBoard()
    with caplog.at_level(logging.INFO):
        board.put("recorder.trouble", "disk full", level="error")
        board.put("telemetry.simulated", "no card", level="info")
        board.put("recorder.trouble", "folder gone", level="error")
        version = board.notices.version
        board.put("recorder.trouble", "folder gone", level="error")
    assert board.notices.get() == (
        Notice("telemetry.simulated", "no card", "info"),
        Notice("recorder.trouble", "folder gone", "error"),
    )
    assert board.notices.version == version  # nothing is drawn anew for nothing
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "disk full"),
        ("INFO", "no card"),
        ("ERROR", "folder gone"),
    ]


def test_a_condition_that_is_over_is_taken_down() -> None:
    board = NoticeBoard()
    board.put("a", "1")
    board.put("b", "2")
    board.take_down("a")
    version = board.notices.version
    board.take_down("a")
    assert board.notices.get() == (Notice("b", "2", "warning"),)
    assert board.notices.version == version


def test_threads_do_not_lose_each_others_notices() -> None:
    board = NoticeBoard()
    begin = threading.Barrier(8)

    def put(number: int) -> None:
        begin.wait(PATIENCE_S)
        for text in range(50):
            board.put(f"code {number}", str(text))

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(notice.code for notice in board.notices.get()) == [f"code {number}" for number in range(8)]
