#!/usr/bin/env python3
"""Fetches the sources of vllm-ascend and vLLM that the contract tests read.

    python packaging/ascend_sources.py [FOLDER]

Source archives from PyPI, never built and never installed: they need CANN, CUDA or an NPU. Only
their Python files are kept, about 140 MB of 150 MB, in FOLDER (default: $VERSO_ASCEND_SOURCES, else
``ascend-sources`` beside the environment with real vLLM). What is there already is left alone, so
that an interrupted run goes on where it stopped. ``packaging/test --engines`` calls this when it
comes to those tests.

``unearth`` finds the archives: pip itself insists on building what it downloads. It is installed
into FOLDER, not into this Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PAIRS = {
    "0.8.5rc1": "0.8.5.post1",
    "0.9.1": "0.9.1",
    "0.10.0rc1": "0.10.0",
    "0.11.0": "0.11.0",
    "0.13.0": "0.13.0",
    "0.18.0": "0.18.0",
    "0.23.0.post1": "0.23.0",
}
"""Version of vllm-ascend → the vLLM that it is made for (its "Versioning policy")."""

UNEARTH = "unearth>=0.17,<1"


def default_folder() -> Path:
    """Where the sources lie if nothing else is said."""
    if named := os.environ.get("VERSO_ASCEND_SOURCES"):
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    engines = os.environ.get("VERSO_ENGINES_ENV") or cache / "verso-tests" / "engines"
    return Path(engines).parent / "ascend-sources"


def wanted() -> list[tuple[str, str, str]]:
    """(distribution, version, import package) of everything that is fetched."""
    return [("vllm-ascend", version, "vllm_ascend") for version in PAIRS] + [
        ("vllm", version, "vllm") for version in PAIRS.values()]


def place(folder: Path, distribution: str, version: str) -> Path:
    """What goes on sys.path for DISTRIBUTION at VERSION."""
    return folder / f"{distribution}-{version}"


def missing(folder: Path) -> list[str]:
    """What FOLDER lacks, as requirements; empty: complete."""
    return [f"{distribution}=={version}" for distribution, version, _ in wanted()
            if not place(folder, distribution, version).is_dir()]


def fetch(folder: Path) -> None:
    """Make FOLDER complete. Raises SystemExit with a sentence that says what failed."""
    folder.mkdir(parents=True, exist_ok=True)
    todo = [entry for entry in wanted() if not place(folder, *entry[:2]).is_dir()]
    if not todo:
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".tools-") as tools:
        _run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--no-input", "--target", tools, UNEARTH)
        for entry in todo:
            _fetch(folder, Path(tools), *entry)


def _fetch(folder: Path, tools: Path, distribution: str, version: str, package: str) -> None:
    print(f"{distribution} {version}", flush=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as scratch:
        _run(sys.executable, "-m", "unearth", "--no-binary", f"{distribution}=={version}",
             "--download", scratch, path=tools)
        [archive] = Path(scratch).glob("*.tar.gz")
        unpacked = Path(scratch) / "unpacked"
        _unpack(archive, package, unpacked)
        target = place(folder, distribution, version)
        if not target.is_dir():  # another run may have been faster
            os.replace(unpacked, target)


def _unpack(archive: Path, package: str, target: Path) -> None:
    """PACKAGE's Python files out of ARCHIVE, under TARGET."""
    with tarfile.open(archive) as tar:
        members = []
        for member in tar:
            inside = member.name.partition("/")[2]
            if member.isfile() and inside.startswith(package + "/") and inside.endswith(".py"):
                member.name = inside
                members.append(member)
        if not members:
            raise SystemExit(f"{archive.name} has no Python files of {package}.")
        tar.extractall(target, members, filter="data")


def _run(*command: str, path: Path | None = None) -> None:
    environment = {**os.environ, **({"PYTHONPATH": str(path)} if path else {})}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[1:4])} … failed:\n{done.stderr.strip()[-2000:]}")


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else default_folder()
    fetch(where)
    print(f"Complete in {where}.")
