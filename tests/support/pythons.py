"""Other Pythons of this machine."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path


@functools.cache
def python39() -> str | None:
    """A Python 3.9 that runs, where there is one. pyenv's own programs for versions that are not
    chosen exist and do not run."""
    installed = sorted(Path.home().glob(".pyenv/versions/3.9.*/bin/python"))
    for found in (*installed, shutil.which("python3.9")):
        if found and subprocess.run([found, "-c", ""], capture_output=True,
                                    check=False).returncode == 0:
            return str(found)
    return None
