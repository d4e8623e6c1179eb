"""Zoom, rotation and margins, without Qt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.ui.review.geometry import MARGIN, Projection, next_zoom

rotations = st.sampled_from([0, 90, 180, 270])


@given(st.floats(0, 600), st.floats(0, 800), rotations, st.floats(0.05, 8))
def test_content_and_page_are_inverse(x: float, y: float, rotation: int, scale: float) -> None:
    projection = Projection(600, 800, (500, 400), scale, rotation)
    assert projection.to_page(*projection.to_content(x, y)) == pytest.approx((x, y), abs=1e-6)


@pytest.mark.parametrize(("rotation", "corner"), [
    (0, (0, 0)), (90, (800, 0)), (180, (600, 800)), (270, (0, 600))])
def test_rotation_is_clockwise(rotation: int, corner: tuple[int, int]) -> None:
    projection = Projection(600, 800, (100, 100), 1.0, rotation)
    left, top = projection.origin
    assert projection.to_content(0, 0) == (left + corner[0], top + corner[1])


def test_a_stripe_is_not_fitted_as_a_whole() -> None:
    view = (532, 1032)
    page = Projection(1000, 2000, view)
    assert page.fit_readable() == page.fit_page()
    tall, wide = Projection(551, 16520, view), Projection(16520, 551, view)
    assert tall.fit_readable() == pytest.approx(500 / 551)
    assert wide.fit_readable() == 1.0  # its own size: no larger
    dot = Projection(1, 1, view)
    assert dot.fit_readable() == dot.fit_page()


def test_fit_leaves_the_margin() -> None:
    projection = Projection(1000, 2000, (532, 1032))
    assert projection.fit_width() == pytest.approx((532 - 2 * MARGIN) / 1000)
    assert projection.fit_page() == pytest.approx((1032 - 2 * MARGIN) / 2000)
    fitted = Projection(1000, 2000, (532, 1032), projection.fit_page())
    assert fitted.scroll_range == (0, 0)


@given(st.floats(0, 500), st.floats(0, 400), st.floats(0.2, 4), st.floats(0.2, 4), rotations)
def test_zoom_keeps_what_is_under_the_cursor(
        x: float, y: float, before: float, after: float, rotation: int) -> None:
    projection = Projection(3000, 4000, (500, 400), before, rotation)
    most = projection.scroll_range
    scroll = (most[0] // 2, most[1] // 2)
    point = projection.to_page(x + scroll[0], y + scroll[1])
    zoomed, moved = projection.zoomed(after, (x, y), scroll)
    place = zoomed.to_content(*point)
    for axis, cursor in enumerate((x, y)):
        free = 0 < moved[axis] < zoomed.scroll_range[axis]
        if free:
            assert place[axis] - moved[axis] == pytest.approx(cursor, abs=1)


def test_a_box_is_999ths_of_the_page() -> None:
    projection = Projection(999, 1998, (10, 10), 1.0)
    left, top = projection.origin
    assert projection.box((0, 0, 999, 999)) == (left, top, left + 999, top + 1998)
    turned = Projection(999, 1998, (10, 10), 1.0, 90).box((0, 0, 500, 100))
    assert turned.width == pytest.approx(200)
    assert turned.height == pytest.approx(500)


def test_zoom_steps_are_round_and_bounded() -> None:
    assert next_zoom(0.86, 1) == 1.0
    assert next_zoom(0.86, -1) == 0.75
    assert next_zoom(1.0, 1) == 1.25
    assert next_zoom(16, 1) == 16
    assert next_zoom(0.02, -1) == 0.02
