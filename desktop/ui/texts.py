"""Words that never change but with the language: said once, said again in another language.

The message is kept at the widget itself, as a dynamic property beside the one it fills.
"""

from __future__ import annotations

from PySide6.QtCore import QObject

from desktop.i18n import _

_KEPT = "said-"


def say(part: QObject, **messages: str) -> None:
    """Fill Qt properties of PART (``text``, ``toolTip``, ``accessibleName``, …) with messages,
    marked with ``N_``, in the current language."""
    for name, message in messages.items():
        part.setProperty(_KEPT + name, message)
        part.setProperty(name, _(message))


def say_again(root: QObject) -> None:
    """Say everything in ROOT and below it in the current language."""
    for part in (root, *root.findChildren(QObject)):
        for raw in part.dynamicPropertyNames():
            kept = bytes(raw.data()).decode()
            if kept.startswith(_KEPT):
                part.setProperty(kept.removeprefix(_KEPT), _(part.property(kept)))
