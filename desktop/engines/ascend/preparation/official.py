"""The official code: where it is, and how it comes here when it is not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from desktop.engines.ascend.preparation import staging
from desktop.engines.ascend.preparation.errors import SourceMissing, SourceNotFetched, reason
from desktop.engines.ascend.preparation.layout import ADDRESS, CONFIG, IMAGE, INNER
from desktop.i18n import _

CHECKOUT = Path("DeepSeek-OCR-2")
DEFAULT_SOURCE = CHECKOUT / INNER
"""Where the CANN recipe looks for it and fetches it to, from the current folder."""


def located(source: Path) -> Path | None:
    """The folder of the code that SOURCE names: itself, or a checkout that holds it; None when
    there is nothing. Raises SourceMissing where there is something that cannot be it."""
    folder = source.expanduser()
    if (folder / INNER).is_dir() and not (folder / CONFIG).exists():
        return folder / INNER
    if folder.is_dir():
        return folder
    if os.path.lexists(folder):
        raise SourceMissing(source=source, script=IMAGE)
    return None


def checkout(source: Path) -> Path:
    """The folder to fetch a checkout to so that SOURCE is there. Raises SourceMissing when no
    checkout would bring it: then it is a name that was mistyped."""
    folder = source.expanduser()
    depth = len(INNER.parts)
    if folder.parts[-depth:] != INNER.parts or len(folder.parts) <= depth:
        raise SourceMissing(source=source, script=IMAGE)
    return folder.parents[depth - 1]


def fetch(folder: Path, *, address: str = ADDRESS, proxy: str = "") -> str:
    """Clone ADDRESS's newest commit to FOLDER; the commit. Either FOLDER is whole or it is not
    there. Blocks. Raises SourceNotFetched."""
    def failed(why: str, detail: str = "") -> SourceNotFetched:
        return SourceNotFetched(address=address, reason=why, detail=detail)

    if shutil.which("git") is None:
        raise failed(_("git is not installed."))
    try:
        if folder.exists() and any(folder.iterdir()):
            raise failed(_("{folder} exists and does not hold it.").format(folder=folder))
        folder.parent.mkdir(parents=True, exist_ok=True)
        with staging.beside(folder) as scratch:
            fresh = scratch / folder.name
            environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C",
                           **({"https_proxy": proxy} if proxy else {})}
            cloned = _git(["clone", "--quiet", "--depth=1", "--", address, str(fresh)],
                          environment)
            if cloned.returncode:
                said = cloned.stderr.strip()
                raise failed(_last(said), said)
            commit = _git(["-C", str(fresh), "rev-parse", "HEAD"], environment).stdout.strip()
            if folder.exists():
                folder.rmdir()
            os.rename(fresh, folder)
    except OSError as error:
        raise failed(reason(error), str(error)) from error
    return commit


def _git(words: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], env=dict(environment), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", check=False)


def _last(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("fatal:")]
    return (fatal or lines or [_("git failed without a word.")])[-1]
