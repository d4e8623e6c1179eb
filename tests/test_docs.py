"""The documents point at what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.data import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests/samples/README.md"])
PATHS = re.compile(
    r"`((?:desktop|docs|packaging|resources|tests|engines|settings|export|cli|intake)"
    r"/[\w./-]+)`")
LATER = {"resources/translations/"}  # the folder comes with the first translation


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    for name in PATHS.findall(page.read_text("utf-8")):
        if name not in LATER:
            assert (ROOT / name).exists() or (ROOT / "desktop" / name).exists(), name


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs/decisions"
    listed = re.findall(r"\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text("utf-8"))
    assert listed == sorted(p.name for p in folder.glob("[0-9]*.md"))


def test_the_changelog_has_a_place_for_what_comes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "## [Unreleased]" in text
    assert set(re.findall(r"^### (.*)", text, re.M)) <= {
        "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Known limits"}
