"""The environment of an Ascend NPU for the scripts in this folder.

:func:`ensure` is called first in each; run as a program, this prints it as lines for a shell
(``source set_env.sh`` does that). Stands on its own beside the package ``verso_npu``, Python 3.9.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any


def ensure() -> None:
    """Put everything into this process's environment. The loader of libraries and Python itself
    have read theirs already, so the script is started again with it, with the same arguments,
    unless it was all there. What is missing is said on stderr."""
    found = find()
    _module().restart(found)
    complain(found)
    found.apply(os.environ)


def find() -> Any:
    """The environment for this machine and the packages of this Python."""
    module = _module()
    stack = module.Stack(
        ascend=_version("vllm-ascend"), vllm=_version("vllm"), torch=_version("torch"),
        torch_npu=_version("torch-npu"), torch_folder=_folder("torch"),
        ascend_folder=_folder("vllm_ascend"))
    return module.find_and_build(stack)


def complain(found: Any) -> None:
    """Say what was not found, and where it was looked for."""
    for missing in found.places.missing:
        detail = f" ({missing.detail})" if missing.detail else ""
        looked = f"; looked at {', '.join(missing.looked)}" if missing.looked else ""
        print(f"verso_npu: not found or not right: {missing.what}{detail}{looked}",
              file=sys.stderr)


def _module() -> Any:
    return importlib.import_module("verso_npu.environment")


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _folder(package: str) -> str:
    """Of PACKAGE, which is not imported; "" where there is none."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return str(Path(places[0])) if places else ""


if __name__ == "__main__":
    environment = find()
    complain(environment)
    print("\n".join(environment.shell()))
