#!/usr/bin/env python3
"""Fetches what the tests compare `verso prepare-npu` with: the official vLLM code of
DeepSeek-OCR-2, and the CANN recipe (Atlas A2) with its conversion script.

    python packaging/recipe_sources.py [FOLDER]

Two shallow clones with git, of the commits that the preparation was made for, in FOLDER (default:
where ascend_sources.py keeps the sources of vllm-ascend). What is there already is left alone.
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


def fetch(folder: Path) -> None:
    """Make FOLDER complete. Raises SystemExit with what git said."""
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
            os.replace(fresh, folder / name)


def _git(*words: str) -> None:
    done = subprocess.run(["git", *words], env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(words)} failed:\n{done.stderr.strip()[-2000:]}")


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else default_folder()
    fetch(where)
    print(f"Complete in {where}.")
