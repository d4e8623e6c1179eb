"""Palette and label colours: told apart by everybody, readable on what they stand on."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from desktop.ui import labels
from desktop.ui.theme import Appearance, icon
from desktop.ui.tokens import DARK, LIGHT, Theme


def _luminance(colour: str) -> float:
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast of two colours, 1–21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_text_is_readable_on_every_ground_it_stands_on(theme: Theme) -> None:
    for token in ("text", "secondary", "link", "ok", "warning", "error"):
        for ground in ("window", "surface", "hover", "selection"):
            ratio = contrast(getattr(theme, token), getattr(theme, ground))
            assert ratio >= 4.5, f"{token} on {ground}: {ratio:.2f}"
    assert contrast(theme.on_accent, theme.accent) >= 4.5
    assert contrast(theme.on_badge_warning, theme.badge_warning) >= 4.5
    assert contrast(theme.secondary, theme.badge) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_borders_of_controls_and_marks_stand_out(theme: Theme) -> None:
    for ground in ("window", "surface"):
        assert contrast(theme.border_strong, getattr(theme, ground)) >= 3
        assert contrast(theme.accent, getattr(theme, ground)) >= 3


def test_labels_of_one_kind_share_a_colour_and_kinds_differ() -> None:
    kinds = {labels.colour_of(label) for label in
             ("title", "text", "table", "equation", "image", "image_caption", "header")}
    assert len(kinds) == 7
    assert labels.colour_of("title") == "#0072b2"
    assert labels.colour_of("sub_title") == labels.colour_of("title")
    assert labels.style_of("image").dashed
    assert labels.style_of("equation_image").dashed


def test_a_label_nobody_knows_is_shown_by_its_name() -> None:
    assert labels.title_of("chemical_drawing") == "chemical drawing"
    assert labels.colour_of("chemical_drawing") == labels.colour_of("text")


def test_the_scheme_can_be_chosen_and_given_back_to_the_system(qapp: QApplication) -> None:
    appearance = Appearance(qapp, "dark")
    seen: list[str] = []
    appearance.changed.connect(lambda theme: seen.append(theme.name))
    assert qapp.palette().window().color().name() == DARK.window
    appearance.choose("light")
    assert qapp.palette().window().color().name() == LIGHT.window
    appearance.choose("system")
    assert "light" in seen
    assert appearance.choice == "system"
    appearance.setParent(None)


def test_icons_are_tinted(qapp: QApplication) -> None:
    image = icon("square", DARK, "error").pixmap(32, 32).toImage()
    colours = {image.pixelColor(x, y).name() for x in range(image.width())
               for y in range(image.height()) if image.pixelColor(x, y).alpha() == 255}
    assert DARK.error in colours
