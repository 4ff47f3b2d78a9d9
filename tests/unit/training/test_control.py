"""The token: every request wakes a waiting trainer at once."""

from __future__ import annotations

import threading
import time

from desktop_app.training.control import ControlToken

LONG_S = 60.0
SOON_S = 20.0


def test_a_fresh_token_asks_for_nothing() -> None:
    token = ControlToken()
    assert not token.attention
    assert not token.take_save_request()
    assert token.wait_while_paused()


def test_requests_raise_attention_until_they_are_met() -> None:
    token = ControlToken()
    token.pause()
    assert token.attention
    assert token.pause_requested
    token.resume()
    assert not token.attention
    token.request_save()
    assert token.attention
    assert token.take_save_request()
    assert not token.attention
    assert not token.take_save_request()
    token.stop(save=False)
    assert token.attention
    assert token.stop_requested
    assert not token.save_on_stop
    token.stop(save=True)
    assert token.save_on_stop


def _in_thread(token: ControlToken, wait: object) -> tuple[threading.Thread, list[object], threading.Event]:
    answers: list[object] = []
    entered = threading.Event()

    def run() -> None:
        entered.set()
        answers.append(wait())  # type: ignore[operator]

    thread = threading.Thread(target=run)
    thread.start()
    assert entered.wait(SOON_S)
    return thread, answers, entered


def test_resume_stop_and_save_end_a_pause() -> None:
    for ask, goes_on in (
        (ControlToken.resume, True),
        (ControlToken.request_save, True),
        (lambda token: token.stop(save=True), False),
    ):
        token = ControlToken()
        token.pause()
        thread, answers, _ = _in_thread(token, token.wait_while_paused)
        ask(token)
        thread.join(SOON_S)
        assert answers == [goes_on]


def test_any_request_ends_a_wait_early() -> None:
    for ask in (ControlToken.pause, ControlToken.request_save, lambda token: token.stop(save=False)):
        token = ControlToken()
        began_s = time.monotonic()
        thread, answers, _ = _in_thread(token, lambda token=token: token.wait(LONG_S))
        ask(token)
        thread.join(SOON_S)
        assert answers == [False]
        assert time.monotonic() - began_s < SOON_S


def test_a_wait_that_nothing_disturbs_says_so() -> None:
    assert ControlToken().wait(0.0)
    assert ControlToken().wait(-1.0)
