"""A queue that every reader pulls from its own position, and that never loses an alert."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.events import Event, EventKind, EventQueue, Level

KEPT_KINDS = {EventKind.ALERT, EventKind.ALERT_CLEARED, EventKind.OOM, EventKind.RESCUE, EventKind.ERROR}
WAIT_S = 30.0


def event(kind: EventKind = EventKind.EPOCH, level: Level = Level.INFO, *, t_s: float = 0.0) -> Event:
    return Event(t_s=t_s, kind=kind, level=level, code=kind.value, params={"at": t_s})


def numbers(events: tuple[Event, ...]) -> list[int]:
    return [event.seq for event in events]


def test_events_are_numbered_from_one() -> None:
    queue = EventQueue()
    assert queue.since(0) == ((), 0)
    first, second = queue.post(event()), queue.post(event(EventKind.XID, Level.WARNING))
    assert (first.seq, second.seq, queue.seq) == (1, 2, 2)
    assert queue.since(0) == ((first, second), 2)
    assert queue.since(1) == ((second,), 2)
    assert queue.since(2) == ((), 2)


def test_every_reader_has_its_own_position() -> None:
    queue = EventQueue()
    queue.post(event())
    _, early = queue.since(0)
    queue.post(event())
    assert numbers(queue.since(early)[0]) == [2]
    assert numbers(queue.since(0)[0]) == [1, 2]


@settings(deadline=None)
@given(
    posts=st.lists(st.tuples(st.sampled_from(EventKind), st.sampled_from(Level)), max_size=60),
    capacity=st.integers(1, 8),
    seq=st.integers(0, 60),
)
def test_only_ordinary_events_are_dropped_oldest_first(
    posts: list[tuple[EventKind, Level]], capacity: int, seq: int
) -> None:
    queue = EventQueue(capacity=capacity)
    stamped = [queue.post(event(kind, level)) for kind, level in posts]
    kept = [e for e in stamped if e.level is Level.ERROR or e.kind in KEPT_KINDS]
    ordinary = [e for e in stamped if e not in kept]
    held = sorted(kept + ordinary[-capacity:], key=lambda e: e.seq)
    assert queue.dropped == max(0, len(ordinary) - capacity)
    assert queue.since(seq) == (tuple(e for e in held if e.seq > seq), len(posts))


def test_many_threads_post_and_no_alert_is_lost() -> None:
    queue, threads_n, each = EventQueue(capacity=16), 4, 500
    started = threading.Barrier(threads_n)

    def post(number: int) -> None:
        started.wait(WAIT_S)
        for i in range(each):
            kind = EventKind.ALERT if i % 10 == 0 else EventKind.EPOCH
            queue.post(event(kind, t_s=number * each + i))

    threads = [threading.Thread(target=post, args=(number,), daemon=True) for number in range(threads_n)]
    for thread in threads:
        thread.start()
    position, pulled = 0, []
    while any(thread.is_alive() for thread in threads):
        events, position = queue.since(position)
        pulled.extend(events)
    for thread in threads:
        thread.join(WAIT_S)
    pulled.extend(queue.since(position)[0])
    assert numbers(tuple(pulled)) == sorted(set(numbers(tuple(pulled))))
    alerts = {e.t_s for e in pulled if e.kind is EventKind.ALERT}
    assert alerts == {float(t) for t in range(threads_n * each) if t % each % 10 == 0}
    assert queue.seq == threads_n * each
    assert queue.dropped == threads_n * each - len(alerts) - 16


def test_a_queue_has_room() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        EventQueue(capacity=0)
