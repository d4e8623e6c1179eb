"""Scripts that the built-in engine's recogniser has no letters for, on pages drawn in code."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from desktop.engines.base import Confidence
from desktop.engines.embedded import models
from desktop.engines.embedded.legible import UNSURE
from desktop.engines.embedded.reader import PageReader
from tests.engines.embedded.drawing import Paper, Result, read

UNKNOWN = {
    "cyrillic": "Министерство сообщает, что новая железнодорожная станция откроется в сентябре "
                "и будет принимать пассажиров каждый день с утра до вечера.",
    "greek": "Η βιβλιοθήκη της πόλης θα μεταφερθεί τον Σεπτέμβριο στο νέο κτίριο κοντά στο "
             "λιμάνι και θα μείνει ανοιχτή όλη την ημέρα.",
}
KNOWN = {
    "latin": "The ministry says that the new railway station opens in September and will be "
             "served every day from morning till evening.",
    "turkish": "Şehir kütüphanesi eylül ayında limanın yakınındaki yeni binaya taşınıyor ve "
               "bütün gün açık kalacak.",
    "chinese": "城市图书馆将于九月迁往港口附近的新大楼，全天向读者开放，欢迎市民前来阅读。",
    "figures": "1,204 1,198 6 0.5 % 1,377 1,368 9 0.7 % 2,115 2,090 25 1.2 %",
}


@pytest.fixture(scope="module")
def reader() -> PageReader:
    return PageReader(models.load(lambda step, fraction: None))


def page(reader: PageReader, folder: Path, text: str) -> Result:
    paper = Paper()
    for top in (70, 220):
        paper.page.insert_htmlbox(pymupdf.Rect(70, top, 520, top + 120),
                                  f"<p style='font-size: 13pt'>{text}</p>")
    return read(reader, paper.submit(folder, words=False))


def confidences(result: Result) -> list[float]:
    return [output.confidence for output in result.outputs if isinstance(output, Confidence)]


@pytest.mark.parametrize("script", UNKNOWN)
def test_what_cannot_be_read_stays_a_picture(reader: PageReader, tmp_path: Path,
                                             script: str) -> None:
    result = page(reader, tmp_path, UNKNOWN[script])
    assert result.blocks
    assert {label for label, _ in result.blocks} == {"image"}
    assert len(confidences(result)) == len(result.blocks)
    assert max(confidences(result)) <= UNSURE


@pytest.mark.parametrize("script", KNOWN)
def test_what_can_be_read_is_not_taken_for_unknown(reader: PageReader, tmp_path: Path,
                                                   script: str) -> None:
    result = page(reader, tmp_path, KNOWN[script])
    assert "image" not in {label for label, _ in result.blocks}
    assert min(confidences(result)) > 0.8
