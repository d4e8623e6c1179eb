"""The settings in use, in a few words. Qt-free."""

from __future__ import annotations

from desktop.i18n import _, ngettext
from desktop.settings import Setting, Values, setting
from desktop.ui import words

_TOLD = ("model", "servers", "remote_model", "crop", "dpi", "max_tokens", "memory_utilization",
         "threads")
"""What matters most to the speed; the rest only where it was changed."""
_MOST = 7


def target_words(values: Values) -> str:
    """``Crop mode: Dynamic · Resolution: 144 dpi · 2 more changed``."""
    engine = values["engine"]
    discreet = values.discreet()
    told = []
    for key in _TOLD:
        one = setting(key)
        if one.applies_to(engine) and discreet[key] not in ("", None):
            told.append(f"{_(one.title)}: {_value(one, discreet[key])}")
    told = told[:_MOST]
    more = [key for key in values.changed() if key not in (*_TOLD, "engine", "concurrency")
            and setting(key).panel and setting(key).applies_to(engine)]
    if more:
        told.append(ngettext("{n} more changed", "{n} more changed", len(more)).format(
            n=len(more)))
    return words.DOT.join(told)


def _value(one: Setting, value: object) -> str:
    if one.choices and value in one.choices:
        return _(one.choices[str(value)])
    if isinstance(value, bool):
        return _("on") if value else _("off")
    if value == 0 and one.default == 0 and one.minimum == 0:
        return _("Automatic")
    said = f"{value:,}" if isinstance(value, int) else str(value)
    return f"{said} {_(one.unit)}" if one.unit else said
