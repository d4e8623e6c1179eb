"""All settings. To add one, add it to its subject's module under ``declared``: the rest of the
program derives from this list."""

from __future__ import annotations

from desktop.settings.declare import Setting, UnknownSetting
from desktop.settings.declared.general import GENERAL
from desktop.settings.declared.hub import HUB
from desktop.settings.declared.model import MODEL
from desktop.settings.declared.remote import REMOTE
from desktop.settings.declared.vllm import VLLM

SETTINGS: tuple[Setting, ...] = GENERAL[:1] + MODEL + GENERAL[1:] + VLLM + REMOTE + HUB

BY_KEY: dict[str, Setting] = {setting.key: setting for setting in SETTINGS}


def setting(key: str) -> Setting:
    """The declaration of KEY; raises :class:`UnknownSetting`."""
    try:
        return BY_KEY[key]
    except KeyError:
        raise UnknownSetting(key=key) from None
