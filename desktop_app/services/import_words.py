"""Words out of files for a terminal: short, and without the signs that steer one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_LONGEST_NAME: Final = 100  # what a damaged file calls a card or a field can be the rest of the file


def printable(text: str) -> str:
    """Escape codes, line ends and halves of a character of UTF-16 are spaces."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else " " for sign in text)


def encodable(text: str) -> str:
    """What UTF-8 has no bytes for, such as a file's name in another encoding, is a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def short(name: str) -> str:
    """A name in one piece of a line."""
    name = printable(name)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def some(names: Sequence[str], *, most: int = 12, where: str = "") -> str:
    """The first names, and how many there are beside. ``where``: what has them all."""
    shown = ", ".join(short(name) for name in names[:most])
    more = f" and {len(names) - most:,} more" + (f" ({where})" if where else "")
    return shown + (more if len(names) > most else "")
