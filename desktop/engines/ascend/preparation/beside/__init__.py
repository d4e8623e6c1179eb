"""What is put beside the official scripts, for Python 3.9 and without Verso: files of this folder,
and Verso's own modules for the environment and the mixture of experts."""

from __future__ import annotations

import ast
from pathlib import Path

from desktop.engines.ascend import moe
from desktop.engines.ascend.preparation.layout import ENVIRONMENT_MODULE, PATCH_MODULE

PACKAGE = "verso_npu"
"""The package that the modules for the environment become."""
_HERE = Path(__file__).resolve().parent
_ENVIRONMENT = _HERE.parents[1] / "environment.py"
_OWN = (f"{ENVIRONMENT_MODULE}.py", "benchmark.py", "set_env.sh")
_ABOUT = '"""Modules of Verso that find CANN, the driver and ATB, and set their environment."""\n'


def modules() -> frozenset[str]:
    """Those of :func:`files` that the scripts import."""
    return frozenset(name for name in files() if name.startswith(PACKAGE))


def files() -> dict[str, bytes]:
    """Name → content, by name."""
    found = {name: (_HERE / name).read_bytes() for name in _OWN}
    found[f"{PATCH_MODULE}.py"] = moe.on_import().encode("utf-8")
    found[f"{PACKAGE}/__init__.py"] = _ABOUT.encode("utf-8")
    for path in _with_siblings(_ENVIRONMENT):
        found[f"{PACKAGE}/{path.name}"] = path.read_bytes()
    return dict(sorted(found.items()))


def _with_siblings(path: Path) -> list[Path]:
    """PATH and the modules beside it that it imports by relative imports, and they."""
    found = [path]
    for module in found:  # grows meanwhile
        for node in ast.walk(ast.parse(module.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                names = [node.module] if node.module else [alias.name for alias in node.names]
                siblings = [path.with_name(f"{name}.py") for name in names]
                found += [sibling for sibling in siblings if sibling not in found]
    return found
