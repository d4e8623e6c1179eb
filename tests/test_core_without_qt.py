"""Nothing but the window may import Qt."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

IMPORT_CORE = """
import importlib, pkgutil, sys
import desktop
names = [m.name for m in pkgutil.walk_packages(desktop.__path__, "desktop.",)
         if not m.name.startswith(("desktop.ui", "desktop.app", "desktop.__main__"))]
for name in names:
    importlib.import_module(name)
assert not any(n.split(".")[0] in ("PySide6", "shiboken6", "qasync") for n in sys.modules)
print(len(names))
"""


def test_qt_is_really_blocked(no_qt: Callable[..., CompletedProcess[str]]) -> None:
    result = no_qt("import PySide6.QtCore")
    assert result.returncode != 0
    assert "Qt is blocked" in result.stderr


def test_every_core_module_imports_without_qt(
    no_qt: Callable[..., CompletedProcess[str]],
) -> None:
    result = no_qt(IMPORT_CORE)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 20
