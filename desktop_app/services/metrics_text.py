"""The text of one scrape. Needs prometheus-client."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from desktop_app.services.card_metrics import Families, LastXids, add_cards, add_instances
from desktop_app.services.facade import Workspace
from desktop_app.services.run_metrics import add_program, add_run

# The client writes a counter's header with _total, whether or not its samples have it: DCGM's have not.
_DCGM_HEADER: Final = re.compile(rb"^(# (?:HELP|TYPE) DCGM_\w+?)_total ", re.MULTILINE)


class SessionText:
    """What a session holds now, as Prometheus reads it. Runs in: any thread; reads cells and nothing else."""

    def __init__(self, session: Workspace) -> None:
        self._lock = threading.Lock()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Reader(session))

    def render(self) -> bytes:
        """The whole text, in format 0.0.4."""
        with self._lock:
            return _DCGM_HEADER.sub(rb"\1 ", generate_latest(self._registry))


class _Reader(Collector):
    def __init__(self, session: Workspace) -> None:
        self._session = session
        self._xids = LastXids(session.events)

    def collect(self) -> Iterable[Metric]:
        session, families = self._session, Families()
        add_program(families, session)
        add_cards(families, session.cards.get(), session.readings.get(), xids=self._xids.by_card())
        add_instances(families, session.cards.get(), session.instances.get())
        add_run(families, session)
        return families.all()
