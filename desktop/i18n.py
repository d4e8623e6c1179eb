"""Translation of user-visible words, without Qt so that the command line shares it.

``_("…")`` translates when it is called, so that the language can change while the program runs;
``N_("…")`` marks a literal that is translated later (class attributes, declared settings).
Message files are gettext catalogues under ``resources/translations/LANG/LC_MESSAGES/verso.mo``.
"""

from __future__ import annotations

import gettext
from pathlib import Path

_catalogue: gettext.NullTranslations = gettext.NullTranslations()


def set_language(language: str, directory: Path) -> None:
    """Use LANGUAGE (``en``, ``zh_CN``) from now on; a language without a catalogue is English."""
    global _catalogue
    _catalogue = gettext.translation("verso", directory, [language], fallback=True)


def _(text: str) -> str:
    """TEXT in the current language."""
    return _catalogue.gettext(text) if text else ""


def ngettext(one: str, many: str, count: int) -> str:
    """The form of the text that fits COUNT, in the current language."""
    return _catalogue.ngettext(one, many, count)


def N_(text: str) -> str:
    """Mark TEXT for translation and return it unchanged."""
    return text
