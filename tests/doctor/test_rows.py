"""The examination as rows: every problem at one of them, and nothing wrong where nothing is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from desktop.doctor import ascend, diagnosis, engines, gpus, prepared, rows, text
from desktop.doctor.engines import Examination, Model
from desktop.doctor.machine import Disk, Machine, look
from desktop.doctor.marks import Mark, Row, worst
from desktop.engines.model.weights import Weights
from desktop.engines.registry import EngineEntry, entry
from desktop.engines.remote.errors import Unreachable
from desktop.engines.remote.probe import Report as ServerReport
from desktop.engines.vllm.devices import Device, User
from desktop.errors import Problem
from desktop.models.errors import ModelMissing
from desktop.settings import Values
from tests.doctor.ascend_tree import GIB, healthy
from tests.doctor.row_checks import ASCEND, EMBEDDED, MACHINE

VLLM = EngineEntry("vllm", "vLLM", "Reads on a GPU.", "m:C")
REMOTE = EngineEntry("remote", "vLLM server", "Reads elsewhere.", "m:C")
NO_MODEL = ModelMissing(model="m").problem()
NO_SERVERS = Problem("remote.no_servers", "No server is set.", "Enter one.")
BROKEN = Problem("interpreter.broken", "torch cannot be used.", "Install it anew.")


def of(*examined: Examination, chosen: str = "embedded", machine: Machine = MACHINE,
       npus: ascend.Report | None = None, settings: tuple[Problem, ...] = (),
       code: prepared.Prepared | None = None) -> diagnosis.Diagnosis:
    return diagnosis.Diagnosis(machine, examined, chosen, settings, npus, code)


def every(found: diagnosis.Diagnosis) -> list[Row]:
    return [row for group in rows.groups(found) for row in group.rows]


def marks(found: diagnosis.Diagnosis) -> dict[str, Mark]:
    return {row.title: row.mark for row in every(found)}


@pytest.mark.parametrize("chosen", ["embedded", "ascend"])
def test_nothing_is_wrong_on_a_whole_machine(chosen: str, tmp_path: Path) -> None:
    found = of(Examination(EMBEDDED), Examination(ASCEND), chosen=chosen,
               npus=healthy(tmp_path).look())
    assert {row.mark for row in every(found)} <= {Mark.GOOD, Mark.NOTE}
    shown = rows.groups(found)
    assert [group.kind.value for group in shown] == ["machine", "built-in", "gpu", "npu"]
    said = rows.verdict(found, shown)
    assert said.mark is Mark.GOOD
    assert said.more == "Nothing else stood out."
    # Every row of the table of versions, each with a verdict of its own.
    named = [row for row in every(found) if row.title in (
        "Python", "vllm-ascend", "vLLM", "torch", "torch-npu", "transformers", "CANN")]
    assert all(row.verdict == "good" for row in named)


def test_a_fault_that_no_row_is_for_is_told_all_the_same(tmp_path: Path) -> None:
    unknown = Problem("ascend.of_tomorrow", "Something new.", "Read about it.")
    report = replace(healthy(tmp_path).look(), problems=(unknown,))
    row, = [row for row in every(of(Examination(EMBEDDED), npus=report)) if row.problems]
    assert row.problems == (unknown,)
    assert row.mark is Mark.WRONG


def test_what_the_moe_patch_lacks_is_at_its_package(tmp_path: Path) -> None:
    lacking = tuple(Problem(f"ascend.experts.{name}", f"No {name}.", "Install it.")
                    for name in ("torch_npu", "vllm_ascend", "vllm"))
    report = replace(healthy(tmp_path).look(), warnings=lacking)
    at = {problem: row.title for row in every(of(npus=report)) for problem in row.problems}
    assert [at[each] for each in lacking] == ["torch-npu", "vllm-ascend", "vLLM"]
    bare = replace(report, versions=())
    at = {problem: row.title for row in every(of(npus=bare)) for problem in row.problems}
    assert [at[each] for each in lacking] == ["MoE patch"] * 3


def test_two_npus_and_what_each_has(tmp_path: Path) -> None:
    tree = healthy(tmp_path)
    found = of(npus=tree.look(tensor_parallel=2))
    assert marks(found)["NPU 0"] is Mark.GOOD
    assert marks(found)["NPU 1"] is Mark.WRONG
    row, = [row for row in every(found) if row.title == "NPU 1"]
    assert "the one to be used" in row.found
    assert row.notes == ("used by python 41711: 54.3 GB", "used by process 41890: 132 MB")


def test_engines_that_nobody_chose_are_not_wrong() -> None:
    missing = Examination(VLLM, (BROKEN, NO_MODEL))
    found = of(Examination(EMBEDDED), missing, Examination(REMOTE, (NO_SERVERS,)))
    shown = marks(found)
    assert Mark.WRONG not in shown.values()
    assert Mark.DOUBT not in shown.values()
    by_title = {row.title: row for row in every(found)}
    assert by_title["vLLM"].verdict == "cannot start"
    assert by_title["vLLM"].problems == (BROKEN,)
    assert by_title["vLLM server"].verdict == "none set"
    assert by_title["vLLM server"].problems == ()
    assert by_title["DeepSeek-OCR-2"].verdict == "not here"
    # Chosen, they are.
    chosen = marks(replace(found, chosen="vllm"))
    assert chosen["vLLM"] is chosen["DeepSeek-OCR-2"] is Mark.WRONG
    assert marks(replace(found, chosen="remote"))["vLLM server"] is Mark.WRONG


def test_servers() -> None:
    good = ServerReport("http://a/v1", "http://a/v1", model="m", version="0.30.0", context=8192)
    bad = ServerReport("http://b/v1", "http://b/v1", error=Unreachable(
        server="http://b/v1", reason="refused"))
    found = of(Examination(EMBEDDED), Examination(REMOTE, servers=(good, bad), notes=("b …",)))
    shown = {row.title: row for row in every(found)}
    assert shown["http://b/v1"].mark is Mark.DOUBT
    assert bad.problem is not None
    assert shown["http://b/v1"].problems == (bad.problem,)
    assert shown["vLLM server"].notes == ()  # told at the server itself
    alone = of(Examination(REMOTE, (bad.problem,), servers=(bad,)), chosen="remote")
    told = [problem for row in every(alone) for problem in row.problems]
    assert told == [bad.problem]
    assert marks(alone)["http://b/v1"] is Mark.WRONG


def test_a_folder_that_verso_cannot_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said where the examination tells of disks; the rest is examined all the same."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VERSO_CACHE_DIR", str(tmp_path / "file" / "verso"))
    looked = look()
    row, = [row for row in every(of(machine=looked)) if row.title == "Disk of the cache"]
    assert row.mark is Mark.WRONG
    assert "VERSO_CACHE_DIR" in row.found
    assert [bool(disk.problem) for disk in looked.disks] == [False, False, True]


def test_a_folder_that_every_engine_needs_is_told_once(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The models lie in the data's folder, and no engine starts without it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VERSO_DATA_DIR", str(tmp_path / "file" / "verso"))
    examined = [engines.examine(entry(name), Values({}), thorough=False)
                for name in ("embedded", "vllm", "remote")]
    assert [[problem.code for problem in each.problems] for each in examined] == [
        ["paths.folder"]] * 3
    found = of(*examined, machine=look())
    shown = every(found)
    assert sum("VERSO_DATA_DIR" in line for row in shown for line in row.lines()) == 1
    assert sum("told above" in row.found for row in shown) == 3
    lines = list(text.lines(found))
    assert sum("VERSO_DATA_DIR" in line for line in lines) == 1
    assert lines.count("    See above, under MACHINE.") == 3


def test_what_helps_several_engines_is_told_once_and_of_the_chosen_one() -> None:
    """In the terminal: a model that is not there keeps three engines from starting."""
    engines_ = [Examination(EngineEntry(name, name, "", "m:C"), (NO_MODEL,))
                for name in ("vllm", "other", "third")]

    def helped(chosen: str) -> list[str]:
        """The engines at which it is told what helps."""
        lines = list(text.lines(of(*engines_, chosen=chosen)))
        assert "\n".join(lines).count("✗ The model m is not on this machine") == 3
        found, at = [], ""
        for line in lines:
            if line.startswith("  ✗ "):
                at = line.split()[1]
            elif line.startswith("      → "):
                found.append(at)
        return found

    assert helped("embedded") == ["vllm"]
    assert helped("third") == ["vllm", "third"]


def test_the_machine_and_its_gpus() -> None:
    silent = Problem("doctor.driver_silent", "nvidia-smi gave no answer.", "Restart.")
    machine = replace(MACHINE, disks=(Disk("cache", "/mnt", -1, -1),),
                      gpus=gpus.Gpus((), "/usr/bin/nvidia-smi", silent))
    shown = marks(of(machine=machine))
    assert shown["nvidia-smi"] is Mark.WRONG
    assert shown["Disk of the cache"] is Mark.DOUBT
    gpu = gpus.Gpu(Device(0, "GPU-1", "NVIDIA L4", 24 * GIB, GIB, (User(7, "trainer", GIB),)),
                   99, "580.65")
    row, = [row for row in every(of(machine=replace(
        MACHINE, gpus=gpus.Gpus((gpu,), "nvidia-smi")))) if row.title == "GPU 0"]
    assert row.found == "NVIDIA L4, 1.0 GB free of 24.0 GB, driver 580.65, 99 % busy"
    assert row.notes == ("used by trainer 7: 1.0 GB",)
    said = Problem("settings.unreadable", "The settings cannot be read.", "Delete them.")
    assert marks(of(settings=(said,)))["Settings"] is Mark.DOUBT


def test_a_model_once_though_several_engines_load_it() -> None:
    model = Model("/m", "chosen", Weights(True, (), 6 << 30, "DeepseekOCR2ForCausalLM"))
    found = of(Examination(VLLM, model=model), Examination(ASCEND, model=model), chosen="vllm")
    row, = [row for row in every(found) if row.title == "DeepSeek-OCR-2"]
    assert row.mark is Mark.GOOD
    assert row.found.startswith("/m (chosen in the settings), 6.0 GB")


def test_prepared_code() -> None:
    gone = prepared.PreparedMissing(folder="/x").problem()
    assert marks(of(code=prepared.Prepared("/x", True, problems=(gone,))))[
        "Prepared code"] is Mark.WRONG
    row, = [row for row in every(of(code=prepared.Prepared("/x", True, touched=("config.py",))))
            if row.title == "Prepared code"]
    assert row.mark is Mark.GOOD
    assert row.notes == ("changed since: config.py",)


def test_what_a_screen_reader_says_and_what_is_copied() -> None:
    row = Row("Memory", "little", Mark.DOUBT, (Problem("a.b", "Too little.", "Buy more."),),
              ("used by x",))
    assert row.lines() == ["Memory: little [worth a look]", "Too little. Buy more.", "used by x"]
    assert Row("Verso", "1").lines() == ["Verso: 1"]
    assert worst([]) is Mark.NOTE
    assert worst([Mark.GOOD, Mark.NOTE]) is Mark.GOOD
    assert worst([Mark.WRONG, Mark.DOUBT]) is Mark.WRONG
