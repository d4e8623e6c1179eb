"""Settings: declared in ``catalog.py``, held in ``values.py``, kept by ``store.py``."""

from desktop.settings.catalog import BY_KEY, SETTINGS, setting
from desktop.settings.declare import (
    Applies,
    InvalidSetting,
    Section,
    Setting,
    UnknownSetting,
    Value,
)
from desktop.settings.values import Values

__all__ = ["BY_KEY", "SETTINGS", "Applies", "InvalidSetting", "Section", "Setting",
           "UnknownSetting", "Value", "Values", "setting"]
