"""The official code prepared for an NPU: what is changed, what is refused, what stays."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from desktop.engines.ascend import preparation
from desktop.engines.ascend.preparation import layout, target
from desktop.engines.ascend.preparation.edits import Missing, Source
from desktop.engines.ascend.preparation.errors import (
    AlreadyPrepared,
    CannotRead,
    CannotWrite,
    NotOurs,
    Overlapping,
    PreparationError,
    UnknownLayout,
)
from tests.support import official_code
from tests.support.official_code import official

BESIDE = {"benchmark.py", "set_env.sh", "verso_npu_environment.py", "verso_npu_patch.py"}


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file in FOLDER."""
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def prepared(source: Path, to: Path) -> Path:
    preparation.prepare(source, to).write()
    return to


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return official(tmp_path / "source")


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "made" / "deepseek_ocr2_npu"


def test_every_change(source: Path, to: Path) -> None:
    shown = "\n".join(map(str, preparation.prepare(source, to).changes)).split("\n")
    head = ["import verso_npu_environment", "verso_npu_environment.ensure()"]
    patch = ["import os", 'os.environ["VLLM_USE_V1"] = "0"', "import verso_npu_patch"]
    image, pdf, batch = layout.SCRIPTS
    assert shown == [
        "deepencoderv2/sam_vary_sdpa.py:2 - from flash_attn import flash_attn_qkvpacked_func",
        "deepencoderv2/sam_vary_sdpa.py:2 + # from flash_attn import flash_attn_qkvpacked_func",
        *(f"config.py:6 + {line}" for line in (
            "", layout.TITLE, "DEVICE = 'npu'", "ENFORCE_EAGER = True", "MAX_MODEL_LEN = 8192",
            "SWAP_SPACE = 0", "TENSOR_PARALLEL_SIZE = 1", "GPU_MEMORY_UTILIZATION = 0.85",
            "DISABLE_MM_PREPROCESSOR_CACHE = True")),
        *(f"{image}:0 + {line}" for line in head), *(f"{image}:4 + {line}" for line in patch),
        f"{image}:18 -         enforce_eager=False,", f"{image}:18 +         enforce_eager=True,",
        f"{image}:20 -         gpu_memory_utilization=0.75,",
        f"{image}:20 +         gpu_memory_utilization=0.85,",
        f"{image}:20 +         swap_space=0,",
        f"{image}:20 +         disable_mm_preprocessor_cache=True,",
        *(line for name, number in ((pdf, 0.9), (batch, 0.7)) for line in (
            *(f"{name}:0 + {line}" for line in head), *(f"{name}:3 + {line}" for line in patch),
            f"{name}:12 -     enforce_eager=False,", f"{name}:12 +     enforce_eager=True,",
            f"{name}:14 -     gpu_memory_utilization={number},",
            f"{name}:14 +     gpu_memory_utilization=0.85,")),
    ]


def test_what_is_written(source: Path, to: Path) -> None:
    before = snapshot(source)
    stamps = {path: path.stat().st_mtime_ns for path in source.rglob("*")}
    plan = preparation.prepare(source, to)
    assert not to.exists()
    assert plan.write() is None
    assert snapshot(source) == before
    assert {path: path.stat().st_mtime_ns for path in source.rglob("*")} == stamps
    made = snapshot(to)
    assert {name for name in made if "/" not in name} - BESIDE - {target.MANIFEST} == {
        name for name in before if "/" not in name}
    assert not [name for name in made if "__pycache__" in name]
    changed = {name for name in made.keys() & before.keys() if made[name] != before[name]}
    assert changed == {layout.SAM, layout.CONFIG, *layout.SCRIPTS}
    assert [path.name for path in to.parent.iterdir()] == [to.name]
    for name, data in made.items():
        if name.endswith(".py"):
            ast.parse(data, feature_version=(3, 9))
    assert preparation.shortcomings(to) == []


def test_twice_gives_the_same_bytes(source: Path, to: Path) -> None:
    first = snapshot(prepared(source, to))
    (to / "__pycache__").mkdir()
    (to / "__pycache__" / "config.cpython-39.pyc").write_bytes(b"by running it")
    plan = preparation.prepare(source, to)
    assert plan.lost == ()
    assert plan.write() is None
    assert snapshot(to) == first
    assert snapshot(prepared(source, to.with_name("other"))) == first


def test_an_earlier_target_is_replaced_whole_and_kept_when_it_was_changed(
        source: Path, to: Path) -> None:
    first = snapshot(prepared(source, to))
    (to / "config.py").write_text("MODEL_PATH = '/data'\n")
    (to / "notes.txt").write_text("mine")
    (to / "deepseek_ocr2.py").unlink()
    plan = preparation.prepare(source, to)
    assert plan.lost == ("config.py", "deepseek_ocr2.py", "notes.txt")
    kept = plan.write()
    assert kept == to.with_name("deepseek_ocr2_npu.before-1")
    assert kept is not None
    assert (kept / "config.py").read_text() == "MODEL_PATH = '/data'\n"
    assert snapshot(to) == first
    (to / "notes.txt").write_text("again")
    assert preparation.prepare(source, to).write() == to.with_name("deepseek_ocr2_npu.before-2")
    assert sorted(path.name for path in to.parent.iterdir()) == [
        "deepseek_ocr2_npu", "deepseek_ocr2_npu.before-1", "deepseek_ocr2_npu.before-2"]


def test_the_recipes_own_result_is_replaced_and_kept(source: Path, to: Path) -> None:
    official_code.lay(to, {"deepseek_ocr2_npu.py": "", "config.py": "A = 1\n"})
    kept = preparation.prepare(source, to).write()
    assert kept is not None
    assert (kept / "config.py").read_text() == "A = 1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="exchanging in one step is Linux's")
@pytest.mark.parametrize("changed", [False, True])
def test_there_is_a_whole_target_at_every_moment(
        source: Path, to: Path, changed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at after every call that can move a folder."""
    prepared(source, to)
    if changed:
        (to / "notes.txt").write_text("mine")
    wholes: list[bool] = []

    def watched(name: str, function: Callable[..., Any]) -> None:
        def call(*words: Any, **options: Any) -> Any:
            result = function(*words, **options)
            wholes.append((to / target.MANIFEST).is_file() and (to / layout.SAM).is_file())
            return result

        monkeypatch.setattr(target, name, call) if name == "_exchange" else monkeypatch.setattr(
            os, name, call)

    for name in ("rename", "replace", "rmdir", "unlink"):
        watched(name, getattr(os, name))
    watched("_exchange", target._exchange)
    plan = preparation.prepare(source, to)
    assert (plan.write() is not None) is changed
    assert wholes
    assert all(wholes)


def test_without_an_exchange_in_one_step(source: Path, to: Path,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_exchange", lambda one, other: False)
    first = snapshot(prepared(source, to))
    (to / "notes.txt").write_text("mine")
    kept = preparation.prepare(source, to).write()
    assert snapshot(to) == first
    assert kept is not None
    assert (kept / "notes.txt").read_text() == "mine"


def test_what_cannot_be_read_leaves_everything_as_it_was(source: Path, to: Path) -> None:
    first = snapshot(prepared(source, to))
    (source / "zz.txt").symlink_to(source / "nowhere")
    plan = preparation.prepare(source, to)
    with pytest.raises(CannotRead, match=r"zz\.txt"):
        plan.write()
    (source / "zz.txt").unlink()
    (source / "loop").symlink_to(source)
    with pytest.raises(CannotRead):
        preparation.prepare(source, to).write()
    assert snapshot(to) == first
    assert [path.name for path in to.parent.iterdir()] == [to.name]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links of Unix")
@pytest.mark.parametrize("what", ["link to nothing", "link to itself", "repository", "pipe"])
def test_whatever_a_person_puts_into_the_target_keeps_it(source: Path, to: Path,
                                                         what: str) -> None:
    first = snapshot(prepared(source, to))
    mine = to / (".git" if what == "repository" else "mine")
    if what == "repository":
        official_code.lay(mine, {"HEAD": "ref: refs/heads/main\n", "objects/aa/bb": "work"})
    elif what == "pipe":
        os.mkfifo(mine)
    else:
        mine.symlink_to(to if what == "link to itself" else to / "nowhere")
    plan = preparation.prepare(source, to)
    assert plan.lost == (mine.name,)
    kept = plan.write()
    assert kept is not None
    assert os.path.lexists(kept / mine.name)
    assert snapshot(to) == first


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of Unix")
@pytest.mark.parametrize("name", ["config.py", "zz.txt"])
def test_a_source_with_something_that_is_no_file(source: Path, to: Path, name: str) -> None:
    (source / name).unlink(missing_ok=True)
    os.mkfifo(source / name)
    with pytest.raises(CannotRead, match=re.escape(name)):
        preparation.prepare(source, to).write()
    assert not to.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="locks of Unix")
def test_what_a_killed_run_left_goes_with_the_next_and_what_a_living_one_has_stays(
        source: Path, to: Path) -> None:
    code = ("import sys\nfrom pathlib import Path\n"
            "from desktop.engines.ascend.preparation import staging\n"
            "with staging.beside(Path(sys.argv[1])) as made:\n"
            "    (made / 'file').write_text('half')\n"
            "    print(made, flush=True)\n    sys.stdin.read()\n")

    def begin() -> tuple[subprocess.Popen[str], Path]:
        run = subprocess.Popen([sys.executable, "-c", code, to], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        return run, Path(run.stdout.readline().strip())

    to.parent.mkdir()
    (killed, left), (living, used) = begin(), begin()
    killed.kill()
    killed.wait()
    assert (left / "file").exists()
    mine = to.with_name(f".{to.name}.mine")
    mine.mkdir()
    preparation.prepare(source, to).write()
    assert sorted(to.parent.iterdir()) == sorted([to, used, mine])
    assert (used / "file").exists()
    living.communicate()
    assert not used.exists()


def test_links_are_followed_and_their_targets_stay(source: Path, to: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.py"
    (source / "config.py").rename(elsewhere)
    (source / "config.py").symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    place = tmp_path / "place"
    place.mkdir()
    link = tmp_path / "link"
    link.symlink_to(place)
    plan = preparation.prepare(source, link)
    assert plan.place == place
    plan.write()
    assert elsewhere.read_bytes() == before
    assert link.is_symlink()
    assert not (place / "config.py").is_symlink()
    assert b"DEVICE = 'npu'" in (place / "config.py").read_bytes()


def test_targets_that_are_refused(source: Path, tmp_path: Path) -> None:
    home = official_code.lay(tmp_path / "home", {"letter.txt": "dear"})
    file = tmp_path / "file"
    file.write_text("")
    cases: list[tuple[Path, type[PreparationError]]] = [
        (home, NotOurs), (file, NotOurs), (source, Overlapping), (source / "in", Overlapping),
        (source.parent, Overlapping), (source / ".." / source.name, Overlapping),
        (file / "below", CannotWrite)]
    for to, error in cases:
        with pytest.raises(error):
            preparation.prepare(source, to).write()
    assert (home / "letter.txt").read_text() == "dear"
    assert not (source / "in").exists()


@pytest.mark.parametrize("line", [
    "import verso_npu_patch", "import deepseek_ocr2_npu", "import verso_npu_environment"])
def test_what_was_converted_before_is_refused(tmp_path: Path, to: Path, line: str) -> None:
    source = official(tmp_path / "source", run_dpsk_ocr2_pdf=f"import torch\n{line}\n")
    with pytest.raises(AlreadyPrepared, match=f"run_dpsk_ocr2_pdf.py:2: {line}"):
        preparation.prepare(source, to)


@pytest.mark.parametrize(("stem", "old", "new", "what"), [
    *((Path(name).stem, None, None, "") for name in official_code.FILES
      if not name.endswith(("__init__.py", ".pyc"))),
    ("sam_vary_sdpa", "from flash_attn import flash_attn_qkvpacked_func\n", "",
     "from flash_attn import …"),
    ("sam_vary_sdpa", "# flash_attn_qkvpacked_func(x)", "x = flash_attn_qkvpacked_func(x)",
     "code that does without flash_attn_qkvpacked_func (line 5)"),
    ("config", "MODEL_PATH", "MODEL", "MODEL_PATH = …"),
    ("config", "BASE_SIZE = 1024", "SWAP_SPACE = 4", "a file that leaves SWAP_SPACE to be set"),
    ("config", "'some/model'", "'some/model", "Python 3.9 in UTF-8"),
    ("run_dpsk_ocr2_image", "import torch\n", "import torch as t\nfrom torch import version\n",
     "import torch"),
    ("run_dpsk_ocr2_image", "import asyncio\n", "import asyncio, vllm\n",
     "import torch before line 1: import asyncio, vllm"),
    ("run_dpsk_ocr2_image", "        enforce_eager=False,\n", "", "enforce_eager=False"),
    ("run_dpsk_ocr2_image", "=0.75", "=SHARE", "gpu_memory_utilization=0.9"),
    ("run_dpsk_ocr2_pdf", "model=MODEL_PATH", "path=MODEL_PATH", "LLM(model=…)"),
    ("run_dpsk_ocr2_eval_batch", "llm = LLM(", "LLM(model=1)\nllm = LLM(", "LLM(model=…)"),
    ("deepseek_ocr2", "class DeepseekOCR2ForCausalLM", "class Other",
     "class DeepseekOCR2ForCausalLM"),
    ("image_process", "DeepseekOCR2Processor", "Other", "class DeepseekOCR2Processor"),
])
def test_a_layout_that_is_not_known_is_refused_with_what_was_not_found(
        tmp_path: Path, to: Path, stem: str, old: str | None, new: str | None, what: str) -> None:
    name, text = next((name, text) for name, text in official_code.FILES.items()
                      if Path(name).stem == stem)
    if old is not None and new is not None:
        assert old in text
    source = official(tmp_path / "source", **{
        stem: text.replace(old, new, 1) if old is not None and new is not None else None})
    before = snapshot(source)
    with pytest.raises(UnknownLayout) as raised:
        preparation.prepare(source, to)
    assert raised.value.missing[0].file == name
    assert raised.value.missing[0].what.startswith(what)
    assert f"{name}: {what}" in str(raised.value) if what else name in str(raised.value)
    assert len(raised.value.missing) == 1
    assert not to.exists()
    assert snapshot(source) == before


def test_everything_that_is_not_found_is_said_at_once(tmp_path: Path, to: Path) -> None:
    source = official(tmp_path / "source", config="A = 1\n", run_dpsk_ocr2_pdf=None)
    with pytest.raises(UnknownLayout) as raised:
        preparation.prepare(source, to)
    assert [missing.file for missing in raised.value.missing] == ["run_dpsk_ocr2_pdf.py"] + [
        "config.py"] * 5


@pytest.mark.parametrize(("call", "result"), [
    ("LLM(model=M, enforce_eager = False, gpu_memory_utilization = .5)",
     "LLM(model=M, enforce_eager = True, gpu_memory_utilization = 0.85, swap_space=0, "
     "disable_mm_preprocessor_cache=True)"),
    ("LLM(model=M, enforce_eager=True, gpu_memory_utilization=0.85,\n    swap_space=4,\n"
     "    disable_mm_preprocessor_cache=False)",
     "LLM(model=M, enforce_eager=True, gpu_memory_utilization=0.85,\n    swap_space=0,\n"
     "    disable_mm_preprocessor_cache=True)"),
    ("vllm.LLM(model='ü', enforce_eager=False, gpu_memory_utilization=0.9,  # ü\n)",
     "vllm.LLM(model='ü', enforce_eager=True, gpu_memory_utilization=0.85,  # ü\n"
     "swap_space=0,\ndisable_mm_preprocessor_cache=True,\n)"),
])
def test_other_ways_to_write_the_engine(tmp_path: Path, to: Path, call: str, result: str) -> None:
    source = official(tmp_path / "source", run_dpsk_ocr2_image=f"import torch\nx = {call}\n")
    text = (prepared(source, to) / layout.IMAGE).read_text("utf-8")
    assert f"x = {result}\n" in text


def test_line_ends_docstrings_and_a_missing_last_newline(tmp_path: Path, to: Path) -> None:
    image = ('"""What it is.\n"""\nfrom __future__ import annotations\n' +
             official_code.IMAGE.replace("\n", "\r\n")).replace("\r\n", "\n").replace("\n", "\r\n")
    source = official(tmp_path / "source", run_dpsk_ocr2_image="\ufeff" + image,
                      config=official_code.CONFIG.rstrip("\n"))
    prepared(source, to)
    data = (to / layout.IMAGE).read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n")
    lines = data.decode("utf-8").split("\r\n")
    assert lines[2:5] == ["from __future__ import annotations", "import verso_npu_environment",
                          "verso_npu_environment.ensure()"]
    assert layout.settings(layout.CONFIG, (to / "config.py").read_bytes()) == layout.NPU_CONFIG
    assert "\nPROMPT = '<image>\\nFree OCR.'\n\n#" in (to / "config.py").read_text()


@pytest.mark.parametrize(("name", "old", "new", "what"), [
    ("run_dpsk_ocr2_pdf.py", "import verso_npu_patch\n", "", "import verso_npu_patch"),
    ("run_dpsk_ocr2_image.py", "        swap_space=0,\n", "", "swap_space"),
    ("deepencoderv2/sam_vary_sdpa.py", "# from", "from",
     "# from flash_attn import flash_attn_qkvpacked_func"),
    ("config.py", "DEVICE = 'npu'", "", "DEVICE"),
])
def test_what_a_prepared_folder_has_lost_since_is_named(
        source: Path, to: Path, name: str, old: str, new: str, what: str) -> None:
    prepared(source, to)
    text = (to / name).read_text("utf-8")
    assert old in text
    (to / name).write_text(text.replace(old, new), "utf-8")
    (to / "verso_npu_patch.py").unlink()
    assert preparation.shortcomings(to) == [
        Missing("verso_npu_patch.py", ""), Missing(name, what)]


def test_a_span_of_several_lines_becomes_a_comment() -> None:
    source = Source("a.py", b"from flash_attn import (\n    one,\n    two)\nx = 1\n")
    source.comment_out(source.statements()[0])
    assert source.text() == "# from flash_attn import (\n#     one,\n#     two)\nx = 1\n"
