"""Which files a folder stands for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from desktop.intake.walk import OUTPUT_MARK, is_output, natural_key, walk

_PDF = b"%PDF-1.7\n"


def _names(found: list[Path], root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in found]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name in ("page 10.pdf", "page 2.pdf", "Page 1.pdf", "b/x.pdf", "a/y.pdf", "a/10/z.pdf",
                 "a/9/z.pdf"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_PDF)
    return root


def test_natural_order_files_before_folders(tree: Path) -> None:
    assert _names(list(walk([tree])), tree) == [
        "Page 1.pdf", "page 2.pdf", "page 10.pdf", "a/y.pdf", "a/9/z.pdf", "a/10/z.pdf", "b/x.pdf"]


def test_named_files_are_always_given_and_once(tree: Path) -> None:
    text = tree / "notes.txt"
    text.write_text("no document")
    missing = tree / "gone.pdf"
    named = [text, missing, tree / "b" / "x.pdf", tree / "a" / ".." / "b" / "x.pdf"]
    assert list(walk(named)) == named[:3]
    assert _names(list(walk([tree / "b" / "x.pdf", tree / "b"])), tree) == ["b/x.pdf"]


def test_what_is_no_document_is_passed_over_in_silence(tmp_path: Path) -> None:
    for name, data in (("a.txt", b"text"), ("b.md", b"# text"), ("c.json", b"{}"),
                       ("d.tsv", b"a\tb"), ("Thumbs.db", b"\xd0\xcf\x11\xe0"), ("e", b""),
                       ("broken.dat", b"PK\x03\x04")):
        (tmp_path / name).write_bytes(data)
    assert list(walk([tmp_path])) == []


def test_broken_documents_and_documents_under_other_names_are_given(tmp_path: Path) -> None:
    (tmp_path / "1.jpg").write_bytes(b"version https://git-lfs")
    (tmp_path / "2.pdf").write_bytes(b"")
    (tmp_path / "3.dat").write_bytes(_PDF)
    (tmp_path / "4.EPUB").write_bytes(b"PK\x03\x04")
    assert _names(list(walk([tmp_path])), tmp_path) == ["1.jpg", "2.pdf", "3.dat", "4.EPUB"]


def test_hidden_files_and_folders_are_left_out(tree: Path) -> None:
    (tree / ".hidden.pdf").write_bytes(_PDF)
    (tree / ".git").mkdir()
    (tree / ".git" / "x.pdf").write_bytes(_PDF)
    assert all(not part.startswith(".") for path in walk([tree])
               for part in path.relative_to(tree).parts)


def test_linked_folders_are_followed_and_loops_end(tree: Path, tmp_path: Path) -> None:
    (tree / "b" / "up").symlink_to(tree)
    (tree / "b" / "self").symlink_to(tree / "b" / "self")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "w.pdf").write_bytes(_PDF)
    (tree / "b" / "link").symlink_to(elsewhere)
    (tree / "b" / "again.pdf").symlink_to(tree / "b" / "x.pdf")
    found = _names(list(walk([tree])), tree)
    assert "b/link/w.pdf" in found
    assert len(found) == 8
    assert not {"b/again.pdf", "b/x.pdf"} <= set(found)


def test_hard_links_are_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "1.pdf").write_bytes(_PDF)
    os.link(tmp_path / "1.pdf", tmp_path / "2.pdf")
    assert _names(list(walk([tmp_path])), tmp_path) == ["1.pdf", "2.pdf"]


def test_results_and_folders_to_skip_are_left_out(tree: Path) -> None:
    for name, report in (("report", '{\n "version": 1,\n "source": {"path": "x"}}'),
                         ("mine", '{"version": 1, "other": 2}')):
        folder = tree / "a" / name
        folder.mkdir()
        (folder / "page.pdf").write_bytes(_PDF)
        (folder / f"{name}.json").write_text(report)
    (tree / "marked").mkdir()
    (tree / "marked" / OUTPUT_MARK).touch()
    (tree / "marked" / "page.pdf").write_bytes(_PDF)
    assert is_output(tree / "a" / "report")
    assert not is_output(tree / "a" / "mine")
    found = _names(list(walk([tree], skip=[tree / "b"])), tree)
    assert "a/mine/page.pdf" in found
    assert not {"a/report/page.pdf", "marked/page.pdf", "b/x.pdf"} & set(found)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list everything")
def test_a_folder_that_cannot_be_listed_is_given(tree: Path) -> None:
    (tree / "b").chmod(0)
    try:
        assert tree / "b" in list(walk([tree]))
    finally:
        (tree / "b").chmod(0o700)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\xfe.pdf")
    (tmp_path / name).write_bytes(_PDF)
    assert [path.name for path in walk([tmp_path])] == [name]


def test_natural_key() -> None:
    names = ["x10y", "x2", "X1", "", "10", "9", "x2a", "²"]
    assert sorted(names, key=natural_key) == ["", "9", "10", "X1", "x2", "x2a", "x10y", "²"]
