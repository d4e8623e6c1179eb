"""What the result view expects of a rendering, whichever engine draws it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QWidget

from desktop.ui.review.linking import Extent, Scroll
from desktop.ui.theme import Theme

Found = Callable[[int, int], None]
"""Told which match is shown (from 1; 0: none) and how many there are."""


@dataclass(frozen=True)
class RenderedBlock:
    """A block as safe HTML."""

    id: str
    index: int
    label: str
    html: str
    doubt: str = ""
    """Why it should be compared with the page; "" where nothing speaks against it."""


class Rendering(QWidget):
    """Shows blocks of one page, replaces those that change, and tells what a person does."""

    ready = Signal()
    """It is there: what was given to it so far shows."""
    failed = Signal(str)
    """It cannot go on (technical reason); another rendering has to take its place."""
    applied = Signal()
    """The last :meth:`apply` has taken effect; the next may come."""
    hovered = Signal(str)
    chosen = Signal(str)
    activated = Signal(str)
    scrolled = Signal()
    """A person scrolled it."""
    measured = Signal()
    """The blocks lie elsewhere than before: ``extents`` is new."""
    touched = Signal()
    """A person took it in hand."""
    block_step = Signal(int)
    page_step = Signal(int)
    copy_wanted = Signal()
    """Copy was pressed while no text was selected."""
    menu_wanted = Signal(str, QPoint, bool)
    """A context menu for a block: id or "", global position, whether text is selected."""

    def clear(self) -> None:
        """Show nothing; back to the top."""
        raise NotImplementedError

    def apply(self, blocks: Sequence[RenderedBlock], caret: str) -> None:
        """Show these blocks anew, leave all others alone; the caret is at the end of block CARET
        ("": nowhere)."""
        raise NotImplementedError

    def set_marked(self, hover: str, choice: str) -> None:
        """The blocks that are marked on both sides."""
        raise NotImplementedError

    def set_following(self, following: bool) -> None:
        """Keep the live end in sight."""
        raise NotImplementedError

    def scroll_to(self, top: float) -> None:
        """Move for another view; says nothing."""
        raise NotImplementedError

    def apply_theme(self, theme: Theme) -> None:
        raise NotImplementedError

    def search(self, text: str, *, backward: bool, found: Found) -> None:
        """Show the next place of TEXT ("" ends the search)."""
        raise NotImplementedError

    def copy_selection(self) -> None:
        """The selected text to the clipboard."""
        raise NotImplementedError

    def set_empty_text(self, text: str) -> None:
        """What stands there while there is no block."""
        raise NotImplementedError

    def close_engine(self) -> None:
        """End what runs behind the view."""

    @property
    def extents(self) -> list[Extent]:
        """Where the blocks lie, in reading order."""
        raise NotImplementedError

    @property
    def where(self) -> Scroll:
        raise NotImplementedError
