"""The packages that the official code and the legacy stack need besides vLLM."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

from desktop.i18n import _

PACKAGES = ("einops", "addict", "easydict", "triton-ascend", "PyMuPDF", "img2pdf")
INDEX = "https://mirrors.huaweicloud.com/repository/pypi/simple"
"""The recipe's index: quick where most Ascend machines are."""

_TAIL = 300
_NO_PIP = re.compile(r"No module named '?pip\b")
_UNREACHABLE = re.compile(r"after connection broken by '(\w+)")


class Failed(NamedTuple):
    """A package that could not be installed."""

    package: str
    reason: str


def by_hand(interpreter: str, index: str, packages: Sequence[str]) -> str:
    """The command with which a person would try PACKAGES again."""
    return shlex.join([interpreter, "-m", "pip", "install", "--index-url", index, *packages])


def install(interpreter: str, *, index: str = INDEX, proxy: str = "",
            tell: Callable[[str], None] = lambda package: None) -> list[Failed]:
    """Install :data:`PACKAGES` with the pip of INTERPRETER; those that failed, with the reason.

    One by one: pip installs all that it is given or nothing, and triton-ascend is to be had for
    few machines. TELL hears of each before. Blocks; raises nothing.
    """
    failed = []
    # Not as an argument: other users see those, and a proxy's address may hold a password.
    environment = {**os.environ, **({"https_proxy": proxy, "http_proxy": proxy} if proxy else {})}
    for package in PACKAGES:
        tell(package)
        command = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                   "--no-input", "--index-url", index, package]
        try:
            ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True, errors="replace",
                                 check=False)
            said, status = ran.stderr, ran.returncode
        except OSError as error:
            said, status = str(error), -1
        if status:
            failed.append(Failed(package, _telling(said, interpreter)))
    return failed


def _telling(said: str, interpreter: str) -> str:
    """Why, in one line: that there is no pip, and how to get it; that the index did not answer,
    which pip says in warnings only; pip's last error; else the last line."""
    if _NO_PIP.search(said):  # As uv and some distributions make environments.
        return _("this Python has no pip; with {command} it may get one.").format(
            command=shlex.join([interpreter, "-m", "ensurepip"]))
    broken = _UNREACHABLE.search(said)
    if broken is not None:
        return _("the package index does not answer ({what})").format(what=broken[1])
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    return (errors or lines or [_("pip failed without a word.")])[-1][:_TAIL]
