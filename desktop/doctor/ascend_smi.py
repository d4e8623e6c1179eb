"""Asking npu-smi; what its tables say is read by :mod:`desktop.engines.ascend.smi`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from desktop.client.probing import ask
from desktop.doctor.ascend_problems import (
    SmiFailed,
    SmiLibrary,
    SmiOccupied,
    SmiRefused,
    SmiSilent,
)
from desktop.engines.ascend.smi import (
    PLACES,
    SECONDS,
    Holder,
    Npu,
    find,
    parse,
    parse_mapping,
    parse_pairs,
    plain,
)
from desktop.errors import Problem, VersoError

__all__ = ["PLACES", "SECONDS", "Holder", "Npu", "Npus", "explain", "find", "look", "parse",
           "parse_mapping", "parse_pairs"]

_MIB = 1 << 20


@dataclass(frozen=True)
class Npus:
    """What was found; ``problem``: why nothing could be."""

    found: tuple[Npu, ...] = ()
    tool: str = ""
    """Path of npu-smi; empty where there is none."""
    driver: str = ""
    problem: Problem | None = None


def look(tool: str, environment: Mapping[str, str], seconds: float | None = None) -> Npus:
    """Ask the npu-smi at TOOL; raises nothing. Each question takes at most SECONDS (None: as
    long as a driver in good health may take): two of them, and two a card more where its table
    is of an unknown kind."""
    seconds = SECONDS if seconds is None else seconds
    said = _ask(tool, ("info",), environment, seconds)
    if isinstance(said, Problem):
        return Npus(tool=tool, problem=said)
    driver, found = parse(said)
    mapping = _ask(tool, ("info", "-m"), environment, seconds)
    chips = {} if isinstance(mapping, Problem) else parse_mapping(mapping)
    if not found:
        # A table of a kind that is not known: its other answers have kept their form.
        found = tuple(_by_card(tool, chips, environment, seconds))
    if not found:
        return Npus(tool=tool, driver=driver,
                    problem=SmiFailed(reason=_short(said) or "–").problem())
    return Npus(tuple(
        replace(npu, logic=chips[npu.card, npu.chip][0]) if (npu.card, npu.chip) in chips else npu
        for npu in found), tool, driver)


def _by_card(tool: str, chips: Mapping[tuple[int, int], tuple[int, int, str]],
             environment: Mapping[str, str], seconds: float) -> Iterator[Npu]:
    """Chips from what is told of each card by itself."""
    for card in sorted({card for card, _chip_id in chips}):
        told = []
        for topic in ("usages", "health"):
            said = _ask(tool, ("info", "-t", topic, "-i", str(card)), environment, seconds)
            told.append([] if isinstance(said, Problem) else parse_pairs(said))
        health = {each.get("Chip ID", "0"): next(
            (value for name, value in each.items() if name.startswith("Health")), "")
            for each in told[1]}
        for each in told[0]:
            chip = each.get("Chip ID", "0")
            total = _number(each, "HBM Capacity") or _number(each, "Capacity") or 0
            share = _number(each, "HBM Usage Rate") or _number(each, "Memory Usage Rate") or 0
            number = int(chip) if chip.isdecimal() else 0
            known = chips.get((card, number))
            if known is None or not total:
                continue
            yield Npu(card, number, known[1], known[2], health.get(chip, ""), total * _MIB,
                      total * share // 100 * _MIB, _number(each, "Aicore Usage Rate"))


def _number(pairs: Mapping[str, str], name: str) -> int | None:
    """The first number whose key contains NAME."""
    for key, value in pairs.items():
        if name in key and value.isdecimal():
            return int(value)
    return None


# --- asking it


def _ask(tool: str, arguments: tuple[str, ...], environment: Mapping[str, str],
         seconds: float) -> str | Problem:
    """What it says, or why it says nothing."""
    try:
        answer = ask([tool, *arguments], seconds=seconds, environment=environment)
    except OSError as error:
        return SmiFailed(reason=error.strerror or str(error)).problem()
    if answer.timed_out:
        return SmiSilent(seconds=f"{seconds:g}").problem()
    said = plain(f"{answer.out}\n{answer.err}")
    named = explain(said)
    if named is not None:
        return named.problem()
    if answer.status:
        return SmiFailed(reason=_short(said) or f"status {answer.status}").problem()
    return answer.out


def explain(said: str) -> VersoError | None:
    """What is wrong, from npu-smi's own words; None: nothing that it names.

    Its source (driver, ``handle_dcmi_initialization``) writes the first sentence for every code
    but that of an occupied device, -8020, which has one of its own.
    """
    library = re.search(r"error while loading shared libraries: (\S+?):", said)
    if library is not None:
        return SmiLibrary(library=library[1], detail=said.strip())
    code = re.search(r"dcmi mod\w+ initialized? failed.*?ret is (-?\d+)", said)
    if code is None:
        return None
    if code[1] == "-8020":
        return SmiOccupied(detail=said.strip())
    return SmiRefused(code=code[1].replace("-", "−"), detail=said.strip())


def _short(said: str) -> str:
    return " ".join(plain(said).split())[:300]
