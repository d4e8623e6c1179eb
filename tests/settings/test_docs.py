from __future__ import annotations

from desktop.settings import SETTINGS
from desktop.settings.declare import Section
from tests.support.data import ROOT
from tests.support.scripts import load

make_docs = load("packaging/make_docs.py")


def test_the_settings_page_is_up_to_date() -> None:
    page = (ROOT / "docs/settings.md").read_text("utf-8")
    assert page == make_docs.settings_page(), "run python packaging/make_docs.py"


def test_every_setting_and_section_is_on_it() -> None:
    page = make_docs.settings_page()
    assert set(make_docs.TITLES) == set(Section)
    for setting in SETTINGS:
        assert page.count(f"| `{setting.flag}` |") == 1


def test_every_row_has_all_cells() -> None:
    rows = [line for line in make_docs.settings_page().splitlines() if line.startswith("| **")]
    assert len(rows) == len(SETTINGS)
    for row in rows:
        cells = row.replace("\\|", "").strip("|").split("|")
        assert len(cells) == 6
        assert all(cell.strip() for cell in cells)
