"""Prompts, limits, sizes and outcomes that all engines of the model share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from desktop.engines.model import fitting, outcome, prompts, sampling
from desktop.protocol.messages import SubmitPage
from desktop.settings import Values


def page(path: str = "p.ppm", width: int = 1240, height: int = 1754,
         **settings: object) -> SubmitPage:
    return SubmitPage("p", path, width, height, settings=dict(settings))


@pytest.mark.parametrize(("preset", "text"), [
    ("markdown", b"<image>\n<|grounding|>Convert the document to markdown."),
    ("free", b"<image>\nFree OCR."),
    ("ocr", b"<image>\n<|grounding|>OCR this image."),
    ("figure", b"<image>\nParse the figure."),
    ("describe", b"<image>\nDescribe this image in detail."),
    ("locate", b"<image>\nLocate <|ref|>a {b}<|/ref|> in the image."),
])
def test_prompts_are_the_published_bytes(preset: str, text: bytes) -> None:
    settings = {"prompt": preset, "custom_prompt": "a {b}"}
    assert prompts.completion(settings).encode() == text
    assert b"<image>\n" + prompts.chat(settings).encode() == text


def test_every_declared_task_has_a_prompt() -> None:
    from desktop.settings import setting

    seen = {prompts.chat({"prompt": key, "custom_prompt": "words of my own"})
            for key in setting("prompt").choices}
    assert len(seen) == len(setting("prompt").choices)


def test_custom_prompt_may_carry_the_mark_once() -> None:
    for text in ("<image>\nRead.", "<image>Read.", "Read."):
        assert prompts.completion({"prompt": "custom", "custom_prompt": text}) == "<image>\nRead."


@pytest.mark.parametrize(("preset", "text"), [
    ("custom", ""), ("custom", "<image>\n "), ("custom", "a <image> b"), ("locate", " ")])
def test_unusable_custom_prompt_is_refused(preset: str, text: str) -> None:
    with pytest.raises(prompts.BadPrompt):
        prompts.chat({"prompt": preset, "custom_prompt": text})


def test_ngram_by_default_only_on_the_second_try() -> None:
    first = page(**Values().as_dict())
    assert sampling.ngram(first.settings) is None
    again = sampling.second_try(first)
    assert again is not None
    assert sampling.ngram(again.settings) == (20, sampling.RETRY_WINDOW)
    assert again.page_id == first.page_id
    assert sampling.second_try(again) is None


@pytest.mark.parametrize(("preset", "source", "pair"), [
    ("auto", "image", (20, 90)), ("auto", "pdf", (20, 50)), ("auto", None, (20, 90)),
    ("image", "pdf", (20, 90)), ("pdf", "image", (20, 50)), ("batch", None, (40, 90)),
    ("custom", None, (7, 33))])
def test_ngram_presets(preset: str, source: str | None, pair: tuple[int, int]) -> None:
    settings = {"ngram": "always", "ngram_preset": preset, "source": source, "ngram_size": 7,
                "ngram_window": 33}
    assert sampling.ngram(settings) == pair
    assert sampling.Ngram(*pair).arguments() == {
        "ngram_size": pair[0], "window_size": pair[1], "whitelist_token_ids": [128821, 128822]}


def test_no_second_try_where_nothing_changes() -> None:
    assert sampling.second_try(page(ngram="off")) is None
    assert sampling.second_try(page(ngram="always", ngram_preset="custom")) is None
    assert sampling.second_try(page(ngram="always")) is not None


@given(st.integers(16, 131072), st.integers(0, 131072), st.integers(1, 5000))
def test_limit_fits_the_context(wanted: int, context: int, prompt: int) -> None:
    limit = sampling.limit({"max_tokens": wanted}, context, prompt)
    assert limit.lowered == (limit.tokens < wanted)
    if context:
        assert limit.tokens == 0 or prompt + limit.tokens < context
    else:
        assert limit == (wanted, False)


def test_stop_strings() -> None:
    assert sampling.stops({"stop": "a|b b||"}) == ["a", "b b"]
    assert sampling.stops({"stop": ""}) == sampling.stops({}) == []


@given(st.integers(1, 20000), st.integers(1, 20000))
def test_crop_off_is_one_view(width: int, height: int) -> None:
    size = fitting.sent(width, height, {"crop": "off"})
    assert size.tokens == 257
    assert 1 <= size.width <= 768
    assert 1 <= size.height <= 768
    if width <= 768 and height <= 768:
        assert size[:2] == (width, height)


def test_page_is_loaded_at_the_size_that_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "page.ppm"
    Image.new("RGB", (1240, 1754), "red").save(path)
    assert fitting.load(page(str(path), crop="auto")).size == (1240, 1754)
    small = fitting.load(page(str(path), crop="off"))
    assert small.size == (543, 768)
    assert small.getpixel((100, 100)) == (255, 0, 0)


def test_only_a_very_long_page_is_sliced_and_only_if_wanted() -> None:
    assert fitting.parts(page(width=1240, height=1754)) == ()
    slices = fitting.parts(page(width=1000, height=15444))
    assert len(slices) > 3
    assert slices[0][:3] == (0, 0, 1000)
    assert slices[-1][3] == 15444
    assert fitting.parts(page(width=1000, height=15444, slice_pages=False)) == ()


def test_unreadable_page_is_a_problem_with_a_way_out(tmp_path: Path) -> None:
    broken = tmp_path / "page.ppm"
    broken.write_bytes(b"P6\n10 10\n255\nxx")
    for path in (broken, tmp_path / "missing.ppm"):
        with pytest.raises(fitting.PageUnreadable):
            fitting.load(page(str(path), width=10, height=10))


def test_expectation_follows_what_pages_had() -> None:
    expectation = fitting.Expectation()
    before = expectation.of(1121, 8000)
    for _ in range(200):
        expectation.learn(1121, 3000)
    assert before < 2 * fitting.TYPICAL_OUTPUT < expectation.of(1121, 8000) < 3300
    assert expectation.of(1121, 500) == 500
    assert expectation.of(257, 8000) < expectation.of(1121, 8000) / 2


def test_outcomes() -> None:
    assert [outcome.outcome(reason) for reason in ("stop", "length", "repetition")] == [
        "complete", "length", "loop"]
    assert [outcome.outcome(reason) for reason in ("abort", "error", None, "")] == [None] * 4


@given(st.text("a<｜end▁of", max_size=12), st.text("b>", max_size=6), st.booleans(),
       st.lists(st.integers(1, 5), min_size=1, max_size=40))
def test_end_token_is_taken_out_wherever_it_is_cut(
        before: str, after: str, ends: bool, sizes: list[int]) -> None:
    whole = before + (outcome.END + after if ends else "")
    ending = outcome.Ending()
    got, place = "", 0
    for size in [*sizes, len(whole)]:
        got += ending.feed(whole[place:place + size])
        assert before.startswith(got)
        place += size
    got += ending.finish()
    assert got == before
    assert ending.seen == ends
