"""Recorded runs as CSV, in and out (docs/guide/forecast.md). Rows are read as they come: memory does not grow.

Commas, semicolons or tabs; UTF-8 or UTF-16, with or without a byte-order mark; gzipped or not; ``-`` is standard input.
Column names may differ from ours in case, spaces and dashes; columns that are not known are passed over.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

from desktop_app.core.errors import ConfigError
from desktop_app.forecast.trace_rows import TRACE_COLUMNS, TraceRow
from desktop_app.services.trace_cells import CellError, Reader, reader_of, shown

STANDARD_INPUT: Final = Path("-")
_SEPARATORS: Final = ",;\t|"
_LONGEST_LINE: Final = 1 << 20  # characters; a line of our columns has about 200
_GZIP: Final = b"\x1f\x8b"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_EMPTY: Final = "is empty; the first line of a trace names its columns"


@dataclass(frozen=True, slots=True)
class _Column:
    """Where a column of ours is in the file, and how its cells are read."""

    name: str
    at: int
    read: Reader


@dataclass(frozen=True, slots=True)
class _Header:
    separator: str
    cells: int
    columns: tuple[_Column, ...]
    unknown: tuple[str, ...]


class TraceFile:
    """An open trace. ``name`` is for messages; ``columns`` and ``unknown_columns`` are known once it is open.

    Raises ``ConfigError`` in one line with line and column. Close it, or use it in ``with``.
    """

    def __init__(self, path: Path) -> None:
        self.name = "standard input" if path == STANDARD_INPUT else str(path)
        self._lines = 0
        with self._told():
            self._binary, self._stream = _open_text(path)
        try:
            self._header = self._read_header()
        except BaseException:
            self.close()
            raise

    @property
    def columns(self) -> tuple[str, ...]:
        """Our columns that the file has, in its order."""
        return tuple(column.name for column in self._header.columns)

    @property
    def unknown_columns(self) -> tuple[str, ...]:
        """What else it has; passed over."""
        return self._header.unknown

    @property
    def line(self) -> int:
        """Lines read so far."""
        return self._lines

    def rows(self) -> Iterator[TraceRow]:
        """The rows in their order, each as soon as its line is complete."""
        header = self._header
        with self._told():
            for cells in csv.reader(self._numbered(), delimiter=header.separator):
                if not any(cells):
                    continue
                yield self._row(cells, header)

    def close(self) -> None:
        """Let go of the file; standard input stays open."""
        with contextlib.suppress(OSError, ValueError, zlib.error, EOFError):
            self._stream.detach()
        if self._binary is not None:
            self._binary.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _row(self, cells: Sequence[str], header: _Header) -> TraceRow:
        if len(cells) > header.cells and any(cell.strip() for cell in cells[header.cells :]):
            hint = "" if header.separator != "," else " (a thousands separator needs quotes around the cell)"
            raise self._error(f"has {len(cells)} cells, the header has {header.cells}{hint}")
        figures: dict[str, Any] = {}
        for column in header.columns:
            if column.at >= len(cells):
                continue
            cell = cells[column.at].strip()
            if not cell:
                continue
            try:
                figures[column.name] = column.read(cell)
            except CellError as error:
                raise self._error(f"column {column.at + 1} ({column.name}): {shown(cell)} {error}") from None
        return TraceRow(**figures)

    def _read_header(self) -> _Header:
        with self._told():
            for line in self._numbered():
                text = line.strip("\ufeff\r\n")
                if not text.strip() or text.startswith("#") or text.lower().startswith("sep="):
                    continue
                return self._header_of(text)
        raise ConfigError("forecast.empty", f"{self.name} {_EMPTY}.")

    def _header_of(self, text: str) -> _Header:
        separator = max(_SEPARATORS, key=text.count)
        names = next(csv.reader([text], delimiter=separator))
        places: dict[str, int] = {}
        unknown: list[str] = []
        for at, name in enumerate(names):
            known = _known_name(name)
            if known is None:
                unknown += [name.strip()] if name.strip() else []
            elif known in places:
                raise self._error(f"names the column {known} twice, at {places[known] + 1} and {at + 1}; keep one")
            else:
                places[known] = at
        if not places:
            raise self._error(
                f"names none of the columns of a trace ({', '.join(TRACE_COLUMNS[:5])} …; docs/guide/forecast.md):"
                f" {shown(text)}"
            )
        columns = tuple(_Column(name, at, reader_of(name)) for name, at in places.items())
        return _Header(separator, len(names), columns, tuple(unknown))

    def _numbered(self) -> Iterator[str]:
        """Lines of bounded length; a last one that nobody has finished writing is still a line."""
        while line := self._stream.readline(_LONGEST_LINE):
            self._lines += 1
            if len(line) >= _LONGEST_LINE:
                raise self._error("is longer than any row of a trace; is it CSV?")
            if "\0" in line:
                raise self._error("is not text; a trace is a CSV file")
            yield line

    def _error(self, text: str) -> ConfigError:
        return ConfigError("forecast.bad_trace", f"{self.name}, line {max(self._lines, 1)}: {text}.")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What reading can end with, in one line."""
        try:
            yield
        except UnicodeError:  # found when a block of the file is decoded, before its lines are counted
            after = f", after line {self._lines}," if self._lines else ""
            raise ConfigError(
                "forecast.bad_trace", f"{self.name}{after} is not text; a trace is a CSV file in UTF-8."
            ) from None
        except csv.Error as error:
            raise self._error(f"cannot be read as CSV ({error}); is a quote not closed?") from None
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise ConfigError("forecast.bad_trace", f"{self.name} is damaged: its gzip data does not end.") from None
        except OSError as error:
            reason = error.strerror or error
            raise ConfigError("forecast.unreadable", f"{self.name} cannot be read: {reason}.") from None


def write_rows(rows: Iterable[TraceRow], out: IO[str], *, columns: Sequence[str] = TRACE_COLUMNS) -> int:
    """Write a trace as this module reads it; the number of rows. Floats keep every digit."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    count = 0
    for row in rows:
        writer.writerow(["" if (figure := getattr(row, name)) is None else figure for name in columns])
        count += 1
    return count


def _known_name(name: str) -> str | None:
    plain = "_".join(name.strip(" \t\"'\ufeff").lower().replace("-", " ").replace("_", " ").split())
    return plain if plain in _NAMES else None


_NAMES: Final = frozenset(TRACE_COLUMNS)


def _open_text(path: Path) -> tuple[IO[bytes] | None, io.TextIOWrapper]:
    """The file to close, and its text."""
    file: Any = None
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise ConfigError("forecast.unreadable", "There is no standard input.")
        binary: Any = sys.stdin.buffer
    else:
        binary = file = path.open("rb")
    try:
        if _peek(binary).startswith(_GZIP):
            binary = io.BufferedReader(gzip.GzipFile(fileobj=binary))
        start = _peek(binary)
    except BaseException:
        if file is not None:
            file.close()
        raise
    encoding = "utf-16" if start.startswith(_UTF16) else "utf-8-sig"
    return file, io.TextIOWrapper(binary, encoding=encoding, newline="")


def _peek(binary: Any) -> bytes:
    """The first bytes, as soon as there are any."""
    peek: Callable[[int], bytes] = binary.peek
    return peek(4)
