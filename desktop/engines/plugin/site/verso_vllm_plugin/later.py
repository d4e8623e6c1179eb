"""Something to be done with a module once it has been imported, whenever that is."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Callable, Optional, Sequence


def when_imported(name: str, call: Callable[[ModuleType], None]) -> None:
    """CALL gets the module NAME: at once where it has been imported, else right after."""
    module = sys.modules.get(name)
    if module is not None:
        call(module)
    else:
        sys.meta_path.insert(0, _After(name, call))


class _After(importlib.abc.MetaPathFinder):
    """Finds the module as the others do, and is heard when it has been loaded."""

    def __init__(self, name: str, call: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._call = call

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None,
                  target: Optional[ModuleType] = None,
                  ) -> Optional[importlib.machinery.ModuleSpec]:
        if name != self._name:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        loader: Any = spec.loader
        load = loader.exec_module

        def loaded(module: ModuleType) -> None:
            load(module)
            self._call(module)

        # On this loader alone, which is the module's: it stays what it is for everything else.
        loader.exec_module = loaded
        return spec
