"""Binary units and their texts. Sizes are ``int`` bytes in code and MiB, GiB or TiB on screen."""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024**2
GIB: Final = 1024**3
TIB: Final = 1024**4


def format_bytes(size_bytes: float, *, signed: bool = False) -> str:
    """``6.00 GiB``, ``1.22 TiB``, ``512 MiB``: two decimals from 1 GiB, none below (design/README.md, Words)."""
    sign = "+" if signed and size_bytes > 0 else "\N{MINUS SIGN}" if size_bytes < 0 else ""
    size = abs(size_bytes)
    if size >= TIB:
        return f"{sign}{size / TIB:.2f} TiB"
    if size >= GIB:
        return f"{sign}{size / GIB:.2f} GiB"
    if size >= MIB:
        return f"{sign}{size / MIB:.0f} MiB"
    if size >= KIB:
        return f"{sign}{size / KIB:.0f} KiB"
    return f"{sign}{size:.0f} B"


def format_torch_size(size_bytes: int) -> str:
    """A size as torch's out-of-memory message prints it: two decimals; bytes, KiB, MiB, GiB."""
    for unit, scale in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size_bytes > scale:  # not >=: torch prints 1 GiB as "1024.00 MiB" (c10/core/Allocator.h, format_size)
            return f"{size_bytes / scale:.2f} {unit}"
    return f"{size_bytes} bytes"
