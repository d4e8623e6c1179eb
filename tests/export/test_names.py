from __future__ import annotations

import json
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.export.names import MARKER, document_folder, safe_name


@pytest.mark.parametrize(("name", "expected"), [
    ("report", "report"), ("Ünïcode", "Ünïcode"), ("ｆｕｌｌ　ｗｉｄｔｈ", "ｆｕｌｌ　ｗｉｄｔｈ"),
    ("📄 notes 👩‍👩‍👧", "📄 notes 👩‍👩‍👧"), ("a/b\\c:d*e?f\"g<h>i|j", "a_b_c_d_e_f_g_h_i_j"),
    ("CON", "_CON"), ("con.report", "_con.report"), ("LPT1", "_LPT1"), ("console", "console"),
    ("com¹", "_com¹"), ("trailing...", "trailing"), ("trailing . ", "trailing"), (" x ", "x"),
    (".hidden", "_hidden"), ("..", "document"), ("", "document"), ("a\nb\x00c\x7f", "a_b_c_"),
    ("caf\udce9", "caf_"), ("cafe\u0301", "café"), ("evil\u202egnp.exe", "evil_gnp.exe"),
    ("-rf", "-rf"),
])
def test_safe_names(name: str, expected: str) -> None:
    assert safe_name(name) == expected


@pytest.mark.parametrize("name", [
    "x" * 300, "漢" * 90, "é" * 240, "👩‍👩‍👧" * 40, "e\u0301\u0302" * 100,
])
def test_long_names_are_cut_between_characters(name: str) -> None:
    short = safe_name(name)
    assert 150 < len(short.encode()) <= 200
    assert unicodedata.normalize("NFC", name).startswith(short)
    assert short[-1] != "\u200d"


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_name_becomes_one_that_can_be_used(name: str) -> None:
    short = safe_name(name)
    assert short.strip() == short
    assert short
    assert 0 < len(short.encode("utf-8")) <= 201
    assert not set(short) & set('<>:"/\\|?*\x00\n')
    assert not short.endswith(".")
    assert not short.startswith(".")


def test_a_document_finds_its_folder_again(tmp_path: Path) -> None:
    first = document_folder(tmp_path, "/a/report.pdf")
    second = document_folder(tmp_path, "/b/report.pdf")
    third = document_folder(tmp_path, "/a/report.png")
    assert [first.name, second.name, third.name] == ["report", "report (2)", "report (3)"]
    # In another order, in another run.
    assert document_folder(tmp_path, "/a/report.png") == third
    assert document_folder(tmp_path, "/b/report.pdf") == second
    assert document_folder(tmp_path, "/a/report.pdf") == first


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / MARKER).write_text("[1, 2")
    (tmp_path / "report (2)").write_text("a file")
    assert document_folder(tmp_path, "/a/report.pdf").name == "report (3)"


def test_without_its_marker_a_folder_is_known_by_its_report(tmp_path: Path) -> None:
    folder = document_folder(tmp_path, "/a/report.pdf")
    (folder / MARKER).unlink()
    (folder / "report.json").write_text(json.dumps({"source": {"path": "/a/report.pdf"}}))
    assert document_folder(tmp_path, "/a/report.pdf") == folder
    assert document_folder(tmp_path, "/b/report.pdf").name == "report (2)"


@pytest.mark.parametrize(("source", "name"), [
    ("/a/report.v2.pdf", "report.v2"), ("/a/archive", "archive"), ("/a/.pdf", "_pdf"),
    ("/a/Minutes of 3. May", "Minutes of 3. May"), ("/a/b/", "b"),
    ("Pasted image 1", "Pasted image 1"),
    ("/a/" + "n" * 240 + ".pdf", "n" * 200),
])
def test_folders_are_called_after_their_documents(
    tmp_path: Path, source: str, name: str,
) -> None:
    assert document_folder(tmp_path, source).name == name


def test_two_at_a_time_get_two_folders(tmp_path: Path) -> None:
    sources = [f"/{n}/report.pdf" for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda source: document_folder(tmp_path, source), sources))
    assert len(set(folders)) == 24
    assert [document_folder(tmp_path, source) for source in sources] == folders
