"""docs/ascend.md says what the program does: its table, and the codes of its faults."""

from __future__ import annotations

import re
from pathlib import Path

from desktop.doctor import ascend_experts, ascend_problems, prepared
from desktop.engines.ascend.failures import NoPlatform
from desktop.engines.ascend.support import BEST, ROWS, Model, Row
from desktop.errors import VersoError

PAGE = Path(__file__).parents[2] / "docs/ascend.md"
READS = {Model.OFFICIAL: "official code", Model.NONE: "no", Model.VLLM: "vLLM's",
         Model.REPAIRED: "vLLM's, repaired"}


def line(row: Row) -> str:
    """ROW as a line of the page's table."""
    name = f"**{row.ascend}**" if row.ascend == BEST else row.ascend
    cann = row.cann if row.cann_exact else f"≥ {row.cann}"
    return (f"| {name} | {row.vllm} | {row.python_words} | {cann} | {row.torch} | "
            f"{row.torch_npu} | {READS[row.model]} |")


def test_the_table_is_that_of_the_program() -> None:
    text = PAGE.read_text("utf-8")
    table = text.partition("| reads pages |\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert table == [line(row) for row in ROWS]


def test_every_fault_is_on_the_page_and_no_other() -> None:
    codes = {kind.code for module in (ascend_problems, ascend_experts, prepared)
             for kind in vars(module).values()
             if isinstance(kind, type) and issubclass(kind, VersoError) and kind is not VersoError}
    codes.add(NoPlatform.code)  # the engine says it in the same words
    named = {code for code in re.findall(r"`(ascend\.[a-z_]+)`", PAGE.read_text("utf-8"))
             if code != "ascend.well"}
    assert named == codes
