"""npu-smi's tables of several generations of drivers, and its refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from desktop.doctor import ascend_smi
from desktop.doctor.ascend_smi import Holder
from tests.support import processes, programs

SAMPLES = Path(__file__).parent / "npu_smi"
MIB = 1 << 20


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text("utf-8")


@pytest.fixture
def smi(tmp_path: Path) -> Callable[..., str]:
    """``smi({"info": text, "info -m": text}, status)``: an npu-smi that prints these."""

    def make(said: dict[str, str], status: int = 0, script: str = "") -> str:
        tool = tmp_path / "npu-smi"
        cases = ""
        for number, (words, text) in enumerate(said.items()):
            (tmp_path / f"{number}.txt").write_text(text)
            cases += f'"{words}") cat {tmp_path}/{number}.txt; exit {status};;\n'
        return str(programs.write(tool, script or (
            f'#!/bin/sh\ncase "$*" in\n{cases}esac\necho "no" >&2\nexit 255\n')))

    return make


PLAIN = {"PATH": "/usr/bin:/bin"}


# --- tables


def test_910a_with_two_memories() -> None:
    driver, (first, second) = ascend_smi.parse(sample("910a-21.0"))
    assert driver == "21.0.rc1"
    assert (first.card, first.chip, first.number, first.name) == (4, 0, 4, "910A")
    assert (second.used, second.total) == (1200 * MIB, 32768 * MIB)
    assert (second.busy, second.health, second.bus) == (3, "OK", "0000:82:00.0")


def test_310p_without_hbm() -> None:
    driver, (first, second) = ascend_smi.parse(sample("310p-22.0"))
    assert driver == "22.0.4"
    assert (first.card, first.number, first.name) == (2144, 0, "310P3")
    assert (second.card, second.number, second.health) == (2208, 1, "Warning")
    # not the pages, which come first in the row above
    assert (second.used, second.total) == (9324 * MIB, 21527 * MIB)


def test_910b() -> None:
    driver, (first, second) = ascend_smi.parse(sample("910b-24.1"))
    assert driver == "24.1.rc3"
    assert (first.name, first.health, first.holders) == ("910B3", "OK", ())
    assert first.free == (65536 - 3380) * MIB
    assert (second.number, second.busy, second.used) == (1, 87, 58961 * MIB)
    assert second.holders == (Holder(41711, "python", 55602 * MIB), Holder(41890, "", 132 * MIB))


def test_two_chips_on_a_card() -> None:
    driver, found = ascend_smi.parse(sample("910c-25.2"))
    assert driver == "25.2.3"
    assert [(npu.card, npu.chip, npu.number) for npu in found] == [
        (0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3)]
    assert [npu.used // MIB for npu in found] == [53440, 52950, 3130, 2890]
    assert [[holder.pid for holder in npu.holders] for npu in found] == [
        [3325989, 3330598], [3328327], [], []]


def test_the_wider_table_of_newer_drivers() -> None:
    driver, (first, second) = ascend_smi.parse(sample("910b-26.0"))
    assert driver == "26.0.rc1"
    assert (first.used, first.total, first.well) == (2871 * MIB, 32768 * MIB, True)
    assert (second.number, second.health, second.well) == (3, "Alarm", False)
    assert second.holders == (Holder(1712733, "VLLMEngineCor", 27954 * MIB),)


def test_950_with_the_number_in_a_column_of_its_own() -> None:
    _driver, (first, second) = ascend_smi.parse(sample("950"))
    assert (first.card, first.number, first.name, first.health, first.busy) == (
        0, 0, "Ascend950DT", "OK", 20)
    assert (first.used, first.total) == (4024 * MIB, 131072 * MIB)
    assert first.holders == (Holder(1001, "python", 256 * MIB),)
    assert (second.number, second.health) == (3, "Alarm")


@pytest.mark.parametrize("name", ["refused", "occupied", "library", "usages-910b", "map-910b"])
def test_what_is_no_table_has_no_chips(name: str) -> None:
    assert ascend_smi.parse(sample(name))[1] == ()


def test_a_table_that_was_cut() -> None:
    text = sample("910b-24.1")
    whole = [replace(npu, holders=()) for npu in ascend_smi.parse(text)[1]]
    counts = set()
    for end in range(0, len(text), 7):
        found = [replace(npu, holders=()) for npu in ascend_smi.parse(text[:end])[1]]
        assert found == whole[:len(found)]
        counts.add(len(found))
    assert counts == {0, 1, 2}


def test_numbers_for_programs() -> None:
    assert ascend_smi.parse_mapping(sample("map-910b")) == {
        (0, 0): (0, 0, "Ascend 910B3"), (1, 0): (1, 1, "Ascend 910B3")}
    assert ascend_smi.parse_mapping(sample("map-910c"))[1, 1] == (3, 11, "Ascend910")


def test_answers_in_pairs() -> None:
    one, = ascend_smi.parse_pairs(sample("usages-910b"))
    assert (one["HBM Capacity(MB)"], one["HBM Usage Rate(%)"], one["NPU ID"]) == (
        "65536", "5", "0")
    first, second = ascend_smi.parse_pairs(sample("usages-910c"))
    assert (first["Chip ID"], first["HBM Usage Rate(%)"]) == ("0", "4")
    assert (second["Chip ID"], second["HBM Usage Rate(%)"], second["Chip Count"]) == (
        "1", "80", "2")
    unnamed, = ascend_smi.parse_pairs("HBM Capacity(MB) : 65536\nHBM Usage Rate(%) : 7\n")
    assert unnamed["HBM Usage Rate(%)"] == "7"
    assert ascend_smi.parse_pairs("") == []


# --- asking


def test_numbers_for_programs_are_asked_for(smi: Callable[..., str]) -> None:
    found = ascend_smi.look(smi({"info": sample("910c-25.2"), "info -m": sample("map-910c")}),
                            PLAIN)
    assert found.problem is None
    assert [(npu.number, npu.visible) for npu in found.found] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    # and where it may not be asked, the node's number stands for it
    found = ascend_smi.look(smi({"info": sample("910b-26.0")}), PLAIN)
    assert [npu.visible for npu in found.found] == [0, 3]


def test_a_table_of_an_unknown_kind(smi: Callable[..., str]) -> None:
    found = ascend_smi.look(smi({
        "info": "# npu-smi 99.0  Version: 99.0\n0 910B3 fine\n",
        "info -m": sample("map-910c"),
        "info -t usages -i 0": sample("usages-910c"),
        "info -t health -i 0": "\tHealth Status : OK\n\tChip ID : 0\n"
                               "\tHealth Status : Alarm\n\tChip ID : 1\n",
    }), PLAIN)
    assert found.problem is None
    assert found.driver == "99.0"
    first, second = found.found
    assert (first.health, first.busy, first.visible, first.number) == ("OK", 1, 0, 8)
    assert (second.health, second.used) == ("Alarm", 65536 * 80 // 100 * MIB)
    assert second.name == "Ascend910"


def test_a_chip_without_a_number(smi: Callable[..., str]) -> None:
    usages = sample("usages-910b").replace("Chip ID                        : 0", "Chip ID : NA")
    assert "NA" in usages
    [npu] = ascend_smi.look(smi({
        "info": "nothing of a table\n", "info -m": sample("map-910b"),
        "info -t usages -i 0": usages, "info -t health -i 0": "Health : OK\nChip ID : NA\n",
    }), PLAIN).found
    assert (npu.card, npu.chip, npu.health, npu.total) == (0, 0, "OK", 65536 * MIB)


@pytest.mark.parametrize(("name", "code", "words"), [
    ("refused", "ascend.refused", "−8005"),
    ("occupied", "ascend.occupied", "−8020"),
    ("library", "ascend.smi_library", "libdrvdsmi_host.so"),
])
@pytest.mark.parametrize("status", [0, 255])  # some end well all the same
def test_refusals_are_explained(name: str, code: str, words: str, status: int,
                                smi: Callable[..., str]) -> None:
    problem = ascend_smi.look(smi({"info": sample(name)}, status), PLAIN).problem
    assert problem is not None
    assert problem.code == code
    assert words in problem.message
    assert problem.hint


def test_another_failure_is_told_in_its_words(smi: Callable[..., str]) -> None:
    problem = ascend_smi.look(smi({"info": "This device does not exist.\n"}, 3), PLAIN).problem
    assert problem is not None
    assert problem.code == "ascend.smi"
    assert "This device does not exist." in problem.message
    problem = ascend_smi.look("/nowhere/npu-smi", PLAIN).problem
    assert problem is not None
    assert problem.code == "ascend.smi"


def test_one_that_hangs(smi: Callable[..., str], no_process_left: Callable[[], list[str]]) -> None:
    tool = smi({}, script="#!/bin/sh\nsleep 600 & wait\n")
    problem = ascend_smi.look(tool, PLAIN, seconds=0.5).problem
    assert problem is not None
    assert problem.code == "ascend.smi_silent"
    processes.until(lambda: not no_process_left())


def test_where_it_is(tmp_path: Path, smi: Callable[..., str]) -> None:
    tool = smi({})
    assert ascend_smi.find({"PATH": f"/nowhere:{tmp_path}"}, ()) == tool
    assert ascend_smi.find({}, (tool,)) == tool
    assert ascend_smi.find({}, ("/nowhere/npu-smi",)) == ""


@pytest.mark.parametrize("name", ["910b-24.1", "910b-26.0", "910c-25.2", "950", "310p-22.0"])
def test_a_table_that_somebody_has_painted(name: str) -> None:
    """A wrapper of one's own, or a tool that takes us for a terminal."""
    text = sample(name)
    painted = "".join(f"\x1b[0m{line}\x1b[K\r\n" for line in text.splitlines()).replace(
        "OK", "\x1b[1;32mOK\x1b[m")
    assert painted.count("\x1b[1;32m") > 0
    assert ascend_smi.parse(painted) == ascend_smi.parse(text)


def test_what_it_says_is_shown_without_control_characters(smi: Callable[..., str]) -> None:
    tool = smi({}, script="#!/bin/sh\nprintf '\\033[31mno \\007device\\033[0m\\r\\n' >&2\nexit 1\n")
    problem = ascend_smi.look(tool, PLAIN).problem
    assert problem is not None
    assert problem.message.endswith(": no device")
    assert problem.message.isprintable()
