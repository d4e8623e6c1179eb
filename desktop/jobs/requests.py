"""What is asked of the drawing processes."""

from __future__ import annotations

from desktop.intake.model import RenderRequest
from desktop.settings import Values


def request_for(values: Values, path: str, number: int) -> RenderRequest:
    """How a page is drawn under VALUES."""
    return RenderRequest(path, number, values["dpi"], values["max_megapixels"] * 1_000_000,
                         seconds=float(values["page_seconds"]))


def replace_request(request: RenderRequest, *, password: str | None = None,
                    words: bool = False, clockwise: int = 0, max_side: int = 0,
                    ) -> RenderRequest:
    """REQUEST for a certain purpose."""
    return RenderRequest(request.path, request.number, request.dpi, request.max_pixels,
                         max_side, clockwise, password, words, request.seconds)
