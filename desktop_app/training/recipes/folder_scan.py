"""Find the image files of a folder of class folders. Looks at names only; decoding is ``decoding``'s business."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from desktop_app.core.errors import FloodmarkError
from desktop_app.training.control import RunCancelled
from desktop_app.training.recipes.data import SkippedFile

# What Pillow's own build reads and people keep photographs in.
IMAGE_SUFFIXES: Final = frozenset(
    {
        ".apng",
        ".avif",
        ".bmp",
        ".dib",
        ".gif",
        ".jfif",
        ".jpe",
        ".jpeg",
        ".jpg",
        ".jp2",
        ".pbm",
        ".pgm",
        ".png",
        ".ppm",
        ".tga",
        ".tif",
        ".tiff",
        ".webp",
    }
)
_IGNORED_FOLDERS: Final = frozenset({"__MACOSX", "__pycache__", "$RECYCLE.BIN", "System Volume Information"})


@dataclass(slots=True)
class FolderListing:
    """Image files of each class, in a fixed order, and what looked like one and is not."""

    root: Path
    classes: tuple[str, ...]
    files: list[Path] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)

    def counts(self) -> list[int]:
        """Files of each class."""
        counts = [0] * len(self.classes)
        for label in self.labels:
            counts[label] += 1
        return counts


def list_folder(root: Path, *, builtin: tuple[str, ...], cancelled: Callable[[], bool] | None = None) -> FolderListing:
    """All image files under ``root/<class>/…``. Hidden names and other kinds of files are ignored, links are
    followed once.

    Raises ``FloodmarkError``: missing, not a folder, no permission, no class folders, one class, a class without files.
    """
    names = _class_names(root, builtin=builtin)
    listing = FolderListing(root, names)
    for label, name in enumerate(names):
        before = len(listing.files)
        _collect(root / name, label, listing, cancelled or _never)
        if len(listing.files) == before:
            raise empty_class(root / name, listing.skipped)
    return listing


def empty_class(folder: Path, skipped: list[SkippedFile]) -> FloodmarkError:
    """The error of a class without a usable image; names the first unusable one."""
    inside = [file for file in skipped if Path(file.path).is_relative_to(folder)]
    detail = f" ({len(inside)} skipped, the first: {inside[0].path}, {inside[0].reason})" if inside else ""
    return FloodmarkError(
        "data.empty_class",
        f"class folder {folder} has no image that can be read{detail}; add images or remove the folder",
        params={"path": str(folder), "class": folder.name, "skipped": len(inside)},
    )


def _class_names(root: Path, *, builtin: tuple[str, ...]) -> tuple[str, ...]:
    entries = _entries(root, builtin=builtin)
    names = sorted(entry.name for entry in entries if _is_folder(entry))
    if not names:
        loose = sum(_has_image_suffix(entry.name) for entry in entries)
        detail = f"{loose} images lie in it directly" if loose else "it has no folders in it"
        raise FloodmarkError(
            "data.no_classes",
            f"data folder {root}: {detail}; sort the images into one folder per class",
            params={"path": str(root), "loose": loose},
        )
    if len(names) == 1:
        raise FloodmarkError(
            "data.one_class",
            f"data folder {root} has only one class folder, {names[0]}; a classifier needs at least two",
            params={"path": str(root), "class": names[0]},
        )
    return tuple(names)


def _entries(root: Path, *, builtin: tuple[str, ...]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root) as entries:
            return [entry for entry in entries if not _is_hidden(entry.name)]
    except FileNotFoundError:
        close = difflib.get_close_matches(str(root), builtin, n=1)
        hint = f"; did you mean {close[0]}?" if close else f"; give a folder of class folders, or {', '.join(builtin)}"
        raise _unusable("data.missing_folder", root, f"there is no folder {root}{hint}") from None
    except NotADirectoryError:
        raise _unusable(
            "data.not_a_folder", root, f"{root} is a file; give the folder that holds the class folders"
        ) from None
    except PermissionError:
        raise _unusable("data.no_permission", root, f"no permission to read the folder {root}; change it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _unusable("data.unreadable_folder", root, f"the folder {root} cannot be read: {reason}") from None


def _unusable(code: str, root: Path, message: str) -> FloodmarkError:
    return FloodmarkError(code, f"data: {message}", params={"path": str(root)})


def _collect(folder: Path, label: int, listing: FolderListing, cancelled: Callable[[], bool]) -> None:
    """Files of one class, depth first by name. A folder that is reached twice (link loops) is read once."""
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        if cancelled():
            raise RunCancelled
        current = waiting.pop()
        try:
            identity = current.stat()
            if (identity.st_dev, identity.st_ino) in seen:
                continue
            seen.add((identity.st_dev, identity.st_ino))
            with os.scandir(current) as found:
                entries = sorted((entry for entry in found if not _is_hidden(entry.name)), key=lambda entry: entry.name)
        except OSError as error:
            listing.skipped.append(SkippedFile(str(current), file_reason(error)))
            continue
        waiting += [current / entry.name for entry in reversed(entries) if _is_folder(entry)]
        for entry in entries:
            if _has_image_suffix(entry.name) and not _is_folder(entry):
                _add_file(current / entry.name, label, listing)


def _add_file(path: Path, label: int, listing: FolderListing) -> None:
    reason: str | None = None
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            reason = "not_a_file"  # a pipe would block for ever
        elif status.st_size == 0:
            reason = "empty_file"
    except OSError as error:
        reason = file_reason(error)
    if reason is not None:
        listing.skipped.append(SkippedFile(str(path), reason))
        return
    listing.files.append(path)
    listing.labels.append(label)


def file_reason(error: OSError) -> str:
    """The code that stands for an error of the file system."""
    if isinstance(error, PermissionError):
        return "no_permission"
    if isinstance(error, FileNotFoundError):
        return "missing"
    return "unreadable"


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir() and entry.name not in _IGNORED_FOLDERS
    except OSError:
        return False  # a link to itself


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _has_image_suffix(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES  # noqa: PTH122 - no Path for each of many names


def _never() -> bool:
    return False
