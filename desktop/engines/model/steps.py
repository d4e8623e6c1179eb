"""How far vLLM is while it starts, by the lines that it writes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from desktop.engines.base import Progress
from desktop.i18n import N_, _

Table = Iterable[tuple[str, str]]
"""(Regular expression, step in words): the first that is found in a line holds; a group is how
much is done, in per cent."""

WEIGHTS: tuple[tuple[str, str], ...] = (
    (r"Starting to load model", N_("Loading the weights")),
    (r"Loading (?:safetensors|pt) checkpoint shards:\s+(\d+)%", N_("Loading the weights")),
)
"""The same in every version of vLLM."""


class Steps:
    """Called with each line; tells PROGRESS what the TABLE has for it."""

    def __init__(self, progress: Progress, table: Table) -> None:
        self._progress = progress
        self._table = [(re.compile(pattern), step) for pattern, step in table]

    def __call__(self, line: str) -> None:
        for pattern, step in self._table:
            match = pattern.search(line)
            if match:
                share = int(match[1]) / 100 if match.groups() else -1.0
                self._progress(_(step), share)
                return
