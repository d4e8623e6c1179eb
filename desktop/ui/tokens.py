"""The one palette, as data: every colour of the window and of the page view, light and dark.

Qt-free, so that style sheets, web pages and tests share it. Colours are ``#rrggbb``. Text tokens
keep a contrast of at least 4.5:1 against the grounds they stand on (a test holds them to it).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Theme:
    """One colour scheme."""

    name: str
    dark: bool
    window: str
    """Ground of docks, tool bar and status bar."""
    surface: str
    """Ground of fields, lists, the result view."""
    canvas: str
    """Ground around the page."""
    hover: str
    selection: str
    """Ground of the chosen row or block."""
    border: str
    border_strong: str
    """Borders of controls; 3:1 against their ground."""
    text: str
    secondary: str
    disabled: str
    accent: str
    accent_hover: str
    accent_pressed: str
    on_accent: str
    link: str
    """The accent where it is text."""
    ok: str
    warning: str
    error: str
    badge: str
    """Ground of a neutral badge."""
    badge_warning: str
    on_badge_warning: str
    track: str
    """Ground of a progress line or slider."""
    shadow: str

    def as_dict(self) -> dict[str, str]:
        """Token → colour, for templates."""
        return {key: value for key, value in asdict(self).items() if isinstance(value, str)}


LIGHT = Theme(
    name="light", dark=False,
    window="#f7f9fb", surface="#ffffff", canvas="#dde1e8", hover="#eceff4", selection="#dbe7ff",
    border="#d8dde4", border_strong="#858e9b", text="#1d232e", secondary="#566071",
    disabled="#8d96a3", accent="#2b6be4", accent_hover="#245ecb", accent_pressed="#1f52b3",
    on_accent="#ffffff", link="#1f5fd1", ok="#17733d", warning="#994c00", error="#b3261e",
    badge="#e7ebf1", badge_warning="#fdeccb", on_badge_warning="#7a4300", track="#d5dae2",
    shadow="#b9c0ca",
)

DARK = Theme(
    name="dark", dark=True,
    window="#1b1f26", surface="#232831", canvas="#12151a", hover="#2a303b", selection="#27406b",
    border="#353c48", border_strong="#717c8c", text="#e8ebf0", secondary="#a9b2c0",
    disabled="#6c7686", accent="#2f70e3", accent_hover="#4584f2", accent_pressed="#2a62c8",
    on_accent="#ffffff", link="#86b3ff", ok="#5fd08f", warning="#f3b052", error="#ff8f86",
    badge="#333b48", badge_warning="#4a3510", on_badge_warning="#ffd79a", track="#3a4250",
    shadow="#0a0c0f",
)
