"""A run as a file: JSON, CSV, Markdown, a picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QBuffer, QIODevice, QPoint, QRect, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter
from PySide6.QtWidgets import QWidget

from desktop.benchmark.report import csv_text, markdown
from desktop.errors import VersoError
from desktop.export.atomic import replacing, write_text
from desktop.i18n import N_, _
from desktop.ui.benchmark.columns import columns_of
from desktop.ui.benchmark.figures import Shown, footnote
from desktop.ui.tokens import Theme


class NotSaved(VersoError):
    """The file cannot be written where a person wants it."""

    code = "window.benchmark_not_saved"
    message = N_("The test cannot be saved as {path}: {reason}.")
    hint = N_("Choose another folder.")


@dataclass(frozen=True)
class Format:
    """SUFFIX of the file; TEXT makes its content, None: it is a picture."""

    suffix: str
    title: str
    text: Callable[[Mapping[str, Any]], str] | None


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


FORMATS = (Format("json", N_("JSON: everything"), _json),
           Format("csv", N_("CSV: a row a round"), csv_text),
           Format("md", N_("Markdown: a report"), markdown),
           Format("png", N_("PNG: charts and table"), None))


def file_name(document: Mapping[str, Any], suffix: str) -> str:
    """A name to begin with."""
    started = str(document.get("started", ""))[:16].replace(":", "").replace("T", "-")
    return f"verso-bench-{document['engine']['name']}-{started}.{suffix}"


def write(path: Path, form: Format, document: Mapping[str, Any], picture: QImage | None) -> None:
    """Write PATH; not on the window's thread. Raises NotSaved."""
    try:
        if form.text is not None:
            write_text(path, form.text(document))
        elif picture is not None:
            buffer = QBuffer()
            buffer.open(QIODevice.OpenModeFlag.WriteOnly)
            picture.save(buffer, "PNG")  # type: ignore[call-overload]
            with replacing(path) as file:
                file.write(buffer.data().data())
    except OSError as error:
        raise NotSaved(path=path, reason=error.strerror or str(error)) from error


_SCALE = 2
_EDGE = 24
_MOST_ROWS = 120


def picture(charts: QWidget, shown: Shown, theme: Theme, font: QFont) -> QImage:
    """CHARTS as they are seen, with a heading above, and the table and its footnote below."""
    rows = shown.rows[:_MOST_ROWS]
    columns = columns_of(shown)
    bold = QFont(font)
    bold.setBold(True)
    probe = QImage(1, 1, QImage.Format.Format_RGB32)
    painter = QPainter(probe)
    painter.setFont(bold)
    metrics = painter.fontMetrics()
    line = metrics.height() + 8
    texts = [[_(column.title) for column in columns],
             *([column.of_level(row) for column in columns] for row in rows)]
    wide = [max(metrics.horizontalAdvance(row[place]) for row in texts) + 20
            for place in range(len(columns))]
    painter.end()
    width = max(charts.width(), sum(wide)) + 2 * _EDGE
    height = 3 * _EDGE + line + charts.height() + line * (len(texts) + 2)
    image = QImage(width * _SCALE, height * _SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SCALE)
    image.fill(QColor(theme.window))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(bold)
    painter.setPen(QColor(theme.text))
    painter.drawText(QRect(_EDGE, _EDGE // 2, width - 2 * _EDGE, line),
                     Qt.AlignmentFlag.AlignVCenter, shown.title)
    painter.translate(_EDGE, _EDGE + line)
    charts.render(painter, QPoint(), renderFlags=QWidget.RenderFlag.DrawChildren)
    painter.translate(0, charts.height() + _EDGE // 2)
    for number, row in enumerate(texts):
        level = rows[number - 1] if number else None
        knee = (level is not None and level.continuous and bool(level.ended)
                and level.concurrency == shown.knee)
        if knee:
            painter.fillRect(QRect(0, number * line, sum(wide), line),
                             QColor(theme.badge_warning))
        painter.setPen(QColor(theme.on_badge_warning if knee
                              else theme.text if number else theme.secondary))
        painter.setFont(font if number else bold)
        left = 0
        for place, said in enumerate(row):
            side = (Qt.AlignmentFlag.AlignLeft if columns[place].key in ("level", "remark")
                    else Qt.AlignmentFlag.AlignRight)
            painter.drawText(QRect(left + 8, number * line, wide[place] - 16, line),
                             side | Qt.AlignmentFlag.AlignVCenter, said)
            left += wide[place]
        painter.setPen(QColor(theme.border))
        painter.drawLine(0, (number + 1) * line, sum(wide), (number + 1) * line)
    painter.setFont(font)
    painter.setPen(QColor(theme.secondary))
    painter.drawText(QRect(0, len(texts) * line + 6, width - 2 * _EDGE, line),
                     Qt.AlignmentFlag.AlignVCenter, footnote(shown.document))
    painter.end()
    return image
