"""The cost of pages in visual tokens, against figures seen on the model."""

from __future__ import annotations

import pytest

from desktop.engines.visual_tokens import visual_tokens


@pytest.mark.parametrize(("width", "height", "cost"), [
    (1920, 1080, (2, 1, 545)),
    (1000, 1000, (2, 2, 833)),
    (1190, 1684, (2, 3, 1121)),
    (2480, 3508, (2, 3, 1121)),
    (1000, 15444, (1, 6, 1121)),
    (15444, 1000, (6, 1, 1121)),
    (768, 768, (0, 0, 257)),
    (769, 400, (2, 1, 545)),
    (10, 10, (0, 0, 257)),
])
def test_known_costs(width: int, height: int, cost: tuple[int, int, int]) -> None:
    assert visual_tokens(width, height) == cost


def test_crop_off_is_one_view() -> None:
    assert visual_tokens(1190, 1684, "off") == (0, 0, 257)


@pytest.mark.parametrize("size", [(0, 10), (10, 0), (-1, 5)])
def test_a_page_without_a_size_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not a page size"):
        visual_tokens(*size)
