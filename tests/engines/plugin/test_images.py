"""Preparing pages: in turn, by priority, whatever is cancelled; the pixels as they were written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from desktop.engines.model.fitting import PageUnreadable
from desktop.engines.vllm import images
from desktop.engines.vllm.images import ImageFeed, Turns
from desktop.protocol.messages import SubmitPage


def test_lower_numbers_go_first_and_equal_ones_in_order() -> None:
    async def scenario() -> list[str]:
        turns, order = Turns(1), []

        async def one(name: str, priority: int) -> None:
            async with turns.turn(priority):
                order.append(name)
                await asyncio.sleep(0)

        await asyncio.gather(*(one(name, priority) for name, priority in (
            ("first", 1), ("second", 1), ("third", 1), ("looked at", 0))))
        return order

    assert asyncio.run(scenario()) == ["first", "looked at", "second", "third"]


def test_never_more_at_once_than_there_are_threads() -> None:
    async def scenario() -> int:
        turns, now, most = Turns(3), 0, 0

        async def one() -> None:
            nonlocal now, most
            async with turns.turn(1):
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1

        await asyncio.gather(*(one() for _ in range(20)))
        return most

    assert asyncio.run(scenario()) == 3


def test_a_cancelled_wait_costs_nobody_a_turn() -> None:
    async def scenario() -> list[int]:
        turns, done = Turns(1), []
        release = asyncio.Event()

        async def one(number: int) -> None:
            async with turns.turn(1):
                await release.wait()
                done.append(number)

        tasks = [asyncio.create_task(one(number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()  # It waits.
        release.set()
        await asyncio.sleep(0)
        tasks[1].cancel()  # It may just have been given its turn.
        await asyncio.gather(*tasks, return_exceptions=True)
        async with turns.turn(1):
            return done

    done = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert set(done) >= {0, 3, 4}
    assert 2 not in done


def test_an_error_inside_ends_the_turn() -> None:
    async def scenario() -> None:
        turns = Turns(1)
        for _ in range(3):
            with pytest.raises(ValueError, match="inside"):
                async with turns.turn(1):
                    raise ValueError("inside")

    asyncio.run(asyncio.wait_for(scenario(), 30))


def noise(path: Path, width: int, height: int) -> Image.Image:
    image = Image.effect_noise((width, height), 90).convert("RGB")
    image.save(path)
    return image


def test_the_pixels_of_our_bitmaps_are_read_without_a_detour(tmp_path: Path) -> None:
    image = noise(tmp_path / "page.ppm", 31, 17)
    assert images._ppm(str(tmp_path / "page.ppm"), 31, 17) == image.tobytes()


@pytest.mark.parametrize(("width", "height"), [(30, 17), (31, 18)])
def test_a_bitmap_of_another_size_is_not_taken_for_the_page(tmp_path: Path, width: int,
                                                            height: int) -> None:
    noise(tmp_path / "page.ppm", 31, 17)
    assert images._ppm(str(tmp_path / "page.ppm"), width, height) is None


def test_what_is_cut_short_or_of_another_kind_is_left_to_pillow(tmp_path: Path) -> None:
    image = noise(tmp_path / "page.ppm", 31, 17)
    data = (tmp_path / "page.ppm").read_bytes()
    (tmp_path / "short.ppm").write_bytes(data[:-1])
    (tmp_path / "long.ppm").write_bytes(data + b"x")
    image.save(tmp_path / "page.png")
    for name in ("short.ppm", "long.ppm", "page.png"):
        assert images._ppm(str(tmp_path / name), 31, 17) is None


def test_a_missing_bitmap_has_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(PageUnreadable):
        images._ppm(str(tmp_path / "none.ppm"), 1, 1)


class Renderer:
    """vLLM's renderer as far as it is used: it hands back what it was given."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def render_cmpl_async(self, prompts: list[Any]) -> list[Any]:
        self.seen += prompts
        return [{"type": "rendered", **prompt} for prompt in prompts]


class Engine:
    """An AsyncLLM with or without a renderer."""

    def __init__(self, renderer: Renderer | None) -> None:
        if renderer is not None:
            self.renderer = renderer


@pytest.mark.parametrize("renderer", [None, Renderer()])
def test_without_the_plugin_vllm_prepares_the_image(tmp_path: Path,
                                                    renderer: Renderer | None) -> None:
    image = noise(tmp_path / "page.ppm", 40, 60)

    async def scenario() -> tuple[str, Any]:
        feed = ImageFeed(Engine(renderer), {"image_workers": 2})
        try:
            page = SubmitPage("1", str(tmp_path / "page.ppm"), 40, 60)
            return feed.way, await feed.prompt(page, [0, 7, 8])
        finally:
            feed.close()

    way, prompt = asyncio.run(scenario())
    assert way == ("handed over" if renderer is None else "rendered")
    assert prompt["prompt_token_ids"] == [0, 7, 8]
    assert prompt["multi_modal_data"]["image"].tobytes() == image.tobytes()
    assert prompt.get("type") == (None if renderer is None else "rendered")


def test_crop_off_sends_a_small_page(tmp_path: Path) -> None:
    noise(tmp_path / "page.ppm", 1200, 1600)

    async def scenario() -> Any:
        feed = ImageFeed(Engine(None), {"image_workers": 1})
        try:
            return await feed.prompt(SubmitPage("1", str(tmp_path / "page.ppm"), 1200, 1600,
                                                settings={"crop": "off"}), [0])
        finally:
            feed.close()

    assert asyncio.run(scenario())["multi_modal_data"]["image"].size == (576, 768)


def test_arguments_are_those_that_the_version_has() -> None:
    known = {"mm_processor_cache_gb", "renderer_num_workers", "model"}
    found = images.arguments({"image_workers": 5}, known)
    assert found == {"mm_processor_cache_gb": 0, "renderer_num_workers": 5}
    assert images.arguments({}, {"model"}) == {}
    assert 1 <= images.threads({}) <= 16
