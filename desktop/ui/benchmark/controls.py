"""Sentences that name a flag of ``verso bench``, for the window: they name the control that does
the same. Qt-free."""

from __future__ import annotations

import re

from desktop.i18n import N_, _

UNIQUE = N_("change each copy of a page by a trace")
AHEAD = N_("draw the pages before the level")
_TITLES = {"--unique": UNIQUE, "--draw ahead": AHEAD}
_FLAG = re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, _TITLES)) + r")(?![\w-])")


def in_window(said: str) -> str:
    """SAID with titles of controls in place of flags; the same sentence is kept, and read on a
    command line, with the flags."""
    return _FLAG.sub(lambda flag: _("“{title}”").format(title=_(_TITLES[flag[0]])), said)
