#!/usr/bin/env python3
"""Fetches what the tests compare `verso prepare-npu` with: the official vLLM code of
DeepSeek-OCR-2, and the CANN recipe (Atlas A2) with its conversion script.

    python packaging/recipe_sources.py [FOLDER]

Two shallow clones with git, of the commits that the preparation was made for, in FOLDER (default:
where ascend_sources.py keeps the sources of vllm-ascend). What is there already is left alone.
They are in no package index. Where their host cannot be reached the exit status is 3: then the
tests that read them are left out, which ``packaging/test --engines`` says at its end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ascend_sources import default_folder

OFFICIAL = "DeepSeek-OCR-2"
RECIPE = "cann-recipes-infer"
WANTED = {
    OFFICIAL: ("https://github.com/deepseek-ai/DeepSeek-OCR-2.git",
               "2f3699ebbb96fa8af32212e8c170f2cc28730fad", "DeepSeek-OCR2-master"),
    RECIPE: ("https://github.com/hicann/cann-recipes-infer.git",
             "fbc225d2de3157a093a2e7dfc2b23086d23ed8f9", "integration/vllm/deepseek-ocr-2"),
}
"""Folder → where from, commit, the part that is needed."""


UNREACHABLE = 3
"""Exit status."""


class Unreachable(SystemExit):
    """The host does not answer, as on a machine that reaches package indexes only."""


def fetch(folder: Path) -> None:
    """Make FOLDER complete. Raises Unreachable, or SystemExit with what git said."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (address, commit, part) in WANTED.items():
        if (folder / name).is_dir():
            continue
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            fresh = Path(scratch) / name
            _git("init", "--quiet", str(fresh))
            _git("-C", str(fresh), "sparse-checkout", "set", part)
            _git("-C", str(fresh), "fetch", "--quiet", "--depth=1", "--filter=blob:none", address,
                 commit)
            _git("-C", str(fresh), "remote", "add", "origin", address)
            _git("-C", str(fresh), "config", "remote.origin.promisor", "true")
            _git("-C", str(fresh), "checkout", "--quiet", "FETCH_HEAD")
            if not (folder / name).is_dir():  # another run may have been faster
                os.replace(fresh, folder / name)


def _git(*words: str) -> None:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", *words], env=environment, capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise SystemExit(f"git cannot be started: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.strip()[-2000:]
        # The other kind is an answer of the host: that there is no such thing.
        silent = "unable to access" in said and "returned error" not in said
        raise (Unreachable if silent else SystemExit)(f"git {' '.join(words)} failed:\n{said}")


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else default_folder()
    try:
        fetch(where)
    except Unreachable as error:
        print(error, file=sys.stderr)
        sys.exit(UNREACHABLE)
    print(f"Complete in {where}.")
