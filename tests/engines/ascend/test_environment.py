"""The environment that is made from what was found, put to use by real processes."""

from __future__ import annotations

import ast
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import desktop.engines.ascend
from desktop.engines.ascend import torchabi
from desktop.engines.ascend.environment import (
    Environment,
    Stack,
    build,
    custom_operators,
    declared,
    find_and_build,
)
from desktop.engines.ascend.places import Places
from tests.engines.ascend import trees
from tests.support import pythons

CURRENT = Stack(ascend="0.18.0", vllm="0.18.0", torch="2.9.0")
LEGACY = Stack(ascend="0.8.5rc1", vllm="0.8.5.post1", torch="2.5.1")
ALONE = ("places", "switches", "environment", "torchabi")
"""Modules that also run by themselves."""


def make(root: Path, stack: Stack = CURRENT, devices: str = "", machine: str = "aarch64",
         **environ: str) -> Environment:
    return find_and_build(stack, environ, devices=devices, home=str(root / "home/x"),
                          root=str(root), machine=machine)


def parts(made: Environment, name: str) -> list[str]:
    return made.variables[name].split(":")


def test_the_recipe_s_variables_on_its_own_layout(tmp_path: Path) -> None:
    base = trees.old(tmp_path)
    home = f"{base}/ascend-toolkit/latest"
    made = make(tmp_path, LEGACY)
    assert made.removed == ()
    lists = {name: parts(made, name) for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "PATH")}
    assert {name: value for name, value in made.variables.items() if name not in lists} == {
        "ASCEND_TOOLKIT_HOME": home, "ASCEND_HOME_PATH": home, "ASCEND_AICPU_PATH": home,
        "ASCEND_OPP_PATH": f"{home}/opp", "TOOLCHAIN_HOME": f"{home}/toolkit",
        "ATB_HOME_PATH": f"{base}/nnal/atb/latest/atb/cxx_abi_1",
        "ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE": "0", "ATB_OPSRUNNER_SETUP_CACHE_ENABLE": "1",
        "ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT": "5", "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE": "1",
        "LCCL_PARALLEL": "0",
        "HCCL_WHITELIST_DISABLE": "1", "ASCEND_GLOBAL_LOG_LEVEL": "3",
        "TOKENIZERS_PARALLELISM": "false", "VLLM_ATTENTION_BACKEND": "NPU",
        "VLLM_USE_TRITON_FLASH_ATTN": "0", "VLLM_USE_V1": "0"}
    assert lists["LD_LIBRARY_PATH"] == [
        f"{base}/nnal/atb/latest/atb/cxx_abi_1/lib",
        *(f"{base}/driver/{name}" for name in ("lib64/driver", "lib64/common", "lib64")),
        f"{home}/lib64", f"{home}/aarch64-linux/lib64", f"{home}/lib64/plugin/opskernel",
        f"{home}/lib64/plugin/nnengine",
        f"{home}/opp/built-in/op_impl/ai_core/tbe/op_tiling/lib/linux/aarch64"]
    assert lists["PYTHONPATH"] == [
        f"{home}/python/site-packages", f"{home}/opp/built-in/op_impl/ai_core/tbe"]
    assert lists["PATH"] == [f"{base}/nnal/atb/latest/atb/cxx_abi_1/bin", f"{home}/bin"]
    for folder in [path for value in lists.values() for path in value]:
        assert os.path.isdir(folder)


def test_the_tutorial_s_variables_on_the_newer_layout(tmp_path: Path) -> None:
    base = trees.new(tmp_path)
    made = make(tmp_path, devices=" 1, 3,")
    assert made.variables["ASCEND_HOME_PATH"] == f"{base}/cann"
    chosen = {name: value for name, value in made.variables.items()
              if name.startswith(("VLLM", "PYTORCH", "TASK", "ASCEND_RT"))}
    assert chosen == {
        "VLLM_ASCEND_ENABLE_NZ": "0", "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
        "TASK_QUEUE_ENABLE": "1", "ASCEND_RT_VISIBLE_DEVICES": "1,3"}


def test_what_is_left_of_the_older_stack_is_taken_out(tmp_path: Path) -> None:
    trees.new(tmp_path)
    left = {"VLLM_ATTENTION_BACKEND": "NPU", "VLLM_USE_V1": "0",
            "VLLM_USE_TRITON_FLASH_ATTN": "0"}
    made = make(tmp_path, **left)
    environ = {**left, "HOME": "/x"}
    assert not made.holds(environ)
    made.apply(environ)
    assert not set(left) & set(environ)
    assert environ["HOME"] == "/x"
    assert made.holds(environ)


def test_a_person_s_own_choices_stay(tmp_path: Path) -> None:
    trees.new(tmp_path)
    own = {"ASCEND_GLOBAL_LOG_LEVEL": "1", "PYTORCH_NPU_ALLOC_CONF": "max_split_size_mb:256",
           "TASK_QUEUE_ENABLE": "2", "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE": "3",
           "ASCEND_RT_VISIBLE_DEVICES": "6"}
    made = make(tmp_path, **own)
    assert {name: made.variables[name] for name in own} == own
    assert make(tmp_path, devices="0", **own).variables["ASCEND_RT_VISIBLE_DEVICES"] == "0"
    assert "ASCEND_RT_VISIBLE_DEVICES" not in make(tmp_path).variables


def test_lists_of_paths_keep_what_was_there_once_and_behind(tmp_path: Path) -> None:
    base = trees.new(tmp_path)
    ours = f"{base}/cann/lib64"
    made = make(tmp_path, LD_LIBRARY_PATH=f"/mine:{ours}::/mine:", PATH="/usr/bin",
                PYTHONPATH="/my/modules")
    libraries = parts(made, "LD_LIBRARY_PATH")
    assert libraries[-1] == "/mine"
    assert libraries.count(ours) == 1
    assert "" not in libraries
    assert parts(made, "PATH")[-1] == "/usr/bin"
    assert parts(made, "PYTHONPATH")[-1] == "/my/modules"
    # Made anew from what it has made, it is the same.
    assert make(tmp_path, **dict(made.variables)).variables == made.variables


def test_libraries_of_another_toolkit_and_of_the_other_atb_do_not_mix(tmp_path: Path) -> None:
    base = trees.old(tmp_path)
    trees.toolkit(base / "cann-9.0.0", "9.0.0")
    (base / "cann").symlink_to("cann-9.0.0")
    torch = trees.torch(tmp_path / "torch", 1)
    others = [f"{base}/ascend-toolkit/latest/lib64", f"{base}/ascend-toolkit/8.1.RC1/lib64",
              f"{base}/nnal/atb/latest/atb/cxx_abi_0/lib"]
    made = make(tmp_path, Stack("0.22.1rc1", torch_folder=str(torch)),
                LD_LIBRARY_PATH=":".join([*others, "/mine"]),
                PYTHONPATH=f"{base}/ascend-toolkit/latest/python/site-packages")
    assert made.variables["ASCEND_HOME_PATH"] == f"{base}/cann"
    assert made.variables["ATB_HOME_PATH"].endswith("cxx_abi_1")
    assert not set(others) & set(parts(made, "LD_LIBRARY_PATH"))
    assert parts(made, "LD_LIBRARY_PATH")[-1] == "/mine"
    assert not any("8.1.RC1" in os.path.realpath(part) for part in parts(made, "PYTHONPATH"))


def test_nothing_found_still_has_the_switches(tmp_path: Path) -> None:
    made = make(tmp_path, LEGACY, LD_LIBRARY_PATH="/mine")
    assert not made.places.can_start
    assert not {"ASCEND_HOME_PATH", "ATB_HOME_PATH", "LD_LIBRARY_PATH"} & set(made.variables)
    assert made.variables["VLLM_USE_V1"] == "0"


@pytest.mark.parametrize("form", [0, 1])
def test_atb_follows_the_installed_torch(tmp_path: Path, form: int) -> None:
    base = trees.new(tmp_path)
    torch = trees.torch(tmp_path / "site/torch", form)
    made = make(tmp_path, Stack("0.18.0", torch_folder=str(torch)),
                ATB_HOME_PATH=f"{base}/nnal/atb/latest/atb/cxx_abi_{1 - form}")
    assert made.variables["ATB_HOME_PATH"] == f"{base}/nnal/atb/latest/atb/cxx_abi_{form}"
    assert parts(made, "LD_LIBRARY_PATH")[0] == f"{base}/nnal/atb/latest/atb/cxx_abi_{form}/lib"


@pytest.mark.parametrize("top", [True, False])
def test_atb_s_own_switches_are_read_and_its_script_is_not_run(tmp_path: Path, top: bool) -> None:
    home = trees.nnal(tmp_path, "8.5.0", top=top)
    assert declared(f"{home}/latest/atb/cxx_abi_1") == {
        "ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE": "0",
        "ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT": "5",
        "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE": "1", "LCCL_PARALLEL": "0"}
    assert not list(tmp_path.rglob("was-run"))


def test_operators_that_vllm_ascend_brings_are_found_by_the_loader(tmp_path: Path) -> None:
    trees.new(tmp_path)
    package = tmp_path / "site/vllm_ascend"
    library = package / "_cann_ops_custom/vendors/vllm-ascend/op_api/lib"
    trees.file(library / "libcust_opapi.so")
    made = make(tmp_path, Stack("0.23.0", ascend_folder=str(package)))
    assert str(library) in parts(made, "LD_LIBRARY_PATH")
    assert custom_operators("") == []


# --- put to use


def test_a_process_started_with_it_loads_libraries_and_modules(tmp_path: Path) -> None:
    machine = platform.machine()
    base = trees.new(tmp_path, machine=machine)
    if not trees.compile_library(base / "driver/lib64/driver/libascend_hal.so",
                                 'extern "C" int hal() { return 7; }'):
        pytest.skip("there is no C++ compiler to make libraries with")
    trees.compile_library(base / f"cann/{machine}-linux/lib64/libascendcl.so",
                          'extern "C" int acl() { return 8; }')
    for form in (0, 1):
        trees.compile_library(
            base / f"nnal/atb/latest/atb/cxx_abi_{form}/lib/libatb.so",
            f'extern "C" int form() {{ return {form}; }}')
    torch = trees.torch(tmp_path / "torch", 0)
    before = dict(os.environ)
    made = find_and_build(Stack("0.18.0", torch_folder=str(torch)), before,
                          home=str(tmp_path / "home"), root=str(tmp_path))
    assert before == dict(os.environ)
    said = subprocess.run(
        [sys.executable, "-c",
         "import ctypes, shutil, te_of_cann; load = ctypes.CDLL;"
         "print(load('libascend_hal.so').hal(), load('libascendcl.so').acl(),"
         " load('libatb.so').form(), te_of_cann.VERSION, shutil.which('ccec_of_cann'))"],
        env={**before, **made.variables}, capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["7", "8", "0", "8.5.1", f"{base}/cann/bin/ccec_of_cann"]


def test_a_shell_takes_it_in(tmp_path: Path) -> None:
    root = tmp_path / "it's $HOME `odd`"
    base = trees.new(root)
    odd = "a'b\"c $d\n`e`"
    environ = {"PATH": f"/opt/{odd}:{os.environ['PATH']}", "VLLM_USE_V1": "0", "KEPT": "1"}
    made = make(root, **environ)
    script = "\n".join(made.shell()) + f"\nexec {sys.executable} -c 'import json, os; " \
        "print(json.dumps(dict(os.environ)))'"
    shell = shutil.which("sh")
    assert shell is not None
    got = json.loads(subprocess.run([shell, "-c", script], env=environ, capture_output=True,
                                    text=True, check=True).stdout)
    expected = dict(environ)
    made.apply(expected)
    assert {name: got.get(name) for name in expected} == expected
    assert "VLLM_USE_V1" not in got
    assert got["ASCEND_HOME_PATH"] == f"{base}/cann"


def python39() -> str:
    """A Python 3.9, where there is one."""
    return pythons.python39() or pytest.skip("there is no Python 3.9")


SCRIPT = """
import os, sys
from npu.environment import Stack, find_and_build, restart
with open(sys.argv[1], "a") as log:
    log.write("start\\n")
made = find_and_build(Stack(ascend="0.8.5rc1", vllm="0.8.5.post1"), root=sys.argv[2], home="/x",
                      machine="aarch64")
restart(made)
print(os.environ["VLLM_USE_V1"], os.environ["LD_LIBRARY_PATH"], *sys.argv[3:])
"""


@pytest.mark.parametrize("which", ["own", "3.9"])
def test_the_modules_by_themselves_start_a_script_again(tmp_path: Path, which: str) -> None:
    interpreter = sys.executable if which == "own" else python39()
    base = trees.old(tmp_path / "root")
    package = tmp_path / "scripts/npu"
    package.mkdir(parents=True)
    trees.file(package / "__init__.py")
    for name in ALONE:
        shutil.copy(Path(desktop.engines.ascend.__file__).parent / f"{name}.py", package)
    script = trees.file(tmp_path / "scripts/run.py", SCRIPT)
    log = tmp_path / "log"
    environ = {name: value for name, value in os.environ.items()
               if not name.startswith(("VLLM", "ASCEND", "ATB", "PYTHON", "LD_"))}
    said = subprocess.run(
        [interpreter, str(script), str(log), str(tmp_path / "root"), "an argument"],
        env=environ, capture_output=True, text=True, check=True, cwd=tmp_path)
    value, libraries, *rest = said.stdout.split()
    assert value == "0"
    assert libraries.split(":")[0] == f"{base}/nnal/atb/latest/atb/cxx_abi_1/lib"
    assert rest == ["an", "argument"]
    assert log.read_text() == "start\nstart\n"


@pytest.mark.parametrize("name", ALONE)
def test_they_are_python_3_9_and_need_the_standard_library_only(name: str) -> None:
    file = Path(desktop.engines.ascend.__file__).parent / f"{name}.py"
    tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        for each in names:
            assert each.partition(".")[0] in sys.stdlib_module_names


# --- how torch spells C++ strings


@pytest.mark.parametrize("form", [0, 1])
def test_torch_s_form_from_its_symbols(tmp_path: Path, form: int) -> None:
    assert torchabi.of(str(trees.torch(tmp_path, form))) == form


@pytest.mark.parametrize("form", [0, 1])
def test_torch_s_form_from_a_library_that_a_compiler_made(tmp_path: Path, form: int) -> None:
    source = ("#include <string>\nnamespace c10 { struct SourceLocation { const char *a; };\n"
              "struct Error { Error(SourceLocation, std::string); };\n"
              "Error::Error(SourceLocation, std::string) {} }\n")
    (tmp_path / "lib").mkdir()
    if not trees.compile_library(tmp_path / "lib/libc10.so", source,
                                 f"-D_GLIBCXX_USE_CXX11_ABI={form}"):
        pytest.skip("there is no C++ compiler")
    assert torchabi.of(str(tmp_path)) == form


def test_torch_s_form_from_the_flags_it_hands_on(tmp_path: Path) -> None:
    trees.file(tmp_path / "share/cmake/Torch/TorchConfig.cmake",
               'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")\n')
    assert torchabi.of(str(tmp_path)) == 0


def test_torch_s_form_is_not_known_without_one(tmp_path: Path) -> None:
    assert torchabi.of(str(tmp_path)) is None
    trees.file(tmp_path / "lib/libc10.so")
    assert torchabi.of(str(tmp_path)) is None


@pytest.mark.engines
def test_torch_s_form_is_what_torch_says(engine_python: Path) -> None:
    said = subprocess.run(
        [str(engine_python), "-c",
         "import torch; print(torch.__path__[0]); print(int(torch.compiled_with_cxx11_abi()))"],
        capture_output=True, text=True, check=True).stdout.split("\n")
    assert torchabi.of(said[0]) == int(said[1])


def test_places_alone_make_an_environment(tmp_path: Path) -> None:
    empty = Places("aarch64", None, (), (), "", None, ())
    made = build(empty, Stack(), {})
    assert set(made.variables) == {
        "TOKENIZERS_PARALLELISM", "HCCL_WHITELIST_DISABLE", "ASCEND_GLOBAL_LOG_LEVEL",
        "ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE", "ATB_OPSRUNNER_SETUP_CACHE_ENABLE"}
