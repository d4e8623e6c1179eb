"""Results → files. ``export`` is the one call front ends need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from desktop.export.base import Exporter, ExportOptions
from desktop.export.errors import CannotWrite, UnknownFormat
from desktop.export.json import JsonExporter
from desktop.export.markdown import MarkdownExporter
from desktop.export.names import document_folder
from desktop.export.official import OfficialExporter
from desktop.jobs.events import DocumentResult

__all__ = ["EXPORTERS", "CannotWrite", "ExportOptions", "Exporter", "UnknownFormat", "export",
           "exporters"]

EXPORTERS: dict[str, Exporter] = {
    exporter.name: exporter
    for exporter in (MarkdownExporter(), JsonExporter(), OfficialExporter())
}
"""All formats by name. To add one, write its module and add it here."""


def exporters(names: Sequence[str]) -> list[Exporter]:
    """The exporters with these names, each once; raises :class:`UnknownFormat`."""
    for name in names:
        if name not in EXPORTERS:
            raise UnknownFormat(name=name, known=", ".join(EXPORTERS))
    return [EXPORTERS[name] for name in dict.fromkeys(names)]


def export(result: DocumentResult, out: Path, formats: Sequence[str],
           options: ExportOptions) -> list[Path]:
    """Write RESULT in FORMATS into its own folder below OUT; the files, the main one of the
    first format first.

    Blocks while it works; not for a UI thread. RESULT's pages are gone over once a format.
    Raises :class:`UnknownFormat` and :class:`CannotWrite`.
    """
    chosen = exporters(formats)
    try:
        folder = document_folder(out, result.view.path)
        return [path for exporter in chosen for path in exporter.write(result, folder, options)]
    except OSError as error:
        raise CannotWrite(path=error.filename or out, reason=error.strerror or error,
                          detail=repr(error)) from error
