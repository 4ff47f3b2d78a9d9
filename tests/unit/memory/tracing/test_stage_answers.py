"""What is changed for a trace is put back, in whatever order traces end."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from desktop_app.memory.tracing.stage_answers import patch


class Owner:
    value = 1


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_two_traces_that_overlap_leave_nothing_behind(first_ends_first: bool) -> None:
    first, second = ExitStack(), ExitStack()
    patch(first, Owner, "value", 2)
    patch(second, Owner, "value", 3)
    assert Owner.value == 3
    (first if first_ends_first else second).close()
    assert Owner.value == (3 if first_ends_first else 2)
    (second if first_ends_first else first).close()
    assert Owner.value == 1
