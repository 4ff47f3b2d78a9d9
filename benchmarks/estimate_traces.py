"""Traces for the benchmarks of the estimate: by several tracers at once, each kept on disk until the tracer changes."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import queue
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import desktop_app.memory
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import TracerError, UntraceableError
from desktop_app.memory.tracer_process import TracerProcess
from desktop_app.memory.tracing import wire
from desktop_app.memory.training_spec import TrainingSpec

CACHE = Path(tempfile.gettempdir()) / "floodmark-traces"
# Workspaces are filled in after the trace, so what their rule says need not be part of the key.
_NOT_OF_THE_TRACE = ("estimate", "advice", "largest", "overheads", "convolutions", "allocator", "oom", "snapshot")

Job = tuple[TrainingSpec, CardSpec]


class Traces:
    """A pool of tracers with a cache. ``None`` stands for a training that cannot be traced: see ``errors``."""

    def __init__(
        self,
        python: Path | None,
        *,
        tracers: int = 2,
        folder: Path = CACHE,
        rung: str | None = None,
        limit_s: float = 240,
    ) -> None:
        self.errors: dict[str, str] = {}
        self._folder = folder / _version()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._rung = rung
        self._python = python
        self._tracers = [TracerProcess(python, time_limit_s=limit_s, hide_cards=True) for _ in range(tracers)]
        self._idle: queue.SimpleQueue[TracerProcess] = queue.SimpleQueue()
        for tracer in self._tracers:
            self._idle.put(tracer)
        self._pool = ThreadPoolExecutor(tracers)
        self._futures: dict[Path, Future[None]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=kind is None, cancel_futures=True)
        for tracer in self._tracers:
            tracer.close()

    def ask(self, jobs: Iterable[Job]) -> None:
        """Begin with these; ``get`` waits for each."""
        for spec, card in jobs:
            path = self._path(spec, card)
            if path not in self._futures:
                self._futures[path] = self._pool.submit(self._make, path, spec, card)

    def get(self, spec: TrainingSpec, card: CardSpec) -> Trace | None:
        self.ask([(spec, card)])
        path = self._path(spec, card)
        self._futures[path].result()
        with gzip.open(path, "rb") as file:
            found = pickle.load(file)  # noqa: S301 - our own file
        if isinstance(found, Trace):
            return found
        self.errors[spec.model] = str(found)
        return None

    def _make(self, path: Path, spec: TrainingSpec, card: CardSpec) -> None:
        if path.is_file():
            return
        tracer = self._idle.get()
        found: Trace | str
        try:
            found = tracer.trace(spec, card, rung=self._rung)
        except (UntraceableError, TracerError) as error:
            found = str(error).splitlines()[0]
        finally:
            self._idle.put(tracer)
        print(
            f"\r{len(self._futures)} traces asked for, now {spec.model} at {spec.batch_size}".ljust(78),
            end="",
            file=sys.stderr,
        )
        partial = path.with_suffix(f".{id(tracer)}")
        with gzip.open(partial, "wb", compresslevel=1) as file:
            pickle.dump(found, file, protocol=5)
        partial.replace(path)

    def _path(self, spec: TrainingSpec, card: CardSpec) -> Path:
        job = json.dumps([spec.as_json(), wire.card_as_json(card), self._rung, str(self._python)], sort_keys=True)
        return self._folder / f"{hashlib.sha256(job.encode()).hexdigest()[:24]}.pickle.gz"


def _version() -> str:
    """A name for the state of everything that makes a trace."""
    root = Path(desktop_app.memory.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")) + sorted(root.rglob("*.cpp")):
        if not path.name.startswith(_NOT_OF_THE_TRACE):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
