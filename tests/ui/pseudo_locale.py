"""A made-up language: every text a third longer, with accents and brackets, so that untranslated and clipped texts
show.
"""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ACCENTS = str.maketrans("aeiouAEIOUcnsy", "áéíóúÁÉÍÓÚçñšý")
PLACEHOLDER = re.compile(r"(\{[^}]*\})")
LONGEST_PADDING = 8  # longer padding comes as several words, as longer texts do
TS_FILE = Path(__file__).resolve().parents[2] / "resources" / "translations" / "floodmark_zh_CN.ts"


def pseudo(text: str) -> str:
    """``[Sávé rúñ~~~]``: placeholders stay as they are."""
    parts = PLACEHOLDER.split(text)
    accented = "".join(part if PLACEHOLDER.fullmatch(part) else part.translate(ACCENTS) for part in parts)
    letters = len(PLACEHOLDER.sub("", text))
    if letters <= 2:
        return accented
    padding = "~" * max(1, letters // 3)
    words = [padding[place : place + LONGEST_PADDING] for place in range(0, len(padding), LONGEST_PADDING)]
    return f"[{accented}{' '.join(words)}]"


def compile_pseudo(folder: Path) -> Path:
    """Write the pseudo-language as a compiled file into ``folder``."""
    tree = ET.parse(TS_FILE)  # noqa: S314 - our own file
    for message in tree.getroot().iter("message"):
        translation = message.find("translation")
        assert translation is not None
        translation.text = pseudo(message.findtext("source") or "")
    source = folder / "pseudo.ts"
    tree.write(source, encoding="utf-8", xml_declaration=True)
    target = folder / "pseudo.qm"
    tool = Path(sys.executable).with_name("pyside6-lrelease")
    subprocess.run([str(tool), "-silent", str(source), "-qm", str(target)], check=True)
    return target
