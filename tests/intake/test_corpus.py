"""The corpus of real documents: every one ends as pages or as one clear error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from desktop.errors import VersoError
from desktop.intake import words
from desktop.intake.model import RenderRequest
from desktop.intake.rasterizer import Rasterizer
from desktop.intake.walk import walk
from tests.support import data

_FOLDER = data.corpus_dir()
_ROWS = {row["file"]: row for row in data.manifest(_FOLDER)} if _FOLDER else {}

pytestmark = pytest.mark.skipif(
    _FOLDER is None, reason=f"no document corpus in {data.shared()} (set VERSO_CORPUS)")

_UNREADABLE = {
    "ocm_header_only_44bytes.pdf": "intake.unreadable",
    "truncated_60percent_tracemonkey.pdf": "intake.unreadable",
    "pjs_invalid_number_of_pages.pdf": "intake.unreadable",
    "pil_broken_80bytes.png": "intake.unreadable",
    "pjs_fuzzed_zero_pages.pdf": "intake.no_pages",
    "pil_bomb_44bytes.gif": "intake.image_too_large",
    "rec_lfs_pointer_text.jpg": "intake.not_a_document",
}
_FIRST_FRAME_ONLY = {"pil_chi_animated.gif", "pil_iss634_animated.webp"}
_BLANK = {("olm_blank_book_page.pdf", 1), ("pjs_mediabox_empty.pdf", 2),
          ("pil_trailer_loop_1x1pt.pdf", 1),
          ("pil_1x1_transparent.png", 1)}
_HIDDEN = {"uns_backus_1977_ccitt.pdf", "olm_newspaper_1898.pdf", "pjs_russian_tax_form_8p.pdf"}
"""Scans with an invisible text layer."""
_MOST_PAGES = 2


@pytest.fixture(scope="module")
def rasterizer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rasterizer]:
    pool = Rasterizer(tmp_path_factory.mktemp("out"), processes=2)
    yield pool
    pool.close()


def _path(name: str) -> Path:
    assert _FOLDER is not None
    return _FOLDER / "files" / name


def _password(name: str) -> str | None:
    return _ROWS[name]["password"] or None


@pytest.mark.parametrize("name", _ROWS)
def test_document(rasterizer: Rasterizer, name: str) -> None:
    path, password = _path(name), _password(name)
    if name in _UNREADABLE:
        with pytest.raises(VersoError) as caught:
            rasterizer.open(path).result(120)
        assert caught.value.problem().code == _UNREADABLE[name]
        return
    if password:
        with pytest.raises(VersoError) as caught:
            rasterizer.open(path).result(120)
        assert caught.value.problem().code == "intake.password_needed"
    info = rasterizer.open(path, password).result(120)
    assert info.encrypted == bool(password)
    if name not in _FIRST_FRAME_ONLY:
        assert info.pages == int(_ROWS[name]["pages"] or 1)
    futures = [rasterizer.render(RenderRequest(str(path), number, dpi=100, words=True,
                                               password=password, max_pixels=8_000_000))
               for number in range(1, min(info.pages, _MOST_PAGES) + 1)]
    for number, future in enumerate(futures, 1):
        page = future.result(120)
        assert page.width * page.height <= 8_000_000
        assert page.blank == ((name, number) in _BLANK)
        with Image.open(page.image) as image:
            assert (image.mode, image.size) == ("RGB", (page.width, page.height))
        if page.words:
            layer = words.load(Path(page.words))
            assert all(0 <= word.box[0] <= word.box[2] <= page.width
                       and 0 <= word.box[1] <= word.box[3] <= page.height
                       for word in layer.words)
            assert (layer.hidden > 0.9) == (name in _HIDDEN)
        page.delete()


def test_every_file_is_found_and_nothing_else() -> None:
    assert _FOLDER is not None
    assert {path.name for path in walk([_FOLDER])} == set(_ROWS)


def _pixels(rasterizer: Rasterizer, name: str, **values: Any) -> Image.Image:
    page = rasterizer.render(RenderRequest(str(_path(name)), 1, **values)).result(120)
    with Image.open(page.image) as image:
        image.load()
    page.delete()
    return image


@pytest.mark.parametrize("orientation", [3, 6, 7])
def test_turned_photographs_match_the_upright_picture(rasterizer: Rasterizer,
                                                      orientation: int) -> None:
    upright = _pixels(rasterizer, "ocm_typewriter_dutch.png").resize((1600, 1146))
    turned = _pixels(rasterizer, f"exif_orientation_{orientation}_typewriter.jpg")
    assert turned.size == (1600, 1146)
    one, other = (np.asarray(image.convert("L")).astype(int) for image in (upright, turned))
    assert np.abs(one - other).mean() < 8
    assert np.abs(one - other[::-1, ::-1]).mean() > 20, "the measure would notice a turn"


def test_a_cmyk_map_is_not_a_negative(rasterizer: Rasterizer) -> None:
    image = np.asarray(_pixels(rasterizer, "ocm_map_cmyk.jpg")).astype(int)
    assert np.median(image) > 200, "paper is bright"
    blue = (image[:, :, 2] - image[:, :, 0]) > 80
    assert 0.02 < blue.mean() < 0.3, "the river is blue"


def test_a_turned_fax_stands_upright(rasterizer: Rasterizer) -> None:
    assert _pixels(rasterizer, "pil_g4_orientation_6.tif").size == (590, 88)
    assert _pixels(rasterizer, "pil_avif_rot1mir0.avif").size == (640, 427)
    assert _pixels(rasterizer, "uns_page.heic").size == (595, 842)
