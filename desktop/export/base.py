"""What an exporter is: one class a format, all fed with the same result.

An exporter goes over the pages once, in order, and keeps none of them, so that a document of
thousands of pages may be handed over as something that reads them one by one.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from desktop.document.markdown import Separator
from desktop.intake.model import RenderedPage
from desktop.jobs.events import DocumentResult, PageResult
from desktop.settings import Values

Bitmap = Callable[[str], RenderedPage]
"""The upright bitmap of the page with this id; may block; whoever calls deletes it."""


@dataclass(frozen=True)
class ExportOptions:
    """What a person may choose about the exports, and where bitmaps come from."""

    furniture: bool = False
    """Keep running headers, footers and page numbers."""
    page_separator: Separator = "none"
    file_per_page: bool = False
    bitmap: Bitmap | None = None
    """Formats that show the page itself need it; without it they leave that part out."""

    @classmethod
    def of(cls, values: Values, bitmap: Bitmap | None = None) -> ExportOptions:
        """The options that the settings declare."""
        return cls(values["furniture"], values["page_separator"], values["file_per_page"], bitmap)


class Exporter(abc.ABC):
    """Writes a document in one format."""

    name: ClassVar[str]
    """As on the command line: ``md``."""
    title: ClassVar[str]
    """As in the window, marked for translation."""
    suffix: ClassVar[str]
    """Of the main file, with its dot."""

    @abc.abstractmethod
    def write(self, result: DocumentResult, folder: Path, options: ExportOptions) -> list[Path]:
        """Write RESULT into FOLDER (made if missing); the files written, the main one first.

        The files are called after FOLDER, and each appears whole or not at all. Raises OSError;
        :func:`desktop.export.export` turns that into :class:`CannotWrite`.
        """


def pages_of(result: DocumentResult) -> Iterable[PageResult]:
    """The pages of RESULT that were begun, in order."""
    for page in result.pages:
        if page.view.state.final or page.blocks:
            yield page
