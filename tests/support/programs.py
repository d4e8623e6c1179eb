"""Programs that stand for others: npu-smi, pip, a Python."""

from __future__ import annotations

import subprocess
from pathlib import Path


def write(path: Path, text: str) -> Path:
    """TEXT as a program at PATH, whose folder is made.

    Another process writes it. While this one had the file open for writing, any other thread
    that starts a program would hand it on for a moment, and starting it in that moment fails
    with "Text file busy".
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["/bin/sh", "-c", 'cat >"$0" && chmod 755 "$0"', path], input=text.encode(),
                   env={"PATH": "/usr/bin:/bin"}, check=True)
    return path
