"""The translations are complete, say what the sources say, and are compiled."""

from __future__ import annotations

import importlib.util
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRANSLATIONS = ROOT / "resources" / "translations"
LANGUAGES = ("zh_CN",)
PLACEHOLDER = re.compile(r"\{[^}]*\}|%[n1-9]")

Message = tuple[str, str, str]  # context, source, comment


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The script that ``make translations`` runs, so that test and command do the same."""
    spec = importlib.util.spec_from_file_location("translations", ROOT / "packaging" / "translations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def messages(path: Path) -> dict[Message, ET.Element]:
    found = {}
    for context in ET.parse(path).getroot().iter("context"):  # noqa: S314 - our own file
        for message in context.iter("message"):
            key = (context.findtext("name") or "", message.findtext("source") or "", message.findtext("comment") or "")
            translation = message.find("translation")
            assert translation is not None
            found[key] = translation
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_file_has_exactly_the_texts_of_the_sources(tool: ModuleType, tmp_path: Path, language: str) -> None:
    committed = TRANSLATIONS / f"floodmark_{language}.ts"
    fresh = tmp_path / "fresh.ts"
    tool.update(fresh, language)
    new, known = set(messages(fresh)), set(messages(committed))
    assert new - known == set(), "not in the translation file: run make translations"
    assert known - new == set(), "no longer in the sources: run make translations"


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_unfinished_or_obsolete(language: str) -> None:
    entries = messages(TRANSLATIONS / f"floodmark_{language}.ts")
    assert [key for key, entry in entries.items() if entry.get("type") or not (entry.text or "").strip()] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_placeholders_are_the_same(language: str) -> None:
    entries = messages(TRANSLATIONS / f"floodmark_{language}.ts")
    wrong = [
        (source, entry.text)
        for (_, source, _), entry in entries.items()
        if sorted(PLACEHOLDER.findall(source)) != sorted(PLACEHOLDER.findall(entry.text or ""))
    ]
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_compiled_file_is_up_to_date(tool: ModuleType, tmp_path: Path, language: str) -> None:
    source = TRANSLATIONS / f"floodmark_{language}.ts"
    shutil.copy(source, tmp_path / source.name)
    tool.compile_to(tmp_path / "fresh.qm", tmp_path / source.name)
    committed = source.with_suffix(".qm").read_bytes()
    assert (tmp_path / "fresh.qm").read_bytes() == committed, "run make translations"


def test_chinese_uses_the_words_of_the_house() -> None:
    """design/README.md, Words."""
    entries = messages(TRANSLATIONS / "floodmark_zh_CN.ts")
    words = {source: entry.text for (_, source, _), entry in entries.items()}
    expected = {
        "VRAM": "显存",
        "Utilisation": "利用率",
        "Power": "功耗",
        "Learning rate": "学习率",
        "out of memory": "显存不足",
        "flood mark": "水位线",
        "brim": "容量线",
        "Floodmark": "水位线 Floodmark",
    }
    assert {source: words[source] for source in expected} == expected
