"""What npu-smi tells: NPUs, their health, their memory and who holds it.

Its tables differ from driver to driver. Seen in public reports, and read here:

- 20.x – 21.x (910A): ``NPU Name | Health | Power Temp``, two memories (``Memory-Usage`` and
  ``HBM-Usage``) in the second row;
- 22.x – 23.x (310P): a column ``Device``, no HBM: the memory counts;
- 23.x – 25.x (910B): as today, processes in four columns;
- 24.x – 26.x (910C, two chips on a card): a column ``Phy-ID``, dashes between two chips;
- 26.x: wider, and processes have a fifth column, the number inside the container;
- 950: four columns, the number of the NPU in one of its own.

What is the same in all: each device takes two rows, the second has the bus in its second to last
cell, and ``used / total`` of the memory that counts is the last pair of its last cell.

Runs on Python 3.10 without any other package.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

SECONDS = 20.0
"""A driver that is in trouble keeps its tool waiting for ever."""
PLACES = ("/usr/local/bin/npu-smi", "/usr/local/sbin/npu-smi")
"""Where it is when it is not on the search path, as in a container's root shell."""
_MIB = 1 << 20


@dataclass(frozen=True)
class Holder:
    """A process that holds memory of an NPU. Bytes."""

    pid: int
    name: str
    """Empty where npu-smi may not see it."""
    bytes: int


@dataclass(frozen=True)
class Npu:
    """One chip. Bytes."""

    card: int
    """NPU ID, what ``npu-smi … -i`` takes."""
    chip: int
    """Chip ID, what ``npu-smi … -c`` takes."""
    number: int
    """N of its node /dev/davinciN."""
    name: str
    health: str
    """OK, Warning, Alarm, Critical, …"""
    total: int
    used: int
    busy: int | None
    """Percent of its cores; None: not told."""
    bus: str = ""
    holders: tuple[Holder, ...] = ()
    logic: int | None = None
    """Its number for programs (ASCEND_RT_VISIBLE_DEVICES); None: not asked, or not told."""

    @property
    def free(self) -> int:
        """Bytes that nobody holds."""
        return max(0, self.total - self.used)

    @property
    def well(self) -> bool:
        """Whether its health is good."""
        return self.health.upper() == "OK"

    @property
    def visible(self) -> int:
        """The number by which a program asks for it."""
        return self.number if self.logic is None else self.logic


def find(environment: Mapping[str, str], places: tuple[str, ...] | None = None) -> str:
    """The path of npu-smi, on the search path or in PLACES (None: the usual ones); empty where
    there is none."""
    places = PLACES if places is None else places
    folders = environment.get("PATH", "").split(os.pathsep)
    for path in (*(os.path.join(folder, "npu-smi") for folder in folders if folder), *places):
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return ""


# --- reading its tables


_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")


def plain(text: str) -> str:
    """TEXT without colours and other control characters: a wrapper may paint the tables."""
    return "".join(character if character.isprintable() or character in "\n\t" else " "
                   for character in _ESCAPES.sub("", text.replace("\r\n", "\n")))


def parse(text: str) -> tuple[str, tuple[Npu, ...]]:
    """The driver's version and the chips of ``npu-smi info``."""
    text = plain(text)
    driver = re.search(r"Version:\s*(\S+)", text)
    found: list[Npu] = []
    holders: dict[tuple[int, int], list[Holder]] = {}
    head: list[str] | None = None
    processes = False
    for line in text.splitlines():
        if not line.strip().startswith("|") or not line.strip().endswith("|"):
            continue  # a rule, a heading, or a row that was cut
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "Process id" in line:
            processes, head = True, None
        elif processes:
            _holder(cells, holders)
        elif "Bus-Id" in line or "Health" in line or len(cells) < 3:
            continue
        elif head is None:
            head = cells if re.match(r"\d", cells[0]) else None
        else:
            npu = _chip(head, cells)
            head = None
            if npu is not None:
                found.append(npu)
    return (driver[1] if driver else "", tuple(
        replace(npu, holders=tuple(holders.get((npu.card, npu.chip), ()))) for npu in found))


def parse_mapping(text: str) -> dict[tuple[int, int], tuple[int, int, str]]:
    """``npu-smi info -m``: (card, chip) → the number for programs, that of the node, the name.
    Chips that compute nothing (the card's controller) are left out."""
    chips: dict[tuple[int, int], tuple[int, int, str]] = {}
    for line in plain(text).splitlines():
        row = re.match(r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(?:(\d+)\s+)?(\S.*?)\s*$", line)
        if row is not None:
            logic = int(row[3])
            chips[int(row[1]), int(row[2])] = (logic, int(row[4] or logic), row[5])
    return chips


def parse_pairs(text: str) -> list[dict[str, str]]:
    """``key : value`` lines, as of ``npu-smi info -t usages -i N``: one mapping a chip. A chip's
    lines end with its ``Chip ID``; what stands for the whole card goes to each."""
    card: dict[str, str] = {}
    chips: list[dict[str, str]] = []
    current: dict[str, str] = {}
    for line in plain(text).splitlines():
        name, colon, value = line.partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not name:
            continue
        if name in ("NPU ID", "Chip Count"):
            card[name] = value
            continue
        current[name] = value
        if name == "Chip ID":
            chips.append({**card, **current})
            current = {}
    if current:  # some drivers name no chip where there is but one
        chips.append({**card, **current})
    return chips


def _chip(head: list[str], row: list[str]) -> Npu | None:
    """One chip from its two rows."""
    if len(head) == 4:  # the number in a column of its own
        first, name, health = head[:3]
        card = re.match(r"\d+", first)
    else:
        card, name = re.match(r"\d+", head[0]), head[0].partition(" ")[2].strip()
        health = head[1]
    pairs = re.findall(r"(\d+)\s*/\s*(\d+)", row[-1])
    if card is None or not pairs:
        return None
    numbers = [int(number) for number in re.findall(r"\d+", row[0])]
    chip = numbers[0] if numbers else 0
    number = numbers[1] if len(numbers) > 1 else int(card[0])
    used, total = pairs[-1]
    busy = re.match(r"\d+", row[-1])
    return Npu(int(card[0]), chip, number, name, health, int(total) * _MIB, int(used) * _MIB,
               int(busy[0]) if busy else None, row[-2])


def _holder(cells: list[str], holders: dict[tuple[int, int], list[Holder]]) -> None:
    if len(cells) < 4 or not cells[1].isdecimal():
        return  # "No running processes found in NPU 0"
    numbers = [int(number) for number in re.findall(r"\d+", cells[0])]
    if not numbers:
        return
    key = (numbers[0], numbers[1] if len(numbers) > 1 else 0)
    memory = int(cells[3]) * _MIB if cells[3].isdecimal() else 0
    holders.setdefault(key, []).append(Holder(int(cells[1]), cells[2], memory))
